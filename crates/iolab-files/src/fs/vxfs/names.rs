//! Entries and inodes: which metadata an operation changes, and whether its call waits.

use iolab_model::Ns;
use iolab_model::error::Errno;

use super::driver::{ENTRY_BYTES, VxFs};
use super::geometry::Geometry;
use super::node::VxNode;
use crate::api::block::{BlockRun, FileRun, NodeId};
use crate::api::context::Context;
use crate::api::file_system::{Entry, NodeKind, Touch};
use crate::fs::directory::{PIECE, PieceDirectory};

/// Work of an operation on names, and of a look. [assume]
const NAME_WORK: Ns = Ns(20_000);
const LOOK_WORK: Ns = Ns(3_000);
/// Longest link whose text lies in the inode, where the extents would (`fs_vxfs(4)`).
const FAST_LINK_BYTES: u32 = 96;
/// A tick of the clock that time stamps come from (HZ 100).
const TICK: u64 = 10_000_000;

impl VxFs {
    pub(super) fn create_node(
        &mut self,
        cx: &mut Context,
        entry: Entry<'_>,
        kind: NodeKind,
    ) -> Result<NodeId, Errno> {
        let parent = self.node(entry.directory).ok_or(Errno::EINVAL)?.au;
        // The most that an entry, a chunk of inodes and a first block can need.
        if self.free.units() < 2 * Geometry::CHUNK + 3 * self.geometry.block {
            return Err(Errno::ENOSPC);
        }
        let au = if kind == NodeKind::Directory { self.roomy_au(parent) } else { parent };
        let number = self.take_inode(cx, au).ok_or(Errno::ENOSPC)?;
        self.keep(cx, number);
        self.nodes.insert(number, VxNode::new(au));
        self.fill(cx, number, kind);
        self.add_entry(cx, entry)?;
        self.change_inode(cx, number, true);
        cx.spends(NAME_WORK);
        self.order(cx, false);
        Ok(NodeId(number))
    }

    /// Allocation unit for a new directory: the next one, going round, so that files of different
    /// directories lie apart.
    fn roomy_au(&self, parent: u64) -> u64 {
        (parent + 1) % self.geometry.aus()
    }

    /// First block of a new directory or of a long link.
    fn fill(&mut self, cx: &mut Context, number: u32, kind: NodeKind) {
        let bytes = match kind {
            NodeKind::Directory => PIECE,
            NodeKind::Link(bytes) if bytes > FAST_LINK_BYTES => u64::from(bytes),
            _ => return,
        };
        if kind == NodeKind::Directory {
            self.directories.insert(number, PieceDirectory::made());
        }
        self.grow_metadata(cx, number, bytes);
    }

    /// A directory or link gets another length and the blocks for it.
    fn grow_metadata(&mut self, cx: &mut Context, number: u32, bytes: u64) {
        self.keep(cx, number);
        let has = self.nodes.get(&number).map_or(0, |node| node.extents.blocks());
        let needs = self.units_of(bytes);
        if needs > has {
            self.give_run(cx, number, (has, needs - has, needs - has));
            self.mark_written(FileRun { node: NodeId(number), first: has, count: needs - has });
        }
        if let Some(node) = self.nodes.get_mut(&number) {
            node.size = bytes;
        }
        self.change_inode(cx, number, true);
    }

    /// Adds an entry.
    fn add_entry(&mut self, cx: &mut Context, entry: Entry<'_>) -> Result<(), Errno> {
        let number = entry.directory.0;
        if self.free.units() < self.geometry.block {
            return Err(Errno::ENOSPC);
        }
        let directory = self.directories.get_mut(&number).ok_or(Errno::EINVAL)?;
        let piece = directory.add(entry.name);
        let bytes = directory.bytes();
        if bytes > self.nodes.get(&number).map_or(0, |node| node.size) {
            self.grow_metadata(cx, number, bytes);
        }
        self.keep_entry(cx, number, entry.name, None);
        self.change_entry(cx, number, piece);
        Ok(())
    }

