//! Simulated drives beside what data sheets and papers say of their class.

use std::collections::BTreeMap;

use iolab_model::{Ns, Sector, Seed};
use iolab_sim::profile::Value;
use iolab_sim::queue::{BlockQueue, QueueParameters};
use iolab_sim::sched::SchedulerKind;
use iolab_sim::{Bio, BioId, Ended, Flags, Layer, Operation, ProcessId, Submitter, device};

const EPOCH: Ns = Ns::from_seconds(1_000);

fn drive(name: &str, changes: &[(&str, f64)]) -> Box<dyn Layer> {
    let values: BTreeMap<String, Value> =
        changes.iter().map(|&(name, value)| (name.to_owned(), Value::Number(value))).collect();
    let profile = device::profile(name, &values).unwrap();
    device::build(&profile, Seed(5), "tested").unwrap()
}

/// Ends and response times that a closed loop has seen.
struct Seen {
    ends: Vec<Ns>,
    responses: Vec<Ns>,
}

impl Seen {
    /// Operations per second in the last half of the ends.
    fn late_rate(&self) -> f64 {
        let half = self.ends.len() / 2;
        let time = self.ends[self.ends.len() - 1].since(self.ends[half]);
        (self.ends.len() - 1 - half) as f64 / (time.0 as f64 / 1e9)
    }

    fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.responses.clone();
        sorted.sort_unstable();
        sorted[((sorted.len() - 1) as f64 * share) as usize].0 as f64 / 1e3
    }
}

/// Keeps a number of commands in flight; `next` makes each, by its number.
fn closed(
    layer: &mut dyn Layer,
    (depth, count): (u32, u32),
    mut next: impl FnMut(u32) -> (Operation, u64, u32, u32),
) -> Seen {
    let mut seen = Seen { ends: Vec::new(), responses: Vec::new() };
    let (mut now, mut done, mut count_sent, mut begun) = (EPOCH, Vec::new(), 0, BTreeMap::new());
    let mut send = |layer: &mut dyn Layer, now: Ns, begun: &mut BTreeMap<u32, Ns>| {
        if count_sent == count {
            return;
        }
        let (operation, sector, sectors, owner) = next(count_sent);
        let submitter = Submitter { process: ProcessId(owner), ..Submitter::default() };
        let (id, flags) = (BioId(count_sent), Flags::SYNC);
        layer.submit(
            now,
            &Bio { id, operation, sector: Sector(sector), sectors, flags, submitter, segments: 0 },
        );
        begun.insert(count_sent, now);
        count_sent += 1;
    };
    for _ in 0..depth {
        send(layer, now, &mut begun);
    }
    while !begun.is_empty() {
        let at = layer.next_event();
        assert_ne!(at, Ns::MAX, "commands are lost");
        now = now.max(at);
        layer.advance(now, &mut done);
        for Ended { id, .. } in done.drain(..) {
            seen.responses.push(now.since(begun.remove(&id.0).unwrap()));
            seen.ends.push(now);
            send(layer, now, &mut begun);
        }
    }
    seen
}

fn random(layer: &mut dyn Layer, operation: Operation, depth: u32, count: u32) -> Seen {
    let places = layer.info().capacity.0 / 8;
    let mut random = Seed(9).stream("places", 0);
    closed(layer, (depth, count), |_| (operation, random.below(places) * 8, 8, 1))
}

fn within(what: &str, value: f64, range: (f64, f64)) {
    println!("{what}: {value:.1} in {range:?}");
    assert!(range.0 <= value && value <= range.1, "{what}: {value}, not in {range:?}");
}

