//! `XfsNode`: a file or directory in memory, and `Inode`: what of it is on the device.

use super::fork::{Fork, Piece};
use super::geometry::BLOCK_INODES;
use super::inodes::{LITERAL_BYTES, Listing};

/// Bytes of a record of an extent.
const RECORD_BYTES: u32 = 16;
/// Keys of a node of a file's map: (4096 - 72) / 16, as of a leaf.
const NODE_RECORDS: u32 = 251;
/// Records that an inode holds itself.
pub const INLINE_RECORDS: u32 = LITERAL_BYTES / RECORD_BYTES;

/// Part of a node that a checkpoint holds, without its map.
#[derive(Clone, Debug, Default)]
pub struct Inode {
    /// Group.
    pub group: u32,
    /// Number in its group.
    pub number: u32,
    /// Length on the device.
    pub size: u64,
    /// Names, of a directory.
    pub listing: Option<Listing>,
    /// Blocks of the map, beyond what the inode holds.
    pub map_blocks: Vec<u64>,
    /// Names that it has.
    pub links: u32,
}

impl Inode {
    /// Block of its group that holds it.
    pub const fn block(&self) -> u32 {
        self.number / BLOCK_INODES
    }
}

/// A node in memory.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "flags of the kernel's inode, each its own")]
pub struct XfsNode {
    /// Part that is on the device as well.
    pub inode: Inode,
    /// Map, with promised blocks.
    pub fork: Fork,
    /// Length.
    pub size: u64,
    /// Blocks beyond the end were given back at a close: later ones leave them.
    pub is_trimmed: bool,
    /// Was shortened, and neither written nor closed since.
    pub is_shortened: bool,
    /// End of the blocks that are written on behalf of a change of length.
    pub flushed_end: u64,
    /// Has blocks beyond its end by fallocate(2): they stay.
    pub is_preallocated: bool,
    /// Range of the map that changed since the last checkpoint was closed.
    pub touched: Option<(u64, u64)>,
    /// Something besides times changed in this checkpoint: fdatasync(2) has to wait for it.
    pub data_change: u64,
    /// The last checkpoint that holds a change of it.
    pub any_change: u64,
    /// Was made after the last checkpoint was closed.
    pub is_new: bool,
    /// Tick of the last change of data.
    pub written_tick: u64,
    /// Tick of the last read that changed a time.
    pub read_tick: u64,
    /// Blocks of the map were read since the mount.
    pub is_map_read: bool,
}

impl XfsNode {
    /// Notes a change of the map.
    pub fn touch(&mut self, from: u64, to: u64) {
        let (first, end) = self.touched.unwrap_or((from, to));
        self.touched = Some((first.min(from), end.max(to)));
    }

    /// Blocks that the map needs outside the inode: its leaves, and a level above them for more
    /// than the inode can name.
    pub fn map_blocks_needed(&self) -> usize {
        let leaves = self.fork.leaves();
        let above = if leaves > INLINE_RECORDS { leaves.div_ceil(NODE_RECORDS) } else { 0 };
        (leaves + above) as usize
    }

    /// Map and inode as the checkpoint that is being closed holds them.
    pub fn snapshot(&mut self) -> Snapshot {
        let (from, to) = if self.is_new { (0, u64::MAX) } else { self.touched.unwrap_or((0, 0)) };
        self.touched = None;
        let is_new = core::mem::take(&mut self.is_new);
        let mut pieces = Vec::new();
        let mut at = from;
        while let Some(piece) = self.fork.at_or_after(at).filter(|piece| piece.first < to) {
            at = piece.end();
            pieces.extend(piece.part(from, to).filter(Piece::is_real));
        }
        Snapshot { inode: self.inode.clone(), from, to, pieces, is_new }
    }
}

/// Content of a checkpoint for one node.
#[derive(Clone, Debug)]
pub struct Snapshot {
    inode: Inode,
    from: u64,
    to: u64,
    pieces: Vec<Piece>,
    is_new: bool,
}

/// A node on the device.
#[derive(Clone, Debug, Default)]
pub struct StoredNode {
    /// Inode.
    pub inode: Inode,
    /// Map.
    pub fork: Fork,
}

impl StoredNode {
    /// Applies what a checkpoint holds.
    pub fn apply(&mut self, snapshot: Snapshot) {
        if snapshot.is_new {
            self.fork = Fork::default();
        }
        self.inode = snapshot.inode;
        self.fork.remove(snapshot.from, snapshot.to);
        for piece in snapshot.pieces {
            self.fork.insert(piece);
        }
    }

    /// The node as a mount reads it.
    pub fn read(&self) -> XfsNode {
        XfsNode {
            inode: self.inode.clone(),
            fork: self.fork.clone(),
            size: self.inode.size,
            ..XfsNode::default()
        }
    }
}
