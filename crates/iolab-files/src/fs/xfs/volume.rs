//! `Xfs`: a mounted file system, with what names, data and the log share.

use std::collections::{BTreeMap, BTreeSet};

use iolab_model::Ns;
use iolab_model::error::Errno;

use crate::api::block::{BlockRun, NodeId};
use crate::api::context::Context;
use crate::api::make::MakeSpec;
use crate::error::FilesError;

use super::fork::Piece;
use super::geometry::Geometry;
use super::groups::AllocationGroups;
use super::inodes::Listing;
use super::log::{Part, XfsLog};
use super::node::{Inode, Snapshot, StoredNode, XfsNode};
use super::options::Mounted;

/// Work of a processor for promising a block, in nanoseconds (assumed).
pub(super) const RESERVE_COST: u64 = 150;
/// Work for placing an extent, in nanoseconds (assumed).
pub(super) const PLACE_COST: u64 = 3_000;
/// Work for a change of a name, in nanoseconds (assumed: 2 us of trees, 1 us of the rest).
pub(super) const NAME_COST: u64 = 3_000;
/// Share of the blocks that is kept for the file system itself: a twentieth, at most 8192
/// (`xfs_default_resblks`).
const POOL_BLOCKS_MAX: u64 = 8_192;

/// A checkpoint that was closed and is not durable: nodes, and freed blocks.
pub(super) type ClosedCheckpoint = (Vec<(NodeId, Option<Snapshot>)>, Vec<(u64, u64)>);

/// A mounted file system.
#[derive(Clone, Debug)]
pub struct Xfs {
    pub(super) geometry: Geometry,
    pub(super) mounted: Mounted,
    pub(super) groups: AllocationGroups,
    pub(super) nodes: Vec<Option<XfsNode>>,
    pub(super) unused: Vec<u32>,
    /// Group of the next new directory.
    pub(super) rotor: u32,
    /// Blocks promised to dirty data.
    pub(super) delayed: u64,
    pub(super) log: XfsLog,
    /// Nodes changed in the collecting checkpoint.
    pub(super) changed: BTreeSet<NodeId>,
    /// Blocks freed in the collecting checkpoint.
    pub(super) freed: Vec<(u64, u64)>,
    /// Checkpoints that are being written, by their number.
    pub(super) closed: BTreeMap<u64, ClosedCheckpoint>,
    /// Nodes as they are on the device.
    pub(super) stored: BTreeMap<NodeId, StoredNode>,
    /// Files that may have blocks beyond their end.
    pub(super) beyond: BTreeSet<NodeId>,
    pub(super) next_trim: Ns,
    pub(super) counts: Counts,
}

/// Everything that is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub placed: u64,
    pub placed_blocks: u64,
    pub trimmed_blocks: u64,
    pub chunks: u64,
}

/// The root directory.
pub(super) const ROOT: NodeId = NodeId(0);

impl Xfs {
    /// Makes and mounts a fresh file system.
    pub fn make(spec: &MakeSpec) -> Result<Self, FilesError> {
        let geometry = Geometry::new(spec)?;
        let mounted = Mounted::new(spec, &geometry)?;
        let groups = AllocationGroups::new(geometry);
        let number = groups.root_block() * super::geometry::BLOCK_INODES;
        let inode = Inode {
            group: 0,
            number,
            listing: Some(Listing::root()),
            links: 1,
            ..Inode::default()
        };
        let root = StoredNode { inode, ..StoredNode::default() };
        Ok(Self {
            geometry,
            groups,
            nodes: vec![Some(root.read())],
            unused: Vec::new(),
            rotor: 0,
            delayed: 0,
            log: XfsLog::new(geometry, mounted.log_buffer_bytes),
            mounted,
            changed: BTreeSet::new(),
            freed: Vec::new(),
            closed: BTreeMap::new(),
            stored: BTreeMap::from([(ROOT, root)]),
            beyond: BTreeSet::new(),
            next_trim: Ns::MAX,
            counts: Counts::default(),
        })
    }

    /// A node that exists.
    pub(super) fn node(&self, node: NodeId) -> &XfsNode {
        self.nodes[node.0 as usize].as_ref().expect("the machine names nodes that exist")
    }

