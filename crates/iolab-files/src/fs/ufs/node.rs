//! `UfsNode`: an inode in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::context::Tid;
use crate::api::file_system::NodeKind;
use crate::fs::extent_map::ExtentMap;
use crate::fs::journal::MappedNode;

/// An inode in memory.
#[derive(Clone, Debug)]
pub struct UfsNode {
    pub kind: NodeKind,
    /// Group of its inode.
    pub group: u32,
    pub links: u32,
    pub size: u64,
    pub size_disk: u64,
    /// Fragments of it, by their place in the file.
    pub blocks: ExtentMap,
    /// Indirect blocks (first fragments), by level and number.
    pub indirect: Arc<BTreeMap<(u8, u64), u64>>,
    /// Former places of fragments that were moved to grow; they hold the data until those have
    /// reached the new ones.
    pub former: ExtentMap,
    /// Dirty bytes in a row that wait until they fill a cluster: `delayoff`, `delaylen`.
    pub delayed: (u64, u64),
    /// The last change of anything, and of what is needed to find its data.
    pub sync_tid: Tid,
    pub data_tid: Tid,
    pub modified: u64,
    pub accessed: u64,
}

impl UfsNode {
    pub fn new(kind: NodeKind, group: u32) -> Self {
        Self {
            kind,
            group,
            links: 1,
            size: 0,
            size_disk: 0,
            blocks: ExtentMap::default(),
            indirect: Arc::default(),
            former: ExtentMap::default(),
            delayed: (0, 0),
            sync_tid: Tid(0),
            data_tid: Tid(0),
            modified: 0,
            accessed: 0,
        }
    }

    pub fn is_directory(&self) -> bool {
        self.kind == NodeKind::Directory
    }
}

impl MappedNode for UfsNode {
    fn map(&mut self) -> &mut ExtentMap {
        &mut self.blocks
    }
}