    fn remove_entry(&mut self, cx: &mut Context, entry: Entry<'_>) {
        let number = entry.directory.0;
        let directory = self.directories.get_mut(&number);
        let piece = directory.and_then(|directory| directory.remove(entry.name));
        self.keep_entry(cx, number, entry.name, piece);
        self.change_entry(cx, number, piece.unwrap_or(0));
    }

    /// Unit with a piece of a directory.
    fn entry_block(&self, directory: u32, piece: u32) -> BlockRun {
        let unit = u64::from(piece) * PIECE / Geometry::UNIT;
        let found = self.nodes.get(&directory).and_then(|node| node.extents.get(unit));
        let place = found.and_then(|extent| extent.place_of(unit).block());
        place.map_or_else(|| self.inode_block(directory), |(_, first)| BlockRun::new(first, 1))
    }

    fn change_entry(&mut self, cx: &mut Context, directory: u32, piece: u32) {
        let block = self.entry_block(directory, piece);
        cx.reads(block);
        self.change(cx, block, ENTRY_BYTES);
        self.change_inode(cx, directory, false);
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
        self.add_entry(cx, entry)?;
        self.change_links(cx, node, 1);
        cx.spends(NAME_WORK);
        self.order(cx, false);
        Ok(())
    }

    pub(super) fn unlink_node(&mut self, cx: &mut Context, entry: Entry<'_>, node: NodeId) {
        self.remove_entry(cx, entry);
        self.change_links(cx, node, -1);
        cx.spends(NAME_WORK);
        self.order(cx, false);
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
                let directory = self.directories.get(&to.directory.0);
                let piece = directory.and_then(|directory| directory.piece_of(to.name));
                self.change_entry(cx, to.directory.0, piece.unwrap_or(0));
                self.change_links(cx, old, -1);
            }
            None => self.add_entry(cx, to)?,
        }
        self.remove_entry(cx, moved.0);
        self.change_inode(cx, moved.1.0, false);
        cx.spends(NAME_WORK);
        self.order(cx, true);
        Ok(())
    }

    /// Blocks of a directory up to the name that is searched.
    pub(super) fn search(&self, cx: &mut Context, directory: NodeId, name: Option<&str>) {
        let Some(node) = self.node(directory) else { return };
        let piece = name.and_then(|name| self.directories.get(&directory.0)?.piece_of(name));
        let bytes = piece.map_or(node.size, |piece| (u64::from(piece) + 1) * PIECE);
        for extent in node.extents.within(0, bytes.div_ceil(Geometry::UNIT)) {
            if let Some((_, first)) = extent.place.block() {
                cx.reads(BlockRun::new(first, extent.count));
            }
        }
        cx.spends(LOOK_WORK);
    }

    pub(super) fn evict_node(&mut self, cx: &mut Context, node: NodeId) {
        if self.node(node).is_none() {
            return;
        }
        self.take_away(cx, node, (0, u64::MAX));
        self.change_inode(cx, node.0, true);
        self.nodes.remove(&node.0);
        self.directories.remove(&node.0);
        self.give_inode(node.0);
        cx.spends(NAME_WORK);
        self.order(cx, false);
    }

    pub(super) fn touch_node(&mut self, cx: &mut Context, node: NodeId, touch: Touch) {
        let tick = cx.now.0 / TICK + 1;
        let block = match touch {
            Touch::Look => {
                if self.node(node).is_some() {
                    cx.reads(self.inode_block(node.0));
                }
                return;
            }
            Touch::Read if !self.rules.notes_access => return,
            Touch::Read | Touch::Written => self.nodes.get_mut(&node.0),
        };
        let Some(state) = block else { return };
        let time = if touch == Touch::Read { &mut state.accessed } else { &mut state.modified };
        if core::mem::replace(time, tick) != tick {
            self.change_inode(cx, node.0, false);
        }
    }
}
