//! `PageMap`: the pages of one file by their index, with those that are dirty.
//!
//! Chunks of 512 pages, each a table of slots and a set of dirty bits: 4 bytes per page of a file
//! that was ever cached, a bit for dirtiness, and both are found without a search. The first 64
//! pages have a table of their own that grows with the file: small files take little memory.

use crate::api::frame::{FrameId, Shadow};

/// Pages of a chunk.
const CHUNK: u64 = 512;
/// Pages at the start of a file that lie in no chunk: one word of dirty bits.
const HEAD: u64 = 64;
/// Marks a slot that holds a shadow.
const SHADOW: u32 = 1 << 31;

/// Content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Never cached, or forgotten.
    Absent,
    /// Evicted, at this time of the clock of replacement.
    Shadow(Shadow),
    /// Cached in this frame.
    Page(FrameId),
}

#[derive(Clone, Debug)]
struct Chunk {
    slots: [u32; CHUNK as usize],
    dirty: [u64; CHUNK as usize / 64],
    dirty_count: u16,
}

impl Chunk {
    const EMPTY: Self = Self { slots: [0; CHUNK as usize], dirty: [0; 8], dirty_count: 0 };
}

/// The pages of a file.
#[derive(Clone, Debug, Default)]
pub struct PageMap {
    /// Slots of the first pages.
    head: Vec<u32>,
    head_dirty: u64,
    chunks: Vec<Option<Box<Chunk>>>,
    present: u64,
    shadows: u64,
    dirty: u64,
    /// All dirty pages are in this range, while there are some.
    dirty_within: (u64, u64),
}

impl PageMap {
    /// Cached pages.
    pub const fn present(&self) -> u64 {
        self.present
    }

    /// Dirty pages.
    pub const fn dirty(&self) -> u64 {
        self.dirty
    }

    /// A page after the last one that may have a slot.
    pub fn page_end(&self) -> u64 {
        (self.chunks.len() as u64 * CHUNK).max(self.head.len() as u64)
    }

    /// Content of a slot.
    #[inline]
    pub fn get(&self, index: u64) -> Slot {
        let value = if index < HEAD {
            self.head.get(index as usize).copied().unwrap_or(0)
        } else {
            match self.chunks.get((index / CHUNK) as usize) {
                Some(Some(chunk)) => chunk.slots[(index % CHUNK) as usize],
                _ => 0,
            }
        };
        match value {
            0 => Slot::Absent,
            value if value & SHADOW != 0 => Slot::Shadow(Shadow(value & !SHADOW)),
            value => Slot::Page(FrameId(value - 1)),
        }
    }

    /// Frame of a cached page.
    #[inline]
    pub fn frame(&self, index: u64) -> Option<FrameId> {
        match self.get(index) {
            Slot::Page(frame) => Some(frame),
            Slot::Absent | Slot::Shadow(_) => None,
        }
    }

    /// Changes a slot.
    #[inline]
    pub fn set(&mut self, index: u64, slot: Slot) {
        let value = self.slot(index);
        let was_page = *value != 0 && *value & SHADOW == 0;
        let was_shadow = *value & SHADOW != 0;
        *value = match slot {
            Slot::Absent => 0,
            // The clock wraps after 2^31 evictions: 8 TiB of pages.
            Slot::Shadow(shadow) => SHADOW | (shadow.0 & !SHADOW),
            Slot::Page(frame) => frame.0 + 1,
        };
        let is_page = matches!(slot, Slot::Page(_));
        let is_shadow = matches!(slot, Slot::Shadow(_));
        self.present = self.present + u64::from(is_page) - u64::from(was_page);
        self.shadows = self.shadows + u64::from(is_shadow) - u64::from(was_shadow);
    }

    /// The slot of a page, made if there is none.
    #[inline]
    fn slot(&mut self, index: u64) -> &mut u32 {
        if index < HEAD {
            let at = index as usize;
            if self.head.len() <= at {
                self.head.resize((at + 1).next_power_of_two(), 0);
            }
            return &mut self.head[at];
        }
        let place = (index / CHUNK) as usize;
        if self.chunks.len() <= place {
            self.chunks.resize_with(place + 1, || None);
        }
        let chunk = self.chunks[place].get_or_insert_with(|| Box::new(Chunk::EMPTY));
        &mut chunk.slots[(index % CHUNK) as usize]
    }

