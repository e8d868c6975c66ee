//! Entries and inodes: which metadata an operation changes.
//!
//! Source: Linux fs/ext4/namei.c (`ext4_create`, `ext4_add_entry`, `ext4_unlink`, `ext4_rename`),
//! fs/ext4/inode.c (`ext4_evict_inode`, `ext4_dirty_inode`).

use iolab_model::Ns;
use iolab_model::error::Errno;

use super::directory::{Directory, hash};
use super::driver::{ExtFs, ROOT};
use super::inodes::Parent;
use super::mapping::Wish;
use super::mode::AccessTimes;
use super::node::{ExtNode, Undo};
use crate::api::block::{BlockRun, FileRun, NodeId, Place};
use crate::api::context::Context;
use crate::api::file_system::{ClosedHandle, Entry, NodeKind, Touch};

/// Work of an operation on names. Assumed, see docs/reference/file-systems.
const NAME_WORK: Ns = Ns(4_000);
const LOOK_WORK: Ns = Ns(500);
/// Age after which a time of reading is renewed even without a change (`relatime`), in ticks.
const DAY_TICKS: u64 = 24 * 3600 * 250;
/// Longest link whose text lies in the inode (`EXT4_N_BLOCKS`).
const FAST_LINK_BYTES: u32 = 60;

impl ExtFs {
    pub(super) fn create_node(
        &mut self,
        cx: &mut Context,
        entry: Entry<'_>,
        kind: NodeKind,
    ) -> Result<NodeId, Errno> {
        self.learn_late(cx.now);
        let parent = self.parent(entry.directory)?;
        let is_directory = kind == NodeKind::Directory;
        // The most that an entry, a first block and a link can need.
        if self.free < self.delayed + 8 {
            return Err(Errno::ENOSPC);
        }
        let allocator = &self.allocator;
        let free_of = |group: u32| allocator.free_in(group);
        let number = if is_directory {
            self.inodes.take_for_directory(&parent, hash(entry.name), &free_of)
        } else {
            self.inodes.take_for_file(&parent, &free_of)
        };
        let number = number.ok_or(Errno::ENOSPC)?;
        let (group, _) = self.geometry().inode_group(number);
        self.nodes.insert(number, ExtNode::new(kind, group));
        self.undo(cx, Undo::Created(number));
        if let Some(directory) = self.nodes.get_mut(&entry.directory.0) {
            directory.last_group = Some(group);
        }
        let (bitmap, descriptor) =
            (self.geometry().inode_bitmap(group), self.geometry().descriptor(group));
        self.look(cx, bitmap);
        self.change_block(cx, bitmap);
        self.change_block(cx, descriptor);
        self.fill(cx, number, kind)?;
        self.change_inode(cx, number, true);
        self.add_entry(cx, entry)?;
        cx.spends(NAME_WORK);
        self.wait_if_full(cx);
        Ok(NodeId(number))
    }

    fn parent(&self, directory: NodeId) -> Result<Parent, Errno> {
        let node = self.node(directory).ok_or(Errno::EINVAL)?;
        Ok(Parent {
            number: directory.0,
            group: node.group,
            last_group: node.last_group,
            is_root: directory.0 == ROOT,
        })
    }

    /// First blocks of a new directory or of a long link.
    fn fill(&mut self, cx: &mut Context, number: u32, kind: NodeKind) -> Result<(), Errno> {
        let bytes = match kind {
            NodeKind::Directory => self.block_bytes(),
            NodeKind::Link(bytes) if bytes >= FAST_LINK_BYTES => u64::from(bytes),
            _ => return Ok(()),
        };
        if kind == NodeKind::Directory {
            let node = self.nodes.get_mut(&number).ok_or(Errno::EINVAL)?;
            node.directory = Some(Directory::made());
        }
        self.append_block(cx, number)?;
        if let Some(node) = self.nodes.get_mut(&number) {
            node.size = bytes;
        }
        self.change_size_disk(cx, number, bytes);
        Ok(())
    }

    /// One more block of metadata at the end of a directory or link.
    fn append_block(&mut self, cx: &mut Context, number: u32) -> Result<(), Errno> {
        let node = self.nodes.get(&number).ok_or(Errno::EINVAL)?;
        let first = node.blocks.last().map_or(0, |last| last.end());
        let wish = Wish {
            node: number,
            first,
            count: 1,
            size: first * self.block_bytes(),
            is_unwritten: false,
            is_exact: true,
        };
        let placed = self.place(cx, wish)?;
        self.change_inode(cx, number, true);
        if let Some((_, block)) = placed.place.block() {
            self.change_block(cx, block);
        }
        Ok(())
    }