    /// A node that exists.
    pub(super) fn node_mut(&mut self, node: NodeId) -> &mut XfsNode {
        self.nodes[node.0 as usize].as_mut().expect("the machine names nodes that exist")
    }

    /// Block of the device that holds an inode.
    pub(super) fn inode_block(&self, node: NodeId) -> u64 {
        let inode = &self.node(node).inode;
        self.geometry.block(inode.group, inode.block())
    }

    /// Notes that a node changed; `is_data`: more than its times.
    pub(super) fn log_node(&mut self, cx: &mut Context, node: NodeId, is_data: bool) {
        let block = self.inode_block(node);
        let tid = self.log.note_inode(node, block);
        let inode = self.node_mut(node);
        inode.any_change = tid.0;
        if is_data {
            inode.data_change = tid.0;
        }
        self.changed.insert(node);
        cx.changes(tid);
        if self.log.is_full() {
            cx.effects.wait = Some(tid);
            self.log.force(tid);
        }
    }

    /// Notes that a record of a block of metadata changed.
    pub(super) fn log_block(&mut self, cx: &mut Context, block: u64) {
        self.log_part(cx, block, Part::Record);
    }

    /// Notes that a part of a block of metadata changed.
    pub(super) fn log_part(&mut self, cx: &mut Context, block: u64, part: Part) {
        cx.changes(self.log.note_block(block, part));
    }

    /// Notes that the trees of free space of a group changed.
    pub(super) fn log_space(&mut self, cx: &mut Context, block: u64) {
        let (group, _) = self.geometry.place(block);
        for tree in 0..3 {
            self.log_block(cx, self.geometry.block(group, tree));
        }
    }

    /// Notes that the trees of inodes of a group changed.
    pub(super) fn log_inodes(&mut self, cx: &mut Context, group: u32) {
        for tree in [0, 3, 4] {
            self.log_block(cx, self.geometry.block(group, tree));
        }
    }

    /// Free blocks that nobody was promised.
    pub(super) fn unpromised(&self) -> u64 {
        let pool = (self.geometry.blocks / 20).min(POOL_BLOCKS_MAX);
        self.groups.free().saturating_sub(self.delayed + pool)
    }

    /// Gives back what a node had in these pieces.
    pub(super) fn give_back(&mut self, cx: &mut Context, pieces: &[Piece]) {
        // From the last to the first, as the kernel does.
        for piece in pieces.iter().rev() {
            if piece.is_real() {
                self.groups.give(piece.at, piece.count);
                self.freed.push((piece.at, piece.count));
                self.log_space(cx, piece.at);
            } else {
                self.delayed -= piece.count;
            }
        }
    }

    /// Takes a range out of a file's map.
    pub(super) fn cut(&mut self, cx: &mut Context, node: NodeId, from: u64, to: u64) -> u64 {
        let file = self.node_mut(node);
        let pieces = file.fork.remove(from, to);
        let has_real = pieces.iter().any(Piece::is_real);
        if has_real {
            file.touch(from, to);
        }
        self.give_back(cx, &pieces);
        if has_real {
            // A split by a hole may need a block more; there is space where some was just freed.
            let fitted = self.fit_map(cx, node);
            debug_assert!(fitted.is_ok(), "freed space holds the map");
            self.log_node(cx, node, true);
        }
        pieces.iter().map(|piece| piece.count).sum()
    }

    /// Fits the blocks of a file's map to its records.
    pub(super) fn fit_map(&mut self, cx: &mut Context, node: NodeId) -> Result<(), Errno> {
        let file = self.node_mut(node);
        file.fork.hold_outside(file.fork.records() > super::node::INLINE_RECORDS);
        let needed = file.map_blocks_needed();
        while self.node(node).inode.map_blocks.len() > needed {
            let Some(block) = self.node_mut(node).inode.map_blocks.pop() else { break };
            self.groups.give(block, 1);
            self.freed.push((block, 1));
            self.log_space(cx, block);
        }
        while self.node(node).inode.map_blocks.len() < needed {
            let last = self.node(node).inode.map_blocks.last().copied();
            let goal = last.unwrap_or_else(|| self.inode_block(node));
            let block = self.groups.allocate_metadata(goal).ok_or(Errno::ENOSPC)?;
            self.log_space(cx, block);
            self.log_block(cx, block);
            self.node_mut(node).inode.map_blocks.push(block);
        }
        if let Some(last) = self.node(node).inode.map_blocks.last().copied() {
            self.log_block(cx, last);
        }
        Ok(())
    }

