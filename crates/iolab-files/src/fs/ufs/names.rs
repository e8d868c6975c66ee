//! Entries and inodes: which metadata an operation changes, and in which order.
//!
//! Without a log an inode is on the device before an entry that points at it, and an entry is gone
//! before its inode is freed (`McKusick` and others, "A fast file system for UNIX", 1984).

use iolab_model::Ns;
use iolab_model::error::Errno;

use super::driver::{ENTRY_BYTES, UfsFs};
use super::geometry::{Geometry, run_of};
use super::node::UfsNode;
use crate::api::block::{BlockRun, FileRun, NodeId};
use crate::api::context::Context;
use crate::api::file_system::{ClosedHandle, Entry, NodeKind, Touch};
use crate::fs::directory::{PIECE, PieceDirectory};

/// Work of an operation on names, and of a look. [assume]
const NAME_WORK: Ns = Ns(20_000);
const LOOK_WORK: Ns = Ns(3_000);
/// Longest link whose text lies in the inode: in place of the 15 pointers.
const FAST_LINK_BYTES: u32 = 60;
/// A tick of the clock that time stamps come from (HZ 100).
const TICK: u64 = 10_000_000;

impl UfsFs {
    pub(super) fn create_node(
        &mut self,
        cx: &mut Context,
        entry: Entry<'_>,
        kind: NodeKind,
    ) -> Result<NodeId, Errno> {
        let parent = self.node(entry.directory).ok_or(Errno::EINVAL)?.group;
        // The most that an entry and a first block can need.
        if self.groups.free_fragments() < 4 * Geometry::PER_BLOCK {
            return Err(Errno::ENOSPC);
        }
        let number = self.take_inode(kind, parent).ok_or(Errno::ENOSPC)?;
        self.keep(cx, number);
        let group = self.geometry.inode_group(number);
        self.nodes.insert(number, UfsNode::new(kind, group));
        let made = self.fill(cx, number, kind).and_then(|()| self.add_entry(cx, entry));
        let written = match made {
            Ok(written) => written,
            Err(errno) => {
                self.nodes.remove(&number);
                self.directories.remove(&number);
                self.give_inode(number, kind == NodeKind::Directory);
                return Err(errno);
            }
        };
        let maps = self.geometry.group_block(group);
        cx.reads(maps);
        self.change(cx, maps, ENTRY_BYTES);
        self.change_inode(cx, number, true);
        cx.spends(NAME_WORK);
        self.order(cx, &[self.geometry.inode_block(number), written]);
        Ok(NodeId(number))
    }

    /// First fragment of a new directory or of a long link.
    fn fill(&mut self, cx: &mut Context, number: u32, kind: NodeKind) -> Result<(), Errno> {
        let bytes = match kind {
            NodeKind::Directory => PIECE,
            NodeKind::Link(bytes) if bytes >= FAST_LINK_BYTES => u64::from(bytes),
            _ => return Ok(()),
        };
        if kind == NodeKind::Directory {
            self.directories.insert(number, PieceDirectory::made());
        }
        self.grow_metadata(cx, number, bytes)
    }

    /// A directory or link gets another length and the fragments for it.
    fn grow_metadata(&mut self, cx: &mut Context, number: u32, bytes: u64) -> Result<(), Errno> {
        let size = self.nodes.get(&number).map_or(0, |node| node.size);
        self.give_blocks(cx, number, (size, bytes), size)?;
        let run = FileRun {
            node: NodeId(number),
            first: size / Geometry::FRAGMENT,
            count: bytes.div_ceil(Geometry::FRAGMENT) - size / Geometry::FRAGMENT,
        };
        self.mark_written(cx, run);
        if let Some(node) = self.nodes.get_mut(&number) {
            (node.size, node.size_disk) = (bytes, bytes);
        }
        self.change_inode(cx, number, true);
        Ok(())
    }

    /// Adds an entry; answers the block that holds it.
    fn add_entry(&mut self, cx: &mut Context, entry: Entry<'_>) -> Result<BlockRun, Errno> {
        let number = entry.directory.0;
        let directory = self.directories.get_mut(&number).ok_or(Errno::EINVAL)?;
        let piece = directory.add(entry.name);
        let bytes = directory.bytes();
        let size = self.nodes.get(&number).map_or(0, |node| node.size);
        if bytes > size
            && let Err(errno) = self.grow_metadata(cx, number, bytes)
        {
            if let Some(directory) = self.directories.get_mut(&number) {
                directory.put(entry.name, None);
                directory.cut(size);
            }
            return Err(errno);
        }
        self.keep_entry(cx, number, entry.name, None);
        Ok(self.change_entry(cx, number, piece))
    }

    /// Removes an entry; answers the block that held it.
    fn remove_entry(&mut self, cx: &mut Context, entry: Entry<'_>) -> BlockRun {
        let number = entry.directory.0;
        let directory = self.directories.get_mut(&number);
        let piece = directory.and_then(|directory| directory.remove(entry.name));
        self.keep_entry(cx, number, entry.name, piece);
        self.change_entry(cx, number, piece.unwrap_or(0))
    }

