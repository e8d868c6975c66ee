//! `Groups`: which fragments are free. One byte for each block, one bit for each fragment.

use super::geometry::Geometry;

/// A group with some of its blocks in use.
#[derive(Clone, Debug)]
struct GroupSpace {
    /// A bit for each fragment in use; none: nothing but the metadata is in use.
    used: Option<Box<[u8]>>,
    free_blocks: u32,
    /// No block before this one has free fragments beside used ones.
    pieces_from: u32,
    /// No data block before this one is free.
    free_from: u32,
}

impl GroupSpace {
    /// The first free block from `start` on, below `end`; `head` blocks are metadata.
    fn free_at(&self, start: u32, end: u32, head: u32) -> Option<u32> {
        let start = start.max(self.free_from).max(head);
        match self.used.as_deref() {
            _ if start >= end => None,
            None => Some(start),
            Some(used) => {
                let found = used[start as usize..end as usize].iter().position(|&byte| byte == 0);
                found.map(|at| start + at as u32)
            }
        }
    }
}

/// Free blocks of each group in a tree of maxima: a group with at least so many is found in steps
/// of the logarithm of their number.
#[derive(Clone, Debug)]
struct Rooms {
    /// Node n has the nodes 2n and 2n + 1 below it; groups are the last half.
    most: Box<[u32]>,
}

impl Rooms {
    fn new(groups: impl ExactSizeIterator<Item = u32>) -> Self {
        let leaves = groups.len().next_power_of_two();
        let mut most = vec![0; 2 * leaves].into_boxed_slice();
        for (place, free) in most[leaves..].iter_mut().zip(groups) {
            *place = free;
        }
        for node in (1..leaves).rev() {
            most[node] = most[2 * node].max(most[2 * node + 1]);
        }
        Self { most }
    }

    fn set(&mut self, group: u32, free: u32) {
        let mut node = self.most.len() / 2 + group as usize;
        self.most[node] = free;
        while node > 1 {
            node /= 2;
            let most = self.most[2 * node].max(self.most[2 * node + 1]);
            if self.most[node] == most {
                break;
            }
            self.most[node] = most;
        }
    }

    /// The first group from `start` on with at least `least` free blocks; `least` is above zero.
    fn first(&self, start: u32, least: u32) -> Option<u32> {
        let leaves = self.most.len() / 2;
        let mut node = leaves + start as usize;
        while self.most[node] < least {
            // The next subtree to the right: up, past every right-hand child.
            while node & 1 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < leaves {
            node = 2 * node + usize::from(self.most[2 * node] < least);
        }
        Some((node - leaves) as u32)
    }
}

/// Free space of a file system.
#[derive(Clone, Debug)]
pub struct Groups {
    geometry: Geometry,
    spaces: Vec<GroupSpace>,
    rooms: Rooms,
    free_fragments: u64,
    /// Free blocks of all groups.
    free_blocks: u64,
}

impl Groups {
    /// The space of a fresh file system: metadata and log are in use.
    pub fn new(geometry: &Geometry) -> Self {
        let spaces = (0..geometry.groups)
            .map(|group| GroupSpace {
                used: None,
                free_blocks: (geometry.end(group) - geometry.data_start(group)) as u32,
                pieces_from: u32::MAX,
                free_from: 0,
            })
            .collect::<Vec<_>>();
        let free: u64 = spaces.iter().map(|group| u64::from(group.free_blocks)).sum();
        let mut all = Self {
            geometry: geometry.clone(),
            rooms: Rooms::new(spaces.iter().map(|group| group.free_blocks)),
            spaces,
            free_fragments: free * Geometry::PER_BLOCK,
            free_blocks: free,
        };
        if let Some((first, count)) = geometry.log {
            // The log goes round the metadata of the groups that it reaches into.
            let mut left = count / Geometry::PER_BLOCK;
            let mut block = first / Geometry::PER_BLOCK;
            while left > 0 && block < geometry.blocks() {
                if all.byte(block) == 0 {
                    all.occupy(block * Geometry::PER_BLOCK, Geometry::PER_BLOCK);
                    left -= 1;
                }
                block += 1;
            }
        }
        all
    }

    /// Free fragments.
    pub const fn free_fragments(&self) -> u64 {
        self.free_fragments
    }

    /// Mean number of free blocks of a group.
    const fn mean_free(&self) -> u64 {
        self.free_blocks / self.spaces.len() as u64
    }

    /// The first group from `start` on, going round, with at least the mean number of free blocks.
    pub fn roomy_group(&self, start: u32) -> u32 {
        // A mean of no more than 2^32 - 1, as each of its terms.
        let (mean, start) = (self.mean_free() as u32, start % self.spaces.len() as u32);
        if mean == 0 {
            return start;
        }
        let found = self.rooms.first(start, mean).or_else(|| self.rooms.first(0, mean));
        found.unwrap_or(start)
    }

    fn byte(&self, block: u64) -> u8 {
        let group = self.geometry.group_of(block);
        let within = block - self.geometry.start(group);
        match &self.spaces[group as usize].used {
            Some(used) => used[within as usize],
            None if within < self.geometry.head_blocks => u8::MAX,
            None => 0,
        }
    }

    fn byte_mut(&mut self, block: u64) -> &mut u8 {
        let group = self.geometry.group_of(block);
        let (start, end) = (self.geometry.start(group), self.geometry.end(group));
        let head = self.geometry.head_blocks as usize;
        let used = self.spaces[group as usize].used.get_or_insert_with(|| {
            let mut bytes = vec![0; (end - start) as usize];
            bytes[..head].fill(u8::MAX);
            bytes.into_boxed_slice()
        });
        &mut used[(block - start) as usize]
    }

