//! Power cuts of `VxFS` at random events, in every mode of its log: everything that fsync has
//! acknowledged is there afterwards, and blocks show what was there before only where the manual
//! says so.
//!
//! `IOLAB_CRASHES` is the number of cuts for each mode, 300 without.

mod crash;

use crash::{Fragile, cuts, made};

/// Blocks with something else than their own content, over all cuts.
fn survives(mkfs: &str, mount: &str, may_be_stale: bool) -> u64 {
    let mut stale = 0;
    for seed in 0..cuts() {
        let mut machine = Fragile::new(made("vxfs", mkfs, mount), seed, 1 + seed * 7 % 400);
        machine.may_be_stale = may_be_stale;
        machine.clears = mount.contains("blkclear");
        // It never asks for a flush: disks of its time had no write cache, or it was off.
        machine.forgets = false;
        machine.run();
        machine.check(&format!("vxfs {mkfs} {mount}, seed {seed}"));
        stale += machine.stale;
    }
    stale
}

#[test]
fn vxfs_log_with_cleared_blocks_shows_nothing_old() {
    survives("", "log,blkclear", false);
}

#[test]
fn vxfs_delaylog_with_cleared_blocks_shows_nothing_old() {
    survives("", "delaylog,blkclear", false);
}

#[test]
fn vxfs_log_and_delaylog_alone_may_show_old_content_in_holes() {
    let without = survives("", "log", true) + survives("", "delaylog", true);
    assert!(without > 0, "blkclear would be for nothing");
}

#[test]
fn vxfs_tmplog_shows_old_content_where_delaylog_does_not() {
    let (more, less) = (survives("", "tmplog", true), survives("", "delaylog", true));
    assert!(more > 2 * less, "{more} blocks against {less}");
}

#[test]
fn vxfs_without_a_log() {
    survives("", "nolog", true);
}

#[test]
fn vxfs_with_a_small_log_that_wraps() {
    survives("-o logsize=32", "log,blkclear", false);
}
