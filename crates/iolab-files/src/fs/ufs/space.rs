//! Blocks and fragments of files: given at write(2), taken back by truncate and unlink.
//!
//! Only the last block of a file without indirect blocks may be shorter than a block.

use std::sync::Arc;

use iolab_model::error::Errno;
use iolab_model::{Bytes, Ns};

use super::driver::{POINTER_BYTES, UfsFs};
use super::geometry::{Geometry, indirect_path, run_of};
use crate::api::block::{DeviceId, FileRun, Mapped, NodeId, Place};
use crate::api::context::Context;
use crate::api::file_system::Write;
use crate::fs::extent_map::FileExtent;
use crate::fs::journal::FormerNode;

/// Work of finding a place for a block. [assume]
const PLACE_WORK: Ns = Ns(5_000);
const B: u64 = Geometry::BLOCK;

impl UfsFs {
    pub(super) fn prepare_write(&mut self, cx: &mut Context, write: Write) -> Result<(), Errno> {
        let node = write.run.node;
        if !write.is_direct {
            self.hold_back(cx, node);
        }
        if !self.is_placed(node, write) {
            self.give_blocks(cx, node.0, (write.start.0, write.end.0), write.size.0)?;
            self.change_inode(cx, node.0, true);
        }
        if let Some(state) = self.nodes.get_mut(&node.0) {
            state.size = state.size.max(write.end.0).max(write.size.0);
        }
        Ok(())
    }

    /// Tell whether a write needs no new fragments: rewriting inside the file.
    fn is_placed(&self, node: NodeId, write: Write) -> bool {
        let first = write.start.0 / Geometry::FRAGMENT;
        let count = write.end.0.div_ceil(Geometry::FRAGMENT) - first;
        let is_inside = write.end <= write.size;
        let placed = self.node(node).map(|state| state.blocks.mapped(first, count));
        is_inside
            && placed.is_some_and(|found| found.place.block().is_some() && found.count == count)
    }

    /// Gives blocks to a range of a file that has `size` bytes before; a failure changes nothing.
    pub(super) fn give_blocks(
        &mut self,
        cx: &mut Context,
        number: u32,
        (start, end): (u64, u64),
        size: u64,
    ) -> Result<(), Errno> {
        let tid = self.transaction(cx);
        let frees = self.undo.frees(tid);
        let node = self.nodes.get_mut(&number).ok_or(Errno::EINVAL)?;
        let new_size = size.max(end);
        let last = (new_size - 1) / B;
        let tail = size.checked_sub(1).map(|byte| byte / B);
        // What was the last block becomes a whole one when the file goes on behind it.
        let grown = tail.filter(|&tail| tail < last && tail < start / B && tail < Geometry::DIRECT);
        let grown = grown.filter(|&tail| node.blocks.mapped(tail * 8, 1).place.block().is_some());
        let (first, behind) = (start / B, end.div_ceil(B));
        let mut before = FormerNode::new(node);
        for (at, count) in grown.map(|tail| (tail, 1)).into_iter().chain([(first, behind - first)])
        {
            before.keep(&node.blocks, (at * Geometry::PER_BLOCK, count * Geometry::PER_BLOCK));
        }
        let mut taken = Vec::new();
        for block in grown.into_iter().chain(first..behind) {
            let wants = if block == last && block < Geometry::DIRECT {
                (new_size - block * B).div_ceil(Geometry::FRAGMENT)
            } else {
                Geometry::PER_BLOCK
            };
            let given = self.give_block(cx, number, (block, wants), &mut taken);
            if let Err(errno) = given {
                for (first, count) in taken {
                    self.groups.give(first, count);
                }
                if let Some(node) = self.nodes.get_mut(&number) {
                    before.undo(node);
                }
                self.undo.take_back(tid, frees);
                return Err(errno);
            }
        }
        self.note(cx, number, before);
        Ok(())
    }

