//! `QfsNode`: an inode in memory.

use std::sync::Arc;

use crate::api::block::{BlockRun, DeviceId};
use crate::api::context::Tid;
use crate::fs::extent_map::ExtentMap;
use crate::fs::journal::MappedNode;
use crate::fs::write_behind::Waiting;

/// An inode in memory.
#[derive(Clone, Debug, Default)]
pub struct QfsNode {
    /// A directory or a link: its space is metadata.
    pub is_metadata: bool,
    /// Absence of small DAUs.
    pub is_large: bool,
    pub links: u32,
    pub size: u64,
    /// Units of it, by their place in the file.
    pub extents: ExtentMap,
    /// Indirect blocks, by number: device and first unit.
    pub indirect: Arc<Vec<(DeviceId, u64)>>,
    /// Bytes in a row that a writer has copied and nobody sent off.
    pub behind: Waiting,
    /// The last change of anything, and of what is needed to find its data.
    pub sync_tid: Tid,
    pub data_tid: Tid,
    pub modified: u64,
    pub accessed: u64,
}

impl MappedNode for QfsNode {
    fn map(&mut self) -> &mut ExtentMap {
        &mut self.extents
    }
}

/// Run of an indirect block.
pub const fn indirect_run((device, first): (DeviceId, u64)) -> BlockRun {
    BlockRun { device, first, count: super::geometry::Geometry::META_DAU }
}
