//! `ZNode`: a file or directory in memory, and what a power cut leaves of it.

use std::collections::BTreeSet;

use crate::fs::extent_map::ExtentMap;

/// State of a node, in memory or on the device.
#[derive(Clone, Debug, Default)]
pub struct NodeState {
    /// Names that lead to it.
    pub links: u32,
    /// Length.
    pub size: u64,
    /// Entries, of a directory.
    pub entries: u64,
    /// Places of its blocks.
    pub places: ExtentMap,
}

/// A node in memory.
#[derive(Clone, Debug, Default)]
pub struct ZNode {
    /// Its state; places are those that were given last.
    pub state: NodeState,
    /// Records whose newest content has no place yet.
    pub dirty: BTreeSet<u64>,
    /// A read has changed its access time, which is kept until its last close.
    pub is_accessed: bool,
}