    /// Marks a page that has a slot as dirty or clean; tells whether that was new.
    #[inline]
    pub fn set_dirty(&mut self, index: u64, is_dirty: bool) -> bool {
        let mask = 1 << (index % 64);
        let (word, count) = if index < HEAD {
            if index >= self.head.len() as u64 {
                return false;
            }
            (&mut self.head_dirty, None)
        } else {
            let Some(Some(chunk)) = self.chunks.get_mut((index / CHUNK) as usize) else {
                return false;
            };
            (&mut chunk.dirty[(index % CHUNK / 64) as usize], Some(&mut chunk.dirty_count))
        };
        if (*word & mask != 0) == is_dirty {
            return false;
        }
        *word ^= mask;
        if let Some(count) = count {
            *count = if is_dirty { *count + 1 } else { *count - 1 };
        }
        if is_dirty {
            let (from, end) = if self.dirty == 0 { (index, 0) } else { self.dirty_within };
            self.dirty_within = (from.min(index), end.max(index + 1));
            self.dirty += 1;
        } else {
            self.dirty -= 1;
        }
        true
    }

    /// First dirty page in `from .. end`.
    pub fn next_dirty(&self, from: u64, end: u64) -> Option<u64> {
        if self.dirty == 0 {
            return None;
        }
        let mut index = from.max(self.dirty_within.0);
        let end = end.min(self.dirty_within.1);
        if index < HEAD {
            let word = self.head_dirty >> index;
            if word != 0 {
                let found = index + u64::from(word.trailing_zeros());
                return (found < end).then_some(found);
            }
            index = HEAD;
        }
        while index < end {
            let place = (index / CHUNK) as usize;
            let chunk = match self.chunks.get(place)? {
                Some(chunk) if chunk.dirty_count > 0 => chunk,
                _ => {
                    index = (index / CHUNK + 1) * CHUNK;
                    continue;
                }
            };
            let bit = index % CHUNK;
            let word = chunk.dirty[(bit / 64) as usize] >> (bit % 64);
            if word != 0 {
                let found = index + u64::from(word.trailing_zeros());
                return (found < end).then_some(found);
            }
            index = (index / 64 + 1) * 64;
        }
        None
    }

    /// Takes all pages from `from` on out, with their frames; their shadows go, too.
    pub fn cut(&mut self, from: u64, end: u64, mut each: impl FnMut(u64, FrameId)) {
        let last = self.page_end().min(end);
        let mut index = from;
        while index < last && self.present + self.shadows > 0 {
            if index >= HEAD && !matches!(self.chunks.get((index / CHUNK) as usize), Some(Some(_)))
            {
                index = (index / CHUNK + 1) * CHUNK;
                continue;
            }
            match self.get(index) {
                Slot::Absent => {}
                Slot::Shadow(_) => self.set(index, Slot::Absent),
                Slot::Page(frame) => {
                    self.set_dirty(index, false);
                    self.set(index, Slot::Absent);
                    each(index, frame);
                }
            }
            index += 1;
        }
        if from == 0 && end == u64::MAX {
            (self.head, self.chunks) = (Vec::new(), Vec::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use iolab_model::Seed;

    use super::*;

    /// A naive twin agrees over 10^6 random operations.
    #[test]
    fn a_plain_map_agrees() {
        let mut random = Seed(3).stream("page map", 0);
        let (mut map, mut twin, mut dirty) = (PageMap::default(), BTreeMap::new(), BTreeSet::new());
        for step in 0..1_000_000_u32 {
            let index = random.next_u64() % 3000;
            match random.next_u64() % 8 {
                0..3 => {
                    map.set(index, Slot::Page(FrameId(step)));
                    twin.insert(index, FrameId(step));
                }
                3 if twin.contains_key(&index) => {
                    map.set_dirty(index, true);
                    dirty.insert(index);
                }
                4 => {
                    assert_eq!(map.set_dirty(index, false), dirty.remove(&index));
                    map.set(index, Slot::Shadow(Shadow(step)));
                    twin.remove(&index);
                }
                5 => {
                    let end = index + random.next_u64() % 200;
                    let found = dirty.range(index..end).next().copied();
                    assert_eq!(map.next_dirty(index, end), found);
                }
                6 if step % 64 == 0 => {
                    let end = index + 300;
                    let mut cut = Vec::new();
                    map.cut(index, end, |index, frame| cut.push((index, frame)));
                    let keys: Vec<u64> = twin.range(index..end).map(|(key, _)| *key).collect();
                    let gone: Vec<_> =
                        keys.iter().map(|key| (*key, twin.remove(key).unwrap())).collect();
                    assert_eq!(cut, gone);
                    dirty.retain(|page| !(index..end).contains(page));
                }
                _ => assert_eq!(map.frame(index), twin.get(&index).copied()),
            }
            assert_eq!((map.present(), map.dirty()), (twin.len() as u64, dirty.len() as u64));
        }
    }
}
