//! Power cuts at random events: everything that fsync has acknowledged is there afterwards.
//!
//! `IOLAB_CRASHES` is the number of cuts for each mode, 300 without; `make soak` sets 10000. The
//! message of a failure names mode and seed.

mod crash;

use crash::{Fragile, cuts, made};

fn survives(name: &str, mount: &str) {
    let mkfs = if name == "ext2" { "-b 4096" } else { "-b 4096 -J size=4" };
    for seed in 0..cuts() {
        let fs = made(name, mkfs, mount);
        let mut machine = Fragile::new(fs, seed, 1 + seed * 7 % 400);
        machine.may_be_stale = name == "ext2" || mount.contains("writeback");
        machine.run();
        machine.check(&format!("{name} {mount}, seed {seed}"));
    }
}

#[test]
fn ext4_with_delayed_allocation() {
    survives("ext4", "defaults");
}

#[test]
fn ext4_without_delayed_allocation() {
    survives("ext4", "nodelalloc");
}

#[test]
fn ext4_with_written_extents_at_once() {
    survives("ext4", "dioread_lock");
}

#[test]
fn ext4_with_writeback_data() {
    survives("ext4", "nodelalloc,data=writeback");
}

#[test]
fn ext4_with_journalled_data() {
    survives("ext4", "data=journal");
}

#[test]
fn ext4_with_an_asynchronous_commit() {
    survives("ext4", "journal_async_commit,data=writeback");
}

#[test]
fn ext3() {
    survives("ext3", "defaults");
}

#[test]
fn ext2() {
    survives("ext2", "defaults");
}