    /// Block with a piece of a directory.
    fn entry_block(&self, directory: u32, piece: u32) -> BlockRun {
        let fragment = u64::from(piece) * PIECE / Geometry::FRAGMENT;
        let found = self.nodes.get(&directory).and_then(|node| node.blocks.get(fragment));
        let place = found.and_then(|extent| extent.place_of(fragment).block());
        place.map_or_else(
            || self.geometry.inode_block(directory),
            |(_, first)| run_of(first / Geometry::PER_BLOCK),
        )
    }

    fn change_entry(&mut self, cx: &mut Context, directory: u32, piece: u32) -> BlockRun {
        let block = self.entry_block(directory, piece);
        cx.reads(block);
        self.change(cx, block, ENTRY_BYTES);
        self.change_inode(cx, directory, false);
        block
    }

    fn change_links(&mut self, cx: &mut Context, node: NodeId, by: i32) {
        self.keep(cx, node.0);
        if let Some(state) = self.nodes.get_mut(&node.0) {
            state.links = state.links.saturating_add_signed(by);
        }
        self.change_inode(cx, node.0, true);
    }

    pub(super) fn link_node(
        &mut self,
        cx: &mut Context,
        entry: Entry<'_>,
        node: NodeId,
    ) -> Result<(), Errno> {
        let written = self.add_entry(cx, entry)?;
        self.change_links(cx, node, 1);
        cx.spends(NAME_WORK);
        self.order(cx, &[self.geometry.inode_block(node.0), written]);
        Ok(())
    }

    pub(super) fn unlink_node(&mut self, cx: &mut Context, entry: Entry<'_>, node: NodeId) {
        let written = self.remove_entry(cx, entry);
        self.change_links(cx, node, -1);
        cx.spends(NAME_WORK);
        self.order(cx, &[written, self.geometry.inode_block(node.0)]);
    }

    pub(super) fn rename_node(
        &mut self,
        cx: &mut Context,
        moved: (Entry<'_>, NodeId),
        to: Entry<'_>,
        replaced: Option<NodeId>,
    ) -> Result<(), Errno> {
        let new = match replaced {
            Some(old) => {
                let directory = self.directories.get(&to.directory.0);
                let piece = directory.and_then(|directory| directory.piece_of(to.name));
                let block = self.change_entry(cx, to.directory.0, piece.unwrap_or(0));
                self.change_links(cx, old, -1);
                block
            }
            None => self.add_entry(cx, to)?,
        };
        let old = self.remove_entry(cx, moved.0);
        self.change_inode(cx, moved.1.0, false);
        cx.spends(NAME_WORK);
        self.order(cx, &[self.geometry.inode_block(moved.1.0), new, old]);
        Ok(())
    }

    /// Blocks of a directory up to the name that is searched.
    pub(super) fn search(&self, cx: &mut Context, directory: NodeId, name: Option<&str>) {
        let Some(node) = self.node(directory) else { return };
        let piece = name.and_then(|name| self.directories.get(&directory.0)?.piece_of(name));
        let bytes = piece.map_or(node.size, |piece| (u64::from(piece) + 1) * PIECE);
        for extent in node.blocks.within(0, bytes.div_ceil(Geometry::FRAGMENT)) {
            if let Some((_, first)) = extent.place.block() {
                let blocks = first / Geometry::PER_BLOCK
                    ..(first + extent.count).div_ceil(Geometry::PER_BLOCK);
                blocks.for_each(|block| cx.reads(run_of(block)));
            }
        }
        cx.spends(LOOK_WORK);
    }

    pub(super) fn evict_node(&mut self, cx: &mut Context, node: NodeId) {
        let Some(kind) = self.node(node).map(|state| state.kind) else { return };
        self.cut(cx, node, 0);
        let group = self.geometry.inode_group(node.0);
        let maps = self.geometry.group_block(group);
        self.change(cx, maps, ENTRY_BYTES);
        self.change_inode(cx, node.0, true);
        self.nodes.remove(&node.0);
        let is_directory = kind == NodeKind::Directory;
        if let Some(directory) = self.directories.remove(&node.0) {
            debug_assert!(directory.bytes() >= PIECE);
        }
        self.give_inode(node.0, is_directory);
        cx.spends(NAME_WORK);
        self.order(cx, &[self.geometry.inode_block(node.0)]);
    }

    pub(super) fn touch_node(&mut self, cx: &mut Context, node: NodeId, touch: Touch) {
        let tick = cx.now.0 / TICK + 1;
        // With a log, times of reading wait until something else changes the inode.
        let notes = self.rules.notes_access && !self.rules.is_logging;
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        let is_new = match touch {
            Touch::Look => {
                cx.reads(self.geometry.inode_block(node.0));
                return;
            }
            Touch::Written => core::mem::replace(&mut state.modified, tick) != tick,
            Touch::Read => notes && core::mem::replace(&mut state.accessed, tick) != tick,
        };
        if is_new {
            self.change_inode(cx, node.0, false);
        }
    }

    pub(super) fn open_handle(&self, cx: &mut Context, node: NodeId) {
        cx.reads(self.geometry.inode_block(node.0));
    }

    pub(super) fn close_handle(&mut self, cx: &mut Context, node: NodeId, closed: ClosedHandle) {
        if closed.was_writer {
            self.push_delayed(cx, node);
        }
    }
}
