//! `VxFs`: state of a mounted `VxFS`, and what its parts share.
//!
//! Lengths and extents of a file belong to the transaction of the write(2) that made them. Where
//! data are flushed before the record of their transaction, every extent that survives a crash
//! holds them; elsewhere it may show what was there before.

use std::collections::{BTreeMap, BTreeSet};

use super::geometry::Geometry;
use super::node::VxNode;
use super::options::{Mode, VxRules};
use crate::api::block::{BlockRun, DeviceId, FileRun, NodeId, Place};
use crate::api::context::{Context, Tid};
use crate::api::make::MakeSpec;
use crate::error::FilesError;
use crate::fs::directory::PieceDirectory;
use crate::fs::free_runs::FreeRuns;
use crate::fs::journal::{DeltaLog, LogArea, Persistence, PlainLog, UndoLog};

/// Inode number of the root directory, and first inode that files get.
pub const ROOT: u32 = 2;
const FIRST_INODE: u32 = 4;

/// Bytes of a change in the log: of an inode, of a map, of an entry. [assume]
const INODE_BYTES: u64 = 256 + 32;
const MAP_BYTES: u64 = 64;
pub const ENTRY_BYTES: u64 = 64;

/// A mounted `VxFS`.
#[derive(Clone, Debug)]
pub struct VxFs {
    pub(super) rules: VxRules,
    pub(super) geometry: Geometry,
    pub(super) free: FreeRuns,
    pub(super) nodes: BTreeMap<u32, VxNode>,
    pub(super) directories: BTreeMap<u32, PieceDirectory>,
    pub(super) log: Persistence,
    /// Chunks of the inode list: first units.
    chunks: Vec<u64>,
    next_inode: u32,
    freed_inodes: BTreeSet<u32>,
    undo: UndoLog<VxNode>,
}

impl VxFs {
    /// A fresh file system.
    pub fn make(spec: &MakeSpec) -> Result<Self, FilesError> {
        let (rules, geometry) = VxRules::new(spec)?;
        let mut free = FreeRuns::new(geometry.data, geometry.units - geometry.data);
        let chunk = geometry.data;
        let place = chunk + Geometry::CHUNK;
        free.occupy(chunk, Geometry::CHUNK);
        free.occupy(place, geometry.block);
        let mut root = VxNode::new(0);
        root.extents.set(0, geometry.block, Place::Written(DeviceId::MAIN, place));
        let directory = PieceDirectory::made();
        root.size = directory.bytes();
        Ok(Self {
            log: durability(&rules, &geometry),
            rules,
            geometry,
            free,
            nodes: BTreeMap::from([(ROOT, root)]),
            directories: BTreeMap::from([(ROOT, directory)]),
            chunks: vec![chunk],
            next_inode: FIRST_INODE,
            freed_inodes: BTreeSet::new(),
            undo: UndoLog::default(),
        })
    }

    pub(super) fn node(&self, node: NodeId) -> Option<&VxNode> {
        self.nodes.get(&node.0)
    }

    // --- Changes ---

    /// The transaction that changes belong to now.
    pub(super) fn transaction(&mut self, cx: &mut Context) -> Tid {
        let tid = self.log.begin(cx.now);
        cx.changes(tid);
        if matches!(self.log, Persistence::Plain(_)) {
            self.settle();
        }
        tid
    }

    /// Keeps the state of an inode, but for its map, from before its first change in the running
    /// transaction.
    pub(super) fn keep(&mut self, cx: &mut Context, number: u32) {
        let tid = self.transaction(cx);
        self.undo.keep(tid, number, &mut self.nodes);
    }

    /// Keeps a range of the map of an inode, too, from before its change in the running
    /// transaction.
    pub(super) fn keep_range(&mut self, cx: &mut Context, number: u32, range: (u64, u64)) {
        let tid = self.transaction(cx);
        self.undo.keep_range(tid, number, range, &mut self.nodes);
    }

    /// Lets a name lie in a piece of a directory, or nowhere; a crash undoes it.
    pub(super) fn keep_entry(
        &mut self,
        cx: &mut Context,
        directory: u32,
        name: &str,
        old: Option<u32>,
    ) {
        let tid = self.transaction(cx);
        self.undo.keep_entry(tid, directory, name, old);
    }

    /// Notes a changed block of metadata.
    pub(super) fn change(&mut self, cx: &mut Context, block: BlockRun, bytes: u64) {
        self.transaction(cx);
        if self.log.change(block, bytes) {
            cx.dirties(block);
        }
    }

    /// Notes a changed inode; `is_data`: what is needed to find its data.
    pub(super) fn change_inode(&mut self, cx: &mut Context, number: u32, is_data: bool) {
        self.keep(cx, number);
        let block = self.inode_block(number);
        self.change(cx, block, INODE_BYTES);
        let tid = self.transaction(cx);
        if let Some(node) = self.nodes.get_mut(&number) {
            node.sync_tid = tid;
            if is_data {
                node.data_tid = tid;
            }
        }
    }

    /// Notes the map of a place.
    pub(super) fn change_map(&mut self, cx: &mut Context, unit: u64) {
        let map = self.geometry.map_of(unit);
        self.change(cx, map, MAP_BYTES);
    }

    /// A change of structure is over: the mode says whether its call waits for the log.
    pub(super) fn order(&mut self, cx: &mut Context, is_rename: bool) {
        let waits = match self.rules.mode {
            Mode::Log => true,
            Mode::Delayed => is_rename,
            Mode::Temporary | Mode::Without => false,
        };
        if waits {
            self.commit(cx);
        }
    }

