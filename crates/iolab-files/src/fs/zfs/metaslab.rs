//! `Metaslabs`: regions of a vdev, of which one at a time is filled.
//!
//! Source: `metaslab.c` and `vdev.c` of `OpenZFS` (described, not copied).

use std::collections::BTreeMap;

/// Metaslabs that a vdev is divided into, at least. (`vdev_metaslab_set_size`)
const COUNT: u64 = 200;
/// Least size, as a power of two of bytes. (`SPA_MAXBLOCKSHIFT`)
const SHIFT_MIN: u32 = 17;
/// Free share in percent below which the best fit is taken. (`metaslab_df_free_pct`)
const FREE_PERCENT: u64 = 4;

#[derive(Clone, Debug)]
struct Slab {
    /// Free runs by their first block.
    runs: BTreeMap<u64, u64>,
    free: u64,
    /// Block after the last one that was given.
    cursor: u64,
}

impl Slab {
    fn take(&mut self, count: u64, size: u64) -> Option<u64> {
        if self.free < count {
            return None;
        }
        let is_full = self.free * 100 < size * FREE_PERCENT;
        let (first, from, length) = if is_full {
            let fits = self.runs.iter().filter(|(_, length)| **length >= count);
            let (&from, &length) = fits.min_by_key(|(first, length)| (**length, **first))?;
            (from, from, length)
        } else {
            self.next_fit(count)?
        };
        self.remove(first, count, (from, length));
        self.cursor = first + count;
        Some(first)
    }

    /// First place from the cursor on, with the run that it is in.
    fn next_fit(&self, count: u64) -> Option<(u64, u64, u64)> {
        let before = self.runs.range(..self.cursor).next_back();
        if let Some((&from, &length)) = before
            && from + length >= self.cursor + count
        {
            return Some((self.cursor, from, length));
        }
        let mut all = self.runs.range(self.cursor..).chain(self.runs.range(..self.cursor));
        let (&from, &length) = all.find(|(_, length)| **length >= count)?;
        Some((from, from, length))
    }

    fn remove(&mut self, first: u64, count: u64, (from, length): (u64, u64)) {
        self.runs.remove(&from);
        self.free -= count;
        if from < first {
            self.runs.insert(from, first - from);
        }
        let rest = from + length - first - count;
        if rest > 0 {
            self.runs.insert(first + count, rest);
        }
    }

    fn give(&mut self, first: u64, count: u64) {
        self.free += count;
        let (mut from, mut end) = (first, first + count);
        if let Some((&before, &length)) = self.runs.range(..first).next_back() {
            debug_assert!(before + length <= first, "{first} is free already");
            if before + length == first {
                from = before;
            }
        }
        debug_assert!(!self.runs.contains_key(&first), "{first} is free already");
        if let Some(length) = self.runs.remove(&end) {
            end += length;
        }
        self.runs.insert(from, end - from);
    }
}

/// Free space of a vdev.
#[derive(Clone, Debug)]
pub struct Metaslabs {
    first: u64,
    size: u64,
    slabs: Vec<Slab>,
    active: Option<usize>,
    free: u64,
    prefers_low: bool,
}

impl Metaslabs {
    /// All of the blocks from `first` on as free metaslabs; what is behind the last whole one is
    /// not used. `prefers_low`: low addresses are faster.
    pub fn new((first, blocks): (u64, u64), block_bytes: u64, prefers_low: bool) -> Self {
        let shift = (u64::BITS - (blocks * block_bytes / COUNT).leading_zeros()).max(SHIFT_MIN);
        let size = ((1 << shift) / block_bytes).max(1);
        let slab = |index| {
            let begin = first + index * size;
            Slab { runs: BTreeMap::from([(begin, size)]), free: size, cursor: begin }
        };
        let slabs: Vec<_> = (0..blocks / size).map(slab).collect();
        let free = slabs.len() as u64 * size;
        Self { first, size, slabs, active: None, free, prefers_low }
    }

    /// Free blocks.
    pub const fn free(&self) -> u64 {
        self.free
    }

    /// Blocks of all metaslabs.
    pub fn blocks(&self) -> u64 {
        self.slabs.len() as u64 * self.size
    }

    /// Takes a run of blocks.
    pub fn take(&mut self, count: u64) -> Option<u64> {
        let mut tried = vec![false; self.slabs.len()];
        loop {
            let index = self.active.filter(|&index| !tried[index]).or_else(|| self.best(&tried))?;
            let size = self.size;
            if let Some(first) = self.slabs[index].take(count, size) {
                self.active = Some(index);
                self.free -= count;
                return Some(first);
            }
            tried[index] = true;
        }
    }

    /// The heaviest metaslab that was not tried: weight is its free space, up to twice as much for
    /// low addresses.
    fn best(&self, tried: &[bool]) -> Option<usize> {
        let count = self.slabs.len() as u64;
        let weight = |index: usize| {
            let free = self.slabs[index].free;
            if self.prefers_low { 2 * free - index as u64 * free / count } else { free }
        };
        (0..self.slabs.len())
            .filter(|&index| !tried[index] && self.slabs[index].free > 0)
            .max_by_key(|&index| (weight(index), core::cmp::Reverse(index)))
    }

    /// Takes a run from the end of the vdev.
    pub fn take_last(&mut self, count: u64) -> Option<u64> {
        for slab in self.slabs.iter_mut().rev() {
            let fits = slab.runs.iter().rev().find(|(_, length)| **length >= count);
            if let Some((&from, &length)) = fits {
                let first = from + length - count;
                slab.remove(first, count, (from, length));
                self.free -= count;
                return Some(first);
            }
        }
        None
    }

    /// Takes blocks that are free.
    pub fn occupy(&mut self, first: u64, count: u64) {
        self.by_slab(first, count, |slab, first, count| {
            let found =
                slab.runs.range(..=first).next_back().map(|(&from, &length)| (from, length));
            let Some(run) = found.filter(|(from, length)| from + length >= first + count) else {
                debug_assert!(false, "{first} is in use");
                return;
            };
            slab.remove(first, count, run);
        });
        self.free -= count;
    }

    /// Frees blocks that are in use.
    pub fn give(&mut self, first: u64, count: u64) {
        self.by_slab(first, count, Slab::give);
        self.free += count;
    }

    fn by_slab(&mut self, first: u64, count: u64, mut act: impl FnMut(&mut Slab, u64, u64)) {
        let (mut at, end) = (first, first + count);
        while at < end {
            let index = (at - self.first) / self.size;
            let until = (self.first + (index + 1) * self.size).min(end);
            act(&mut self.slabs[index as usize], at, until - at);
            at = until;
        }
    }
}
