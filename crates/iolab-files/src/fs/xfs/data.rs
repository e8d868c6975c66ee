//! Space of files: promises, places, preallocation, truncation.
//!
//! Sources: Linux `fs/xfs/xfs_iomap.c` (`xfs_buffered_write_iomap_begin`), `xfs_file.c`
//! (`xfs_file_write_zero_eof`, `xfs_file_release`), `xfs_bmap_util.c` (`xfs_free_eofblocks`),
//! `libxfs/xfs_bmap.c` (`xfs_bmap_adjacent`, `xfs_bmapi_convert_one_delalloc`).

use iolab_model::error::Errno;
use iolab_model::{Bytes, Ns};

use crate::api::block::{FileRun, Mapped, NodeId, Place};
use crate::api::context::Context;
use crate::api::file_system::{ClosedHandle, Reshape, Write};
use crate::api::make::Kernel;

use super::fork::{EXTENT_BLOCKS_MAX, Piece, PieceState};
use super::geometry::BLOCK_BYTES;
use super::groups::Request;
use super::node::XfsNode;
use super::prealloc::Growth;
use super::volume::{PLACE_COST, RESERVE_COST, Xfs};

/// Blocks that one step of a buffered write reserves at most: 1024 pages.
const STEP_BLOCKS: u64 = 1024;
/// A gap to a neighbour up to so many times the length wanted is left free.
const GAP_UNITS: u64 = 4;
/// Kernel from which a write beyond the end gives promised blocks on the way a place, instead of
/// writing zeros into the cache there.
const CONVERTS_BEYOND_END: Kernel = Kernel::new(6, 13);
/// Interval of the search for blocks beyond the end of files
/// (`fs.xfs.speculative_prealloc_lifetime`).
pub(super) const TRIM_INTERVAL: Ns = Ns(300_000_000_000);

/// First block that begins at or after a byte.
fn block_after(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES)
}

impl Xfs {
    /// Block to be near to for blocks of a file from `first` on (`xfs_bmap_adjacent`). `is_end`:
    /// nothing follows, and the request is no promise that is kept now.
    pub(super) fn goal(&self, node: NodeId, first: u64, count: u64, is_end: bool) -> u64 {
        let fork = &self.node(node).fork;
        let inode = self.inode_block(node);
        let stays = |block: u64, from: u64| {
            block < self.geometry.blocks
                && self.geometry.place(block).0 == self.geometry.place(from).0
        };
        let left = fork.before(first).filter(Piece::is_real);
        let left = left.filter(|left| stays(left.at + left.count, left.at));
        if is_end {
            return left.map_or(inode, |left| {
                let (behind, gap) = (left.at + left.count, first - left.end());
                if stays(behind + gap, left.at) { behind + gap } else { behind }
            });
        }
        let from_left = left.map(|left| {
            let (behind, gap) = (left.at + left.count, first - left.end());
            if gap <= GAP_UNITS * count && stays(behind + gap, left.at) {
                (behind + gap, gap)
            } else {
                (behind, 2 * gap)
            }
        });
        let right = fork.at_or_after(first).filter(Piece::is_real);
        let from_right = right.map(|right| {
            let gap = right.first - first;
            let before = |back: u64| right.at.checked_sub(back).filter(|at| stays(*at, right.at));
            match (before(gap).filter(|_| gap <= GAP_UNITS * count), before(count)) {
                (Some(block), _) => (block, gap),
                (None, Some(block)) => (block, (2 * gap).saturating_sub(count)),
                (None, None) => (right.at, 2 * gap),
            }
        });
        match (from_left, from_right) {
            (Some(left), Some(right)) if right.1 < left.1 => right.0,
            (Some(left), _) => left.0,
            (None, Some(right)) => right.0,
            (None, None) => inode,
        }
    }

    /// Allocates blocks and puts them into the map, unwritten.
    fn place(&mut self, cx: &mut Context, want: FileRun, goal: u64) -> Result<Piece, Errno> {
        let unit = u64::from(self.geometry.unit_blocks);
        let last = self.node(want.node).fork.last();
        let is_end = last.is_none_or(|last| {
            want.first >= last.end() || (!last.is_real() && want.first >= last.first)
        });
        let is_aligned = self.mounted.is_aligned && unit > 0 && want.count >= unit && is_end;
        let request = Request {
            goal,
            count: want.count,
            is_data: true,
            aligned_at: is_aligned.then_some(want.first),
        };
        let (at, count) = self.groups.allocate(&request).ok_or(Errno::ENOSPC)?;
        if core::mem::take(&mut self.groups.has_forced) {
            let tid = self.log.last_changed();
            self.log.force(tid);
            cx.effects.wait = Some(tid);
        }
        let piece = Piece { first: want.first, count, at, state: PieceState::Unwritten };
        let file = self.node_mut(want.node);
        let promised = file.fork.remove(piece.first, piece.end());
        file.fork.insert(piece);
        file.touch(piece.first, piece.end());
        self.delayed -= promised.iter().map(|piece| piece.count).sum::<u64>();
        self.counts.placed += 1;
        self.counts.placed_blocks += count;
        cx.spends(Ns(PLACE_COST));
        self.log_space(cx, at);
        self.fit_map(cx, want.node)?;
        self.log_node(cx, want.node, true);
        Ok(piece)
    }