/// A disk with a full write cache writes 150 to 400 random blocks per second, as its firmware sorts
/// few of them; 440 is the data sheet's number for the 16 TB drive.
#[test]
fn sustained_random_writes_are_those_of_their_class() {
    for (name, range) in [
        ("sata7200-4tb", (150.0, 400.0)),
        ("nearline-4tb", (150.0, 400.0)),
        ("nearline-16tb", (300.0, 480.0)),
    ] {
        // A small cache is full soon; the rate does not depend on its size.
        let mut disk = drive(name, &[("write_cache", 16_384.0)]);
        let seen = random(&mut *disk, Operation::Write, 32, 16_000);
        within(name, seen.late_rate(), range);
        let alone = random(&mut *disk, Operation::Write, 1, 1_000);
        assert!(alone.quantile(0.95) > 1.5 * alone.quantile(0.2), "{name}: all the same");
    }
}

/// Average seek 8.2 ms (HGST Ultrastar 7K4000) and half a turn, 4.17 ms; 170 reads per second with
/// 16 at a time (Seagate Exos X16), half as much again to twice and a half of one at a time.
#[test]
fn random_reads_and_what_queueing_gains() {
    for (name, alone, queued) in [
        ("nearline-4tb", (74.0, 84.0), (125.0, 190.0)),
        ("nearline-16tb", (74.0, 84.0), (145.0, 195.0)),
    ] {
        let one = random(&mut *drive(name, &[]), Operation::Read, 1, 2_000).late_rate();
        within(&format!("{name}, one at a time"), one, alone);
        let many = random(&mut *drive(name, &[]), Operation::Read, 16, 4_000).late_rate();
        within(&format!("{name}, sixteen"), many, queued);
        within(&format!("{name}, gain"), many / one, (1.5, 2.5));
    }
}

/// 83 to 175 MB/s (Seagate Constellation ES.3); 261 MB/s outside (Exos X16), 190 (Archive v2); one
/// command at a time or many, the rate is that of the media.
#[test]
fn outer_and_inner_rates() {
    for (name, outer, inner) in [
        ("nearline-4tb", (166.0, 184.0), (79.0, 91.0)),
        ("nearline-16tb", (248.0, 274.0), (120.0, 140.0)),
        ("smr-8tb-inside", (180.0, 200.0), (85.0, 100.0)),
    ] {
        for (from, range) in [(0.0, outer), (0.999, inner)] {
            for (depth, sectors) in [(1, 1_024), (2, 1_024), (4, 2_048), (16, 256)] {
                let mut disk = drive(name, &[]);
                let begin = (disk.info().capacity.0 as f64 * from) as u64 / 8 * 8;
                let seen = closed(&mut *disk, (depth, 300), |n| {
                    let at = begin + u64::from(n) * u64::from(sectors);
                    (Operation::Read, at, sectors, 1)
                });
                let rate = seen.late_rate() * f64::from(sectors) * 512.0 / 1e6;
                within(name, rate, range);
            }
        }
    }
}

/// Rate of four readers of 64 KiB, each in sequence and with one operation at a time, MiB/s.
fn four_readers(scheduler: SchedulerKind, name: &str) -> f64 {
    let parameters = QueueParameters { scheduler, ..QueueParameters::default() };
    let mut queue = BlockQueue::new(EPOCH, &parameters, drive(name, &[])).unwrap();
    let part = queue.info().capacity.0 / 4 / 128 * 128;
    let mut places = [0, part, 2 * part, 3 * part];
    let (mut now, mut done, mut bytes) = (EPOCH, Vec::new(), 0_u64);
    let mut submit = |queue: &mut BlockQueue, now: Ns, process: u32| {
        let place = &mut places[process as usize];
        let submitter = Submitter { process: ProcessId(process + 1), ..Submitter::default() };
        let (id, operation, flags) = (BioId(process), Operation::Read, Flags::SYNC);
        let sector = Sector(*place);
        queue.submit(
            now,
            &Bio { id, operation, sector, sectors: 128, flags, submitter, segments: 0 },
        );
        *place += 128;
    };
    (0..4).for_each(|process| submit(&mut queue, now, process));
    let seconds = 20;
    while now.since(EPOCH) < Ns::from_seconds(seconds) {
        now = now.max(queue.next_event());
        queue.advance(now, &mut done);
        for Ended { id, .. } in done.drain(..) {
            bytes += 65_536;
            submit(&mut queue, now, id.0);
        }
    }
    bytes as f64 / seconds as f64 / 1_048_576.0
}

