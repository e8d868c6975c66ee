//! Entries and inodes: which metadata an operation changes, and in which order with `sync_meta=1`.

use iolab_model::Ns;
use iolab_model::error::Errno;

use super::driver::QfsFs;
use super::geometry::Geometry;
use super::node::QfsNode;
use crate::api::block::{BlockRun, NodeId, Place};
use crate::api::context::Context;
use crate::api::file_system::{Entry, NodeKind, Touch};
use crate::fs::directory::{PIECE, PieceDirectory};

/// Work of an operation on names, and of a look. [assume]
const NAME_WORK: Ns = Ns(20_000);
const LOOK_WORK: Ns = Ns(3_000);
/// Longest link whose text lies in the inode, in place of the extents (`SAM_SYMLINK_SIZE`). [code]
const FAST_LINK_BYTES: u32 = 96;
/// A tick of the clock that time stamps come from (HZ 100).
const TICK: u64 = 10_000_000;

impl QfsFs {
    pub(super) fn create_node(
        &mut self,
        cx: &mut Context,
        entry: Entry<'_>,
        kind: NodeKind,
    ) -> Result<NodeId, Errno> {
        if self.node(entry.directory).is_none() {
            return Err(Errno::EINVAL);
        }
        // The most that an entry, a piece of the inode file and a first block can need.
        if !self.pools.has_meta(Geometry::META_DAU + 2 * Geometry::SMALL) {
            return Err(Errno::ENOSPC);
        }
        let number = self.take_inode().ok_or(Errno::ENOSPC)?;
        self.keep(cx, number);
        let is_metadata = kind != NodeKind::File;
        let node = QfsNode { is_metadata, links: 1, ..QfsNode::default() };
        self.nodes.insert(number, node);
        let made = self.fill(cx, number, kind).and_then(|()| self.add_entry(cx, entry));
        let written = match made {
            Ok(written) => written,
            Err(errno) => {
                self.take_away(cx, NodeId(number), (0, u64::MAX));
                self.nodes.remove(&number);
                self.directories.remove(&number);
                self.give_inode(number);
                return Err(errno);
            }
        };
        self.change_inode(cx, number, true);
        cx.spends(NAME_WORK);
        let inode = self.inode_block(number);
        self.order(cx, &[inode, written]);
        Ok(NodeId(number))
    }

    /// First block of a new directory or of a long link.
    fn fill(&mut self, cx: &mut Context, number: u32, kind: NodeKind) -> Result<(), Errno> {
        let bytes = match kind {
            NodeKind::Directory => PIECE,
            NodeKind::Link(bytes) if bytes > FAST_LINK_BYTES => u64::from(bytes),
            _ => return Ok(()),
        };
        if kind == NodeKind::Directory {
            self.directories.insert(number, PieceDirectory::made());
        }
        self.grow_metadata(cx, number, bytes)
    }

    /// A directory or link gets another length and the blocks of 4 KiB for it.
    fn grow_metadata(&mut self, cx: &mut Context, number: u32, bytes: u64) -> Result<(), Errno> {
        let has = self.nodes.get(&number).map_or(0, |node| node.extents.blocks());
        let needs = bytes.div_ceil(Geometry::UNIT).next_multiple_of(Geometry::SMALL);
        self.keep_range(cx, number, (has, needs.saturating_sub(has)));
        for at in (has..needs).step_by(Geometry::SMALL as usize) {
            let (device, first) = self.pools.take_meta(Geometry::SMALL).ok_or(Errno::ENOSPC)?;
            if let Some(node) = self.nodes.get_mut(&number) {
                node.extents.set(at, Geometry::SMALL, Place::Written(device, first));
            }
        }
        if let Some(node) = self.nodes.get_mut(&number) {
            node.size = bytes;
        }
        self.change_inode(cx, number, true);
        Ok(())
    }

    /// Adds an entry; answers the block that holds it.
    fn add_entry(&mut self, cx: &mut Context, entry: Entry<'_>) -> Result<BlockRun, Errno> {
        let number = entry.directory.0;
        if !self.pools.has_meta(Geometry::SMALL) {
            return Err(Errno::ENOSPC);
        }
        let directory = self.directories.get_mut(&number).ok_or(Errno::EINVAL)?;
        let piece = directory.add(entry.name);
        let bytes = directory.bytes();
        if bytes > self.nodes.get(&number).map_or(0, |node| node.size) {
            self.grow_metadata(cx, number, bytes)?;
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

    /// Unit with a piece of a directory.
    fn entry_block(&self, directory: u32, piece: u32) -> BlockRun {
        let unit = u64::from(piece) * PIECE / Geometry::UNIT;
        let found = self.nodes.get(&directory).and_then(|node| node.extents.get(unit));
        let place = found.and_then(|extent| extent.place_of(unit).block());
        place.map_or_else(
            || self.inode_block(directory),
            |(device, first)| BlockRun { device, first, count: 1 },
        )
    }

    fn change_entry(&mut self, cx: &mut Context, directory: u32, piece: u32) -> BlockRun {
        let block = self.entry_block(directory, piece);
        cx.reads(block);
        self.change(cx, block);
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
        let inode = self.inode_block(node.0);
        self.order(cx, &[inode, written]);
        Ok(())
    }

    pub(super) fn unlink_node(&mut self, cx: &mut Context, entry: Entry<'_>, node: NodeId) {
        let written = self.remove_entry(cx, entry);
        self.change_links(cx, node, -1);
        cx.spends(NAME_WORK);
        let inode = self.inode_block(node.0);
        self.order(cx, &[written, inode]);
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
        let inode = self.inode_block(moved.1.0);
        self.order(cx, &[inode, new, old]);
        Ok(())
    }

    /// Blocks of a directory up to the name that is searched.
    pub(super) fn search(&self, cx: &mut Context, directory: NodeId, name: Option<&str>) {
        let Some(node) = self.node(directory) else { return };
        let piece = name.and_then(|name| self.directories.get(&directory.0)?.piece_of(name));
        let bytes = piece.map_or(node.size, |piece| (u64::from(piece) + 1) * PIECE);
        for extent in node.extents.within(0, bytes.div_ceil(Geometry::UNIT)) {
            if let Some((device, first)) = extent.place.block() {
                cx.reads(BlockRun { device, first, count: extent.count });
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
        let inode = self.inode_block(node.0);
        self.order(cx, &[inode]);
    }

    pub(super) fn touch_node(&mut self, cx: &mut Context, node: NodeId, touch: Touch) {
        let tick = cx.now.0 / TICK + 1;
        let notes = self.rules.notes_access;
        let inode = self.node(node).map(|_| self.inode_block(node.0));
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        let is_new = match touch {
            Touch::Look => {
                if let Some(block) = inode {
                    cx.reads(block);
                }
                return;
            }
            Touch::Written => core::mem::replace(&mut state.modified, tick) != tick,
            Touch::Read => notes && core::mem::replace(&mut state.accessed, tick) != tick,
        };
        if is_new {
            self.change_inode(cx, node.0, false);
        }
    }
}
