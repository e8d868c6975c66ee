//! `ExtFs`: state of a mounted ext2, ext3 or ext4, and what its parts share.
//!
//! The parts: `names` (entries and inodes), `space` (blocks of files), `durability` (journal).

use std::collections::{BTreeMap, VecDeque};

use iolab_model::Ns;

use super::geometry::Geometry;
use super::inodes::InodeTable;
use super::mballoc::allocator::Allocator;
use super::mballoc::rules::{MballocRules, RulesFor};
use super::mode::{DataMode, ExtMode};
use super::node::{Changes, ExtNode, Maps, Undo};
use super::reservation::Reservations;
use crate::api::block::{BlockRun, DeviceId, NodeId, Place};
use crate::api::context::{Context, Tid};
use crate::api::file_system::NodeKind;
use crate::fs::journal::{BlockJournal, JournalRules, PlainLog};

/// Inode number of the root directory.
pub const ROOT: u32 = 2;
/// A tick of the coarse clock that time stamps come from (HZ 250).
const TICK: u64 = 4_000_000;

/// Way to durability: a journal, or nothing but writes in order.
#[derive(Clone, Debug)]
pub enum DurableLog {
    /// jbd2.
    Journal(Box<BlockJournal>),
    /// ext2, or ext4 without a journal.
    Plain(PlainLog),
}

/// A mounted file system.
#[derive(Clone, Debug)]
pub struct ExtFs {
    pub(super) mode: ExtMode,
    pub(super) has_extents: bool,
    pub(super) is_delayed: bool,
    pub(super) allocator: Allocator,
    pub(super) inodes: InodeTable,
    pub(super) nodes: BTreeMap<u32, ExtNode>,
    pub(super) log: DurableLog,
    pub(super) changes: VecDeque<Changes>,
    /// Free blocks by the bitmaps on the device, and those promised to dirty data.
    pub(super) free: u64,
    pub(super) delayed: u64,
    pub(super) has_learnt: bool,
    /// Windows of the drivers up to 4.2.
    pub(super) windows: Option<Reservations>,
    rules_for: RulesFor,
    pub(super) geometry: Geometry,
}

impl ExtFs {
    /// A fresh file system.
    pub fn new(
        mode: ExtMode,
        geometry: Geometry,
        rules_for: RulesFor,
        journal: Option<JournalRules>,
    ) -> Self {
        let rules = MballocRules::new(&rules_for);
        let runs = geometry.journal.clone();
        let log = match journal {
            Some(rules) => DurableLog::Journal(Box::new(BlockJournal::new(rules, runs))),
            None => DurableLog::Plain(PlainLog::default()),
        };
        let allocator = Allocator::new(geometry.clone(), rules);
        let mut root = ExtNode::new(NodeKind::Directory, 0);
        root.directory = Some(super::directory::Directory::made());
        let (first, count) = geometry.directories[0];
        root.blocks.set(0, count, Place::Written(DeviceId::MAIN, first));
        root.size = u64::from(geometry.block_bytes);
        root.size_disk = root.size;
        Self {
            has_extents: mode.has_extents,
            is_delayed: mode.is_delayed,
            inodes: InodeTable::new(&geometry),
            nodes: BTreeMap::from([(ROOT, root)]),
            log,
            changes: VecDeque::new(),
            free: allocator.free_blocks(),
            delayed: 0,
            has_learnt: false,
            windows: mode.own_driver.then(|| mode.windows()),
            allocator,
            mode,
            rules_for,
            geometry,
        }
    }

    /// Size of a block.
    pub(super) fn block_bytes(&self) -> u64 {
        u64::from(self.geometry.block_bytes)
    }

    /// Processors of the machine.
    pub(super) const fn cpus(&self) -> u32 {
        self.rules_for.cpus
    }

    pub(super) const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Tick of the coarse clock.
    pub(super) const fn tick(now: Ns) -> u64 {
        now.0 / TICK + 1
    }

    /// The transaction that changes belong to now.
    pub(super) fn transaction(&mut self, cx: &mut Context) -> Tid {
        let tid = match &mut self.log {
            DurableLog::Journal(journal) => journal.begin(cx.now),
            DurableLog::Plain(plain) => plain.epoch(cx.now),
        };
        cx.changes(tid);
        if matches!(self.log, DurableLog::Plain(_)) {
            self.settle(self.last_durable());
        }
        tid
    }

    /// Notes a changed block of metadata.
    pub(super) fn change_block(&mut self, cx: &mut Context, block: u64) {
        let tid = match &mut self.log {
            DurableLog::Journal(journal) => journal.change(cx.now, block),
            DurableLog::Plain(plain) => {
                cx.dirties(BlockRun::new(block, 1));
                plain.running()
            }
        };
        cx.changes(tid);
    }

    /// Notes a changed block that maps blocks of a file.
    pub(super) fn change_map_block(&mut self, cx: &mut Context, node: u32, block: u64) {
        self.change_block(cx, block);
        if matches!(self.log, DurableLog::Plain(_))
            && let Some(state) = self.nodes.get_mut(&node)
        {
            state.unsynced.insert(block);
        }
    }

    /// Notes the bitmaps and descriptors of a run of blocks.
    pub(super) fn change_bitmaps(&mut self, cx: &mut Context, first: u64, count: u64) {
        let (from, _) = self.geometry.group_of(first);
        let (to, _) =
            if count == 1 { (from, 0) } else { self.geometry.group_of(first + count - 1) };
        for group in from..=to {
            let (bitmap, descriptor) =
                (self.geometry.block_bitmap(group), self.geometry.descriptor(group));
            self.change_block(cx, bitmap);
            self.change_block(cx, descriptor);
        }
    }

