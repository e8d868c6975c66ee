//! `QfsFs`: state of a mounted QFS, and what its parts share.

use std::collections::{BTreeMap, BTreeSet};

use super::geometry::Geometry;
use super::node::{QfsNode, indirect_run};
use super::options::QfsRules;
use super::pools::Pools;
use crate::api::block::{BlockRun, DeviceId, NodeId, Place};
use crate::api::context::{Context, Tid};
use crate::api::make::MakeSpec;
use crate::error::FilesError;
use crate::fs::directory::PieceDirectory;
use crate::fs::journal::{FormerNode, PlainLog, UndoLog};

/// Inode number of the root directory, and first inode that files get.
pub const ROOT: u32 = 2;
const FIRST_INODE: u32 = 4;

/// A mounted QFS.
#[derive(Clone, Debug)]
pub struct QfsFs {
    pub(super) rules: QfsRules,
    pub(super) geometry: Geometry,
    pub(super) pools: Pools,
    pub(super) nodes: BTreeMap<u32, QfsNode>,
    pub(super) directories: BTreeMap<u32, PieceDirectory>,
    pub(super) log: PlainLog,
    /// Pieces of the inode file: device and first unit.
    chunks: Vec<(DeviceId, u64)>,
    next_inode: u32,
    freed_inodes: BTreeSet<u32>,
    undo: UndoLog<QfsNode>,
}

impl QfsFs {
    /// A fresh file system.
    pub fn make(spec: &MakeSpec) -> Result<Self, FilesError> {
        let (rules, geometry) = QfsRules::new(spec)?;
        let mut pools = Pools::new(&geometry);
        // There is room: the geometry has seen to it.
        let chunks: Vec<_> = pools.take_meta(Geometry::META_DAU).into_iter().collect();
        let mut root = QfsNode { is_metadata: true, links: 1, ..QfsNode::default() };
        if let Some((device, first)) = pools.take_meta(Geometry::SMALL) {
            root.extents.set(0, Geometry::SMALL, Place::Written(device, first));
        }
        let directory = PieceDirectory::made();
        root.size = directory.bytes();
        Ok(Self {
            log: if rules.syncs_metadata { PlainLog::ordered() } else { PlainLog::default() },
            rules,
            geometry,
            pools,
            nodes: BTreeMap::from([(ROOT, root)]),
            directories: BTreeMap::from([(ROOT, directory)]),
            chunks,
            next_inode: FIRST_INODE,
            freed_inodes: BTreeSet::new(),
            undo: UndoLog::default(),
        })
    }

    pub(super) fn node(&self, node: NodeId) -> Option<&QfsNode> {
        self.nodes.get(&node.0)
    }

    // --- Changes ---

    /// The epoch that changes belong to now.
    pub(super) fn transaction(&mut self, cx: &mut Context) -> Tid {
        let tid = self.log.epoch(cx.now);
        cx.changes(tid);
        self.settle();
        tid
    }

    /// Keeps the state of an inode, but for its map, from before its first change in the running
    /// epoch.
    pub(super) fn keep(&mut self, cx: &mut Context, number: u32) {
        let tid = self.transaction(cx);
        self.undo.keep(tid, number, &mut self.nodes);
    }

    /// Keeps a range of the map of an inode, too, from before its change in the running epoch.
    pub(super) fn keep_range(&mut self, cx: &mut Context, number: u32, range: (u64, u64)) {
        let tid = self.transaction(cx);
        self.undo.keep_range(tid, number, range, &mut self.nodes);
    }

