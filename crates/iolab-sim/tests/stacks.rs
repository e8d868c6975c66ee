//! Random stacks under random work: what must hold whatever the scheduler, volume and device.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use iolab_model::{Ns, Sector, Seed};
use iolab_sim::queue::{BlockQueue, QueueParameters};
use iolab_sim::sched::SchedulerKind;
use iolab_sim::volume::{VolumeKind, VolumeParameters};
use iolab_sim::{
    Bio, BioId, Ended, Flags, Layer, Operation, Priority, PriorityClass, ProcessId, Submitter,
    device, profile::Value, volume,
};
use proptest::prelude::*;

const EPOCH: Ns = Ns::from_seconds(1_000);
/// Everything ends long before this, or something was lost.
const PATIENCE: Ns = Ns::from_seconds(3_600);

#[derive(Clone, Debug)]
struct Work {
    bios: u32,
    in_flight: u32,
    processes: u32,
    read_share: u64,
    refuse_every: u32,
    /// Write-back throttling; off in what is compared with older numbers.
    wbt_lat_usec: Option<i32>,
    seed: u64,
}

fn work() -> impl Strategy<Value = Work> {
    let counts = (50_u32..200, 1_u32..48, 1_u32..6, 0_u64..=4, 0_u32..8);
    let throttling = prop::sample::select(vec![None, Some(0), Some(-1)]);
    (counts, throttling, any::<u64>()).prop_map(|(counts, wbt_lat_usec, seed)| {
        let (bios, in_flight, processes, read_share, refuse_every) = counts;
        Work { bios, in_flight, processes, read_share, refuse_every, wbt_lat_usec, seed }
    })
}

fn devices() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "fixed-100us",
        "sata7200-4tb",
        "scsi10k-1998-nvram",
        "sata-2009",
        "nvme-pc601-256",
        "vmware-guest",
    ])
}

fn device(name: &str, index: u32) -> Box<dyn Layer> {
    let mut values = BTreeMap::new();
    if name.starts_with("sata-") || name.starts_with("nvme-") {
        // A small drive collects garbage soon, and does not take long to set up.
        values.insert("logical_capacity".to_owned(), Value::Number(64.0 * 1024.0 * 1024.0));
    }
    let profile = device::profile(name, &values)
        .and_then(|p| device::build(&p, Seed(3), &format!("d{index}")).map(|_| p))
        .or_else(|_| device::profile(name, &BTreeMap::new()))
        .unwrap();
    device::build(&profile, Seed(3), &format!("d{index}")).unwrap()
}

/// A queue over the device, or over a hardware array of four of them.
fn stack(
    scheduler: SchedulerKind,
    name: &str,
    layout: Option<VolumeKind>,
    work: &Work,
) -> BlockQueue {
    let below = match layout {
        None => device(name, 0),
        Some(layout) => {
            let mut parameters = VolumeParameters::new(layout);
            if !matches!(layout, VolumeKind::Single | VolumeKind::Raid1) {
                parameters.unit_bytes = Some(65_536);
            }
            let members = (0..4).map(|index| device(name, index)).collect();
            volume::build(members, &parameters).unwrap()
        }
    };
    let &Work { refuse_every, wbt_lat_usec, .. } = work;
    let parameters =
        QueueParameters { scheduler, refuse_every, wbt_lat_usec, ..QueueParameters::default() };
    BlockQueue::new(Ns(0), &parameters, below).unwrap()
}

/// Result of a run.
#[derive(Debug, PartialEq)]
struct Outcome {
    hash: u64,
    ended: Ns,
    longest: Ns,
    read_sectors: u64,
    write_sectors: u64,
}

