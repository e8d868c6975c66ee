//! Random workloads on a tiny drive: nothing is lost, nothing is done twice, nothing contradicts.

use iolab_model::{Ns, Sector, Seed};
use proptest::prelude::*;

use super::{counter, profile};
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, Submitter};
use crate::api::layer::Layer;
use crate::device::ssd::Ssd;
use crate::profile::Value;

/// A drive of 2 x 2 dies of 2 planes, blocks of 4 pages of 8 KiB: 12 of 18 blocks are addressable.
fn tiny(policy: &str, victim: &str, is_independent: bool) -> Ssd {
    let mut profile = profile(
        "nvme-pc601-256",
        &[
            ("logical_capacity", 3_145_728.0),
            ("over_provisioning", 0.5),
            ("channels", 2.0),
            ("page_size", 8_192.0),
            ("pages_per_block", 4.0),
            ("write_cache", 262_144.0),
            ("slc_capacity", 524_288.0),
            ("slc_idle_time", 1.0),
            ("map_cache", 8_192.0),
            ("destage_start", 0.25),
            ("read_burst", 4.0),
        ],
    );
    let values = [
        ("write_cache_policy".to_owned(), Value::Text(policy.to_owned())),
        ("gc_victim".to_owned(), Value::Text(victim.to_owned())),
        ("independent_plane_reads".to_owned(), Value::Switch(is_independent)),
        ("program_suspend".to_owned(), Value::Switch(true)),
    ];
    profile.override_with(&values.into()).unwrap();
    Ssd::from_profile(&profile, Seed(7), "tiny").unwrap()
}

/// Kind (of ten), share of the capacity where it starts, sectors, forced, pause before it in us.
type Ask = (u8, f64, u32, bool, u64);

fn to_bio(id: u32, &(kind, place, sectors, is_forced, _): &Ask, capacity: u64) -> Bio {
    let operation = match kind {
        0..=2 => Operation::Read,
        3..=7 => Operation::Write,
        8 => Operation::Discard,
        _ => Operation::Flush,
    };
    let sectors = if operation == Operation::Flush { 0 } else { sectors };
    let sector = (place * (capacity - u64::from(sectors)) as f64) as u64;
    let flags = match (operation, is_forced) {
        (Operation::Write, true) => Flags::FUA,
        _ => Flags::NONE,
    };
    let submitter = Submitter::default();
    Bio { id: BioId(id), operation, sector: Sector(sector), sectors, flags, submitter, segments: 0 }
}

/// Runs all; answers when each bio ended, in the order in which they did.
fn run(drive: &mut Ssd, asks: &[Ask]) -> Result<Vec<(u32, Ns)>, TestCaseError> {
    let capacity = drive.info().capacity.0;
    let (mut now, mut ended, mut done) = (Ns(0), Vec::new(), Vec::new());
    for (id, ask) in asks.iter().enumerate() {
        let until = now + Ns(ask.4 * 1_000);
        while drive.next_event() <= until {
            step(drive, &mut now, &mut done, &mut ended)?;
        }
        now = until;
        drive.submit(now, &to_bio(id as u32, ask, capacity));
    }
    while drive.next_event() < Ns::MAX {
        step(drive, &mut now, &mut done, &mut ended)?;
    }
    Ok(ended)
}

fn step(
    drive: &mut Ssd,
    now: &mut Ns,
    done: &mut Vec<Ended>,
    ended: &mut Vec<(u32, Ns)>,
) -> Result<(), TestCaseError> {
    prop_assert!(drive.next_event() >= *now, "time went back");
    *now = drive.next_event();
    drive.advance(*now, done);
    ended.extend(done.drain(..).map(|Ended { id: BioId(id), .. }| (id, *now)));
    for die in 0..drive.parameters.geometry.dies() {
        let free = drive.ftl.free_blocks(die);
        prop_assert!(free >= drive.parameters.collection.hard_blocks, "{free} free blocks");
    }
    Ok(())
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ask = (0_u8..10, 0.0..1.0, 1_u32..160, prop::bool::weighted(0.1), 0_u64..400);
    prop::collection::vec(ask, 1..400)
}

fn check_bytes(drive: &Ssd) -> Result<(), TestCaseError> {
    let count = |name| counter(drive, name) as u64;
    let dirty = count("cache_dirty_bytes");
    let host = count("host_written_unit_bytes") - count("cache_absorbed_bytes") - dirty;
    prop_assert_eq!(host, count("flash_host_bytes"));
    let programmed = host + count("gc_moved_bytes") + count("flash_folded_bytes");
    prop_assert_eq!(programmed, count("flash_programmed_bytes"));
    drive.check().map_err(TestCaseError::fail)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_bio_ends_once_and_bytes_are_conserved(
        asks in asks(),
        policy in prop::sample::select(vec!["volatile", "protected", "through"]),
        victim in prop::sample::select(vec!["greedy", "choices"]),
        is_independent in any::<bool>(),
        is_used in any::<bool>(),
    ) {
        let mut drive = tiny(policy, victim, is_independent);
        if is_used {
            drive.precondition();
        }
        let ended = run(&mut drive, &asks)?;
        let mut ids: Vec<u32> = ended.iter().map(|&(id, _)| id).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..asks.len() as u32).collect::<Vec<_>>());
        check_bytes(&drive)?;
        prop_assert_eq!(drive.in_flight, 0);
        prop_assert_eq!(drive.cache.taken(), drive.cache.dirty(), "room in the cache got lost");
        for die in &drive.dies {
            prop_assert!(die.reads.is_empty() && die.loaded.is_none() && die.reading == 0);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(asks in asks()) {
        let mut runs = [(); 2].map(|()| {
            let mut drive = tiny("volatile", "choices", true);
            drive.precondition();
            drive
        });
        let first = run(&mut runs[0], &asks)?;
        let second = run(&mut runs[1], &asks)?;
        prop_assert_eq!(first, second);
        prop_assert_eq!(runs[0].counters(), runs[1].counters());
    }

    #[test]
    fn a_flush_covers_every_write_that_had_ended(asks in asks()) {
        let mut drive = tiny("volatile", "greedy", false);
        run(&mut drive, &asks)?;
        let flush = (9, 0.0, 0, false, 0);
        let start = drive.idle_since;
        drive.submit(start, &to_bio(0, &flush, drive.info().capacity.0));
        let (mut now, mut done) = (start, Vec::new());
        while done.is_empty() {
            now = drive.next_event();
            drive.advance(now, &mut done);
        }
        prop_assert_eq!(drive.cache.dirty(), 0);
        prop_assert!(now >= start + drive.parameters.host.flush);
    }
}

/// Long enough that every block is collected many times.
#[test]
fn a_long_run_keeps_map_and_space_in_order() {
    let mut drive = tiny("volatile", "greedy", false);
    let mut stream = Seed(2).stream("long", 0);
    let asks: Vec<Ask> = (0..60_000)
        .map(|_| {
            let kind = [3, 4, 5, 0, 1, 8, 9][stream.below(200).min(6) as usize];
            let kind = if stream.below(4) > 0 { 3 } else { kind };
            (kind, stream.unit(), 1 + stream.below(64) as u32, false, stream.below(300))
        })
        .collect();
    let ended = run(&mut drive, &asks).unwrap();
    assert_eq!(ended.len(), asks.len());
    check_bytes(&drive).unwrap();
    assert!(counter(&drive, "erases") > 10_000.0, "{}", counter(&drive, "erases"));
}
