//! How fast the model runs; by hand, since a wall clock has no place in the simulator:
//! `time cargo test --release -p iolab-sim speed -- --ignored --nocapture`.

use iolab_model::Ns;

use super::{SMALL, closed_loop, counter, profile, random, ssd};
use crate::api::bio::Operation;
use crate::device::ssd::Ssd;
use iolab_model::Seed;

/// Three million random 4 KiB reads, 32 in flight.
#[test]
#[ignore = "measures speed: run it alone, with --release, under `time`"]
fn speed_of_random_reads() {
    let mut drive = ssd("sata-860pro-256", &SMALL);
    drive.fill(1.0);
    let mut reads = random(Operation::Read, 1_000_000);
    let end = closed_loop(&mut drive, Ns(0), (32, 3_000_000), &mut reads);
    println!("3000000 reads in {end} of simulated time");
}

/// Three million random 4 KiB writes, 32 in flight, with garbage collection at work.
#[test]
#[ignore = "measures speed: run it alone, with --release, under `time`"]
fn speed_of_random_writes() {
    let numbers = [("logical_capacity", 32_768_000_000.0), ("over_provisioning", 0.28)];
    let mut drive = ssd("sata-860pro-256", &numbers);
    drive.fill(1.0);
    let mut writes = random(Operation::Write, 8_000_000);
    let end = closed_loop(&mut drive, Ns(0), (32, 3_000_000), &mut writes);
    let amplification = counter(&drive, "write_amplification");
    println!("3000000 writes in {end} of simulated time, amplification {amplification:.2}");
}

/// The whole 256 GB: fill and overwrite twice.
#[test]
#[ignore = "measures speed and memory: run it alone, with --release, under `time -v`"]
fn speed_of_preconditioning_256_gb() {
    let profile = profile("sata-860pro-256", &[]);
    println!("{} bytes of memory announced", Ssd::memory_bytes(&profile).unwrap());
    let mut drive = Ssd::from_profile(&profile, Seed(1), "test").unwrap();
    drive.precondition();
}
