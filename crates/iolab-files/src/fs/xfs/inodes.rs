//! Inode chunks of an allocation group, and directories as far as their size matters.
//!
//! Sources: Linux `fs/xfs/libxfs/xfs_ialloc.c` (chunks of 64, the nearest one with a free inode),
//! `xfs_dir2_sf.c`, `xfs_dir2_block.c`, `xfs_dir2_leaf.c` (forms of a directory).

use std::collections::BTreeMap;

use super::geometry::{BLOCK_BYTES, BLOCK_INODES, CHUNK_BLOCKS, CHUNK_INODES};
use super::space::FreeSpan;

/// Chunks of inodes, by their first inode in the group; a set bit is a free inode.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    chunks: BTreeMap<u32, u64>,
    /// The chunk that was made last.
    newest: Option<u32>,
}

impl Chunks {
    /// Adds a chunk at a block of the group, of which `used` inodes are taken.
    pub fn add(&mut self, block: u32, used: u32) {
        let first = block * BLOCK_INODES;
        let free = if used == 0 { u64::MAX } else { u64::MAX << used };
        self.chunks.insert(first, free);
        self.newest = Some(first);
    }

    /// The block after the chunk that was made last: the next one is tried there.
    pub fn next_block(&self) -> Option<u32> {
        self.newest.map(|first| first / BLOCK_INODES + CHUNK_BLOCKS)
    }

    /// Free inodes.
    pub fn free(&self) -> u32 {
        self.chunks.values().map(|free| free.count_ones()).sum()
    }

    /// Takes the lowest free inode of the chunk nearest to `parent`, or without a parent here of
    /// the newest chunk with one.
    pub fn take(&mut self, parent: Option<u32>) -> Option<u32> {
        let with_free = |range: (&u32, &u64)| (*range.1 != 0).then_some(*range.0);
        let first = match parent {
            Some(inode) => {
                let left = self.chunks.range(..=inode).rev().find_map(with_free);
                let right = self.chunks.range(inode + 1..).find_map(with_free);
                match (left, right) {
                    (Some(left), Some(right)) => {
                        let is_here = inode < left + CHUNK_INODES;
                        let is_right_nearer = inode - left + CHUNK_INODES - 1 > right - inode;
                        Some(if !is_here && is_right_nearer { right } else { left })
                    }
                    (left, right) => left.or(right),
                }
            }
            None => self
                .newest
                .filter(|first| self.chunks.get(first).is_some_and(|free| *free != 0))
                .or_else(|| self.chunks.iter().find_map(with_free)),
        }?;
        let free = self.chunks.get_mut(&first)?;
        let place = free.trailing_zeros();
        *free &= *free - 1;
        Some(first + place)
    }

    /// Takes one inode by its number, which must be free (replay).
    pub fn take_exactly(&mut self, inode: u32) {
        let first = inode / CHUNK_INODES * CHUNK_INODES;
        let (first, place) = self
            .chunks
            .range(..=inode)
            .next_back()
            .map_or((first, inode - first), |(first, _)| (*first, inode - first));
        *self.chunks.entry(first).or_insert(u64::MAX) &= !(1 << place);
    }

    /// Gives an inode back; answers the blocks of its chunk if that has become empty.
    pub fn give(&mut self, inode: u32) -> Option<FreeSpan> {
        let (first, free) = self.chunks.range_mut(..=inode).next_back()?;
        let first = *first;
        *free |= 1 << (inode - first);
        if *free != u64::MAX {
            return None;
        }
        self.chunks.remove(&first);
        if self.newest == Some(first) {
            self.newest = None;
        }
        Some(FreeSpan { first: first / BLOCK_INODES, count: CHUNK_BLOCKS })
    }

    /// Blocks of all chunks.
    pub fn blocks(&self) -> impl Iterator<Item = FreeSpan> + '_ {
        self.chunks
            .keys()
            .map(|first| FreeSpan { first: first / BLOCK_INODES, count: CHUNK_BLOCKS })
    }
}

