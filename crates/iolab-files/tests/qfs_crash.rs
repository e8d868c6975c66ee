//! Power cuts of QFS at random events, with and without `sync_meta=1`, with large DAUs and with
//! small ones: everything that fsync has acknowledged is there afterwards.
//!
//! `IOLAB_CRASHES` is the number of cuts for each mode, 300 without.

mod crash;

use crash::{Fragile, cuts, made, made_with_second};
use iolab_files::api::file_system::FileSystem;

fn survives(text: &str, made: impl Fn() -> Box<dyn FileSystem>) {
    for seed in 0..cuts() {
        let mut machine = Fragile::new(made(), seed, 1 + seed * 7 % 400);
        // There is no log, and nothing orders data before the inode.
        machine.may_be_stale = true;
        // It never asks for a flush: disks of its time had no write cache, or it was off.
        machine.forgets = false;
        machine.run();
        machine.check(&format!("qfs {text}, seed {seed}"));
    }
}

#[test]
fn qfs_with_metadata_among_the_data() {
    survives("ms", || made("qfs", "-a 16", ""));
}

#[test]
fn qfs_with_metadata_on_a_device_of_their_own() {
    survives("ma", || made_with_second("qfs", "-a 8", ""));
}

#[test]
fn qfs_with_metadata_written_at_once() {
    survives("sync_meta=1", || made("qfs", "-a 16", "sync_meta=1"));
    survives("ma, sync_meta=1", || made_with_second("qfs", "-a 64 -t md", "sync_meta=1"));
}