/// Keeps `in_flight` bios going until all are done; every check of this file that concerns a single
/// run is made here.
fn run(queue: &mut BlockQueue, work: &Work) -> Outcome {
    let capacity = queue.info().capacity.0;
    let mut random = Seed(work.seed).stream("stacks", 0);
    let mut next = 0;
    let mut submitted: BTreeMap<u32, (Ns, Operation, u32)> = BTreeMap::new();
    let mut outcome =
        Outcome { hash: 0, ended: EPOCH, longest: Ns(0), read_sectors: 0, write_sectors: 0 };
    let mut submit = |queue: &mut BlockQueue, now: Ns, all: &mut BTreeMap<u32, _>| {
        let draw = random.next_u64();
        let sectors = 8 << (draw >> 60 & 3);
        let is_read = draw & 3 < work.read_share;
        let region = (capacity - 64).min(1 << 20);
        let process = next % work.processes;
        let bio = Bio {
            id: BioId(next),
            operation: if is_read { Operation::Read } else { Operation::Write },
            sector: Sector((draw >> 8) % (region / 8) * 8),
            sectors,
            flags: if draw & 16 == 0 { Flags::SYNC } else { Flags::NONE },
            submitter: Submitter {
                process: ProcessId(process),
                priority: Priority { class: PriorityClass::BestEffort, level: (process % 8) as u8 },
                cpu: 0,
            },
            segments: 0,
        };
        all.insert(next, (now, bio.operation, sectors));
        queue.submit(now, &bio);
        next += 1;
        next < work.bios
    };
    let mut has_more = true;
    while has_more && submitted.len() < work.in_flight as usize {
        has_more = submit(queue, EPOCH, &mut submitted);
    }
    let (mut now, mut done) = (EPOCH, Vec::new());
    while !submitted.is_empty() {
        let at = queue.next_event();
        assert!(at != Ns::MAX, "{} bios are lost: {submitted:?}", submitted.len());
        now = now.max(at);
        assert!(now.since(EPOCH) < PATIENCE, "no end in sight: {submitted:?}");
        queue.advance(now, &mut done);
        for Ended { id, .. } in done.drain(..) {
            let (since, operation, sectors) =
                submitted.remove(&id.0).expect("a bio ended twice, or was never submitted");
            outcome.longest = outcome.longest.max(now.since(since));
            match operation {
                Operation::Read => outcome.read_sectors += u64::from(sectors),
                _ => outcome.write_sectors += u64::from(sectors),
            }
            outcome.hash = (outcome.hash ^ now.0 ^ u64::from(id.0)).wrapping_mul(0x0100_0000_01b3);
            if has_more {
                has_more = submit(queue, now, &mut submitted);
            }
        }
    }
    outcome.ended = now;
    outcome
}

fn schedulers() -> impl Strategy<Value = SchedulerKind> {
    prop::sample::select(SchedulerKind::ALL.to_vec())
}

fn layouts() -> impl Strategy<Value = Option<VolumeKind>> {
    let mut all: Vec<Option<VolumeKind>> = VolumeKind::ALL.iter().copied().map(Some).collect();
    all.extend([None; 6]);
    prop::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_bytes_are_conserved_and_littles_law_is_exact(
        scheduler in schedulers(),
        name in devices(),
        layout in layouts(),
        work in work(),
    ) {
        let mut queue = stack(scheduler, name, layout, &work);
        let outcome = run(&mut queue, &work);
        let accounting = queue.accounting();
        // Every byte asked for went below exactly once: merging changes requests, not bytes.
        prop_assert_eq!(accounting.sectors, [outcome.read_sectors, outcome.write_sectors]);
        // Little: the integral of the number of requests is the sum of their times.
        prop_assert_eq!(accounting.waiting.area, accounting.wait_total);
        prop_assert_eq!(accounting.active.area, accounting.service_total);
        prop_assert!(accounting.active.busy <= outcome.ended.since(EPOCH));
    }

    #[test]
    fn the_same_seed_gives_the_same_events(
        scheduler in schedulers(),
        name in devices(),
        layout in layouts(),
        work in work(),
    ) {
        let first = run(&mut stack(scheduler, name, layout, &work), &work);
        let second = run(&mut stack(scheduler, name, layout, &work), &work);
        prop_assert_eq!(first, second);
    }
}

/// Numbers that are the same on every machine: time is integer, and no library function of the
/// platform takes part in it. A change here changes results and belongs into the change log.
#[test]
fn event_hashes_are_what_they_were() {
    let work = Work {
        bios: 400,
        in_flight: 16,
        processes: 4,
        read_share: 3,
        refuse_every: 0,
        wbt_lat_usec: Some(0),
        seed: 7,
    };
    let mut lines = String::new();
    for &scheduler in SchedulerKind::ALL {
        for name in ["sata7200-4tb", "nvme-pc601-256", "vmware-guest"] {
            let outcome = run(&mut stack(scheduler, name, None, &work), &work);
            writeln!(lines, "{scheduler} {name} {:016x} {}", outcome.hash, outcome.ended.0)
                .unwrap();
        }
    }
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/scheduler/event-hashes.txt");
    if std::env::var_os("IOLAB_BLESS").is_some() {
        std::fs::write(path, &lines).unwrap();
    }
    let known = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(lines, known, "run with IOLAB_BLESS=1 after looking at the difference");
}

#[test]
fn more_hardware_is_never_slower_where_it_cannot_be() {
    let work = Work {
        bios: 300,
        in_flight: 24,
        processes: 3,
        read_share: 4,
        refuse_every: 0,
        wbt_lat_usec: Some(0),
        seed: 11,
    };
    let time = |depth: u32| {
        let fixed = iolab_sim::device::fixed::Fixed::new(Ns::from_us(100), depth, false);
        let parameters =
            QueueParameters { scheduler: SchedulerKind::Noop, ..QueueParameters::default() };
        let mut queue = BlockQueue::new(Ns(0), &parameters, Box::new(fixed)).unwrap();
        run(&mut queue, &work).ended
    };
    let times: Vec<Ns> = [1, 2, 4, 8, 16, 32].map(time).to_vec();
    assert!(times.is_sorted_by(|slow, fast| slow >= fast), "{times:?}");
}
