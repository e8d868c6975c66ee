//! The state machine of RAID 5 and 6 over recording members: counts, barriers, locks, losses.

use std::collections::BTreeMap;

use iolab_model::{Ns, Sector, Seed};
use proptest::prelude::*;

use super::super::parity::geometry::{Geometry, Role};
use super::super::testing::{Line, Log, bio, commands, counter, parameters, recorded, run};
use super::super::{ParityLayout, Tie, VolumeKind, VolumeParameters, build};
use super::fan_out::{SERVICE, closed_loop};
use super::geometry::layouts;
use super::plan::Twin;
use crate::api::bio::{Bio, Flags, Operation, ProcessId};
use crate::api::layer::Layer;
use crate::device::fixed::Fixed;
use VolumeKind::{Raid0, Raid5, Raid6};

const KIB: u32 = 2;
const UNIT: u64 = 128 * KIB as u64;

fn one_write(parameters: &VolumeParameters, members: u16, kib: (u64, u32)) -> (usize, usize) {
    let (mut volume, log) = recorded(parameters, members, 1 << 20, |_, _| ());
    let write = bio(0, Operation::Write, kib.0 * u64::from(KIB), kib.1 * KIB);
    run(&mut *volume, &[(Ns(0), write)]);
    commands(&log)
}

/// RAID-1 once more, through the machine: aligned writes on 4+1.
#[test]
fn raid_1_by_the_machine() {
    let found = [128, 256, 384, 512].map(|kib| one_write(&parameters(Raid5, UNIT), 5, (0, kib)));
    assert_eq!(found, [(2, 2), (2, 3), (1, 4), (0, 5)]);
}

/// RAID-3: 512 KiB on 4+1 misaligned by 128 KiB: 3 reads and 6 writes.
#[test]
fn raid_3_misaligned() {
    let (mut volume, log) = recorded(&parameters(Raid5, UNIT), 5, 1 << 20, |_, _| ());
    run(&mut *volume, &[(Ns(0), bio(0, Operation::Write, UNIT, 512 * KIB))]);
    assert_eq!(commands(&log), (3, 6));
    let in_row_0 = |line: &&Line| !line.is_end && line.bio.sector.0 < UNIT;
    let row_0: Vec<Operation> =
        log.borrow().iter().filter(in_row_0).map(|line| line.bio.operation).collect();
    assert_eq!(row_0.iter().filter(|&&operation| operation == Operation::Read).count(), 1);
    assert_eq!(row_0.len(), 5);
}

/// RAID-4, last part: eight-disk RAID 5, full stripe 896 KiB.
#[test]
fn raid_4_full_stripe_of_eight() {
    assert_eq!(one_write(&parameters(Raid5, UNIT), 8, (0, 896)), (0, 8));
    assert_eq!(one_write(&parameters(Raid5, UNIT), 8, (0, 768)), (1, 7));
}

/// RAID-7: degraded 4+1, one-unit reads over all data: 4/5 cost 1, 1/5 cost 4, mean 1.6.
#[test]
fn raid_7_degraded_reads() {
    for lost in 0..5 {
        let degraded = VolumeParameters { lost_member: Some(lost), ..parameters(Raid5, UNIT) };
        let (mut volume, log) = recorded(&degraded, 5, 1 << 20, |_, _| ());
        let mut costs = BTreeMap::new();
        for k in 0..100 {
            let before = commands(&log).0;
            run_at(&mut *volume, bio(k, Operation::Read, u64::from(k) * UNIT, UNIT as u32));
            *costs.entry(commands(&log).0 - before).or_insert(0) += 1;
        }
        assert_eq!(costs, BTreeMap::from([(1, 80), (4, 20)]));
        assert_eq!(commands(&log), (160, 0));
        assert!(log.borrow().iter().all(|line| line.member != lost));
    }
}

/// Submits at the instant of whatever came last and runs to the end.
fn run_at(volume: &mut dyn Layer, bio: Bio) {
    let now = Ns::from_seconds(1_000 + u64::from(bio.id.0));
    run(volume, &[(now, bio)]);
}

#[test]
fn a_degraded_read_shares_what_is_read_anyway() {
    let degraded = VolumeParameters { lost_member: Some(1), ..parameters(Raid5, UNIT) };
    let (mut volume, log) = recorded(&degraded, 5, 1 << 20, |_, _| ());
    // The whole row 0: data on 0, 2, 3 and the parity on 4 instead of the data on 1.
    run(&mut *volume, &[(Ns(0), bio(0, Operation::Read, 0, 512 * KIB))]);
    assert_eq!(commands(&log), (4, 0));
    assert_eq!(counter(&*volume, "recover_read_bytes"), 0);
}