    /// Gives the promised piece that holds a block a place, from its beginning until the block
    /// has one.
    pub(super) fn convert(
        &mut self,
        cx: &mut Context,
        node: NodeId,
        block: u64,
    ) -> Result<(), Errno> {
        while let Some(piece) = self.node(node).fork.holding(block).filter(|p| !p.is_real()) {
            let goal = self.goal_of_promise(node, piece);
            self.place(cx, FileRun { node, first: piece.first, count: piece.count }, goal)?;
        }
        Ok(())
    }

    /// A promise looks at its left neighbour alone: itself stands where the right one would.
    fn goal_of_promise(&self, node: NodeId, piece: Piece) -> u64 {
        self.goal(node, piece.first, piece.count, false)
    }

    /// Everything between the end of the file and a write beyond it has to read as zeros.
    fn zero(&mut self, cx: &mut Context, node: NodeId, size: u64, to: u64) -> Result<(), Errno> {
        if self.mounted.kernel < CONVERTS_BEYOND_END {
            return Ok(());
        }
        let (eof, end) = (block_after(size), block_after(to));
        let mut at = eof;
        while at < end {
            let Some(piece) = self.node(node).fork.at_or_after(at) else { break };
            at = at.max(piece.first);
            if at >= end {
                break;
            }
            self.convert(cx, node, at)?;
            at = self.node(node).fork.holding(at).map_or(at + 1, |piece| piece.end());
        }
        Ok(())
    }

    fn growth(&self) -> Growth {
        Growth {
            least_blocks: self.mounted.least_bytes / BLOCK_BYTES,
            is_fixed: self.mounted.is_least_fixed,
            unit_blocks: u64::from(self.geometry.unit_blocks),
            free: self.unpromised(),
            total: self.geometry.blocks,
        }
    }

    /// One step of a buffered write: the map from `at` on, of a file of `size` bytes, for a write
    /// that ends at `end`. Answers the block up to which the map serves the write now.
    fn promise(&mut self, node: NodeId, at: u64, end_bytes: u64, size: u64) -> Result<u64, Errno> {
        let fork = &self.node(node).fork;
        let next = fork.at_or_after(at);
        if let Some(here) = next.filter(|next| next.first <= at) {
            return Ok(here.end());
        }
        let step_end = end_bytes.min((at + STEP_BLOCKS) * BLOCK_BYTES);
        let end = block_after(step_end).min(next.map_or(u64::MAX, |next| next.first));
        let mut more = 0;
        if next.is_none() && step_end > size {
            let growth = self.growth();
            let extra = growth.blocks(fork, at, size, BLOCK_BYTES);
            if extra > 0 {
                let last = (step_end - 1) / BLOCK_BYTES;
                let base = last - last % growth.least_blocks;
                let unit = if self.mounted.is_aligned && size >= growth.unit_blocks * BLOCK_BYTES {
                    growth.unit_blocks.max(1)
                } else {
                    1
                };
                more = (base + extra).next_multiple_of(unit).saturating_sub(end);
            }
        }
        let length = end - at;
        let free = self.unpromised();
        if length > free {
            return Err(Errno::ENOSPC);
        }
        let whole = (length + more).min(EXTENT_BLOCKS_MAX);
        let whole = if whole > free { length } else { whole };
        self.delayed += whole;
        let piece = Piece { first: at, count: whole, at: 0, state: PieceState::Delayed };
        self.node_mut(node).fork.insert(piece);
        if whole > length {
            self.beyond.insert(node);
        }
        Ok(end)
    }

    /// Space for a write.
    pub(super) fn prepare_write(&mut self, cx: &mut Context, write: Write) -> Result<(), Errno> {
        let FileRun { node, first, .. } = write.run;
        let start = write.start.0;
        let file = self.node_mut(node);
        file.size = write.size.0;
        file.flushed_end = 0;
        if start > write.size.0 {
            self.zero(cx, node, write.size.0, start)?;
        }
        if write.is_direct {
            return self.prepare_direct(cx, write);
        }
        let (mut at, mut size) = (first, write.size.0);
        while at < write.run.end() {
            let promised = self.delayed;
            let served = self.promise(node, at, write.end.0, size)?.min(write.run.end());
            if self.delayed > promised {
                cx.spends(Ns(RESERVE_COST * (served - at)));
            }
            at = served;
            size = size.max((at * BLOCK_BYTES).min(write.end.0));
        }
        self.node_mut(node).size = size;
        Ok(())
    }

