//! The drive against the numbers of the specification (SSD-1 to SSD-7) and against itself.

mod amplification;
mod behaviour;
mod properties;

use std::collections::BTreeMap;

use iolab_model::{Ns, Sector, Seed};

use super::{Parameters, Ssd};
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, Submitter};
use crate::api::layer::Layer;
use crate::profile::{Profile, Value};

/// A built-in profile with some numbers replaced.
fn profile(name: &str, numbers: &[(&str, f64)]) -> Profile {
    let mut profile = Profile::built_in(name).unwrap();
    let values: BTreeMap<String, Value> =
        numbers.iter().map(|&(name, value)| (name.to_owned(), Value::Number(value))).collect();
    profile.override_with(&values).unwrap();
    profile
}

fn ssd(name: &str, numbers: &[(&str, f64)]) -> Ssd {
    Ssd::from_profile(&profile(name, numbers), Seed(1), "test").unwrap()
}

/// A smaller drive of the same structure: 4 GB with as much again kept back.
const SMALL: [(&str, f64); 2] = [("logical_capacity", 4_096_000_000.0), ("over_provisioning", 1.0)];

fn with(numbers: &[(&'static str, f64)]) -> Vec<(&'static str, f64)> {
    SMALL.iter().chain(numbers).copied().collect()
}

fn bio(id: u32, operation: Operation, sector: u64, sectors: u32) -> Bio {
    let submitter = Submitter::default();
    Bio {
        id: BioId(id),
        operation,
        sector: Sector(sector),
        sectors,
        flags: Flags::NONE,
        submitter,
        segments: 0,
    }
}

/// One more operation of a closed loop: kind, first sector, sectors.
type Next<'a> = &'a mut dyn FnMut() -> (Operation, u64, u32);

/// Keeps `depth` bios in flight until `count` are done; answers when the last one ended.
fn closed_loop(drive: &mut Ssd, start: Ns, (depth, count): (u32, u32), next: Next<'_>) -> Ns {
    let mut done = Vec::new();
    let (mut now, mut submitted, mut finished) = (start, 0, 0);
    while submitted < depth.min(count) {
        let (operation, sector, sectors) = next();
        drive.submit(now, &bio(submitted, operation, sector, sectors));
        submitted += 1;
    }
    while finished < count {
        now = drive.next_event();
        assert!(now < Ns::MAX, "the drive forgot a bio");
        drive.advance(now, &mut done);
        for Ended { id, .. } in done.drain(..) {
            finished += 1;
            if submitted < count {
                let (operation, sector, sectors) = next();
                drive.submit(now, &bio(id.0, operation, sector, sectors));
                submitted += 1;
            }
        }
    }
    now
}

/// Sequential operations of 128 KiB from sector 0 on.
fn sequential(operation: Operation) -> impl FnMut() -> (Operation, u64, u32) {
    let mut sector = 0;
    move || {
        sector += 256;
        (operation, sector - 256, 256)
    }
}

/// Random 4 KiB operations within the first `pages` pages of 4 KiB.
fn random(operation: Operation, pages: u64) -> impl FnMut() -> (Operation, u64, u32) {
    let mut stream = Seed(3).stream("workload", 0);
    move || (operation, stream.below(pages) * 8, 8)
}

fn counter(drive: &Ssd, name: &str) -> f64 {
    let counters = drive.counters();
    counters.iter().find(|(known, _)| known == name).expect("a known counter").1
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    let error = value / expected - 1.0;
    assert!(error.abs() <= tolerance, "{value} is not {expected} ± {} %", tolerance * 100.0);
}

/// MB/s of 128 KiB operations.
fn megabytes(count: u32, elapsed: Ns) -> f64 {
    f64::from(count) * 131_072.0 / elapsed.as_seconds() / 1e6
}

/// SSD-1: structure, program bandwidth and idle read of the reference set.
#[test]
fn ssd_1_reference_set() {
    let parameters = Parameters::read(&profile("mqsim-reference", &[])).unwrap();
    let geometry = parameters.geometry;
    assert_eq!(geometry.dies() * geometry.planes, 128);
    let plane = u64::from(geometry.blocks) * u64::from(geometry.rows) * geometry.page_bytes();
    assert_eq!(plane, 4 << 30);
    assert_eq!(geometry.physical_units() * u64::from(geometry.unit_bytes), 512 << 30);

    let small = [
        ("logical_capacity", 8_192_000_000.0),
        ("blocks_per_plane", 64.0),
        ("gc_start", 4.0),
        ("gc_hard", 1.0),
    ];
    // 128 planes * 8 KiB / 750 us = 1.398 GB/s; the first cache full is not counted.
    let mut drive = ssd("mqsim-reference", &small);
    let mut writes = sequential(Operation::Write);
    let first = closed_loop(&mut drive, Ns(0), (32, 4_096), &mut writes);
    let last = closed_loop(&mut drive, first, (32, 16_384), &mut writes);
    assert_near(megabytes(16_384, last - first), 1_398.1, 0.02);

    // 0.2 + 75 + 8192/333 = 99.8 us; then ECC 2, overhead 3, link 8192/3500 = 2.34.
    let mut drive = ssd("mqsim-reference", &small);
    drive.fill(1.0);
    let end = closed_loop(&mut drive, Ns(0), (1, 1), &mut || (Operation::Read, 0, 16));
    assert_near(end.0 as f64 / 1e3 - 2.0 - 3.0 - 2.34, 99.8, 0.001);
}

/// SSD-2: the flash could program 874 MB/s, the interface takes 560, the data sheet says 530.
#[test]
fn ssd_2_sata_860pro_is_interface_bound() {
    let mut drive = ssd("sata-860pro-256", &SMALL);
    let end = closed_loop(&mut drive, Ns(0), (32, 24_000), &mut sequential(Operation::Write));
    let rate = megabytes(24_000, end);
    assert!((530.0..=560.0).contains(&rate), "{rate}");
    // Behind a faster interface the flash is the limit: 32 planes * 16 KiB / 600 us.
    let fast = with(&[
        ("interface_rate", 5_000.0),
        ("write_overhead", 1.0),
        ("write_controller_time", 1.0),
    ]);
    let mut drive = ssd("sata-860pro-256", &fast);
    let mut writes = sequential(Operation::Write);
    let first = closed_loop(&mut drive, Ns(0), (32, 8_000), &mut writes);
    let last = closed_loop(&mut drive, first, (32, 16_000), &mut writes);
    assert_near(megabytes(16_000, last - first), 873.8, 0.02);
}

/// SSD-3: 1311 MB/s into the single-level cache, 374 MB/s when it is full.
#[test]
fn ssd_3_nvme_pc601_slows_down_when_its_slc_cache_is_full() {
    let slc = with(&[("slc_capacity", 2_147_483_648.0), ("write_cache", 33_554_432.0)]);
    let mut drive = ssd("nvme-pc601-256", &slc);
    let mut writes = sequential(Operation::Write);
    let filled = closed_loop(&mut drive, Ns(0), (32, 1_000), &mut writes);
    let full = closed_loop(&mut drive, filled, (32, 14_000), &mut writes);
    let over = closed_loop(&mut drive, full, (32, 2_000), &mut writes);
    let end = closed_loop(&mut drive, over, (32, 8_000), &mut writes);
    assert_near(megabytes(14_000, full - filled), 1_310.7, 0.02);
    assert_near(megabytes(8_000, end - over), 374.5, 0.02);
    assert_near(counter(&drive, "flash_slc_bytes"), 2_147_483_648.0, 0.0);
}

/// SSD-6: one read at a time, and 32.
#[test]
fn ssd_6_random_reads_of_sata_860pro() {
    let mut drive = ssd("sata-860pro-256", &SMALL);
    drive.fill(1.0);
    let end = closed_loop(&mut drive, Ns(0), (1, 2_000), &mut random(Operation::Read, 1_000_000));
    // 30 + 0.2 + 50 + 4096/533 = 7.68 + ECC 2 + 4096/560 = 7.31 us.
    assert_near(end.0 as f64 / 2_000.0 / 1e3, 97.2, 0.001);
    assert_near(2_000.0 / end.as_seconds(), 10_300.0, 0.005);
    let start = end;
    let mut reads = random(Operation::Read, 1_000_000);
    let end = closed_loop(&mut drive, start, (32, 50_000), &mut reads);
    let rate = 50_000.0 / (end - start).as_seconds();
    assert!((95_000.0..=100_000.0).contains(&rate), "{rate}");
}

/// SSD-7: reads do not depend on how full the drive is.
#[test]
fn ssd_7_reads_are_flat_in_utilisation() {
    for depth in [1, 32] {
        let rates = [0.05, 0.25, 0.5, 0.75, 1.0].map(|share| {
            let mut drive = ssd("sata-860pro-256", &SMALL);
            drive.fill(share);
            let mut reads = random(Operation::Read, (1_000_000.0 * share) as u64);
            let end = closed_loop(&mut drive, Ns(0), (depth, 20_000), &mut reads);
            20_000.0 / end.as_seconds()
        });
        for rate in rates {
            assert_near(rate, rates[4], 0.01);
        }
    }
}

/// SSD-7: random writes in steady state are bound by the dies.
#[test]
fn ssd_7_random_writes_are_die_bound() {
    // 2 x 1 dies of 2 planes, 301 blocks of 256 pages of 16 KiB, a fifth of them kept back.
    let numbers = [
        ("logical_capacity", 3_932_160_000.0),
        ("channels", 2.0),
        ("dies_per_chip", 1.0),
        ("pages_per_block", 256.0),
        ("over_provisioning", 0.28),
        ("write_cache", 4_194_304.0),
    ];
    let mut drive = ssd("sata-860pro-256", &numbers);
    let pages = 960_000;
    drive.precondition();
    let mut writes = random(Operation::Write, pages);
    let first = closed_loop(&mut drive, Ns(0), (32, 100_000), &mut writes);
    let written =
        |drive: &Ssd| (counter(drive, "flash_host_bytes"), counter(drive, "gc_moved_bytes"));
    let before = written(&drive);
    let last = closed_loop(&mut drive, first, (32, 400_000), &mut writes);
    let after = written(&drive);
    let amplification = 1.0 + (after.1 - before.1) / (after.0 - before.0);
    let program = amplification * 600.0;
    let read = (amplification - 1.0) * 50.0;
    let erase = amplification * 3_500.0 / 256.0;
    let expected = 4.0 * 16_384.0 / (program + read + erase);
    let rate = 400_000.0 * 4_096.0 / (last - first).as_seconds() / 1e6;
    assert!((2.4..=2.7).contains(&amplification), "{amplification}");
    let bound = 4.0 * 16_384.0 / 600.0 / amplification;
    assert_near(rate, expected, 0.10);
    assert!((0.85..=0.99).contains(&(rate / bound)), "{rate} of {bound}");
    drive.check().unwrap();
}
