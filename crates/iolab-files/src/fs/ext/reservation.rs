//! Block allocator of the drivers that ext3 had up to 4.2: one run near a goal, and windows that
//! keep growing files apart.
//!
//! A window belongs to an inode that is open for writing, is in memory only, and says where the
//! next blocks of that file come from; windows never overlap, but blocks in them stay free for
//! whoever finds nothing else.
//! Source: Linux 4.2 fs/ext3/balloc.c (`ext3_new_blocks`, `alloc_new_reservation`,
//! `find_next_reservable_window`), `include/linux/ext3_fs.h`.

use core::ops::Range;
use std::collections::BTreeMap;

/// First size of a window (`EXT3_DEFAULT_RESERVE_BLOCKS`).
const FIRST_BLOCKS: u64 = 8;
/// Largest size (`EXT3_MAX_RESERVE_BLOCKS`).
const BLOCKS_MAX: u64 = 1027;

/// Free blocks, as the search sees them.
pub trait FreeLookup {
    /// First free block in a range.
    fn first_free(&mut self, range: Range<u64>) -> Option<u64>;
    /// Blocks of the group of a block.
    fn group(&self, block: u64) -> Range<u64>;
    /// Free blocks of the group of a block.
    fn free_in_group(&self, block: u64) -> u64;
    /// All blocks that files can have.
    fn all(&self) -> Range<u64>;
}

/// Blocks that a file wants, near a goal if there is one.
#[derive(Clone, Copy, Debug)]
struct WindowWish {
    node: u32,
    goal: Option<u64>,
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reserved {
    start: u64,
    end: u64,
    size: u64,
    hits: u64,
}

/// Windows of all open files.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    of: BTreeMap<u32, Reserved>,
    by_start: BTreeMap<u64, u32>,
    is_off: bool,
}

impl Reservations {
    /// No windows at all (`noreservation`).
    pub fn off() -> Self {
        Self { is_off: true, ..Self::default() }
    }

    /// A run of free blocks for a file: first block, and how many of those wanted.
    pub fn find(
        &mut self,
        free: &mut dyn FreeLookup,
        node: u32,
        goal: u64,
        count: u64,
    ) -> Option<(u64, u64)> {
        let all = free.all();
        let goal = if all.contains(&goal) { goal } else { all.start };
        if !self.is_off
            && let Some(found) = self.find_reserved(free, node, goal, count)
        {
            return Some(found);
        }
        // Without windows: from the goal on, then from the start on.
        [goal..all.end, all.start..goal].into_iter().find_map(|range| {
            let first = free.first_free(range.clone())?;
            Some((first, run(free, first, count, range.end)))
        })
    }

    /// Drops the window of a file (last close of a writer).
    pub fn drop_window(&mut self, node: u32) {
        if let Some(window) = self.of.remove(&node) {
            self.by_start.remove(&window.start);
        }
    }

    fn find_reserved(
        &mut self,
        free: &mut dyn FreeLookup,
        node: u32,
        goal: u64,
        count: u64,
    ) -> Option<(u64, u64)> {
        let mut group = free.group(goal);
        let mut at = Some(goal);
        let groups = free.all().end.div_ceil(group.end - group.start) + 1;
        for _ in 0..groups {
            let is_worthwhile = at.is_some() || free.free_in_group(group.start) > FIRST_BLOCKS / 2;
            if free.free_in_group(group.start) > 0
                && is_worthwhile
                && let Some(found) =
                    self.find_in_group(free, &group, WindowWish { node, goal: at, count })
            {
                return Some(found);
            }
            let all = free.all();
            let next = if group.end >= all.end { all.start } else { group.end };
            group = free.group(next);
            at = None;
        }
        None
    }

    fn find_in_group(
        &mut self,
        free: &mut dyn FreeLookup,
        group: &Range<u64>,
        wish: WindowWish,
    ) -> Option<(u64, u64)> {
        let WindowWish { node, goal, count } = wish;
        let mut is_used_up = false;
        // Each turn moves the window forward; a group ends that.
        for _ in 0..=group.end - group.start {
            let window = self.of.get(&node).copied();
            let holds = |window: &Reserved| {
                let overlaps = window.start < group.end && window.end > group.start;
                overlaps && goal.is_none_or(|goal| (window.start..window.end).contains(&goal))
            };
            let window = match window.filter(|window| holds(window) && !is_used_up) {
                Some(window) => window,
                None => self.renew(free, group, wish)?,
            };
            let goal = goal.filter(|goal| (window.start..window.end).contains(goal));
            let from = goal.unwrap_or(window.start).max(group.start);
            let to = window.end.min(group.end);
            if let Some(first) = free.first_free(from..to) {
                let found = run(free, first, count, to);
                if let Some(window) = self.of.get_mut(&node) {
                    window.hits += found;
                }
                return Some((first, found));
            }
            is_used_up = true;
        }
        None
    }

