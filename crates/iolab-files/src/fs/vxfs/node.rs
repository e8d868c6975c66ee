//! `VxNode`: an inode in memory.

use crate::api::context::Tid;
use crate::fs::extent_map::ExtentMap;
use crate::fs::journal::MappedNode;

/// An inode in memory.
#[derive(Clone, Debug)]
pub struct VxNode {
    /// Allocation unit where its first extent is looked for.
    pub au: u64,
    pub links: u32,
    pub size: u64,
    /// Units of it, by their place in the file; those behind its end wait for its writer.
    pub extents: ExtentMap,
    /// Allocations that its extents were made of.
    pub allocations: u64,
    /// Bytes in a row that a sequential writer has copied and nobody sent off: place, length.
    pub behind: (u64, u64),
    /// Bytes copied since everything was sent off.
    pub unsent: u64,
    /// Bytes that writes have added since a record of the log held its length.
    pub unlogged: u64,
    /// A write has made it longer and is still copying.
    pub is_growing: bool,
    /// The last change of anything, and of what is needed to find its data.
    pub sync_tid: Tid,
    pub data_tid: Tid,
    pub modified: u64,
    pub accessed: u64,
}

impl VxNode {
    pub fn new(au: u64) -> Self {
        Self {
            au,
            links: 1,
            size: 0,
            extents: ExtentMap::default(),
            allocations: 0,
            behind: (0, 0),
            unsent: 0,
            unlogged: 0,
            is_growing: false,
            sync_tid: Tid(0),
            data_tid: Tid(0),
            modified: 0,
            accessed: 0,
        }
    }
}

impl MappedNode for VxNode {
    fn map(&mut self) -> &mut ExtentMap {
        &mut self.extents
    }
}