    fn give_block(
        &mut self,
        cx: &mut Context,
        number: u32,
        (block, wants): (u64, u64),
        taken: &mut Vec<(u64, u64)>,
    ) -> Result<(), Errno> {
        let node = self.nodes.get(&number).ok_or(Errno::EINVAL)?;
        let at = block * Geometry::PER_BLOCK;
        // Fragments lie together, though some may have been written and others not.
        let has = node.blocks.within(at, Geometry::PER_BLOCK).map(|extent| extent.count).sum();
        if has >= wants {
            return Ok(());
        }
        cx.spends(PLACE_WORK);
        let place = node.blocks.mapped(at, 1).place.block();
        if let Some((_, first)) = place
            && self.groups.extend(first, has, wants)
        {
            taken.push((first + has, wants - has));
            self.set_blocks(number, at + has, wants - has, first + has);
            self.change_group(cx, first / Geometry::PER_BLOCK);
            return Ok(());
        }
        self.give_indirect(cx, number, block, taken)?;
        let wanted = self.preferred(number, block);
        let first = self.groups.take_fragments(wanted, wants).ok_or(Errno::ENOSPC)?;
        taken.push((first, wants));
        self.leave(cx, number, (at, has));
        self.set_blocks(number, at, wants, first);
        self.change_group(cx, first / Geometry::PER_BLOCK);
        Ok(())
    }

    /// Fragments are about to be moved: places with data are kept until the data have followed.
    fn leave(&mut self, cx: &mut Context, number: u32, (at, count): (u64, u64)) {
        let Some(node) = self.nodes.get_mut(&number) else { return };
        let mut free = Vec::new();
        let old: Vec<_> = node.blocks.within(at, count).collect();
        for extent in old {
            if matches!(extent.place, Place::Written(..)) {
                free.extend(node.former.take(extent.first, extent.count));
                node.former.set(extent.first, extent.count, extent.place);
            } else {
                free.push(extent);
            }
        }
        self.free_all(cx, &free);
    }

    /// Former places that nobody needs any more.
    fn forget_former(&mut self, cx: &mut Context, number: u32, (first, count): (u64, u64)) {
        let node = self.nodes.get_mut(&number);
        let gone = node.map(|node| node.former.take(first, count)).unwrap_or_default();
        self.free_all(cx, &gone);
    }

    /// Frees extents; those that reach over groups in parts, each group has maps of its own.
    fn free_all(&mut self, cx: &mut Context, extents: &[FileExtent]) {
        for extent in extents {
            let Some((_, place)) = extent.place.block() else { continue };
            let mut at = place;
            while at < place + extent.count {
                let group = self.geometry.group_of(at / Geometry::PER_BLOCK);
                let end =
                    (self.geometry.end(group) * Geometry::PER_BLOCK).min(place + extent.count);
                self.free(cx, at, end - at);
                at = end;
            }
        }
    }

