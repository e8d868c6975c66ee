//! The multi-block allocator of ext4, which today's ext2 and ext3 use as well.

pub mod allocator;
pub mod groups;
pub mod rules;
pub mod search;
pub mod windows;