/// RAID-8, second half: RAID 5 with 8 disks, random 8 KiB writes: 8/4 = 2 disk-equivalents.
#[test]
fn raid_8_small_writes() {
    let one = |_| Box::new(Fixed::new(SERVICE, 1, false)) as Box<dyn Layer>;
    let mut volume = build((0..8).map(one).collect(), &parameters(Raid5, UNIT)).unwrap();
    let writes = closed_loop(&mut *volume, Operation::Write, 512);
    assert!((1.9..=2.0).contains(&writes), "{writes}");
    assert_eq!(one_write(&parameters(Raid5, UNIT), 8, (40, 8)), (2, 2));
}

#[test]
fn writes_of_one_instant_become_a_full_stripe() {
    let write = |id: u32| (Ns(0), bio(id, Operation::Write, u64::from(id) * UNIT, UNIT as u32));
    let (mut volume, log) = recorded(&parameters(Raid5, UNIT), 5, 1 << 20, |_, _| ());
    run(&mut *volume, &[write(0), write(1), write(2), write(3)]);
    assert_eq!(commands(&log), (0, 5));
    assert_eq!(counter(&*volume, "rows_full"), 1);
}

#[test]
fn a_batching_delay_gathers_a_sequential_writer() {
    let write = |id: u32| {
        (Ns::from_us(100 * u64::from(id)), bio(id, Operation::Write, u64::from(id) * 32, 32))
    };
    let writes: Vec<(Ns, Bio)> = (0..32).map(write).collect();
    let (mut volume, log) = recorded(&parameters(Raid5, UNIT), 5, 1 << 20, |_, _| ());
    run(&mut *volume, &writes);
    assert!(commands(&log).0 > 10, "{:?}", commands(&log));
    let patient = VolumeParameters { batch_delay_us: Some(5_000), ..parameters(Raid5, UNIT) };
    let (mut volume, log) = recorded(&patient, 5, 1 << 20, |_, _| ());
    let done = run(&mut *volume, &writes);
    assert_eq!(commands(&log), (0, 5));
    // The row is full with the last write at 3.1 ms, and does not wait for the rest of the delay.
    assert!(done[&0] > Ns::from_us(3_100) && done[&0] < Ns::from_us(4_000), "{:?}", done[&0]);
}

#[test]
fn a_partial_row_waits_for_its_delay() {
    let patient = VolumeParameters { batch_delay_us: Some(5_000), ..parameters(Raid5, UNIT) };
    let (mut volume, log) = recorded(&patient, 5, 1 << 20, |_, _| ());
    run(&mut *volume, &[(Ns(7), bio(0, Operation::Write, 0, 8))]);
    assert_eq!(log.borrow()[0].at, Ns(5_000_007));
}

#[test]
fn the_stripe_cache_bounds_the_rows_in_work() {
    let small = VolumeParameters { stripe_cache_bytes: Some(4 * 4096), ..parameters(Raid5, UNIT) };
    let (mut volume, log) = recorded(&small, 5, 1 << 20, |_, info| info.depth = 64);
    let write = |id: u32| (Ns(0), bio(id, Operation::Write, 4 * UNIT * u64::from(id), 8));
    run(&mut *volume, &(0..40).map(write).collect::<Vec<_>>());
    let mut rows = BTreeMap::new();
    let mut in_work_max = 0;
    for line in log.borrow().iter() {
        let row = line.bio.sector.0 / UNIT;
        *rows.entry(row).or_insert(0) += if line.is_end { -1 } else { 1 };
        in_work_max = in_work_max.max(rows.values().filter(|&&count| count > 0).count());
    }
    assert_eq!(in_work_max, 4);
    assert_eq!(commands(&log), (80, 80));
}