/// Iyer and Druschel (2001): schedulers that do not wait lose up to a factor of four to seeks; the
/// read-ahead of the drive keeps it from being more.
#[test]
fn four_readers_lose_a_few_times_without_waiting() {
    for name in ["sata7200-4tb", "nearline-16tb"] {
        let rate = |kind| four_readers(kind, name);
        let noop = rate(SchedulerKind::Noop);
        let deadline = rate(SchedulerKind::Deadline);
        let anticipatory = rate(SchedulerKind::Anticipatory);
        let cfq = rate(SchedulerKind::Cfq);
        println!("{name}: {noop:.1} {deadline:.1} {anticipatory:.1} {cfq:.1} MiB/s");
        assert!(noop > 20.0, "{noop}");
        assert!(deadline >= 0.99 * noop, "{deadline} {noop}");
        for waiting in [anticipatory, cfq] {
            within("gain", waiting / noop, (1.2, 4.0));
        }
    }
}

/// Data sheets: operations per second with one and with many at a time.
#[test]
fn flash_drives_have_the_rates_of_their_data_sheets() {
    for (name, alone, many) in [
        ("sata-870evo-250", 13_000.0, 98_000.0),
        ("nvme-970evoplus-250", 17_000.0, 250_000.0),
        ("nvme-980pro-250", 22_000.0, 500_000.0),
    ] {
        let mut fresh = drive(name, &[]);
        fresh.age();
        let depth = if many > 200_000.0 { 128 } else { 32 };
        let one = random(&mut *fresh, Operation::Read, 1, 4_000);
        within(name, one.late_rate(), (0.9 * alone, 1.1 * alone));
        let spread = one.quantile(0.99) / one.quantile(0.05);
        assert!((1.15..4.0).contains(&spread), "{name}: {spread}");
        let all = random(&mut *fresh, Operation::Read, depth, 60_000).late_rate();
        within(name, all, (0.85 * many, 1.1 * many));
    }
}

/// A1: at least 1500 random reads and 500 random writes per second. eMMC: a few thousand.
#[test]
fn cards_and_soldered_flash() {
    for (name, reads, writes) in [
        ("sd-a1-32g", (1_000.0, 3_000.0), (500.0, 2_500.0)),
        ("emmc51-32g", (4_000.0, 9_000.0), (3_000.0, 16_000.0)),
    ] {
        let mut card = drive(name, &[]);
        card.age();
        within(name, random(&mut *card, Operation::Read, 1, 2_000).late_rate(), reads);
        within(name, random(&mut *card, Operation::Write, 1, 4_000).late_rate(), writes);
    }
}

/// Random writes are fast while the cache of tracks has room, and then wait for bands of 30 MiB.
#[test]
fn a_shingled_disk_slows_down_when_its_cache_is_full() {
    let mut disk = drive("smr-8tb", &[("cache_extents", 3_000.0)]);
    let seen = random(&mut *disk, Operation::Write, 4, 3_060);
    let time = |from: usize, to: usize| seen.ends[to].since(seen.ends[from]).0 as f64 / 1e9;
    let fast = 2_900.0 / time(0, 2_900);
    let slow = 40.0 / time(3_010, 3_050);
    assert!(fast > 200.0 && slow < 12.0, "{fast} {slow}");
    let mut disk = drive("smr-8tb", &[]);
    let band = 61_440_u64;
    let seen = closed(&mut *disk, (4, 3_000), |n| {
        (Operation::Write, band * 100 + u64::from(n) * 1_024, 1_024, 1)
    });
    within("in order", seen.late_rate() * 1_024.0 * 512.0 / 1e6, (120.0, 210.0));
}