    /// Notes an inode from before changes that are made by now.
    pub(super) fn note(&mut self, cx: &mut Context, number: u32, old: FormerNode<QfsNode>) {
        let tid = self.transaction(cx);
        self.undo.note(tid, number, old);
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

    /// Notes a changed block of metadata: it is dirty in memory.
    pub(super) fn change(&mut self, cx: &mut Context, block: BlockRun) {
        self.transaction(cx);
        if cx.effects.dirtied.last() != Some(&block) {
            cx.dirties(block);
        }
    }

    /// Notes a changed inode; `is_data`: what is needed to find its data.
    pub(super) fn change_inode(&mut self, cx: &mut Context, number: u32, is_data: bool) {
        self.keep(cx, number);
        let block = self.inode_block(number);
        self.change(cx, block);
        let tid = self.transaction(cx);
        if let Some(node) = self.nodes.get_mut(&number) {
            node.sync_tid = tid;
            if is_data {
                node.data_tid = tid;
            }
        }
    }

    /// Notes the map of a place among the data.
    pub(super) fn change_map(&mut self, cx: &mut Context, unit: u64) {
        let map = self.geometry.map_of(unit);
        self.change(cx, map);
    }

    /// A change of names is over: with `sync_meta=1` its blocks are written, one after the other,
    /// before the call returns. Otherwise they stay in memory. [doc]
    pub(super) fn order(&mut self, cx: &mut Context, blocks: &[BlockRun]) {
        if self.rules.syncs_metadata {
            let tid = self.log.request(blocks.iter().copied());
            cx.effects.wait = cx.effects.wait.max(Some(tid));
        }
    }

    /// Frees units. Those among the data may be used again once the change is durable.
    pub(super) fn release(&mut self, cx: &mut Context, device: DeviceId, first: u64, count: u64) {
        if device != DeviceId::MAIN {
            self.pools.give(device, first, count);
            return;
        }
        self.change_map(cx, first);
        self.change_map(cx, first + count - 1);
        let tid = self.transaction(cx);
        self.undo.free(tid, first, count);
    }

    /// Units of data that are free now or will be.
    pub(super) fn free_units(&self) -> u64 {
        self.pools.units() + self.undo.waiting()
    }

    /// Everything up to the durable epoch is kept: its freed units are free.
    pub(super) fn settle(&mut self) {
        for (first, count) in self.undo.settle(self.log.durable()) {
            self.pools.give(DeviceId::MAIN, first, count);
        }
    }

    // --- Inodes ---

    /// Block with an inode.
    pub(super) fn inode_block(&self, number: u32) -> BlockRun {
        let (device, chunk) = self.chunks[(number / Geometry::CHUNK_INODES) as usize];
        let within = u64::from(number % Geometry::CHUNK_INODES) * 512 / Geometry::UNIT;
        BlockRun { device, first: chunk + within, count: 1 }
    }

    /// A new inode; the inode file grows by 16 KiB where it must.
    pub(super) fn take_inode(&mut self) -> Option<u32> {
        if let Some(number) = self.freed_inodes.pop_first() {
            return Some(number);
        }
        let number = self.next_inode;
        if (number / Geometry::CHUNK_INODES) as usize == self.chunks.len() {
            self.chunks.push(self.pools.take_meta(Geometry::META_DAU)?);
        }
        self.next_inode += 1;
        Some(number)
    }

    pub(super) fn give_inode(&mut self, number: u32) {
        self.freed_inodes.insert(number);
    }

    /// Everything that belongs to a file and must be written for a promise.
    pub(super) fn blocks_of(&self, node: NodeId) -> Vec<BlockRun> {
        let Some(state) = self.node(node) else { return Vec::new() };
        let indirect = state.indirect.iter().copied().map(indirect_run);
        indirect.chain([self.inode_block(node.0)]).collect()
    }

    // --- After a crash ---

    /// Undoes everything after an epoch and mounts again.
    pub(super) fn go_back(&mut self, durable: Tid) {
        self.undo.go_back(durable, &mut self.nodes, &mut self.directories);
        self.remount();
    }

    /// Free space and inodes from what is there, as samfsck leaves them.
    fn remount(&mut self) {
        self.nodes.retain(|_, node| node.links > 0);
        self.pools = Pools::new(&self.geometry);
        for &(device, chunk) in &self.chunks {
            self.pools.occupy(device, chunk, Geometry::META_DAU);
        }
        for node in self.nodes.values_mut() {
            if !node.is_metadata {
                let keeps = self.geometry.units_of(node.size, node.is_large);
                node.extents.clear(keeps, u64::MAX - keeps);
            }
            node.behind = (0, 0);
            let all: Vec<_> = node.extents.iter().collect();
            for extent in all {
                let Some((device, first)) = extent.place.block() else { continue };
                node.extents.set(extent.first, extent.count, Place::Written(device, first));
                self.pools.occupy(device, first, extent.count);
            }
            for &(device, first) in &*node.indirect {
                self.pools.occupy(device, first, Geometry::META_DAU);
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