    /// Blocks for a direct write: holes get unwritten ones, promises are kept now.
    fn prepare_direct(&mut self, cx: &mut Context, write: Write) -> Result<(), Errno> {
        let node = write.run.node;
        let end = if write.end.0 > write.size.0 && self.mounted.is_aligned {
            let unit = u64::from(self.geometry.unit_blocks.max(1));
            let is_long = write.size.0 >= unit * BLOCK_BYTES && unit > 1;
            if is_long { write.run.end().next_multiple_of(unit) } else { write.run.end() }
        } else {
            write.run.end()
        };
        self.fill(cx, node, write.run.first, end)?;
        let file = self.node_mut(node);
        file.size = file.size.max(write.end.0);
        Ok(())
    }

    /// Gives all blocks of a range a place.
    fn fill(&mut self, cx: &mut Context, node: NodeId, from: u64, to: u64) -> Result<(), Errno> {
        let mut at = from;
        while at < to {
            let next = self.node(node).fork.at_or_after(at);
            match next {
                Some(piece) if piece.first <= at => {
                    self.convert(cx, node, at)?;
                    at = self.node(node).fork.holding(at).map_or(to, |piece| piece.end());
                }
                next => {
                    let end = to.min(next.map_or(u64::MAX, |next| next.first));
                    let count = (end - at).min(EXTENT_BLOCKS_MAX);
                    if count > self.unpromised() {
                        return Err(Errno::ENOSPC);
                    }
                    let goal = self.goal(node, at, count, next.is_none());
                    at = self.place(cx, FileRun { node, first: at, count }, goal)?.end();
                }
            }
        }
        Ok(())
    }

    /// Place for dirty data.
    pub(super) fn place_dirty(&mut self, cx: &mut Context, run: FileRun) -> Result<Mapped, Errno> {
        self.convert(cx, run.node, run.first)?;
        Ok(self.mapped(run))
    }

    /// State of the blocks from `run.first` on.
    pub(super) fn mapped(&self, run: FileRun) -> Mapped {
        let main = crate::api::block::DeviceId::MAIN;
        let next = self.node(run.node).fork.at_or_after(run.first);
        let Some(piece) = next.and_then(|piece| piece.part(run.first, run.end())) else {
            return Mapped { place: Place::Hole, count: run.count.max(1) };
        };
        if piece.first > run.first {
            return Mapped { place: Place::Hole, count: piece.first - run.first };
        }
        let place = match piece.state {
            PieceState::Delayed => Place::Delayed,
            PieceState::Unwritten => Place::Unwritten(main, piece.at),
            PieceState::Written => Place::Written(main, piece.at),
        };
        Mapped { place, count: piece.count }
    }

    /// Data are on the device.
    pub(super) fn data_written(&mut self, cx: &mut Context, run: FileRun, size: Bytes) {
        let file = self.node_mut(run.node);
        // Write-back for whatever reason ends the hurry at the next close (xfs_vm_writepages).
        file.is_shortened &= run.end() <= file.flushed_end;
        let changed = file.fork.set_written(run.first, run.end());
        let grows = size.0 > file.inode.size;
        for piece in &changed {
            file.touch(piece.first, piece.end());
        }
        if grows {
            file.inode.size = size.0;
            file.size = file.size.max(size.0);
        }
        if !changed.is_empty() {
            // The promise of a place has reserved what the map may need.
            let fitted = self.fit_map(cx, run.node);
            debug_assert!(fitted.is_ok(), "space for the map was reserved");
        }
        if grows || !changed.is_empty() {
            self.log_node(cx, run.node, true);
        }
    }

    /// Gives back blocks beyond the end; tells whether there were any.
    pub(super) fn trim(&mut self, cx: &mut Context, node: NodeId) -> bool {
        let file = self.node(node);
        let end = block_after(file.size);
        let has_promise = file.fork.delayed() > 0;
        let has_more = file.fork.at_or_after(end).is_some();
        if !has_promise && (file.is_preallocated || !has_more) {
            return false;
        }
        self.counts.trimmed_blocks += self.cut(cx, node, end, u64::MAX);
        self.beyond.remove(&node);
        true
    }

