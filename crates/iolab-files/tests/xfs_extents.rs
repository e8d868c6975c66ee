//! Extents of xfs, block by block as the kernel placed them (6.18, one CPU, a fresh file system).

mod pattern;

use pattern::recorded::Recordings;

fn recordings() -> Recordings {
    Recordings::new("xfs-extents", "xfs")
}

recorded_checks! { recordings();
    xfs_1_appends_with_fsync: "append512",
    xfs_2_two_files_in_turn: "append2",
    xfs_3_eight_writers_in_turn: "alt8",
    xfs_4_filled_at_random: "rand8m",
    xfs_5_a_stream: "stream64m",
    xfs_6_small_files: "small20",
}

#[test]
fn every_recorded_pattern_is_placed_block_by_block() {
    let all = recordings();
    all.check(&all.names());
}