#[test]
fn flags_and_submitter_go_down_and_flushes_to_all() {
    let (mut volume, log) = recorded(&parameters(Raid5, UNIT), 4, 1 << 20, |_, _| ());
    let mut write = bio(0, Operation::Write, 0, 8);
    write.flags = Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC);
    write.submitter.process = ProcessId(9);
    run(&mut *volume, &[(Ns(0), write)]);
    let log = log.borrow();
    assert!(log.iter().all(|line| line.bio.submitter.process == ProcessId(9)));
    let of = |operation| log.iter().filter(move |line| line.bio.operation == operation);
    assert_eq!(of(Operation::Flush).count(), 2 * 4);
    let flushed = of(Operation::Flush).map(|line| line.at).max();
    assert!(of(Operation::Read).all(|line| Some(line.at) >= flushed));
    assert!(of(Operation::Read).all(|line| line.bio.flags == Flags::SYNC));
    assert!(of(Operation::Write).all(|line| line.bio.flags == Flags::FUA.with(Flags::SYNC)));
}

#[test]
fn a_durable_write_makes_all_that_it_is_written_with_durable() {
    let (mut volume, log) = recorded(&parameters(Raid5, UNIT), 4, 1 << 20, |_, _| ());
    let plain = |id: u32| bio(id, Operation::Write, u64::from(id) * 8, 8);
    let durable = Bio { flags: Flags::FUA, ..plain(1) };
    run(&mut *volume, &[(Ns(0), plain(0)), (Ns(0), durable), (Ns(0), plain(2))]);
    assert_eq!(commands(&log), (2, 2));
    let log = log.borrow();
    let mut writes = log.iter().filter(|line| line.bio.operation == Operation::Write);
    assert!(writes.all(|line| line.bio.flags == Flags::FUA));
}

#[test]
fn computing_parity_takes_time() {
    let timed = |xor_ns_per_kib| {
        let fixed = |_| Box::new(Fixed::new(Ns(1_000), 1, false)) as Box<dyn Layer>;
        let with = VolumeParameters {
            xor_ns_per_kib: Some(xor_ns_per_kib),
            tie: Some(Tie::ReadModify),
            ..parameters(Raid5, UNIT)
        };
        let mut volume = build((0..3).map(fixed).collect(), &with).unwrap();
        run(&mut *volume, &[(Ns(0), bio(0, Operation::Write, 0, 8))])[&0]
    };
    assert_eq!(timed(0), Ns(2_000));
    // Old data, new data, old parity and new parity: 16 KiB.
    assert_eq!(timed(100), Ns(2_000 + 1_600));
}

#[test]
fn rows_at_risk_are_those_being_written() {
    let fixed = |_| Box::new(Fixed::new(Ns(1_000), 9, false)) as Box<dyn Layer>;
    let plain = VolumeParameters { xor_ns_per_kib: Some(0), ..parameters(Raid5, UNIT) };
    let risks = |parameters: &VolumeParameters| {
        let mut volume = build((0..5).map(fixed).collect(), parameters).unwrap();
        for row in 0..3 {
            volume.submit(Ns(0), &bio(row, Operation::Write, u64::from(row) * 4 * UNIT, 8));
        }
        let mut seen = vec![counter(&*volume, "rows_at_risk")];
        while volume.next_event() < Ns::MAX {
            volume.advance(volume.next_event(), &mut Vec::new());
            seen.push(counter(&*volume, "rows_at_risk"));
        }
        (seen.iter().copied().max(), seen.last().copied())
    };
    assert_eq!(risks(&plain), (Some(3), Some(0)));
    // Row 0 keeps its parity on disk 4, row 1 on 3, row 2 on 2, and data unit 0 on disks 0, 4, 3:
    // without disk 4 row 0 writes data only, row 1 parity only, and only row 2 can be torn.
    let degraded = VolumeParameters { lost_member: Some(4), ..plain.clone() };
    assert_eq!(risks(&degraded), (Some(1), Some(0)));
    let nvram = VolumeParameters { nvram_bytes: Some(1 << 20), ..plain };
    assert_eq!(risks(&nvram), (Some(0), Some(0)));
}

#[test]
fn parity_arrays_stack() {
    let fixed = |_| Box::new(Fixed::new(Ns(1_000), 9, false)) as Box<dyn Layer>;
    let five = || build((0..5).map(fixed).collect(), &parameters(Raid5, UNIT)).unwrap();
    // RAID 0 whose unit is the row of the RAID 5: 512 KiB are one full stripe each.
    let mut fifty = build(vec![five(), five()], &parameters(Raid0, 4 * UNIT)).unwrap();
    run(&mut *fifty, &[(Ns(0), bio(0, Operation::Write, 0, 8 * UNIT as u32))]);
    for array in 0..2 {
        assert_eq!(counter(&*fifty, &format!("member.{array}.rows_full")), 1);
        for disk in 0..5 {
            assert_eq!(counter(&*fifty, &format!("member.{array}.member.{disk}.writes")), 1);
        }
    }
}