    /// A handle was closed.
    pub(super) fn close_handle(&mut self, cx: &mut Context, node: NodeId, closed: ClosedHandle) {
        let file = self.node_mut(node);
        if !closed.was_writer || file.inode.listing.is_some() || file.inode.links == 0 {
            return;
        }
        if core::mem::take(&mut file.is_shortened) {
            file.is_trimmed = false;
            if file.fork.delayed() > 0 {
                self.flush_at_close(cx, node);
            }
        }
        if !self.node(node).is_trimmed {
            self.node_mut(node).is_trimmed = self.trim(cx, node);
        }
    }

    /// A file that was shortened is written at its close, and before blocks beyond its end go.
    fn flush_at_close(&mut self, cx: &mut Context, node: NodeId) {
        let count = block_after(self.node(node).size);
        let promised: Vec<u64> = self
            .node(node)
            .fork
            .iter()
            .filter(|piece| !piece.is_real() && piece.first < count)
            .map(|piece| piece.first)
            .collect();
        // Where there is no space the promise stays, and write-back tells.
        let placed = promised.into_iter().try_for_each(|block| self.convert(cx, node, block));
        if placed.is_ok() {
            cx.effects.push.push(FileRun { node, first: 0, count });
        }
    }

    /// Every 300 s: blocks beyond the end of files without promised data are given back.
    pub(super) fn trim_all(&mut self, cx: &mut Context) {
        for node in self.beyond.clone() {
            let has_dirty = |file: &XfsNode| {
                let first = file.fork.iter().find(|piece| !piece.is_real());
                first.is_some_and(|piece| piece.first < block_after(file.size))
            };
            match &self.nodes[node.0 as usize] {
                Some(file) if has_dirty(file) => {}
                Some(_) => {
                    self.trim(cx, node);
                    self.beyond.remove(&node);
                }
                None => drop(self.beyond.remove(&node)),
            }
        }
    }

    /// A file gets another length.
    pub(super) fn set_length(
        &mut self,
        cx: &mut Context,
        node: NodeId,
        from: u64,
        to: u64,
    ) -> Result<(), Errno> {
        if from == 0 && to == 0 && self.node(node).fork.iter().next().is_none() {
            return Ok(());
        }
        if to > from {
            self.zero(cx, node, from, to)?;
        }
        self.flush_for_length(cx, node, from, to)?;
        if to <= from {
            self.cut(cx, node, block_after(to), u64::MAX);
            self.node_mut(node).is_shortened = true;
        }
        let file = self.node_mut(node);
        file.size = to;
        file.inode.size = to;
        self.log_node(cx, node, true);
        Ok(())
    }

    /// Data beyond the length on the device are written before that changes, if the rest of a block
    /// had to become zeros or the file grows (`xfs_setattr_size`).
    fn flush_for_length(
        &mut self,
        cx: &mut Context,
        node: NodeId,
        from: u64,
        to: u64,
    ) -> Result<(), Errno> {
        let file = self.node(node);
        let stored = file.inode.size;
        let edge = from.min(to);
        let held = file.fork.holding(edge / BLOCK_BYTES);
        let is_zeroed = !edge.is_multiple_of(BLOCK_BYTES)
            && held.is_some_and(|piece| piece.state != PieceState::Unwritten);
        let (first, end) = (stored / BLOCK_BYTES, block_after(edge));
        if !(is_zeroed || (to > stored && from != stored)) || first >= end {
            return Ok(());
        }
        let mut at = first;
        while let Some(piece) = self.node(node).fork.at_or_after(at).filter(|p| p.first < end) {
            self.convert(cx, node, piece.first.max(at))?;
            at = self.node(node).fork.holding(piece.first.max(at)).map_or(end, |p| p.end());
        }
        self.node_mut(node).flushed_end = end;
        cx.effects.push.push(FileRun { node, first, count: end - first });
        Ok(())
    }

    /// Blocks are given to a range, or taken from it.
    pub(super) fn change_space(
        &mut self,
        cx: &mut Context,
        run: FileRun,
        how: Reshape,
        size: Bytes,
    ) -> Result<(), Errno> {
        if how != Reshape::Allocate {
            self.cut(cx, run.node, run.first, run.end());
        }
        if how != Reshape::Punch {
            self.fill(cx, run.node, run.first, run.end())?;
            self.node_mut(run.node).is_preallocated = true;
        }
        let from = self.node(run.node).size;
        if size.0 > from {
            return self.set_length(cx, run.node, from, size.0);
        }
        if how != Reshape::Allocate {
            // Dirty data are written before (`xfs_flush_unmap_range`), up to the end of the file.
            let file = self.node_mut(run.node);
            file.inode.size = file.inode.size.max(from);
        }
        self.log_node(cx, run.node, true);
        Ok(())
    }
}