    /// Marks fragments as used.
    pub fn occupy(&mut self, first: u64, count: u64) {
        self.change(first, count, true);
    }

    /// Marks fragments as free.
    pub fn give(&mut self, first: u64, count: u64) {
        self.change(first, count, false);
    }

    fn change(&mut self, first: u64, count: u64, is_used: bool) {
        let mut at = first;
        while at < first + count {
            let block = at / Geometry::PER_BLOCK;
            let until = ((block + 1) * Geometry::PER_BLOCK).min(first + count);
            let bits = bits(at % Geometry::PER_BLOCK, until - at);
            let byte = self.byte_mut(block);
            let old = *byte;
            debug_assert_eq!(old & bits, if is_used { 0 } else { bits }, "block {block}");
            let new = if is_used { old | bits } else { old & !bits };
            *byte = new;
            let number = self.geometry.group_of(block);
            let within = (block - self.geometry.start(number)) as u32;
            let group = &mut self.spaces[number as usize];
            let (gained, lost) = (old != 0 && new == 0, old == 0 && new != 0);
            group.free_blocks = group.free_blocks + u32::from(gained) - u32::from(lost);
            self.free_blocks = self.free_blocks + u64::from(gained) - u64::from(lost);
            if gained {
                group.free_from = group.free_from.min(within);
            }
            if gained || lost {
                self.rooms.set(number, group.free_blocks);
            }
            if new != 0 && new != u8::MAX {
                group.pieces_from = group.pieces_from.min(within);
            }
            let changed = u64::from((old ^ new).count_ones());
            if is_used {
                self.free_fragments -= changed;
            } else {
                self.free_fragments += changed;
            }
            at = until;
        }
    }

    /// Takes a whole block: the one wanted, the next free one of its group, or one of another.
    pub fn take_block(&mut self, wanted: u64) -> Option<u64> {
        let block = self.free_block(wanted.min(self.geometry.blocks() - 1))?;
        self.occupy(block * Geometry::PER_BLOCK, Geometry::PER_BLOCK);
        Some(block)
    }

    fn free_block(&mut self, wanted: u64) -> Option<u64> {
        let own = self.geometry.group_of(wanted);
        let number = if self.spaces[own as usize].free_blocks > 0 {
            own
        } else {
            self.rooms.first(own, 1).or_else(|| self.rooms.first(0, 1))?
        };
        let (first, head) = (self.geometry.start(number), self.geometry.head_blocks as u32);
        let end = (self.geometry.end(number) - first) as u32;
        let group = &mut self.spaces[number as usize];
        let from = if number == own { ((wanted.max(first) - first) as u32).min(end) } else { 0 };
        let is_whole = from <= group.free_from.max(head);
        let (found, is_first) = match group.free_at(from, end, head) {
            Some(found) => (found, is_whole),
            None => (group.free_at(0, from, head)?, true),
        };
        if is_first {
            group.free_from = found;
        }
        Some(first + u64::from(found))
    }

    /// Takes neighbouring fragments inside one block: beside others in the group of `wanted`, else
    /// out of a free block.
    pub fn take_fragments(&mut self, wanted: u64, count: u64) -> Option<u64> {
        if count == Geometry::PER_BLOCK {
            return self.take_block(wanted).map(|block| block * Geometry::PER_BLOCK);
        }
        let group = self.geometry.group_of(wanted.min(self.geometry.blocks() - 1));
        let first = self.piece_in(group, count).or_else(|| {
            let block = self.free_block(wanted)?;
            Some(block * Geometry::PER_BLOCK)
        });
        let first = first.or_else(|| {
            (0..self.spaces.len() as u32).find_map(|other| self.piece_in(other, count))
        })?;
        self.occupy(first, count);
        Some(first)
    }

    /// Free fragments of a block that is in use in part.
    fn piece_in(&mut self, number: u32, count: u64) -> Option<u64> {
        let group = &mut self.spaces[number as usize];
        let used = group.used.as_deref()?;
        let from = (group.pieces_from as usize).min(used.len());
        let is_part = |byte: u8| byte != 0 && byte != u8::MAX;
        let first_part = used[from..].iter().position(|&byte| is_part(byte)).map(|at| at + from);
        group.pieces_from = first_part.map_or(u32::MAX, |at| at as u32);
        let start = self.geometry.start(number);
        let room =
            |byte: u8| (0..=Geometry::PER_BLOCK - count).find(|&at| byte & bits(at, count) == 0);
        (first_part?..used.len()).filter(|&at| is_part(used[at])).find_map(|at| {
            room(used[at]).map(|piece| (start + at as u64) * Geometry::PER_BLOCK + piece)
        })
    }

    /// Makes a run of fragments longer where it lies; tells whether that was possible.
    pub fn extend(&mut self, first: u64, has: u64, wants: u64) -> bool {
        let at = first % Geometry::PER_BLOCK;
        if at + wants > Geometry::PER_BLOCK {
            return false;
        }
        let more = bits(at + has, wants - has);
        if self.byte(first / Geometry::PER_BLOCK) & more != 0 {
            return false;
        }
        self.occupy(first + has, wants - has);
        true
    }
}

/// Bits of some fragments of a block.
const fn bits(first: u64, count: u64) -> u8 {
    (((1_u16 << count) - 1) << first) as u8
}
