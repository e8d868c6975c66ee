//! Extents of ext4, ext3 and ext2, block by block as the kernel placed them (6.18, one CPU).

mod pattern;

use pattern::recorded::Recordings;

fn recordings() -> Recordings {
    Recordings::new("extents", "ext4")
}

recorded_checks! { recordings();
    x4_1_appends_with_fsync: "shared_append512",
    x4_2_written_and_closed: "shared_close3m_twice",
    x4_3_fsync_while_open: "shared_open3m",
    x4_4_small_files: "shared_small20",
    x4_5_a_file_of_100_kib: "shared_100k",
    x4_6_two_files_in_turn: "shared_append2",
    x4_7_filled_at_random: "shared_rand8m",
    x4_8_eight_writers_in_turn: "shared_alt8",
    x4_9_sparse: "shared_sparse1g",
    x4_10_a_stream: "shared_stream64m",
}

#[test]
fn every_recorded_pattern_is_placed_block_by_block() {
    let all = recordings();
    all.check(&all.names());
}