    /// The caller waits until everything so far is in the log.
    pub(super) fn commit(&mut self, cx: &mut Context) {
        let tid = self.transaction(cx);
        let tid = self.log.request(tid, Vec::new());
        cx.effects.wait = cx.effects.wait.max(Some(tid));
    }

    /// Lets data reach the device before the record that they belong to.
    pub(super) fn flush_first(&mut self, run: FileRun) {
        if let Persistence::Logged(log) = &mut self.log {
            log.flush_first(run);
        }
    }

    /// Lets blocks be cleared before the record that gives them to a file.
    pub(super) fn clear_first(&mut self, first: u64, count: u64) {
        if let Persistence::Logged(log) = &mut self.log {
            log.clear_first(BlockRun::new(first, count));
        }
    }

    /// Frees units: they may be used again once the change is durable.
    pub(super) fn release(&mut self, cx: &mut Context, first: u64, count: u64) {
        let mut at = first;
        while at < first + count {
            self.change_map(cx, at);
            at = (self.geometry.au_of(at) + 1) * self.geometry.au_units();
        }
        let tid = self.transaction(cx);
        self.undo.free(tid, first, count);
    }

    /// Units that are free now or will be.
    pub(super) fn free_units(&self) -> u64 {
        self.free.units() + self.undo.waiting()
    }

    /// Everything up to the durable transaction is kept: its freed units are free.
    pub(super) fn settle(&mut self) {
        for (first, count) in self.undo.settle(self.log.durable()) {
            self.free.give(first, count);
        }
    }

    // --- Inodes ---

    /// Block with an inode.
    pub(super) fn inode_block(&self, number: u32) -> BlockRun {
        let per_chunk = self.geometry.chunk_inodes;
        let chunk = self.chunks[(number / per_chunk) as usize];
        let within = u64::from(number % per_chunk) * Geometry::CHUNK / u64::from(per_chunk);
        BlockRun::new(chunk + within, 1)
    }

    /// A new inode; the list grows by 8 KiB where it must.
    pub(super) fn take_inode(&mut self, cx: &mut Context, au: u64) -> Option<u32> {
        if let Some(number) = self.freed_inodes.pop_first() {
            return Some(number);
        }
        let number = self.next_inode;
        if (number / self.geometry.chunk_inodes) as usize == self.chunks.len() {
            let near = self.geometry.au_start(au);
            let align = self.geometry.block.max(Geometry::CHUNK);
            let first = self.free.find(near, Geometry::CHUNK, align)?;
            self.free.occupy(first, Geometry::CHUNK);
            self.change_map(cx, first);
            self.chunks.push(first);
        }
        self.next_inode += 1;
        Some(number)
    }

    pub(super) fn give_inode(&mut self, number: u32) {
        self.freed_inodes.insert(number);
    }

    /// Everything that belongs to a file and must be written for a promise without a log.
    pub(super) fn blocks_of(&self, node: NodeId) -> Vec<BlockRun> {
        self.node(node).map(|_| self.inode_block(node.0)).into_iter().collect()
    }

    // --- After a crash ---

    /// Undoes everything after a transaction and mounts again.
    pub(super) fn go_back(&mut self, durable: Tid) {
        self.undo.go_back(durable, &mut self.nodes, &mut self.directories);
        self.remount();
    }

    /// Free space and inodes from what is there, as the log or `fsck` leave them.
    fn remount(&mut self) {
        self.nodes.retain(|_, node| node.links > 0);
        self.free = FreeRuns::new(self.geometry.data, self.geometry.units - self.geometry.data);
        for &chunk in &self.chunks {
            self.free.occupy(chunk, Geometry::CHUNK);
        }
        let block = self.geometry.block;
        for node in self.nodes.values_mut() {
            let keeps = node.size.div_ceil(Geometry::UNIT).next_multiple_of(block);
            node.extents.clear(keeps, u64::MAX - keeps);
            (node.behind, node.unsent, node.unlogged) = ((0, 0), 0, 0);
            let all: Vec<_> = node.extents.iter().collect();
            for extent in all {
                let Some((device, first)) = extent.place.block() else { continue };
                node.extents.set(extent.first, extent.count, Place::Written(device, first));
                self.free.occupy(first, extent.count);
            }
        }
        self.next_inode = FIRST_INODE.max(self.nodes.keys().next_back().map_or(0, |last| last + 1));
        let used = |number: &u32| self.nodes.contains_key(number);
        self.freed_inodes = (FIRST_INODE..self.next_inode).filter(|number| !used(number)).collect();
        self.directories.retain(|number, _| self.nodes.contains_key(number));
        for (number, directory) in &mut self.directories {
            directory.cut(self.nodes[number].size);
        }
    }
}

/// No log, or one among the data, or on a device of its own.
fn durability(rules: &VxRules, geometry: &Geometry) -> Persistence {
    let per_unit = Geometry::UNIT / 512;
    let beside = LogArea {
        device: DeviceId::MAIN,
        first: geometry.log.0 * per_unit,
        sectors: geometry.log.1 * per_unit,
    };
    let period = match rules.mode {
        Mode::Log | Mode::Delayed => VxRules::DELAY,
        Mode::Temporary => VxRules::TEMPORARY,
        Mode::Without => return Persistence::Plain(PlainLog::default()),
    };
    Persistence::Logged(DeltaLog::new(rules.log_device.unwrap_or(beside), period))
}
