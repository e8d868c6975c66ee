//! The controller's cache and the rebuild.

use iolab_model::Ns;

use super::super::testing::{bio, commands, counter, parameters, recorded, run};
use super::super::{VolumeKind, VolumeParameters, build};
use crate::api::bio::{Bio, Operation};
use crate::api::layer::Layer;
use crate::device::fixed::Fixed;

const UNIT: u64 = 256;

fn cached(bytes: u64) -> VolumeParameters {
    VolumeParameters { nvram_bytes: Some(bytes), ..parameters(VolumeKind::Raid5, UNIT) }
}

fn arrays(parameters: &VolumeParameters, disks: u16, us: u64) -> Box<dyn Layer> {
    let fixed = |_| Box::new(Fixed::new(Ns::from_us(us), 1, false)) as Box<dyn Layer>;
    build((0..disks).map(fixed).collect(), parameters).unwrap()
}

#[test]
fn a_write_is_done_when_it_is_in_nvram() {
    let mut volume = arrays(&cached(1 << 20), 5, 5_000);
    let done = run(&mut *volume, &[(Ns(50), bio(0, Operation::Write, 0, 8))]);
    // 4 KiB at 400 MB/s take 10.24 us.
    assert_eq!(done[&0], Ns(50 + 10_240 + 300_000));
    assert_eq!(counter(&*volume, "rows_rmw"), 1);
}

/// The link's rate bounds what comes out of the cache, at any speed of the disks.
#[test]
fn the_link_to_the_host_bounds_the_bandwidth() {
    let mut parameters = cached(1 << 26);
    parameters.nvram_rate_mb_s = Some(100);
    let mut volume = arrays(&parameters, 5, 1);
    let megabyte = |id: u32| (Ns(0), bio(id, Operation::Write, u64::from(id) * 2048, 2048));
    let done = run(&mut *volume, &(0..32).map(megabyte).collect::<Vec<_>>());
    let last = done.values().max().unwrap();
    let rate = 32.0 * f64::from(1 << 20) / (last.0 as f64 / 1e9);
    assert!((95e6..=100e6).contains(&rate), "{rate} bytes per second");
}

/// Sequential 4 KiB writes of one process, one at a time and misaligned: full stripes.
#[test]
fn small_sequential_writes_become_full_stripes() {
    let write = |id: u32| {
        (Ns::from_us(400 * u64::from(id)), bio(id, Operation::Write, 24 + u64::from(id) * 8, 8))
    };
    let writes: Vec<(Ns, Bio)> = (0..1021).map(write).collect();
    let (mut volume, log) = recorded(&cached(1 << 30), 5, 1 << 20, |_, _| ());
    run(&mut *volume, &writes);
    // Sectors 24 to 8192: row 0 without its first 24 sectors, then seven full rows.
    assert_eq!(counter(&*volume, "rows_full"), 7);
    assert_eq!(counter(&*volume, "rows_rcw"), 1);
    assert_eq!(commands(&log), (1, 8 * 5));
    // The cheapest per sector came first, so the partial row 0 came last.
    let last = log.borrow().last().copied().unwrap();
    assert!(last.bio.sector.0 < UNIT, "{last:?}");
}

/// Commands per dirty sector decide: a full row (5 for 1024) before a small write (4 for 8).
#[test]
fn the_cheapest_row_per_sector_is_destaged_first() {
    let (mut volume, log) = recorded(&cached(1 << 30), 5, 1 << 20, |_, _| ());
    let full = bio(1, Operation::Write, 4 * UNIT, 4 * UNIT as u32);
    run(&mut *volume, &[(Ns(0), bio(0, Operation::Write, 0, 8)), (Ns(0), full)]);
    assert_eq!(commands(&log), (2, 2 + 5));
    let rows: Vec<u64> = log.borrow().iter().map(|line| line.bio.sector.0 / UNIT).collect();
    assert!(rows.is_sorted_by(|a, b| a >= b), "{rows:?}");
}

