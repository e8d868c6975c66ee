//! Names: new nodes, entries of directories, nodes that go.
//!
//! Sources: Linux `fs/xfs/xfs_inode.c`, `libxfs/xfs_ialloc.c` (`xfs_dialloc`: directories rotate
//! over the groups, files stay in their directory's), `libxfs/xfs_dir2.c`.

use iolab_model::Ns;
use iolab_model::error::Errno;

use crate::api::block::NodeId;
use crate::api::context::Context;
use crate::api::file_system::{Entry, NodeKind};

use super::fork::{Piece, PieceState};
use super::inodes::{HASH_BYTES, LITERAL_BYTES, Listing, ListingForm, entry_bytes};
use super::log::Part;
use super::node::{Inode, XfsNode};
use super::volume::{NAME_COST, Xfs};

/// Block of a directory where its hashes begin: 32 GiB.
const HASH_FIRST: u64 = (32 << 30) / super::geometry::BLOCK_BYTES;

impl Xfs {
    /// Takes an inode in the group of the parent, or for a directory in the next group.
    fn take_inode(
        &mut self,
        cx: &mut Context,
        parent: NodeId,
        kind: NodeKind,
    ) -> Result<(u32, u32), Errno> {
        let home = self.node(parent).inode.group;
        let near = self.node(parent).inode.number;
        let start = if kind == NodeKind::Directory {
            self.rotor += 1;
            (self.rotor - 1) % self.groups.count()
        } else {
            home
        };
        for step in 0..self.groups.count() {
            let group = (start + step) % self.groups.count();
            if self.groups[group].chunks.free() == 0 {
                let Some(block) = self.groups.new_chunk(group) else { continue };
                self.counts.chunks += 1;
                let at = self.geometry.block(group, block);
                self.log_space(cx, at);
                self.log_block(cx, at);
            }
            let near = (group == home).then_some(near);
            if let Some(number) = self.groups[group].chunks.take(near) {
                self.log_inodes(cx, group);
                return Ok((group, number));
            }
        }
        Err(Errno::ENOSPC)
    }