/// Bytes for map or entries in an inode. Those that the kernel makes leave room for attributes from
/// the start where security modules are built in: 24 units of 8 bytes remain (`xfs_init_new_inode`
/// and `xfs_default_attroffset`; `xfs_db` shows `core.forkoff = 24`).
pub const LITERAL_BYTES: u32 = 192;
/// Those of the root directory, which mkfs makes: 512 less the core of 176.
pub const ROOT_LITERAL_BYTES: u32 = 336;
/// Head of the short form, with a parent of 4 bytes.
const SHORT_HEAD_BYTES: u32 = 6;
/// Head of a block of entries (version 3).
const DATA_HEAD_BYTES: u32 = 64;
/// Room for entries in a block.
const DATA_ROOM_BYTES: u32 = BLOCK_BYTES as u32 - DATA_HEAD_BYTES;
/// Head of a block of hashes, and the piece of its tail that changes.
const LEAF_BYTES: u32 = 64 + 128;
/// Tail of the one block of a directory that has both entries and their hashes.
const BLOCK_TAIL_BYTES: u32 = 8;
/// Hash and place of an entry.
pub const HASH_BYTES: u32 = 8;

/// Form of a directory, by its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingForm {
    /// In the inode.
    Short,
    /// One block with entries and hashes.
    Block,
    /// Blocks of entries, and blocks of hashes.
    Leaf,
}

/// Size of a directory. It never shrinks before it is empty.
#[derive(Clone, Copy, Debug)]
pub struct Listing {
    entries: u32,
    short_bytes: u32,
    short_bytes_max: u32,
    data_bytes: u32,
    /// Bytes of entries that were taken out, the oldest ones first.
    removed_bytes: u32,
    /// Form now.
    pub form: ListingForm,
}

impl Default for Listing {
    fn default() -> Self {
        Self {
            entries: 0,
            short_bytes: SHORT_HEAD_BYTES,
            short_bytes_max: LITERAL_BYTES,
            // Entries of the directory itself and of its parent, in the forms with blocks.
            data_bytes: entry_bytes(1) + entry_bytes(2),
            removed_bytes: 0,
            form: ListingForm::Short,
        }
    }
}

/// Bytes of an entry in a block: inode, length, name, type, own place, in units of 8.
pub const fn entry_bytes(name: u32) -> u32 {
    (8 + 1 + name + 1 + 2).next_multiple_of(8)
}

impl Listing {
    /// Listing of the root directory.
    pub fn root() -> Self {
        Self { short_bytes_max: ROOT_LITERAL_BYTES, ..Self::default() }
    }

    /// Entries.
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    /// Adds a name of so many bytes.
    pub fn add(&mut self, name: u32) {
        self.entries += 1;
        self.short_bytes += name + 3 + 4 + 1;
        self.data_bytes += entry_bytes(name);
        if self.form == ListingForm::Short && self.short_bytes > self.short_bytes_max {
            self.form = ListingForm::Block;
        }
        let hashes = (self.entries + 2) * HASH_BYTES + BLOCK_TAIL_BYTES;
        if self.form == ListingForm::Block
            && DATA_HEAD_BYTES + self.data_bytes + hashes > BLOCK_BYTES as u32
        {
            self.form = ListingForm::Leaf;
        }
    }

    /// Takes a name out of so many blocks of entries; answers the one that had it, if the oldest
    /// names go first.
    pub fn remove(&mut self, name: u32, blocks: u32) -> u32 {
        let place = self.removed_bytes / DATA_ROOM_BYTES % blocks.max(1);
        self.removed_bytes = self.removed_bytes.wrapping_add(entry_bytes(name));
        self.entries = self.entries.saturating_sub(1);
        self.short_bytes = self.short_bytes.saturating_sub(name + 8).max(SHORT_HEAD_BYTES);
        self.data_bytes = self.data_bytes.saturating_sub(entry_bytes(name));
        if self.short_bytes <= self.short_bytes_max && self.form == ListingForm::Block {
            self.form = ListingForm::Short;
        }
        place
    }

    /// Bytes that hashes take in one of their blocks, with its head and tail.
    pub fn hashes_of_a_leaf(&self) -> u32 {
        let all = (self.entries + 2) * HASH_BYTES;
        all / all.div_ceil(DATA_ROOM_BYTES).max(1) + LEAF_BYTES
    }

    /// Blocks of entries and blocks of hashes that it needs.
    pub fn blocks(&self) -> (u32, u32) {
        match self.form {
            ListingForm::Short => (0, 0),
            ListingForm::Block => (1, 0),
            ListingForm::Leaf => {
                let leaves = ((self.entries + 2) * HASH_BYTES).div_ceil(DATA_ROOM_BYTES);
                // A node form has a root and a table of free space besides its leaves.
                let more = if leaves > 1 { 2 } else { 0 };
                (self.data_bytes.div_ceil(DATA_ROOM_BYTES), leaves + more)
            }
        }
    }
}
