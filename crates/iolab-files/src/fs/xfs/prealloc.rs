//! Speculative preallocation: blocks promised beyond the end of a file that grows.
//!
//! Source: Linux `fs/xfs/xfs_iomap.c` (`xfs_iomap_prealloc_size` and its caller).

use super::fork::{EXTENT_BLOCKS_MAX, Fork};

/// Facts of the file system that the size of a preallocation depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The least, a power of two: 64 KiB, or `allocsize`.
    pub least_blocks: u64,
    /// `allocsize` was given: always that much.
    pub is_fixed: bool,
    /// Unit of a striped volume (`sunit`); 0: none.
    pub unit_blocks: u64,
    /// Free blocks.
    pub free: u64,
    /// Blocks of the file system.
    pub total: u64,
}

impl Growth {
    /// Times that the size is halved because little is free: 2 below 5 %, one more for each
    /// percent less.
    fn halvings(&self) -> u32 {
        let below = |percent: u64| self.free < self.total / 100 * percent;
        if !below(5) {
            return 0;
        }
        2 + (1..=4).map(|percent| u32::from(below(percent))).sum::<u32>()
    }

    /// Blocks beyond a write at `block` that begins at or beyond the last extent of a file of
    /// `size` blocks (a started one counts as not there).
    pub fn blocks(&self, fork: &Fork, block: u64, size_bytes: u64, block_bytes: u64) -> u64 {
        if self.is_fixed {
            return self.least_blocks;
        }
        if size_bytes < self.least_blocks * block_bytes {
            return 0;
        }
        let Some(last) = fork.before(block).filter(|last| last.end() >= block) else {
            return self.least_blocks;
        };
        if size_bytes < self.unit_blocks * block_bytes {
            return self.least_blocks;
        }
        let mut run = last.count;
        let mut next = last;
        while let Some(piece) = fork.before(next.first) {
            let touches = piece.end() == next.first && piece.at + piece.count == next.at;
            if run > EXTENT_BLOCKS_MAX / 2 || !piece.is_real() || !touches {
                break;
            }
            run += piece.count;
            next = piece;
        }
        let wanted = if run * 2 > EXTENT_BLOCKS_MAX { block } else { run * 2 };
        let wanted = wanted.min(EXTENT_BLOCKS_MAX + 1) >> self.halvings();
        let power = if wanted == 0 { 0 } else { 1 << wanted.ilog2() };
        let mut size = power.min(EXTENT_BLOCKS_MAX);
        while size > 0 && size >= self.free {
            size >>= 4;
        }
        size.max(self.least_blocks)
    }
}