    /// Closes the collecting checkpoint: what it holds is as it is now.
    pub(super) fn close_checkpoint(&mut self, tid: u64) {
        let mut nodes = Vec::new();
        for node in core::mem::take(&mut self.changed) {
            let held = self.nodes[node.0 as usize].as_mut();
            nodes.push((node, held.map(XfsNode::snapshot)));
        }
        self.closed.insert(tid, (nodes, core::mem::take(&mut self.freed)));
    }

    /// Checkpoints up to one are durable.
    pub(super) fn settle(&mut self, durable: u64) {
        while let Some(entry) = self.closed.first_entry().filter(|entry| *entry.key() <= durable) {
            let (nodes, freed) = entry.remove();
            for (node, snapshot) in nodes {
                match snapshot {
                    Some(snapshot) => self.stored.entry(node).or_default().apply(snapshot),
                    None => drop(self.stored.remove(&node)),
                }
            }
            self.groups.settle(&freed);
        }
    }

    /// Reads everything again as the last durable checkpoint left it.
    pub(super) fn remount(&mut self) {
        self.nodes.clear();
        self.unused.clear();
        self.changed.clear();
        self.freed.clear();
        self.closed.clear();
        self.beyond.clear();
        self.delayed = 0;
        self.groups = AllocationGroups::new(self.geometry);
        let last = self.stored.last_key_value().map_or(0, |(node, _)| node.0);
        self.nodes.resize(last as usize + 1, None);
        for (node, stored) in &self.stored {
            self.nodes[node.0 as usize] = Some(stored.read());
            if *node != ROOT {
                self.groups.occupy_inode(stored.inode.group, stored.inode.number);
            }
            for piece in stored.fork.iter() {
                self.groups.occupy(piece.at, piece.count);
            }
            for block in &stored.inode.map_blocks {
                self.groups.occupy(*block, 1);
            }
        }
        self.unused = (0..last).filter(|node| self.nodes[*node as usize].is_none()).collect();
    }

    /// A block of metadata that has to be looked at.
    pub(super) fn read_block(cx: &mut Context, block: u64) {
        cx.reads(BlockRun::new(block, 1));
    }

    /// Consistency of everything in memory: each block has one owner, and all are accounted for.
    pub fn check(&self) -> Result<(), String> {
        let mut owned: Vec<(u64, u64, String)> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let Some(node) = node else { continue };
            let real = node.fork.iter().filter(Piece::is_real);
            owned.extend(real.map(|piece| (piece.at, piece.count, format!("node {index}"))));
            let map = node.inode.map_blocks.iter();
            owned.extend(map.map(|block| (*block, 1, format!("map of node {index}"))));
        }
        let mut grown = 0;
        for (index, group) in self.groups.iter().enumerate() {
            let at = |block| self.geometry.block(index as u32, block);
            owned.push((at(0), u64::from(super::geometry::HEADER_BLOCKS), "headers".into()));
            let free = group.space.iter();
            owned.extend(free.map(|run| (at(run.first), u64::from(run.count), "free".into())));
            let chunks = group.chunks.blocks();
            owned.extend(chunks.map(|run| (at(run.first), u64::from(run.count), "chunk".into())));
            grown += u64::from(group.space.kept()) + u64::from(group.space.grown());
        }
        let log = self.geometry.block(self.geometry.log_group, self.geometry.log_first);
        owned.push((log, u64::from(self.geometry.log_blocks), "log".into()));
        owned.sort();
        let overlaps = |pair: &&[(u64, u64, String)]| pair[0].0 + pair[0].1 > pair[1].0;
        if let Some(pair) = owned.windows(2).find(overlaps) {
            return Err(format!("{pair:?} overlap"));
        }
        let total: u64 = owned.iter().map(|(_, count, _)| count).sum::<u64>() + grown;
        let delayed: u64 = self.nodes.iter().flatten().map(|node| node.fork.delayed()).sum();
        if total != self.geometry.blocks {
            return Err(format!("{total} of {} blocks have an owner", self.geometry.blocks));
        }
        if delayed != self.delayed {
            return Err(format!("{delayed} blocks are promised, {} counted", self.delayed));
        }
        Ok(())
    }
}
