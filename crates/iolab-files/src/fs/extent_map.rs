//! Map from the blocks of a file to their places: extents that split and merge.
//!
//! Neighbours with the same state whose blocks are neighbours too are one extent, however long:
//! limits of records on disk are the file system's business. Holes are absent. All operations cost
//! the logarithm of the number of extents, plus what they change.

use std::collections::BTreeMap;

use crate::api::block::{Mapped, Place};

/// Neighbouring blocks of a file with neighbouring places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// First block of the file.
    pub first: u64,
    /// Number of blocks.
    pub count: u64,
    /// Place of the first; never a hole.
    pub place: Place,
}

impl FileExtent {
    /// The block after the last one.
    pub const fn end(&self) -> u64 {
        self.first + self.count
    }

    /// Place of a block of it.
    pub const fn place_of(&self, block: u64) -> Place {
        advanced(self.place, block - self.first)
    }

    /// The part of it that lies in `from..to`, if any.
    pub fn within(&self, from: u64, to: u64) -> Option<Self> {
        let (first, end) = (self.first.max(from), self.end().min(to));
        let place = || self.place_of(first);
        (first < end).then(|| Self { first, count: end - first, place: place() })
    }

    fn joins(&self, next: &Self) -> bool {
        self.end() == next.first && advanced(self.place, self.count) == next.place
    }
}

/// A range of a map from before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerRange {
    /// First block of the file.
    pub first: u64,
    /// Number of blocks.
    pub count: u64,
    /// The parts of extents that lay in it.
    pub extents: Vec<FileExtent>,
}

impl FormerRange {
    /// Takes up the range of the next change, if one range says the same: new blocks of a growing
    /// file.
    pub fn absorbs(&mut self, next: &Self) -> bool {
        let goes_on = self.first + self.count == next.first;
        let is_growth = goes_on && self.extents.is_empty() && next.extents.is_empty();
        self.count += if is_growth { next.count } else { 0 };
        is_growth
    }
}

/// The place `by` blocks behind another one.
const fn advanced(place: Place, by: u64) -> Place {
    match place {
        Place::Hole => Place::Hole,
        Place::Delayed => Place::Delayed,
        Place::Unwritten(device, first) => Place::Unwritten(device, first + by),
        Place::Written(device, first) => Place::Written(device, first + by),
    }
}

/// Extents by their first block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtentMap {
    extents: BTreeMap<u64, (u64, Place)>,
    blocks: u64,
}

impl ExtentMap {
    /// Tell whether the file has no blocks.
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Number of extents.
    pub fn len(&self) -> usize {
        self.extents.len()
    }

