//! Nodes of the tree of names: what the machine knows of a file.

use std::collections::BTreeMap;

use iolab_model::Ns;

use super::failure::Failures;
use super::lock::FileLock;
use super::request::OutgoingId;
use super::task::TaskIndex;
use crate::api::block::NodeId;
use crate::api::read_ahead::ReadState;
use crate::readahead::clustered::ClusterState;
use crate::readahead::zfetch::Fetch;

/// A file or a directory.
#[derive(Debug)]
pub(super) struct Node {
    pub id: NodeId,
    /// Entries, if it is a directory.
    pub children: Option<BTreeMap<Box<str>, u32>>,
    pub size: u64,
    /// Names that lead to it.
    pub links: u32,
    pub handles: u32,
    pub writers: u32,
    /// Handles that have it mapped.
    pub mappings: u32,
    pub lock: FileLock,
    /// Read-ahead state of rules that keep it per file; here of its mappings.
    pub mapped: ReadState,
    /// The same of file systems with clusters.
    pub clustered: ClusterState,
    /// The same of file systems with a cache of their own.
    pub fetch: Fetch,
    /// Page at which write-back goes on.
    pub cursor: u64,
    /// Requests with its data that are on their way to the device.
    pub writes: Vec<OutgoingId>,
    /// Pages under write-back.
    pub write_back: u64,
    /// Bytes of its data on their way to the device.
    pub bytes_out: u64,
    /// Writers that the file system holds back until less is on its way.
    pub held_back: Vec<HeldBack>,
    /// Failures of write-back, told at flushes.
    pub failures: Failures,
    /// Name and attributes are in memory.
    pub is_known: bool,
    /// Has had dirty pages since it was last clean: the flusher knows of it.
    pub is_queued: bool,
    /// Ordinal of its becoming dirty.
    pub dirtied_at: u64,
}

/// A writer that sleeps until less of a file is on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldBack {
    pub task: TaskIndex,
    /// Bytes on their way at which it goes on.
    pub until: u64,
    pub since: Ns,
}

impl Node {
    pub fn new(id: NodeId, is_directory: bool) -> Self {
        Self {
            id,
            children: is_directory.then(BTreeMap::new),
            size: 0,
            links: 1,
            handles: 0,
            writers: 0,
            mappings: 0,
            lock: FileLock::default(),
            mapped: ReadState::default(),
            clustered: ClusterState::default(),
            fetch: Fetch::default(),
            cursor: 0,
            writes: Vec::new(),
            write_back: 0,
            bytes_out: 0,
            held_back: Vec::new(),
            failures: Failures::default(),
            is_known: true,
            is_queued: false,
            dirtied_at: 0,
        }
    }
}