#[test]
fn nothing_is_destaged_before_the_host_is_idle_or_the_cache_is_four_fifths_full() {
    let (mut volume, log) = recorded(&cached(10 * 512 * 1024), 5, 1 << 20, |_, _| ());
    let row = |id: u32| {
        (Ns::from_ms(u64::from(id)), bio(id, Operation::Write, u64::from(id) * 1024, 1024))
    };
    run(&mut *volume, &(0..8).map(row).collect::<Vec<_>>());
    // 8 of 10 rows is 80 %, not above: the first row starts after 7 ms + 50 ms of silence. Parity
    // of 512 KiB of data, 640 KiB with itself, takes 64 us.
    let xor = Ns::from_us(64);
    assert_eq!(log.borrow()[0].at, Ns::from_ms(57) + xor);
    let (mut volume, log) = recorded(&cached(10 * 512 * 1024), 5, 1 << 20, |_, _| ());
    run(&mut *volume, &(0..9).map(row).collect::<Vec<_>>());
    assert_eq!(log.borrow()[0].at, Ns::from_ms(8) + xor);
    let early =
        log.borrow().iter().filter(|line| line.at < Ns::from_ms(50) && !line.is_end).count();
    assert_eq!(early, 5, "one row brings the fill down to 80 %");
}

/// A full cache takes writes at the rate at which rows are destaged.
#[test]
fn a_full_cache_serves_at_the_destage_rate() {
    let mut volume = arrays(&cached(64 * 4096), 8, 1_000);
    let count = 2_000;
    // Scattered 4 KiB writes, all at once: each row costs 2 reads and 2 writes of 1 ms on 8 disks.
    let write =
        |id: u32| (Ns(0), bio(id, Operation::Write, u64::from(id * 7919 % count) * 1792 * 3, 8));
    let done = run(&mut *volume, &(0..count).map(write).collect::<Vec<_>>());
    let last = done.values().max().unwrap();
    let rate = f64::from(count) / (last.0 as f64 / 1e6);
    // Eight rows at a time (`destage_rows`) keep eight disks at most busy: up to 8/4 per ms.
    assert!((1.0..=2.05).contains(&rate), "{rate} writes per ms");
    assert!(done[&0] == Ns(310_240), "the first found room");
}

#[test]
fn reads_of_cached_data_are_hits() {
    let (mut volume, log) = recorded(&cached(1 << 20), 5, 1 << 20, |_, _| ());
    let done = run(
        &mut *volume,
        &[
            (Ns(0), bio(0, Operation::Write, 8, 8)),
            (Ns::from_ms(1), bio(1, Operation::Read, 8, 8)),
            (Ns::from_ms(2), bio(2, Operation::Read, 0, 24)),
        ],
    );
    assert_eq!(done[&1], Ns::from_ms(1) + Ns(310_240));
    assert_eq!(counter(&*volume, "cache_hit_bytes"), 2 * 8 * 512);
    let before: Vec<(u64, u32)> = log
        .borrow()
        .iter()
        .filter(|line| !line.is_end && line.at <= Ns::from_ms(2))
        .map(|line| (line.bio.sector.0, line.bio.sectors))
        .collect();
    assert_eq!(before, [(0, 8), (16, 8)]);
}

#[test]
fn overwrites_are_absorbed() {
    let mut volume = arrays(&cached(1 << 20), 5, 100);
    let write = |id: u32| (Ns::from_ms(u64::from(id)), bio(id, Operation::Write, 64, 8));
    run(&mut *volume, &(0..10).map(write).collect::<Vec<_>>());
    assert_eq!(counter(&*volume, "absorbed_bytes"), 9 * 8 * 512);
    let written: u64 = (0..5).map(|i| counter(&*volume, &format!("member.{i}.write_bytes"))).sum();
    assert_eq!(written, 2 * 8 * 512);
}

