//! Circular log of a journal: places of blocks in it, and how much of it is free.

use crate::api::block::BlockRun;

/// A log that lies in a few runs of a device. Its first block is the journal's superblock.
#[derive(Clone, Debug)]
pub struct CircularLog {
    runs: Vec<(u64, u64)>,
    blocks: u64,
    head: u64,
    free: u64,
}

impl CircularLog {
    /// An empty log.
    pub fn new(runs: Vec<(u64, u64)>) -> Self {
        let all: u64 = runs.iter().map(|(_, count)| count).sum();
        Self { runs, blocks: all.saturating_sub(1), head: 0, free: all.saturating_sub(1) }
    }

    /// Blocks of the log, without its superblock.
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Free blocks.
    pub const fn free(&self) -> u64 {
        self.free
    }

    /// The superblock.
    pub fn superblock(&self) -> BlockRun {
        BlockRun::new(self.runs[0].0, 1)
    }

    /// Takes the next blocks: their places, in order.
    ///
    /// # Panics
    /// If the log is full: whoever writes to it makes room first.
    pub fn take(&mut self, count: u64) -> Vec<BlockRun> {
        assert!(count <= self.free, "the log overwrites itself");
        self.free -= count;
        let mut taken: Vec<BlockRun> = Vec::new();
        let mut left = count;
        while left > 0 {
            let (place, room) = self.place_of(1 + self.head);
            let part = room.min(left).min(self.blocks - self.head);
            match taken.last_mut() {
                Some(last) if last.end() == place => last.count += part,
                _ => taken.push(BlockRun::new(place, part)),
            }
            self.head = (self.head + part) % self.blocks;
            left -= part;
        }
        taken
    }

    /// Frees the oldest blocks.
    pub const fn free_oldest(&mut self, count: u64) {
        self.free += count;
    }

    /// Forgets everything.
    pub const fn clear(&mut self) {
        self.free = self.blocks;
        self.head = 0;
    }

    /// Place of a block of the log, and how many follow it on the device.
    fn place_of(&self, mut at: u64) -> (u64, u64) {
        for &(first, count) in &self.runs {
            if at < count {
                return (first + at, count - at);
            }
            at -= count;
        }
        unreachable!("the log ends before this block")
    }
}