    /// A new window for a file at or after a goal.
    fn renew(
        &mut self,
        free: &mut dyn FreeLookup,
        group: &Range<u64>,
        wish: WindowWish,
    ) -> Option<Reserved> {
        let WindowWish { node, goal, count } = wish;
        let old = self.of.get(&node).copied();
        let mut start = goal.unwrap_or(group.start);
        let mut size = old.map_or(FIRST_BLOCKS, |old| old.size).max(count);
        if let Some(old) = old {
            if old.start < group.end && old.end > group.end && start >= old.start {
                return None;
            }
            if old.hits > (old.end - old.start) / 2 {
                size = (size * 2).min(BLOCKS_MAX);
            }
        }
        loop {
            let place = self.gap(node, start, size, group)?;
            let first = free.first_free(place..group.end)?;
            self.drop_window(node);
            let window = Reserved { start: place, end: place + size, size, hits: 0 };
            self.of.insert(node, window);
            self.by_start.insert(place, node);
            if first < window.end {
                return Some(window);
            }
            start = first;
        }
    }

    /// First gap between windows that holds `size` blocks (`find_next_reservable_window`).
    fn gap(&self, node: u32, start: u64, size: u64, group: &Range<u64>) -> Option<u64> {
        let mut at = start;
        let before = self.by_start.range(..=start).rev();
        let before = before.filter(|(_, of)| **of != node).map(|(_, of)| self.of[of].end).next();
        at = at.max(before.unwrap_or(0));
        for (&next, of) in self.by_start.range(start..).filter(|(_, of)| **of != node) {
            if at + size <= next {
                break;
            }
            at = at.max(self.of[of].end);
        }
        (at < group.end).then_some(at)
    }
}

/// Length of a free run from a block on, at most `count` and not beyond `end`.
fn run(free: &mut dyn FreeLookup, first: u64, count: u64, end: u64) -> u64 {
    let mut found = 1;
    while found < count && first + found < end {
        let next = first + found;
        if free.first_free(next..next + 1).is_none() {
            break;
        }
        found += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Blocks(Vec<bool>);

    impl FreeLookup for Blocks {
        fn first_free(&mut self, range: Range<u64>) -> Option<u64> {
            range.into_iter().find(|&block| self.0[block as usize])
        }

        fn group(&self, _: u64) -> Range<u64> {
            self.all()
        }

        fn free_in_group(&self, _: u64) -> u64 {
            self.0.iter().filter(|free| **free).count() as u64
        }

        fn all(&self) -> Range<u64> {
            0..self.0.len() as u64
        }
    }

    /// Two files that grow in turn, by single blocks; runs of the first.
    fn runs(mut windows: Reservations, blocks: u64) -> Vec<u64> {
        let mut free = Blocks(vec![true; 3 * blocks as usize]);
        let mut next = [0, 0];
        let mut lengths: Vec<u64> = Vec::new();
        for _ in 0..blocks {
            for (node, next) in next.iter_mut().enumerate() {
                let goal = *next;
                let (first, count) = windows.find(&mut free, node as u32, goal, 1).unwrap();
                assert_eq!(count, 1);
                free.0[first as usize] = false;
                if node == 0 {
                    match lengths.last_mut().filter(|_| first == goal) {
                        Some(last) => *last += 1,
                        None => lengths.push(1),
                    }
                }
                *next = first + 1;
            }
        }
        lengths
    }

    #[test]
    fn windows_double_up_to_their_limit() {
        // EXT-4: 8, 16, ... 1024 sum to 2040.
        let lengths = runs(Reservations::default(), 2051);
        assert_eq!(lengths, [8, 16, 32, 64, 128, 256, 512, 1024, 11]);
    }

    #[test]
    fn without_windows_each_block_is_alone() {
        assert_eq!(runs(Reservations::off(), 100).len(), 100);
    }
}
