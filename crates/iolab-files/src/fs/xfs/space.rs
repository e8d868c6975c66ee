//! `FreeSpace`: free blocks of one allocation group, by block and by size.
//!
//! Blocks freed by a transaction that is not durable yet are *busy*: they are free, but data may
//! not be put there, for a power cut would give them back to their former owner (Linux
//! `fs/xfs/xfs_extent_busy.c`).

use core::ops::Bound::{Excluded, Unbounded};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::busy::BusyBlocks;
use super::leaves::{Key, LeafKeys, Leaves};

/// Records of a leaf of a free-space tree: (4096 - 56) / 8, Linux `fs/xfs/libxfs/xfs_format.h`.
const LEAF_RECORDS: u32 = 505;

/// Neighbouring free blocks of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeSpan {
    /// First block.
    pub first: u32,
    /// Number of blocks.
    pub count: u32,
}

impl FreeSpan {
    /// The block after the last one.
    pub const fn end(self) -> u32 {
        self.first + self.count
    }
}

#[derive(Clone, Debug, Default)]
struct ByBlock(BTreeMap<u32, u32>);

impl LeafKeys for ByBlock {
    fn before(&self, key: Key) -> Option<Key> {
        self.0.range(..key.0).next_back().map(|(first, _)| (*first, 0))
    }

    fn after(&self, key: Key) -> Option<Key> {
        self.0.range((Excluded(key.0), Unbounded)).next().map(|(first, _)| (*first, 0))
    }
}

#[derive(Clone, Debug, Default)]
struct BySize(BTreeSet<Key>);

impl LeafKeys for BySize {
    fn before(&self, key: Key) -> Option<Key> {
        self.0.range(..key).next_back().copied()
    }

    fn after(&self, key: Key) -> Option<Key> {
        self.0.range((Excluded(key), Unbounded)).next().copied()
    }
}

/// Free blocks of one allocation group.
#[derive(Clone, Debug)]
pub struct FreeSpace {
    by_block: ByBlock,
    by_size: BySize,
    block_leaves: Leaves,
    size_leaves: Leaves,
    /// Freed and not durable yet.
    busy: BusyBlocks,
    /// Blocks kept for the trees themselves, the next one first.
    list: VecDeque<u32>,
    /// Blocks of the list that the trees hold now.
    grown: Vec<u32>,
    free: u32,
}

impl FreeSpace {
    /// Free space with these runs, and these blocks kept for its trees.
    pub fn new(runs: &[FreeSpan], list: impl IntoIterator<Item = u32>) -> Self {
        let mut space = Self {
            by_block: ByBlock::default(),
            by_size: BySize::default(),
            block_leaves: Leaves::new(LEAF_RECORDS),
            size_leaves: Leaves::new(LEAF_RECORDS),
            busy: BusyBlocks::default(),
            list: list.into_iter().collect(),
            grown: Vec::new(),
            free: 0,
        };
        for run in runs.iter().filter(|run| run.count > 0) {
            space.add(*run);
            space.free += run.count;
        }
        space
    }

    /// Free blocks in both trees.
    pub const fn free(&self) -> u32 {
        self.free
    }

    /// Blocks kept for the trees.
    pub fn kept(&self) -> u32 {
        self.list.len() as u32
    }

    /// Blocks that the trees hold beyond the two that every group has.
    pub fn grown(&self) -> u32 {
        self.grown.len() as u32
    }

    /// Blocks to keep: as many as both trees may need until the next refill
    /// (`xfs_alloc_min_freelist` since Linux 6.11; before, one more than each has levels).
    pub fn kept_min(&self) -> u32 {
        2 * (self.block_leaves.levels() + self.size_leaves.levels())
    }

    /// Length of the longest run.
    pub fn longest(&self) -> u32 {
        self.by_size.0.last().map_or(0, |(count, _)| *count)
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.by_block.0.len()
    }

