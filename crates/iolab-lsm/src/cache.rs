//! Cache of blocks: the least recently used one goes first.
//!
//! Left out: its parts with a lock each, and the room for entries of high priority.

use crate::action::FileNo;

/// No entry.
pub const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    file: FileNo,
    block: u32,
    bytes: u32,
    newer: u32,
    older: u32,
}

/// Blocks in memory.
#[derive(Debug)]
pub struct BlockCache {
    capacity: u64,
    used: u64,
    entries: Vec<Entry>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
}

impl BlockCache {
    /// An empty one.
    pub const fn new(capacity: u64) -> Self {
        Self {
            capacity,
            used: 0,
            entries: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }

    /// Notes that an entry was used.
    pub fn touch(&mut self, place: u32) {
        self.unlink(place);
        self.push(place);
    }

    /// Takes a block; answers its place, and hands over what had to go to `gone`. [`NONE`]: it is
    /// larger than the cache.
    pub fn insert(
        &mut self,
        (file, block): (FileNo, u32),
        bytes: u32,
        mut gone: impl FnMut(FileNo, u32),
    ) -> u32 {
        if u64::from(bytes) > self.capacity {
            return NONE;
        }
        while self.used + u64::from(bytes) > self.capacity {
            let last = self.entries[self.oldest as usize];
            self.remove(self.oldest);
            gone(last.file, last.block);
        }
        let entry = Entry { file, block, bytes, newer: NONE, older: NONE };
        let place = if let Some(place) = self.free.pop() {
            self.entries[place as usize] = entry;
            place
        } else {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        };
        self.used += u64::from(bytes);
        self.push(place);
        place
    }

    /// Forgets an entry.
    pub fn remove(&mut self, place: u32) {
        self.unlink(place);
        self.used -= u64::from(self.entries[place as usize].bytes);
        self.free.push(place);
    }

    fn push(&mut self, place: u32) {
        let former = self.newest;
        let entry = &mut self.entries[place as usize];
        (entry.newer, entry.older) = (NONE, former);
        if former == NONE {
            self.oldest = place;
        } else {
            self.entries[former as usize].newer = place;
        }
        self.newest = place;
    }

    fn unlink(&mut self, place: u32) {
        let Entry { newer, older, .. } = self.entries[place as usize];
        if newer == NONE {
            self.newest = older;
        } else {
            self.entries[newer as usize].older = older;
        }
        if older == NONE {
            self.oldest = newer;
        } else {
            self.entries[older as usize].newer = newer;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// In lock step with a list.
        #[test]
        fn the_least_recently_used_block_goes(steps in prop::collection::vec(0_u32..12, 1..200)) {
            let mut cache = BlockCache::new(50);
            let mut places = [NONE; 12];
            let mut list: Vec<u32> = Vec::new();
            for block in steps {
                if places[block as usize] == NONE {
                    let mut gone = Vec::new();
                    let place = cache.insert((FileNo(1), block), 10, |_, block| gone.push(block));
                    for block in &gone {
                        places[*block as usize] = NONE;
                    }
                    places[block as usize] = place;
                    let expected: Vec<u32> = list.drain(..list.len().saturating_sub(4)).collect();
                    prop_assert_eq!(gone, expected);
                } else {
                    cache.touch(places[block as usize]);
                    list.retain(|other| *other != block);
                }
                list.push(block);
            }
        }
    }

    #[test]
    fn a_block_larger_than_the_cache_is_not_kept() {
        assert_eq!(BlockCache::new(5).insert((FileNo(1), 0), 10, |_, _| {}), NONE);
    }
}
