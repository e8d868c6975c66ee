//! Power cuts of `ZFS` at random events: everything that fsync has acknowledged is there
//! afterwards, from a group or from the intent log, and no block shows anything else than its own
//! content.
//!
//! `IOLAB_CRASHES` is the number of cuts for each mode, 300 without.

mod crash;

use crash::{Fragile, cuts, made};

fn survives(mkfs: &str) {
    for seed in 0..cuts() {
        let mut machine = Fragile::new(made("zfs", mkfs, ""), seed, 1 + seed * 7 % 400);
        machine.run();
        machine.check(&format!("zfs {mkfs}, seed {seed}"));
    }
}

#[test]
fn zfs_with_records_of_128_kib() {
    survives("");
}

#[test]
fn zfs_with_records_of_8_kib() {
    survives("-O recordsize=8k");
}

#[test]
fn zfs_that_names_all_data_in_the_log() {
    survives("-O recordsize=16k -O logbias=throughput");
}