    fn add_entry(&mut self, cx: &mut Context, entry: Entry<'_>) -> Result<(), Errno> {
        let block_bytes = self.geometry().block_bytes;
        let number = entry.directory.0;
        let state = self.nodes.get_mut(&number).and_then(|node| node.directory.as_mut());
        let directory = state.ok_or(Errno::EINVAL)?;
        let old = directory.splits(entry.name, block_bytes).then(|| directory.clone());
        let added = directory.add(entry.name, block_bytes);
        let blocks = directory.blocks;
        if let Some(old) = old {
            self.undo(cx, Undo::Leaves(number, Box::new(old)));
        }
        for _ in 0..added.new_blocks {
            self.append_block(cx, number)?;
        }
        if added.new_blocks > 0 {
            let size = blocks * self.block_bytes();
            self.change_size_disk(cx, number, size);
        }
        self.change_entry_block(cx, number, added.block);
        self.change_inode(cx, number, false);
        Ok(())
    }

    fn remove_entry(&mut self, cx: &mut Context, entry: Entry<'_>) {
        let number = entry.directory.0;
        let directory = self.nodes.get_mut(&number).and_then(|node| node.directory.as_mut());
        let block = directory.map_or(0, |directory| directory.remove(entry.name));
        self.change_entry_block(cx, number, block);
        self.change_inode(cx, number, false);
    }

    fn entry_block(&self, number: u32, block: u64) -> Option<u64> {
        let node = self.nodes.get(&number)?;
        node.blocks.get(block)?.place_of(block).block().map(|(_, place)| place)
    }

    fn change_entry_block(&mut self, cx: &mut Context, number: u32, block: u64) {
        if let Some(place) = self.entry_block(number, block) {
            self.look(cx, place);
            self.change_block(cx, place);
        }
    }

    /// Notes a block that must be in memory, unless the journal holds it there.
    pub(super) fn look(&self, cx: &mut Context, block: u64) {
        let is_held = match &self.log {
            super::driver::DurableLog::Journal(journal) => journal.holds(block),
            super::driver::DurableLog::Plain(_) => false,
        };
        if !is_held {
            cx.reads(BlockRun::new(block, 1));
        }
    }

    fn change_links(&mut self, cx: &mut Context, node: NodeId, by: i32) {
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        let old = state.links;
        state.links = old.saturating_add_signed(by);
        let is_orphan = state.links == 0;
        self.undo(cx, Undo::Links(node.0, old));
        self.change_inode(cx, node.0, true);
        if is_orphan {
            // The list of orphans begins in the superblock.
            self.change_superblock(cx);
        }
    }

    fn change_superblock(&mut self, cx: &mut Context) {
        let block = self.geometry().first_block;
        self.change_block(cx, block);
    }

    pub(super) fn link_node(
        &mut self,
        cx: &mut Context,
        entry: Entry<'_>,
        node: NodeId,
    ) -> Result<(), Errno> {
        self.add_entry(cx, entry)?;
        self.change_links(cx, node, 1);
        cx.spends(NAME_WORK);
        Ok(())
    }

    pub(super) fn unlink_node(&mut self, cx: &mut Context, entry: Entry<'_>, node: NodeId) {
        self.remove_entry(cx, entry);
        self.change_links(cx, node, -1);
        cx.spends(NAME_WORK);
        self.wait_if_full(cx);
    }