    /// Number of blocks in all extents.
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Extents in order.
    pub fn iter(&self) -> impl Iterator<Item = FileExtent> + '_ {
        self.extents.iter().map(extent)
    }

    /// The last extent that begins at or before a block.
    pub fn at_or_before(&self, block: u64) -> Option<FileExtent> {
        self.extents.range(..=block).next_back().map(extent)
    }

    /// The first extent that begins after a block.
    pub fn after(&self, block: u64) -> Option<FileExtent> {
        self.extents.range(block + 1..).next().map(extent)
    }

    /// The first extent.
    pub fn first(&self) -> Option<FileExtent> {
        self.extents.first_key_value().map(extent)
    }

    /// The last extent.
    pub fn last(&self) -> Option<FileExtent> {
        self.extents.last_key_value().map(extent)
    }

    /// The extent that holds a block.
    pub fn get(&self, block: u64) -> Option<FileExtent> {
        self.at_or_before(block).filter(|found| block < found.end())
    }

    /// State of at most `count` blocks from `block` on: the longest run with one answer.
    pub fn mapped(&self, block: u64, count: u64) -> Mapped {
        if let Some(found) = self.get(block) {
            return Mapped { place: found.place_of(block), count: count.min(found.end() - block) };
        }
        let hole = self.after(block).map_or(u64::MAX, |next| next.first - block);
        Mapped { place: Place::Hole, count: count.min(hole) }
    }

    /// The parts of extents that lie in a range.
    pub fn within(&self, first: u64, count: u64) -> impl Iterator<Item = FileExtent> + '_ {
        let end = first.saturating_add(count);
        let start = self.get(first).map_or(first, |found| found.first);
        self.extents.range(start..end).filter_map(move |entry| extent(entry).within(first, end))
    }

    /// Gives a range a place, whatever it had before.
    pub fn set(&mut self, first: u64, count: u64, place: Place) {
        if self.extend(first, count, place) {
            return;
        }
        self.clear(first, count);
        let mut new = FileExtent { first, count, place };
        self.blocks += count;
        if let Some(left) = self.at_or_before(first).filter(|left| left.joins(&new)) {
            self.extents.remove(&left.first);
            new =
                FileExtent { first: left.first, count: left.count + new.count, place: left.place };
        }
        if let Some(right) = self.extents.get(&new.end()).copied() {
            let right = FileExtent { first: new.end(), count: right.0, place: right.1 };
            if new.joins(&right) {
                self.extents.remove(&right.first);
                new.count += right.count;
            }
        }
        self.extents.insert(new.first, (new.count, new.place));
    }

    /// Makes the last extent longer, if the range continues it: appending is what most files do.
    fn extend(&mut self, first: u64, count: u64, place: Place) -> bool {
        let Some(mut entry) = self.extents.last_entry() else { return false };
        let last = FileExtent { first: *entry.key(), count: entry.get().0, place: entry.get().1 };
        if !last.joins(&FileExtent { first, count, place }) {
            return false;
        }
        entry.get_mut().0 += count;
        self.blocks += count;
        true
    }

    /// Notes that blocks of a range hold data now; holes stay holes.
    pub fn mark_written(&mut self, first: u64, count: u64) {
        let extents: Vec<_> = self.within(first, count).collect();
        for extent in extents {
            if let Place::Unwritten(device, place) = extent.place {
                self.set(extent.first, extent.count, Place::Written(device, place));
            }
        }
    }

    /// Notes that blocks of a range show zeros from now on; holes stay holes.
    pub fn mark_unwritten(&mut self, first: u64, count: u64) {
        let extents: Vec<_> = self.within(first, count).collect();
        for extent in extents {
            if let Place::Written(device, place) = extent.place {
                self.set(extent.first, extent.count, Place::Unwritten(device, place));
            }
        }
    }

    /// Makes a hole of a range.
    pub fn clear(&mut self, first: u64, count: u64) {
        let end = first.saturating_add(count);
        if let Some(found) = self.get(first) {
            self.extents.remove(&found.first);
            for rest in [found.within(0, first), found.within(end, u64::MAX)].into_iter().flatten()
            {
                self.extents.insert(rest.first, (rest.count, rest.place));
            }
            self.blocks -= found.end().min(end) - first;
        }
        while let Some((&key, &(length, place))) = self.extents.range(first..end).next() {
            let found = FileExtent { first: key, count: length, place };
            self.extents.remove(&key);
            self.blocks -= found.end().min(end) - key;
            if let Some(rest) = found.within(end, u64::MAX) {
                self.extents.insert(rest.first, (rest.count, rest.place));
            }
        }
    }

    /// Makes a hole of a range and tells what was there.
    pub fn take(&mut self, first: u64, count: u64) -> Vec<FileExtent> {
        let taken = self.within(first, count).collect();
        self.clear(first, count);
        taken
    }

    /// A range as it is now, to be kept from before a change.
    pub fn former(&self, first: u64, count: u64) -> FormerRange {
        FormerRange { first, count, extents: self.within(first, count).collect() }
    }

    /// Puts a range back to what it held.
    pub fn restore(&mut self, former: &FormerRange) {
        self.clear(former.first, former.count);
        for old in &former.extents {
            self.set(old.first, old.count, old.place);
        }
    }
}

fn extent((&first, &(count, place)): (&u64, &(u64, Place))) -> FileExtent {
    FileExtent { first, count, place }
}

#[cfg(test)]
mod tests;