fn rebuilding(least: u64, most: u64) -> VolumeParameters {
    VolumeParameters {
        lost_member: Some(2),
        rebuild: Some(true),
        rebuild_min_kib_s: Some(least),
        rebuild_max_kib_s: Some(most),
        ..parameters(VolumeKind::Raid5, UNIT)
    }
}

/// 64 MiB members, window 1 MiB: 64 windows. Idle: at the greatest speed.
#[test]
fn a_rebuild_keeps_to_its_speeds() {
    let (mut volume, log) = recorded(&rebuilding(1_024, 65_536), 5, 64 << 11, |_, _| ());
    run(&mut *volume, &[]);
    assert_eq!(counter(&*volume, "rebuild_write_bytes"), 64 << 20);
    assert_eq!(counter(&*volume, "rebuild_read_bytes"), 4 * (64 << 20));
    // 64 MiB/s: one window per 15.625 ms; the last one starts after 63 of them.
    let starts = |line: &&super::super::testing::Line| {
        line.bio.operation == Operation::Read && !line.is_end && line.member == 0
    };
    let last = log.borrow().iter().rfind(starts).copied().unwrap();
    assert_eq!(last.at, Ns(63 * 15_625_000));
    assert!(log.borrow().iter().all(|line| line.bio.sectors <= 2048));
}

#[test]
fn a_busy_host_slows_the_rebuild_to_the_least_speed() {
    let (mut volume, log) = recorded(&rebuilding(1_024, 65_536), 5, 8 << 11, |_, _| ());
    // A read every 10 ms for 4.5 s; at 1 MiB/s one window per second.
    let read = |id: u32| (Ns::from_ms(10 * u64::from(id)), bio(id, Operation::Read, 0, 8));
    run(&mut *volume, &(0..450).map(read).collect::<Vec<_>>());
    let ends: Vec<Ns> = log
        .borrow()
        .iter()
        .filter(|line| line.bio.operation == Operation::Write && !line.is_end)
        .map(|line| line.at)
        .collect();
    assert_eq!(ends.len(), 8);
    assert!(ends[4] - ends[0] > Ns::from_ms(3_900), "{ends:?}");
    assert!(ends[7] - ends[6] < Ns::from_ms(20), "{ends:?}");
}

#[test]
fn a_rebuilt_array_is_whole_again() {
    let (mut volume, log) = recorded(&rebuilding(1_024, 1 << 20), 5, 4 << 11, |_, _| ());
    // Unit 2 of row 0 is on disk 2; read at once it costs four reads, after the rebuild one.
    let read = bio(0, Operation::Read, 2 * UNIT, 8);
    run(
        &mut *volume,
        &[(Ns(0), read), (Ns::from_seconds(60), Bio { id: crate::BioId(1), ..read })],
    );
    assert_eq!(counter(&*volume, "recover_read_bytes"), 3 * 8 * 512);
    let last = log.borrow().last().copied().unwrap();
    assert_eq!((last.member, last.bio.sectors), (2, 8));
}

#[test]
fn writes_wait_for_the_window_that_is_rebuilt() {
    let (mut volume, log) = recorded(&rebuilding(1_024, 1_024), 5, 4 << 11, |_, _| ());
    run(&mut *volume, &[(Ns(10), bio(0, Operation::Write, 2 * UNIT, 8))]);
    let log = log.borrow();
    let rebuilt =
        log.iter().position(|line| line.member == 2 && line.is_end && line.bio.sectors > 8);
    let written = log.iter().position(|line| line.bio.sectors == 8);
    assert!(rebuilt.unwrap() < written.unwrap());
    // The row is whole by then: the write goes to the replacement, with read-modify-write.
    let count = |operation| {
        log.iter()
            .filter(|l| l.bio.sectors == 8 && l.bio.operation == operation && l.is_end)
            .count()
    };
    assert_eq!((count(Operation::Read), count(Operation::Write)), (2, 2));
}