    pub(super) fn rename_node(
        &mut self,
        cx: &mut Context,
        moved: (Entry<'_>, NodeId),
        to: Entry<'_>,
        replaced: Option<NodeId>,
    ) -> Result<(), Errno> {
        match replaced {
            Some(old) => {
                let block = self
                    .node(to.directory)
                    .and_then(|node| node.directory.as_ref())
                    .map_or(0, |directory| directory.block_of(to.name));
                self.change_entry_block(cx, to.directory.0, block);
                self.change_inode(cx, to.directory.0, false);
                self.change_links(cx, old, -1);
                let is_waiting = self.node(moved.1).is_some_and(|node| !node.delayed.is_empty());
                if self.mode.replaces_at_once && is_waiting {
                    cx.effects.push.push(self.whole(moved.1));
                }
            }
            None => self.add_entry(cx, to)?,
        }
        self.remove_entry(cx, moved.0);
        self.change_inode(cx, moved.1.0, false);
        cx.spends(NAME_WORK);
        self.wait_if_full(cx);
        Ok(())
    }

    fn whole(&self, node: NodeId) -> FileRun {
        let size = self.node(node).map_or(0, |state| state.size);
        FileRun { node, first: 0, count: size.div_ceil(self.block_bytes()).max(1) }
    }

    pub(super) fn look_up_name(&self, cx: &mut Context, entry: Entry<'_>) {
        let directory = self.node(entry.directory).and_then(|node| node.directory.as_ref());
        let Some(directory) = directory else { return };
        let block = directory.block_of(entry.name);
        for block in [0, block] {
            if let Some(place) = self.entry_block(entry.directory.0, block) {
                self.look(cx, place);
            }
        }
        cx.spends(LOOK_WORK);
    }

    pub(super) fn list_directory(&mut self, cx: &mut Context, directory: NodeId) {
        let Some(node) = self.node(directory) else { return };
        let runs: Vec<(u64, u64)> = node
            .blocks
            .iter()
            .filter_map(|extent| extent.place.block().map(|(_, first)| (first, extent.count)))
            .collect();
        for (first, count) in runs {
            (first..first + count).for_each(|block| self.look(cx, block));
        }
        cx.spends(LOOK_WORK);
        self.touch_node(cx, directory, Touch::Read);
    }

    pub(super) fn evict_node(&mut self, cx: &mut Context, node: NodeId) {
        let Some(state) = self.nodes.get(&node.0) else { return };
        let (links, is_directory) = (state.links, state.kind == NodeKind::Directory);
        self.drop_windows(node);
        self.abandon_run(FileRun { node, first: 0, count: u64::MAX });
        self.drop_data(node, 0);
        self.remove(cx, node, 0, u64::MAX);
        let (group, _) = self.geometry().inode_group(node.0);
        let (bitmap, descriptor) =
            (self.geometry().inode_bitmap(group), self.geometry().descriptor(group));
        self.change_block(cx, bitmap);
        self.change_block(cx, descriptor);
        self.change_superblock(cx);
        self.change_inode(cx, node.0, true);
        self.inodes.give(node.0, is_directory);
        self.forget_node(cx, node.0, links);
        cx.spends(NAME_WORK);
        self.wait_if_full(cx);
    }

    pub(super) fn touch_node(&mut self, cx: &mut Context, node: NodeId, touch: Touch) {
        let tick = Self::tick(cx.now);
        let times = self.mode.access_times;
        let is_lazy = self.mode.is_lazy;
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        let is_new = match touch {
            Touch::Look => {
                let block = self.geometry().inode_block(node.0);
                self.look(cx, block);
                return;
            }
            Touch::Written => state.modified != tick,
            Touch::Read => match times {
                AccessTimes::Never => false,
                AccessTimes::Always => state.accessed != tick,
                AccessTimes::Relative => {
                    state.accessed <= state.modified || tick - state.accessed >= DAY_TICKS
                }
            },
        };
        if !is_new {
            return;
        }
        match touch {
            Touch::Written => state.modified = tick,
            _ => state.accessed = tick,
        }
        if !is_lazy {
            self.change_inode(cx, node.0, false);
        }
    }

    pub(super) fn close_handle(&mut self, cx: &mut Context, node: NodeId, closed: ClosedHandle) {
        let run = self.whole(node);
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        state.writers = closed.writers;
        let is_waiting = !state.delayed.is_empty();
        if core::mem::take(&mut state.flushes_at_close) && is_waiting {
            state.is_flushing = true;
            cx.effects.push.push(run);
        }
        if closed.was_writer && closed.writers == 0 && !is_waiting {
            self.drop_windows(node);
        }
    }

    pub(super) fn open_handle(&mut self, cx: &mut Context, node: NodeId, is_writer: bool) {
        let block = self.geometry().inode_block(node.0);
        self.look(cx, block);
        if let Some(state) = self.nodes.get_mut(&node.0) {
            state.writers += u32::from(is_writer);
        }
    }

    pub(super) fn map_reads(&self, cx: &mut Context, run: FileRun) {
        let Some(node) = self.node(run.node) else { return };
        let leaves = &node.maps.leaves;
        let at = leaves.partition_point(|leaf| leaf.first <= run.first).saturating_sub(1);
        let mut blocks: Vec<u64> = node.maps.indexes.first().copied().into_iter().collect();
        blocks.extend(leaves.get(at).map(|leaf| leaf.place));
        if !self.has_extents {
            let path = super::mapping::indirect_path(run.first, self.block_bytes() / 4);
            blocks.extend(path.iter().filter_map(|key| node.maps.indirect.get(key)));
        }
        for block in blocks {
            self.look(cx, block);
        }
    }

    /// Place of a directory's block, for tests.
    pub fn directory_place(&self, directory: NodeId, block: u64) -> Place {
        self.node(directory).map_or(Place::Hole, |node| node.blocks.mapped(block, 1).place)
    }
}
