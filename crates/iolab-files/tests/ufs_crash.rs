//! Power cuts of UFS at random events: everything that fsync has acknowledged is there afterwards.
//!
//! `IOLAB_CRASHES` is the number of cuts for each mode, 300 without.

mod crash;

use crash::{Fragile, cuts, made};

fn survives(mount: &str) {
    for seed in 0..cuts() {
        let mut machine = Fragile::new(made("ufs", "", mount), seed, 1 + seed * 7 % 400);
        // Data are not in the log, and nothing orders them before the inode.
        machine.may_be_stale = true;
        // It never asks for a flush: disks of its time had no write cache, or it was off.
        machine.forgets = false;
        machine.run();
        machine.check(&format!("ufs {mount}, seed {seed}"));
    }
}

#[test]
fn ufs_without_a_log() {
    survives("nologging");
}

#[test]
fn ufs_with_a_log() {
    survives("logging");
}
