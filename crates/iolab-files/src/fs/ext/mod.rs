//! ext2, ext3 and ext4: one family with one layout.

pub mod geometry;
pub mod mballoc;
pub mod options;