    fn set_blocks(&mut self, number: u32, at: u64, count: u64, first: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.blocks.set(at, count, Place::Unwritten(DeviceId::MAIN, first));
        }
    }

    /// Missing indirect blocks on the way to a block, and the change of the last one.
    fn give_indirect(
        &mut self,
        cx: &mut Context,
        number: u32,
        block: u64,
        taken: &mut Vec<(u64, u64)>,
    ) -> Result<(), Errno> {
        for key in indirect_path(block) {
            let known = self.nodes.get(&number).and_then(|node| node.indirect.get(&key).copied());
            let first = if let Some(first) = known {
                first
            } else {
                let wanted = self.preferred(number, block);
                let found = self.groups.take_block(wanted).ok_or(Errno::ENOSPC)?;
                let first = found * Geometry::PER_BLOCK;
                taken.push((first, Geometry::PER_BLOCK));
                if let Some(node) = self.nodes.get_mut(&number) {
                    Arc::make_mut(&mut node.indirect).insert(key, first);
                }
                self.change_group(cx, found);
                first
            };
            self.change(cx, run_of(first / Geometry::PER_BLOCK), POINTER_BYTES);
        }
        Ok(())
    }

    /// Block that the next one of a file should be: behind the one before; after `maxbpg` blocks
    /// and at the beginning of an indirect block in a group with room (`blkpref`).
    fn preferred(&self, number: u32, block: u64) -> u64 {
        let Some(node) = self.nodes.get(&number) else { return 0 };
        let index = match block.checked_sub(Geometry::DIRECT) {
            None => block,
            Some(behind) => behind % Geometry::POINTERS,
        };
        let before = (index > 0)
            .then(|| node.blocks.mapped((block - 1) * Geometry::PER_BLOCK, 1).place.block())
            .flatten()
            .map(|(_, first)| first / Geometry::PER_BLOCK);
        match before {
            Some(before) if !index.is_multiple_of(self.rules.maxbpg) => before + 1,
            _ if block < Geometry::DIRECT => self.geometry.data_start(node.group),
            _ => {
                let start = before.map_or_else(
                    || u64::from(node.group) + block / self.rules.maxbpg,
                    |before| u64::from(self.geometry.group_of(before)) + 1,
                );
                let group = (start % u64::from(self.geometry.groups)) as u32;
                self.geometry.data_start(self.groups.roomy_group(group))
            }
        }
    }

    /// Metadata that are looked at to find a place.
    pub(super) fn map_reads(&self, cx: &mut Context, run: FileRun) {
        let Some(node) = self.node(run.node) else { return };
        for key in indirect_path(run.first / Geometry::PER_BLOCK) {
            if let Some(first) = node.indirect.get(&key) {
                cx.reads(run_of(first / Geometry::PER_BLOCK));
            }
        }
    }

    pub(super) fn place_of(&self, run: FileRun) -> Mapped {
        self.node(run.node).map_or(Mapped { place: Place::Hole, count: run.count }, |node| {
            node.blocks.mapped(run.first, run.count)
        })
    }

    /// Dirty data are written where their blocks were given.
    pub(super) fn allocate_run(&self, run: FileRun) -> Result<Mapped, Errno> {
        self.place_of(run).to_write()
    }

    /// Blocks hold data now.
    pub(super) fn mark_written(&mut self, cx: &mut Context, run: FileRun) {
        self.keep_range(cx, run.node.0, (run.first, run.count));
        if let Some(node) = self.nodes.get_mut(&run.node.0) {
            node.blocks.mark_written(run.first, run.count);
        }
    }

    pub(super) fn data_written(&mut self, cx: &mut Context, run: FileRun, size: Bytes) {
        let Some(node) = self.nodes.get(&run.node.0) else { return };
        let grows = node.size_disk < size.0;
        let is_known = matches!(node.blocks.mapped(run.first, run.count), Mapped {
            place: Place::Written(..), count
        } if count == run.count);
        if is_known && !grows {
            return;
        }
        self.mark_written(cx, run);
        self.forget_former(cx, run.node.0, (run.first, run.count));
        if let Some(node) = self.nodes.get_mut(&run.node.0) {
            node.size_disk = node.size_disk.max(size.0);
        }
        // Which blocks hold data counts as a change as well: fsync makes it last.
        self.change_inode(cx, run.node.0, true);
    }

    /// A file gets a length; what lies behind it is freed.
    pub(super) fn resize(&mut self, cx: &mut Context, node: NodeId, to: u64) {
        self.cut(cx, node, to);
        if let Some(state) = self.nodes.get_mut(&node.0) {
            (state.size, state.size_disk) = (to, to);
            state.delayed = (0, 0);
        }
        self.change_inode(cx, node.0, true);
    }

    /// Frees everything behind a length.
    pub(super) fn cut(&mut self, cx: &mut Context, node: NodeId, to: u64) {
        let last = to.div_ceil(B);
        let keeps = if last <= Geometry::DIRECT {
            to.div_ceil(Geometry::FRAGMENT)
        } else {
            last * Geometry::PER_BLOCK
        };
        let first = to.div_ceil(Geometry::FRAGMENT);
        self.keep_range(cx, node.0, (first, keeps.saturating_sub(first)));
        self.take_away(cx, node, (keeps, u64::MAX - keeps));
        if let Some(state) = self.nodes.get_mut(&node.0) {
            // The rest of the last block shows zeros when the file grows again.
            state.blocks.mark_unwritten(first, keeps.saturating_sub(first));
        }
    }

    fn take_away(&mut self, cx: &mut Context, node: NodeId, (first, count): (u64, u64)) {
        self.keep_range(cx, node.0, (first, count));
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        let gone = state.blocks.take(first, count);
        let blocks = &state.blocks;
        let mut empty = Vec::new();
        Arc::make_mut(&mut state.indirect).retain(|&key, place| {
            let (from, span) = covered(key);
            let stays = blocks.within(from * 8, span.saturating_mul(8)).next().is_some();
            if !stays {
                empty.push(*place);
            }
            stays
        });
        self.free_all(cx, &gone);
        for place in empty {
            self.free(cx, place, Geometry::PER_BLOCK);
        }
        self.forget_former(cx, node.0, (first, count));
    }
}

/// Blocks of a file that an indirect block maps: the first one, and how many.
fn covered((code, number): (u8, u64)) -> (u64, u64) {
    let (depth, level) = (u32::from(code / 4), u32::from(code % 4));
    let start: u64 =
        Geometry::DIRECT + (1..depth).map(|below| Geometry::POINTERS.pow(below)).sum::<u64>();
    let span = Geometry::POINTERS.pow(depth - level);
    (start + number * span, span)
}