    /// All runs in order of blocks.
    pub fn iter(&self) -> impl Iterator<Item = FreeSpan> + '_ {
        self.by_block.0.iter().map(|(first, count)| FreeSpan { first: *first, count: *count })
    }

    /// The last run that begins at or before a block.
    pub fn at_or_before(&self, block: u32) -> Option<FreeSpan> {
        let found = self.by_block.0.range(..=block).next_back();
        found.map(|(first, count)| FreeSpan { first: *first, count: *count })
    }

    /// The first run that begins at or after a block.
    pub fn at_or_after(&self, block: u32) -> Option<FreeSpan> {
        let found = self.by_block.0.range(block..).next();
        found.map(|(first, count)| FreeSpan { first: *first, count: *count })
    }

    /// The run before one, in order of blocks.
    pub fn left_of(&self, run: FreeSpan) -> Option<FreeSpan> {
        run.first.checked_sub(1).and_then(|block| self.at_or_before(block))
    }

    /// The run after one, in order of blocks.
    pub fn right_of(&self, run: FreeSpan) -> Option<FreeSpan> {
        self.at_or_after(run.first + 1)
    }

    /// The shortest run of at least so many blocks; of equal ones the first from a block on.
    pub fn of_size(&self, count: u32, first: u32) -> Option<FreeSpan> {
        self.by_size
            .0
            .range((count, first)..)
            .next()
            .map(|key| FreeSpan { first: key.1, count: key.0 })
    }

    /// The next longer run, or the next of the same length.
    pub fn longer(&self, run: FreeSpan) -> Option<FreeSpan> {
        self.by_size
            .after((run.count, run.first))
            .map(|key| FreeSpan { first: key.1, count: key.0 })
    }

    /// The next shorter run, or the one before of the same length.
    pub fn shorter(&self, run: FreeSpan) -> Option<FreeSpan> {
        self.by_size
            .before((run.count, run.first))
            .map(|key| FreeSpan { first: key.1, count: key.0 })
    }

    /// The longest run.
    pub fn last(&self) -> Option<FreeSpan> {
        self.by_size.0.last().map(|key| FreeSpan { first: key.1, count: key.0 })
    }

    /// Tell whether a run lies in the last leaf of the tree by size.
    pub fn is_in_last_leaf(&self, run: FreeSpan) -> bool {
        (run.count, run.first) >= self.size_leaves.last_first()
    }

    /// First run of the last leaf of the tree by size.
    pub fn last_leaf(&self) -> Option<FreeSpan> {
        let first = self.size_leaves.last_first();
        self.by_size.0.range(first..).next().map(|key| FreeSpan { first: key.1, count: key.0 })
    }

    fn add(&mut self, run: FreeSpan) {
        self.block_leaves.insert((run.first, 0), &self.by_block);
        self.by_block.0.insert(run.first, run.count);
        self.size_leaves.insert((run.count, run.first), &self.by_size);
        self.by_size.0.insert((run.count, run.first));
    }

    fn drop_run(&mut self, run: FreeSpan) {
        self.by_block.0.remove(&run.first);
        self.block_leaves.remove((run.first, 0), &self.by_block);
        self.by_size.0.remove(&(run.count, run.first));
        self.size_leaves.remove((run.count, run.first), &self.by_size);
    }

    /// Takes blocks, all of which must be free.
    pub fn take(&mut self, taken: FreeSpan) {
        let Some(run) = self.at_or_before(taken.first) else {
            debug_assert!(false, "blocks that are taken are free");
            return;
        };
        debug_assert!(taken.end() <= run.end(), "{taken:?} is not in {run:?}");
        self.drop_run(run);
        let left = FreeSpan { first: run.first, count: taken.first - run.first };
        let right = FreeSpan { first: taken.end(), count: run.end() - taken.end() };
        for rest in [left, right].into_iter().filter(|rest| rest.count > 0) {
            self.add(rest);
        }
        self.free -= taken.count;
        if !self.busy.is_empty() {
            // Blocks for the trees themselves may have been busy.
            self.busy.drop_where(|run| run.first < taken.end() && taken.first < run.end());
        }
        self.balance();
    }

    /// Gives blocks back, none of which may be free; busy until [`Self::settle`] is told of them.
    pub fn give(&mut self, given: FreeSpan) {
        let mut whole = given;
        if let Some(left) = self.left_of(given) {
            debug_assert!(left.end() <= given.first, "{given:?} is free already: {left:?}");
            if left.end() == given.first {
                self.drop_run(left);
                whole = FreeSpan { first: left.first, count: left.count + whole.count };
            }
        }
        if let Some(right) = self.at_or_after(given.first)
            && right.first == given.end()
        {
            self.drop_run(right);
            whole.count += right.count;
        }
        self.add(whole);
        self.free += given.count;
        self.balance();
    }

    /// Marks freed blocks as busy.
    pub fn mark_busy(&mut self, run: FreeSpan) {
        self.busy.insert(run);
    }

    /// Freed blocks whose checkpoint is durable may be used.
    pub fn settle(&mut self, durable: &[FreeSpan]) {
        self.busy.drop_where(|run| durable.contains(&run));
    }

    /// Everything that is free may be used.
    pub fn settle_all(&mut self) {
        self.busy = BusyBlocks::default();
    }

    /// Part of a free run that may be used for `min` to `max` blocks, and whether busy blocks
    /// were met.
    pub fn usable(&self, run: FreeSpan, min: u32, max: u32) -> (FreeSpan, bool) {
        self.busy.trim(run, min, max)
    }

    /// Blocks of the trees come from the group's list and return to it.
    fn balance(&mut self) {
        let wanted = (self.block_leaves.blocks() + self.size_leaves.blocks() - 2) as usize;
        while self.grown.len() < wanted
            && let Some(block) = self.list.pop_front()
        {
            self.grown.push(block);
        }
        while self.grown.len() > wanted
            && let Some(block) = self.grown.pop()
        {
            self.list.push_back(block);
        }
    }

    /// Brings the group's list to its length before an allocation (`xfs_alloc_fix_freelist`): what
    /// is too much is freed; what is missing comes from the shortest run that has it, or from the
    /// longest there is.
    pub fn refill(&mut self) {
        while self.kept() > self.kept_min()
            && let Some(block) = self.list.pop_front()
        {
            self.give(FreeSpan { first: block, count: 1 });
        }
        while self.kept() < self.kept_min() {
            let missing = self.kept_min() - self.kept();
            let Some(run) = self.of_size(missing, 0).or_else(|| self.last()) else {
                return;
            };
            let taken = FreeSpan { first: run.first, count: missing.min(run.count) };
            self.take(taken);
            self.list.extend(taken.first..taken.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::seed::Seed;

    /// A group as one flag per block.
    struct Plain(Vec<bool>);

    impl Plain {
        fn runs(&self) -> Vec<FreeSpan> {
            let mut runs: Vec<FreeSpan> = Vec::new();
            for (block, _) in self.0.iter().enumerate().filter(|(_, is_free)| **is_free) {
                let block = block as u32;
                match runs.last_mut() {
                    Some(run) if run.end() == block => run.count += 1,
                    _ => runs.push(FreeSpan { first: block, count: 1 }),
                }
            }
            runs
        }
    }

    #[test]
    fn agrees_with_one_flag_per_block() {
        let blocks = 6_000u32;
        let mut plain = Plain(vec![true; blocks as usize]);
        let mut space = FreeSpace::new(&[FreeSpan { first: 0, count: blocks }], []);
        let mut random = Seed(7).stream("free space", 0);
        for step in 0..200_000u32 {
            let first = random.below(u64::from(blocks)) as u32;
            let count = 1 + random.below(3) as u32;
            let range = first as usize..(first + count).min(blocks) as usize;
            let run = FreeSpan { first, count: range.len() as u32 };
            if plain.0[range.clone()].iter().all(|free| *free) {
                space.take(run);
                plain.0[range].fill(false);
            } else if plain.0[range.clone()].iter().all(|free| !*free) {
                space.give(run);
                plain.0[range].fill(true);
            }
            if step % 20_000 == 0 {
                assert_eq!(space.iter().collect::<Vec<_>>(), plain.runs());
                assert_eq!(space.longest(), plain.runs().iter().map(|r| r.count).max().unwrap());
            }
        }
        assert_eq!(space.free() as usize, plain.0.iter().filter(|free| **free).count());
        assert!(space.runs() > 505, "trees of several leaves were tried: {}", space.runs());
    }
}