/// Random bios; some of them overlap.
pub(super) fn random_bios(seed: u64, capacity: u64, count: u32, gap: Ns) -> Vec<(Ns, Bio)> {
    let mut random = Seed(seed).stream("bios", 0);
    let one = |id: u32| {
        let sector = random.below(capacity);
        let sectors = 1 + random.below((capacity - sector).min(60)) as u32;
        let operation = [Operation::Read, Operation::Write][random.below(2) as usize];
        (Ns(gap.0 * u64::from(id)), bio(id, operation, sector, sectors))
    };
    (0..count).map(one).collect()
}

/// Per row: every write starts when all reads of its operation have ended, and the next operation
/// starts when all its writes have ended.
fn check_locks(log: &Log, unit: u64) {
    let mut reading: BTreeMap<u64, i64> = BTreeMap::new();
    let mut writing: BTreeMap<u64, i64> = BTreeMap::new();
    for line in log.borrow().iter() {
        let step = if line.is_end { -1 } else { 1 };
        for row in line.bio.sector.0 / unit..=(line.bio.end().0 - 1) / unit {
            let is_read = line.bio.operation == Operation::Read;
            let (own, other) =
                if is_read { (&mut reading, &writing) } else { (&mut writing, &reading) };
            *own.entry(row).or_insert(0) += step;
            assert_eq!(other.get(&row).copied().unwrap_or(0), 0, "row {row}: {line:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Bytes are conserved with any options: each bio is done once, and bytes are conserved per
    /// reason.
    #[test]
    fn bytes_are_conserved(
        seed in any::<u64>(),
        (parities, data, unit, layout) in (1_u16..3, 2_u16..5, 1_u64..20, layouts()),
        lost in prop::option::of((0_u16..7, any::<bool>())),
        (delay, nvram, gap) in (0_u64..300, prop::option::of(1_u64..80), 0_u64..60_000),
        limits in (1_u32..50, prop_oneof![Just(0_u32), 1_u32..30], 1_u32..5),
    ) {
        let kind = if parities == 1 { Raid5 } else { Raid6 };
        let disks = data + parities;
        let lost = lost.filter(|(lost, _)| *lost < disks);
        let options = VolumeParameters {
            parity_layout: Some(layout),
            batch_delay_us: Some(delay),
            nvram_bytes: nvram.map(|sectors| sectors * 512),
            nvram_idle_us: Some(2_000),
            stripe_cache_bytes: Some(40 * 4096),
            lost_member: lost.map(|lost| lost.0),
            rebuild: lost.map(|lost| lost.1),
            rebuild_window_bytes: Some(32 << 9),
            ..parameters(kind, unit)
        };
        let (mut volume, log) = recorded(&options, disks, 200, |_, info| {
            (info.max_sectors, info.chunk_sectors, info.depth) = limits;
        });
        let bios = random_bios(seed, volume.info().capacity.0, 60, Ns(gap));
        run(&mut *volume, &bios);
        let below = |name: &str| -> u64 {
            (0..disks).map(|disk| counter(&*volume, &format!("member.{disk}.{name}"))).sum()
        };
        let count = |name: &str| counter(&*volume, name);
        prop_assert_eq!(
            below("read_bytes") + count("cache_hit_bytes"),
            count("read_bytes") + count("modify_read_bytes") + count("recover_read_bytes")
                + count("rebuild_read_bytes")
        );
        prop_assert_eq!(
            below("write_bytes") + count("absorbed_bytes") + count("lost_bytes"),
            count("write_bytes") + count("parity_bytes") + count("rebuild_write_bytes")
        );
        prop_assert_eq!((count("nvram_dirty_bytes"), count("rows_at_risk")), (0, 0));
        if let Some((lost, is_rebuilt)) = lost {
            let used = log.borrow().iter().filter(|line| line.member == lost).count();
            prop_assert_eq!(used > 0, is_rebuilt);
            let replaced = if is_rebuilt { 200 / unit * unit * 512 } else { 0 };
            prop_assert_eq!(count("rebuild_write_bytes"), replaced);
        } else {
            prop_assert_eq!(count("recover_read_bytes"), 0);
        }
    }

    /// Concurrent writes to few rows: operations on a row never overlap, reads come before writes.
    #[test]
    fn a_row_is_locked(seed in any::<u64>(), unit in 1_u64..20, delay in 0_u64..300) {
        let options = VolumeParameters { batch_delay_us: Some(delay), ..parameters(Raid5, unit) };
        let (mut volume, log) = recorded(&options, 4, 100, |_, _| ());
        let mut bios = random_bios(seed, volume.info().capacity.0, 60, Ns(5_000));
        bios.retain(|(_, bio)| bio.operation == Operation::Write);
        run(&mut *volume, &bios);
        check_locks(&log, unit);
    }

    /// The commands that members see keep parity: a twin carries them out on block versions.
    #[test]
    fn commands_keep_parity(
        seed in any::<u64>(),
        (parities, data, layout) in (1_u16..3, 2_u16..6, layouts()),
        lost in prop::option::of(0_u16..8),
        granularity in prop::sample::select(&[1_u64, 2, 4, 12][..]),
    ) {
        let kind = if parities == 1 { Raid5 } else { Raid6 };
        let geometry = Geometry { disks: data + parities, parities, unit: 12, layout };
        let lost = lost.filter(|&lost| lost < geometry.disks);
        let options = VolumeParameters {
            parity_layout: Some(layout),
            granularity_bytes: Some(granularity * 512),
            lost_member: lost,
            ..parameters(kind, 12)
        };
        let (mut volume, log) = recorded(&options, geometry.disks, 60, |_, _| ());
        let mut twins: Vec<Twin> = (0..5).map(|row| Twin::new(geometry, row, lost)).collect();
        let mut expected = vec![vec![vec![0_u8; 12]; usize::from(data)]; 5];
        for (_, bio) in random_bios(seed, volume.info().capacity.0, 12, Ns(0)) {
            log.borrow_mut().clear();
            run_at(&mut *volume, bio);
            if bio.operation == Operation::Write {
                replay(geometry, &log, &bio, (&mut twins, &mut expected));
            }
        }
    }
}

/// The present value of every data sector, by row, unit and offset.
type Versions = Vec<Vec<Vec<u8>>>;

/// Carries out on the twins what the members were asked during one write.
fn replay(geometry: Geometry, log: &Log, bio: &Bio, state: (&mut [Twin], &mut Versions)) {
    let unit = u64::from(geometry.unit);
    for (row, (twin, data)) in (0_u64..).zip(state.0.iter_mut().zip(state.1)) {
        let parts = |operation| -> Vec<(u16, u64, u64)> {
            let lines = log.borrow();
            let ours = lines.iter().filter(|line| !line.is_end && line.bio.operation == operation);
            let inside = |line: &Line| {
                let from = line.bio.sector.0.max(row * unit);
                let to = line.bio.end().0.min((row + 1) * unit);
                (from < to).then(|| (line.member, from - row * unit, to - row * unit))
            };
            ours.filter_map(inside).collect()
        };
        let new = |index: u16, offset: u64| {
            let at = (row * u64::from(geometry.data()) + u64::from(index)) * unit + offset;
            let is_new = (bio.sector.0..bio.end().0).contains(&at);
            is_new.then(|| (bio.id.0 as u8 + 1).wrapping_mul(37).wrapping_add(at as u8))
        };
        twin.execute(&parts(Operation::Read), &parts(Operation::Write), &new);
        for (index, unit) in (0..).zip(&mut *data) {
            for (offset, value) in (0..).zip(unit) {
                *value = new(index, offset).unwrap_or(*value);
            }
        }
        twin.verify(data);
    }
}

#[test]
fn reads_are_rejoined_over_rows() {
    // Left-asymmetric, 3 disks: disk 0 holds data of rows 0 and 1 and parity of row 2.
    let options = VolumeParameters {
        parity_layout: Some(ParityLayout::LeftAsymmetric),
        ..parameters(Raid5, UNIT)
    };
    let (mut volume, log) = recorded(&options, 3, 1 << 20, |_, _| ());
    run(&mut *volume, &[(Ns(0), bio(0, Operation::Read, 0, 4 * UNIT as u32))]);
    let geometry =
        Geometry { disks: 3, parities: 1, unit: UNIT as u32, layout: ParityLayout::LeftAsymmetric };
    assert_eq!([0, 1].map(|row| geometry.disk(row, Role::Data(0))), [0, 0]);
    assert_eq!(commands(&log), (3, 0));
    let first = log.borrow()[0].bio;
    assert_eq!((first.sector, first.sectors), (Sector(0), 2 * UNIT as u32));
}
