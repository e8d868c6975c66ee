//! Properties that hold for every workload.

use proptest::prelude::*;

use super::*;

/// A bio in words: operation, position as a share of 2^16, sectors, flags, pause in us.
type Word = (u8, u16, u32, u8, u32);

fn words() -> impl Strategy<Value = Vec<Word>> {
    proptest::collection::vec((0_u8..10, 0_u16..400, 1_u32..200, 0_u8..12, 0_u32..3_000), 1..120)
}

fn drive(choice: usize, seed: u64) -> Disk {
    let small = [
        ("write_cache", number(600.0)),
        ("write_cache_extents", number(5.0)),
        ("read_segments", number(2.0)),
        ("segment_length", number(300.0)),
    ];
    match choice {
        0 => disk("scsi7200-1995", &[], seed),
        1 => disk("atlas3", &[("queued_write_loss", text("exact"))], seed),
        2 => disk("sata7200-4tb", &small, seed),
        3 => disk("cheetah9lp-1998", &small[..2], seed),
        4 => disk("scsi7200-1995", &[("queued_write_loss", text("none"))], seed),
        _ => disk("c2200a-1990", &[("write_cache", number(300.0))], seed),
    }
}

/// Sends everything, at most `depth` at once; answers what was done when, and when all ended.
fn run(disk: &mut Disk, words: &[Word], depth: usize) -> (Vec<Response>, Ns) {
    let spread = disk.info().capacity.0 / 500;
    let mut host = Host::new();
    let mut done = Vec::new();
    let mut in_flight = 0;
    for (id, &(kind, place, sectors, flag, pause)) in words.iter().enumerate() {
        host.idle_counting(disk, host.now + Ns::from_us(u64::from(pause)), &mut in_flight);
        while in_flight >= depth {
            done.clear();
            host.step(disk, &mut done);
            in_flight -= done.len();
        }
        let operation = match kind {
            0 => Operation::Flush,
            1..=5 => Operation::Write,
            _ => Operation::Read,
        };
        // Half of them close together, so that caches hit and writes overlap.
        let at = if place < 200 { u64::from(place) * 20 } else { u64::from(place) * spread };
        let sectors = if operation == Operation::Flush { 0 } else { sectors };
        let mut bio = bio(id as u32, operation, at, sectors);
        bio.flags = match flag {
            0 => Flags::FUA,
            1 => Flags::PREFLUSH,
            2 => Flags::FUA.with(Flags::PREFLUSH),
            _ => Flags::NONE,
        };
        disk.submit(host.now, &bio);
        host.sent.push(Response { sent: host.now, done: Ns::MAX });
        in_flight += 1;
    }
    while in_flight > 0 {
        done.clear();
        host.step(disk, &mut done);
        in_flight -= done.len();
    }
    // Let it destage everything.
    while disk.next_event() != Ns::MAX {
        host.step(disk, &mut done);
    }
    (host.sent, host.now)
}

impl Host {
    fn idle_counting(&mut self, disk: &mut Disk, until: Ns, in_flight: &mut usize) {
        let mut done = Vec::new();
        while disk.next_event() <= until {
            done.clear();
            self.step(disk, &mut done);
            *in_flight -= done.len();
        }
        self.now = until;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every bio is done exactly once (the host asserts "at most once" and that time does not go
    /// back), bytes and time add up, and nothing is busy for longer than it existed.
    #[test]
    fn nothing_is_lost(
        words in words(),
        choice in 0_usize..6,
        depth in 1_usize..20,
        seed in 0_u64..50,
    ) {
        let mut disk = drive(choice, seed);
        let (responses, _) = run(&mut disk, &words, depth);
        prop_assert!(responses.iter().all(|r| r.done != Ns::MAX && r.done > r.sent));
        let value = |name: &str| counter(&disk, name) as u64;
        prop_assert_eq!(value("read_bytes"), value("media_read_bytes") + value("cache_hit_bytes"));
        prop_assert_eq!(value("dirty_bytes"), 0);
        prop_assert_eq!(
            value("written_bytes"),
            value("media_written_bytes") + value("absorbed_bytes")
        );
        let phases = ["overhead_ns", "seek_ns", "rotation_ns", "transfer_ns", "bus_ns"];
        prop_assert_eq!(phases.map(value).iter().sum::<u64>(), value("busy_ns"));
        let sectors = |kind: fn(u8) -> bool| words.iter()
            .filter(|word| kind(word.0)).map(|word| u64::from(word.2) * 512).sum::<u64>();
        prop_assert_eq!(value("read_bytes"), sectors(|kind| kind > 5));
        prop_assert_eq!(value("written_bytes"), sectors(|kind| (1..=5).contains(&kind)));
    }

    #[test]
    fn busy_time_is_at_most_elapsed_time(
        words in words(),
        choice in 0_usize..6,
        depth in 1_usize..20,
    ) {
        let mut disk = drive(choice, 7);
        let (_, Ns(end)) = run(&mut disk, &words, depth);
        let busy = counter(&disk, "busy_ns") as u64;
        prop_assert!(busy <= end, "busy {busy} ns of {end} ns");
        prop_assert!(counter(&disk, "electronics_busy_ns") as u64 <= end);
    }

    #[test]
    fn the_same_seed_gives_the_same_times(
        words in words(),
        choice in 0_usize..6,
        seed in 0_u64..50,
    ) {
        let first = run(&mut drive(choice, seed), &words, 8);
        let second = run(&mut drive(choice, seed), &words, 8);
        prop_assert_eq!(first, second);
    }
}

#[test]
fn another_seed_gives_other_times() {
    let words: Vec<Word> = (0..40).map(|i| (7, 200 + i * 3, 8, 5, 10)).collect();
    assert_ne!(run(&mut drive(0, 1), &words, 4), run(&mut drive(0, 2), &words, 4));
}