    /// A new node with an entry.
    pub(super) fn new_node(
        &mut self,
        cx: &mut Context,
        entry: Entry<'_>,
        kind: NodeKind,
    ) -> Result<NodeId, Errno> {
        self.read_entry(cx, entry.directory);
        let (group, number) = self.take_inode(cx, entry.directory, kind)?;
        let listing = (kind == NodeKind::Directory).then(Listing::default);
        let inode = Inode { group, number, listing, links: 1, ..Inode::default() };
        let node = XfsNode { inode, is_new: true, ..XfsNode::default() };
        let id = self.unused.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            self.nodes.len() as u32 - 1
        });
        let id = NodeId(id);
        self.nodes[id.0 as usize] = Some(node);
        self.log_node(cx, id, true);
        if let Err(errno) = self.add_entry(cx, entry.directory, entry.name) {
            self.drop_node(cx, id);
            return Err(errno);
        }
        if let NodeKind::Link(length) = kind
            && length > LITERAL_BYTES
        {
            self.add_blocks(cx, id, 0, 1)?;
        }
        cx.spends(Ns(NAME_COST));
        Ok(id)
    }

    /// Blocks of a directory or link, one at a time, written with the log.
    fn add_blocks(
        &mut self,
        cx: &mut Context,
        node: NodeId,
        first: u64,
        count: u64,
    ) -> Result<(), Errno> {
        for block in first..first + count {
            let is_end = self.node(node).fork.at_or_after(block).is_none();
            let goal = self.goal(node, block, 1, is_end);
            let at = self.groups.allocate_metadata(goal).ok_or(Errno::ENOSPC)?;
            let held = self.node_mut(node);
            held.fork.insert(Piece { first: block, count: 1, at, state: PieceState::Written });
            held.touch(block, block + 1);
            self.log_space(cx, at);
            self.log_block(cx, at);
        }
        Ok(())
    }

    /// Makes the blocks of a directory as many as its form needs.
    fn fit_listing(&mut self, cx: &mut Context, node: NodeId) -> Result<(), Errno> {
        let Some(listing) = self.node(node).inode.listing else { return Ok(()) };
        let (data, hashes) = listing.blocks();
        if listing.form == ListingForm::Short {
            self.cut(cx, node, 0, u64::MAX);
            return Ok(());
        }
        // The hashes leave the only block before it becomes too small.
        for (first, wanted) in [(0, data.min(1)), (HASH_FIRST, hashes), (0, data)] {
            let fork = &self.node(node).fork;
            let end = fork.before(first + HASH_FIRST).map_or(first, |last| last.end().max(first));
            let missing = (first + u64::from(wanted)).saturating_sub(end);
            self.add_blocks(cx, node, end, missing)?;
        }
        Ok(())
    }

    /// An entry more.
    pub(super) fn add_entry(
        &mut self,
        cx: &mut Context,
        directory: NodeId,
        name: &str,
    ) -> Result<(), Errno> {
        let Some(before) = self.node(directory).inode.listing else { return Err(Errno::EINVAL) };
        let mut after = before;
        after.add(name.len() as u32);
        self.node_mut(directory).inode.listing = Some(after);
        if let Err(errno) = self.fit_listing(cx, directory) {
            self.node_mut(directory).inode.listing = Some(before);
            return Err(errno);
        }
        let bytes = entry_bytes(name.len() as u32);
        self.log_listing(cx, directory, (self.entry_blocks(directory).saturating_sub(1), bytes));
        Ok(())
    }

    /// An entry less.
    pub(super) fn remove_entry(&mut self, cx: &mut Context, directory: NodeId, name: &str) {
        let (mut place, blocks) = (0, self.entry_blocks(directory));
        if let Some(listing) = &mut self.node_mut(directory).inode.listing {
            place = listing.remove(name.len() as u32, blocks);
        }
        // Fewer entries never need a new block.
        let fitted = self.fit_listing(cx, directory);
        debug_assert!(fitted.is_ok(), "a directory that shrinks asks for no space");
        self.log_listing(cx, directory, (place, 0));
    }

    /// Blocks of entries that a directory has.
    fn entry_blocks(&self, directory: NodeId) -> u32 {
        self.node(directory).fork.before(HASH_FIRST).map_or(0, |last| last.end() as u32)
    }

    /// Notes a change of so many bytes in a block of entries, and of the hashes, which are sorted.
    fn log_listing(&mut self, cx: &mut Context, directory: NodeId, (place, bytes): (u32, u32)) {
        let held = self.node(directory);
        let listing = held.inode.listing.unwrap_or_default();
        let entries = held.fork.holding(u64::from(place)).map(|piece| {
            let block = piece.at + u64::from(place) - piece.first;
            // The one block of a small directory has its hashes, too.
            let hash = if listing.form == ListingForm::Block { HASH_BYTES } else { 0 };
            (block, Part::More(u64::from(bytes + hash)))
        });
        let last = held.fork.last().filter(|piece| piece.first >= HASH_FIRST);
        let hashes = last.map(|piece| {
            (piece.at + piece.count - 1, Part::UpTo(u64::from(listing.hashes_of_a_leaf())))
        });
        for (block, part) in entries.into_iter().chain(hashes) {
            self.log_part(cx, block, part);
        }
        self.log_node(cx, directory, true);
    }

    /// Blocks that a change of an entry touches: the last ones of entries and of hashes.
    fn listing_blocks(&self, directory: NodeId) -> Vec<u64> {
        let fork = &self.node(directory).fork;
        let ends = [fork.before(HASH_FIRST), fork.last()];
        let mut blocks: Vec<u64> =
            ends.into_iter().flatten().map(|piece| piece.at + piece.count - 1).collect();
        blocks.dedup();
        blocks
    }

    /// Metadata that a search for a name looks at.
    pub(super) fn read_entry(&self, cx: &mut Context, directory: NodeId) {
        for block in self.listing_blocks(directory) {
            Self::read_block(cx, block);
        }
    }

    /// Metadata that a listing looks at: all blocks with entries.
    pub(super) fn read_listing(&self, cx: &mut Context, directory: NodeId) {
        let pieces = self.node(directory).fork.iter().take_while(|piece| piece.first < HASH_FIRST);
        for piece in pieces {
            cx.reads(crate::api::block::BlockRun::new(piece.at, piece.count));
        }
    }

    /// A name goes; answers whether it was the last one.
    pub(super) fn drop_link(&mut self, cx: &mut Context, node: NodeId) {
        let held = self.node_mut(node);
        held.inode.links = held.inode.links.saturating_sub(1);
        self.log_node(cx, node, true);
    }

    /// Everything that a node has is free again.
    pub(super) fn drop_node(&mut self, cx: &mut Context, node: NodeId) {
        self.cut(cx, node, 0, u64::MAX);
        let block = self.inode_block(node);
        let Inode { group, number, .. } = self.node(node).inode;
        cx.changes(self.log.note_inode(node, block));
        self.changed.insert(node);
        self.log_inodes(cx, group);
        if let Some(chunk) = self.groups[group].chunks.give(number) {
            let first = self.geometry.block(group, chunk.first);
            self.groups.give(first, u64::from(chunk.count));
            self.freed.push((first, u64::from(chunk.count)));
            self.log_space(cx, first);
        }
        self.beyond.remove(&node);
        self.nodes[node.0 as usize] = None;
        self.unused.push(node.0);
        cx.spends(Ns(NAME_COST));
    }
}