    /// Notes a changed inode; `is_data`: its length or mapping.
    pub(super) fn change_inode(&mut self, cx: &mut Context, node: u32, is_data: bool) {
        let block = self.geometry.inode_block(node);
        self.change_block(cx, block);
        let tid = self.transaction(cx);
        if let Some(state) = self.nodes.get_mut(&node) {
            state.sync_tid = tid;
            if is_data {
                state.data_tid = tid;
            }
        }
    }

    /// Changes the mapping blocks of a file.
    pub(super) fn change_maps(
        &mut self,
        cx: &mut Context,
        node: u32,
        change: impl FnOnce(&mut Maps),
    ) {
        let Some(state) = self.nodes.get_mut(&node) else { return };
        let old = state.maps.clone();
        change(&mut state.maps);
        self.undo(cx, Undo::Maps(node, Box::new(old)));
    }

    /// Changes the length on the device.
    pub(super) fn change_size_disk(&mut self, cx: &mut Context, node: u32, size: u64) {
        let Some(state) = self.nodes.get_mut(&node) else { return };
        let old = state.size_disk;
        if old != size {
            state.size_disk = size;
            self.undo(cx, Undo::Size(node, old));
            self.change_inode(cx, node, true);
        }
    }

    fn changes_of(&mut self, tid: Tid) -> &mut Changes {
        if self.changes.back().is_none_or(|last| last.tid != tid) {
            self.changes.push_back(Changes { tid, ..Changes::default() });
        }
        self.changes.back_mut().expect("one was just added")
    }

    /// Notes the former state of something.
    pub(super) fn undo(&mut self, cx: &mut Context, undo: Undo) {
        let tid = self.transaction(cx);
        self.changes_of(tid).note(undo);
    }

    /// Removes a node without blocks that had this number of names.
    pub(super) fn forget_node(&mut self, cx: &mut Context, number: u32, links: u32) {
        let tid = self.transaction(cx);
        if self.changes_of(tid).forget(number) {
            self.nodes.remove(&number);
        } else if let Some(gone) = self.nodes.remove(&number) {
            // The blocks were undone one by one: what comes back is the node without them.
            let gone = Box::new(ExtNode { links, ..gone });
            self.changes_of(tid).note(Undo::Evicted(number, gone));
        }
    }

    /// Frees blocks: at once without a journal or with `data=writeback` for data, else when the
    /// transaction is durable.
    pub(super) fn free_blocks(
        &mut self,
        cx: &mut Context,
        first: u64,
        count: u64,
        is_metadata: bool,
    ) {
        self.change_bitmaps(cx, first, count);
        self.free += count;
        let waits = matches!(self.log, DurableLog::Journal(_))
            && (is_metadata || self.mode.data != DataMode::Writeback);
        if let DurableLog::Journal(journal) = &mut self.log
            && is_metadata
        {
            (first..first + count).for_each(|block| journal.forget(block));
        }
        if waits {
            let tid = self.transaction(cx);
            self.changes_of(tid).freed.push((first, count));
        } else {
            self.allocator.give(first, count);
        }
    }

    /// Everything up to a transaction is durable: its blocks are free, nothing of it is undone.
    pub(super) fn settle(&mut self, durable: Tid) {
        while self.changes.front().is_some_and(|changes| changes.tid <= durable) {
            let changes = self.changes.pop_front().expect("there is a first one");
            for (first, count) in changes.freed {
                self.allocator.give(first, count);
            }
        }
    }

    /// Looks at all bitmaps some seconds after mount, as a kernel thread does.
    pub(super) fn learn_late(&mut self, now: Ns) {
        if !self.has_learnt && now >= self.mode.learns_at {
            self.has_learnt = true;
            self.allocator.learn_all();
        }
    }

    /// Undoes everything after a transaction and mounts again.
    pub(super) fn go_back(&mut self, durable: Tid) {
        while let Some(changes) = self.changes.pop_back() {
            if changes.tid <= durable {
                self.changes.push_back(changes);
                break;
            }
            for undo in changes.undo.into_iter().rev() {
                undo.carry_out(&mut self.nodes);
            }
        }
        self.changes.clear();
        self.remount();
    }

    /// Builds bitmaps from the inodes, as the device has them after the journal was replayed.
    fn remount(&mut self) {
        // Files without a name are freed at mount (the list of orphans).
        self.nodes.retain(|_, node| node.links > 0);
        self.allocator = Allocator::new(self.geometry.clone(), MballocRules::new(&self.rules_for));
        self.inodes = InodeTable::new(&self.geometry);
        self.delayed = 0;
        self.windows = self.mode.own_driver.then(|| self.mode.windows());
        self.has_learnt = true;
        for (&number, node) in &mut self.nodes {
            node.delayed = crate::fs::extent_map::ExtentMap::default();
            node.records = super::mapping::records_near(&node.blocks, 0, u64::MAX - 1);
            node.unsynced.clear();
            node.size = node.size_disk;
            node.writers = 0;
            node.is_flushing = false;
            node.flushes_at_close = false;
            if number != ROOT {
                self.inodes.occupy(number, node.kind == NodeKind::Directory);
            }
            let root = self.geometry.directories[0];
            for extent in node.blocks.iter() {
                let Some((_, first)) = extent.place.block() else { continue };
                if number != ROOT || first != root.0 {
                    self.allocator.occupy(first, extent.count);
                } else if extent.count > root.1 {
                    self.allocator.occupy(first + root.1, extent.count - root.1);
                }
            }
            for place in node.maps.places() {
                self.allocator.occupy(place, 1);
            }
        }
        self.allocator.learn_all();
        self.free = self.allocator.free_blocks();
    }

    /// The node behind an identifier.
    pub(super) fn node(&self, node: NodeId) -> Option<&ExtNode> {
        self.nodes.get(&node.0)
    }
}
