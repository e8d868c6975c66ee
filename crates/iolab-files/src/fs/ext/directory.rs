//! Directories: which block an entry lies in, and when a block splits.
//!
//! A directory is a hashed tree (`dir_index`): one block while everything fits, then leaves by
//! ranges of the hash, each split in the middle when it is full. The hash is FNV-1a in place of the
//! kernel's half MD4, whose seed is random anyway.

/// Bytes of an entry beside its name, and the multiple that its length is rounded to.
const ENTRY_BYTES: u32 = 8;
const ALIGN: u32 = 4;
/// Bytes of a block that entries cannot use (checksum).
const TAIL_BYTES: u32 = 12;
/// Bytes of `.` and `..`.
const DOTS_BYTES: u32 = 24;

/// A leaf: entries whose hash is at least `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HashLeaf {
    from: u32,
    block: u64,
    bytes: u32,
}

/// Leaves of a directory, by hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    leaves: Vec<HashLeaf>,
    /// Blocks of the directory.
    pub blocks: u64,
}

/// Effect of a new entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// Block of the directory that holds it.
    pub block: u64,
    /// New blocks at the end of the directory.
    pub new_blocks: u64,
}

/// Hash of a name: FNV-1a.
pub fn hash(name: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    let mixed = name.bytes().fold(2_166_136_261, step);
    mixed ^ mixed >> 15
}

/// Bytes of an entry.
pub fn entry_bytes(name: &str) -> u32 {
    (ENTRY_BYTES + name.len() as u32).next_multiple_of(ALIGN)
}

impl Directory {
    /// A directory of one block.
    pub fn made() -> Self {
        Self { leaves: vec![HashLeaf { from: 0, block: 0, bytes: DOTS_BYTES }], blocks: 1 }
    }

    /// Block of the directory that a name is in, or would be.
    pub fn block_of(&self, name: &str) -> u64 {
        self.leaves.get(self.leaf_of(hash(name))).map_or(0, |leaf| leaf.block)
    }

    /// Tell whether a new entry splits a block.
    pub fn splits(&self, name: &str, block_bytes: u32) -> bool {
        let leaf = self.leaves.get(self.leaf_of(hash(name)));
        leaf.is_none_or(|leaf| leaf.bytes + entry_bytes(name) > block_bytes - TAIL_BYTES)
    }

    /// Adds an entry.
    pub fn add(&mut self, name: &str, block_bytes: u32) -> Added {
        let before = self.blocks;
        let hash = hash(name);
        if self.splits(name, block_bytes) {
            self.split(self.leaf_of(hash));
        }
        let at = self.leaf_of(hash);
        let leaf = &mut self.leaves[at];
        leaf.bytes += entry_bytes(name);
        Added { block: leaf.block, new_blocks: self.blocks - before }
    }

    /// Takes an entry out; blocks stay.
    pub fn remove(&mut self, name: &str) -> u64 {
        let at = self.leaf_of(hash(name));
        let Some(leaf) = self.leaves.get_mut(at) else { return 0 };
        leaf.bytes = leaf.bytes.saturating_sub(entry_bytes(name));
        leaf.block
    }

    fn leaf_of(&self, hash: u32) -> usize {
        self.leaves.partition_point(|leaf| leaf.from <= hash).saturating_sub(1)
    }

    /// Splits a leaf in the middle of its range; the first split makes a root of block 0.
    fn split(&mut self, at: usize) {
        let end =
            self.leaves.get(at + 1).map_or(u64::from(u32::MAX) + 1, |next| u64::from(next.from));
        if self.blocks == 1 {
            // The entries move out of block 0, which becomes the index.
            self.leaves[at].block = self.blocks;
            self.blocks += 1;
        }
        let leaf = &mut self.leaves[at];
        let middle = u64::midpoint(u64::from(leaf.from), end) as u32;
        let bytes = leaf.bytes / 2;
        leaf.bytes -= bytes;
        let new = HashLeaf { from: middle, block: self.blocks, bytes };
        self.blocks += 1;
        self.leaves.insert(at + 1, new);
    }
}
