//! Blocks of files: at write(2), at write-back, and when they go.
//!
//! Source: Linux fs/ext4/inode.c (`ext4_da_write_begin`, `mpage_map_one_extent`,
//! `ext4_truncate`, `ext4_punch_hole`), fs/ext4/extents.c (`ext4_fallocate`).

use iolab_model::error::Errno;
use iolab_model::{Bytes, Ns};

use super::driver::ExtFs;
use super::mapping::{Wish, records_near};
use super::mode::DataMode;
use super::node::{Maps, Undo};
use crate::api::block::{FileRun, Mapped, NodeId, Place};
use crate::api::context::Context;
use crate::api::file_system::{Reshape, Write};
use crate::api::frame::largest_order;
use crate::fs::extent_map::{FileExtent, FormerRange};

/// Work per page of a promise, and per page of a write under a handle of the journal: what Linux
/// 6.18 needs more than for an overwrite with delayed allocation (docs/reference/file-systems).
const RESERVE: Ns = Ns(450);
const HANDLE: Ns = Ns(600);
/// Blocks that one mapping of write-back covers at most (`MAX_WRITEPAGES_EXTENT_LEN`).
pub const WRITE_BACK_BLOCKS: u64 = 2048;
/// Blocks of one mapping of a direct write (`DIO_MAX_BLOCKS`).
const DIRECT_BLOCKS: u64 = 4096;
/// Blocks that a processor counts before it tells others, at least (`percpu_counter_batch`).
const COUNTER_BATCH: u64 = 32;

impl ExtFs {
    pub(super) fn place_of(&self, run: FileRun) -> Mapped {
        let Some(node) = self.node(run.node) else {
            return Mapped { place: Place::Hole, count: run.count.max(1) };
        };
        let mapped = node.blocks.mapped(run.first, run.count);
        if mapped.place != Place::Hole || node.delayed.is_empty() {
            return mapped;
        }
        node.delayed.mapped(run.first, mapped.count)
    }

    pub(super) fn prepare_write(&mut self, cx: &mut Context, write: Write) -> Result<(), Errno> {
        self.learn_late(cx.now);
        let run = write.run;
        if write.end.0.div_ceil(self.block_bytes()) > self.blocks_max() {
            return Err(Errno(27)); // EFBIG
        }
        let delays = self.is_delayed && !write.is_direct && !self.is_nearly_full();
        if delays {
            self.reserve(cx, run)?;
        } else {
            self.place_now(cx, &write)?;
        }
        if self.mode.data == DataMode::Journal && !write.is_direct {
            self.journal_data(cx, run);
        }
        if let Some(node) = self.nodes.get_mut(&run.node.0) {
            node.size = node.size.max(write.end.0);
        }
        if !delays || write.is_direct {
            // The length goes with the blocks, unless they are delayed.
            let size = self.nodes.get(&run.node.0).map_or(0, |node| node.size);
            if !write.is_direct {
                self.change_size_disk(cx, run.node.0, size);
            }
        }
        self.wait_if_full(cx);
        Ok(())
    }

    /// Longest file, in blocks.
    pub(super) fn blocks_max(&self) -> u64 {
        if self.has_extents {
            return u64::from(u32::MAX);
        }
        let n = self.block_bytes() / 4;
        let mapped = 12 + n + n.pow(2) + n.pow(3);
        // Sectors of a file, with the blocks that map it (`ext4_max_bitmap_size`): 2^32, and 2^48
        // with the feature `huge_file`, which mkfs.ext4 alone sets.
        let sectors = if self.mode.name == "ext4" { (1_u64 << 48) - 1 } else { (1 << 32) - 1 };
        let blocks = sectors / (self.block_bytes() / 512);
        let above = |data: u64| {
            let behind = |first: u64| data.saturating_sub(first);
            let single = behind(12).min(n).min(1);
            let double = behind(12 + n).min(n.pow(2));
            let triple = behind(12 + n + n.pow(2));
            let roots = u64::from(double > 0) + u64::from(triple > 0);
            single + roots + double.div_ceil(n) + triple.div_ceil(n) + triple.div_ceil(n.pow(2))
        };
        if mapped + above(mapped) <= blocks { mapped } else { blocks - above(blocks) }
    }

    /// Blocks without a place, promised space and no more (`ext4_nonda_switch`).
    fn is_nearly_full(&self) -> bool {
        let (free, delayed) = (self.free, self.delayed);
        let cpus = u64::from(self.cpus());
        let batch = COUNTER_BATCH.max(2 * cpus);
        2 * free < 3 * delayed || free < delayed + 4 * batch * cpus
    }

    fn reserve(&mut self, cx: &mut Context, run: FileRun) -> Result<(), Errno> {
        let mut new = Vec::new();
        let mut at = run.first;
        while at < run.end() {
            let mapped =
                self.place_of(FileRun { node: run.node, first: at, count: run.end() - at });
            if mapped.place == Place::Hole {
                new.push((at, mapped.count));
            }
            at += mapped.count;
        }
        let count: u64 = new.iter().map(|(_, count)| count).sum();
        if self.free < self.delayed + count {
            return Err(Errno::ENOSPC);
        }
        self.delayed += count;
        cx.spends(Ns(RESERVE.0 * count));
        if let Some(node) = self.nodes.get_mut(&run.node.0) {
            for (first, count) in new {
                node.delayed.set(first, count, Place::Delayed);
            }
        }
        if self.free < 2 * self.delayed {
            cx.effects.pushes_all = true;
        }
        Ok(())
    }

    /// Places for all blocks of a write: page by page through the cache, in one go past it.
    fn place_now(&mut self, cx: &mut Context, write: &Write) -> Result<(), Errno> {
        let run = write.run;
        if !write.is_direct && matches!(self.log, super::driver::DurableLog::Journal(_)) {
            // Linux fs/ext4/inode.c, ext4_write_begin: a handle for each folio.
            let pages = (write.start.0 / 4096, write.end.0.div_ceil(4096));
            cx.spends(Ns(HANDLE.0 * folios(pages, self.mode.has_large_folios)));
        }
        let mut has_changed = false;
        let result = self.place_holes(cx, write, &mut has_changed);
        if has_changed {
            self.change_inode(cx, run.node.0, true);
        }
        result
    }

    /// Places for the holes of a write, block by block if it goes through the cache.
    fn place_holes(
        &mut self,
        cx: &mut Context,
        write: &Write,
        has_changed: &mut bool,
    ) -> Result<(), Errno> {
        let run = write.run;
        let is_inside = write.end.0 <= write.size.0;
        // Without delayed allocation a reserved block is a written one from write(2) on
        // (`ext4_should_dioread_nolock`).
        let converts = !write.is_direct && !self.is_delayed;
        let mut at = run.first;
        while at < run.end() {
            let rest = FileRun { node: run.node, first: at, count: run.end() - at };
            let mapped = self.place_of(rest);
            if let Place::Unwritten(device, first) = mapped.place
                && converts
            {
                let place = Place::Written(device, first);
                // As at write-back: a tree that cannot grow keeps its records unmerged.
                let _ = self.record(cx, run.node.0, FileExtent { first: at, count: 1, place });
                *has_changed = true;
                cx.spends(self.mode.map_cost);
                self.order_data(cx, FileRun { node: run.node, first: at, count: 1 }, write);
                at += 1;
                continue;
            }
            if mapped.place.block().is_some() {
                at += mapped.count;
                continue;
            }
            self.undelay(run.node, at, mapped.count);
            let pages = if write.is_direct { mapped.count.min(DIRECT_BLOCKS) } else { 1 };
            let wish = Wish {
                node: run.node.0,
                first: at,
                count: pages,
                size: write.size.0.max(at * self.block_bytes()),
                is_unwritten: self.has_extents && write.is_direct && is_inside,
                is_exact: false,
            };
            let placed = self.place(cx, wish)?;
            *has_changed = true;
            cx.spends(self.mode.map_cost);
            self.order_data(cx, FileRun { node: run.node, first: at, count: placed.count }, write);
            at += placed.count;
        }
        Ok(())
    }

    /// New blocks of extending writes are written before their transaction is durable.
    fn order_data(&mut self, cx: &mut Context, run: FileRun, write: &Write) {
        if self.mode.data == DataMode::Ordered && !write.is_direct {
            self.order(cx, run);
        }
    }

    /// Forgets that blocks are delayed; their number.
    fn undelay(&mut self, node: NodeId, first: u64, count: u64) -> u64 {
        let Some(state) = self.nodes.get_mut(&node.0) else { return 0 };
        if state.delayed.is_empty() {
            return 0;
        }
        let before = state.delayed.blocks();
        state.delayed.clear(first, count);
        let gone = before - state.delayed.blocks();
        self.delayed -= gone;
        gone
    }

    pub(super) fn allocate_run(&mut self, cx: &mut Context, run: FileRun) -> Result<Mapped, Errno> {
        self.learn_late(cx.now);
        let found = self.place_of(run);
        if found.place.block().is_some() {
            return Ok(found);
        }
        let size = self.node(run.node).ok_or(Errno::EINVAL)?.size;
        let wish = Wish {
            node: run.node.0,
            first: run.first,
            count: found.count.min(WRITE_BACK_BLOCKS),
            size,
            is_unwritten: self.has_extents && self.mode.is_unwritten_first,
            is_exact: false,
        };
        let placed = self.place(cx, wish)?;
        self.change_inode(cx, wish.node, true);
        cx.spends(self.mode.map_cost);
        self.undelay(run.node, run.first, placed.count);
        if !wish.is_unwritten && self.mode.data == DataMode::Ordered {
            let count = placed.count;
            self.order(cx, FileRun { node: run.node, first: run.first, count });
        }
        if !wish.is_unwritten {
            self.grow_on_disk(cx, run.node, run.first + placed.count, size);
        }
        let is_done = self.node(run.node).is_some_and(|node| node.delayed.is_empty());
        if is_done {
            self.end_flush(run.node);
        }
        Ok(placed)
    }

    /// A flush at close has given all blocks their places: the windows go.
    fn end_flush(&mut self, node: NodeId) {
        let state = self.nodes.get_mut(&node.0).filter(|state| state.is_flushing);
        if let Some(state) = state {
            state.is_flushing = false;
            if state.writers == 0 {
                self.drop_windows(node);
            }
        }
    }

    /// Drops the blocks ahead of a file.
    pub(super) fn drop_windows(&mut self, node: NodeId) {
        self.allocator.drop_windows(node.0);
        if let Some(windows) = &mut self.windows {
            windows.drop_window(node.0);
        }
    }

    fn grow_on_disk(&mut self, cx: &mut Context, node: NodeId, end: u64, size: u64) {
        let reached = size.min(end * self.block_bytes());
        let disk = self.node(node).map_or(0, |state| state.size_disk);
        if reached > disk {
            self.change_size_disk(cx, node.0, reached);
        }
    }

    pub(super) fn data_written(&mut self, cx: &mut Context, run: FileRun, size: Bytes) {
        if let super::driver::DurableLog::Journal(journal) = &mut self.log {
            journal.data_written(run);
        }
        let Some(node) = self.node(run.node) else { return };
        let unwritten: Vec<_> = node
            .blocks
            .within(run.first, run.count)
            .filter(|extent| matches!(extent.place, Place::Unwritten(..)))
            .collect();
        for extent in &unwritten {
            if let Place::Unwritten(device, first) = extent.place {
                let place = Place::Written(device, first);
                let extent = FileExtent { place, ..*extent };
                // A tree that cannot grow for lack of space keeps its records unmerged.
                let _ = self.record(cx, run.node.0, extent);
            }
        }
        if !unwritten.is_empty() {
            self.change_inode(cx, run.node.0, true);
        }
        let known = self.node(run.node).map_or(0, |node| node.size);
        self.grow_on_disk(cx, run.node, run.end(), size.0.min(known.max(size.0)));
    }

    pub(super) fn abandon_run(&mut self, run: FileRun) {
        self.undelay(run.node, run.first, run.count);
    }

    pub(super) fn truncate_to(&mut self, cx: &mut Context, node: NodeId, to: Bytes) {
        self.drop_windows(node);
        let block = self.block_bytes();
        let first = to.0.div_ceil(block);
        if let Some(state) = self.nodes.get_mut(&node.0) {
            if to.0 == 0 && self.mode.replaces_at_once {
                state.flushes_at_close = true;
            }
            state.size = to.0;
        }
        self.undelay(node, first, u64::MAX - first);
        self.drop_data(node, first);
        self.remove(cx, node, first, u64::MAX - first);
        self.change_size_disk(cx, node.0, to.0);
        self.change_inode(cx, node.0, true);
        self.wait_if_full(cx);
    }

    /// Makes a hole of a range and frees its blocks.
    pub(super) fn remove(&mut self, cx: &mut Context, node: NodeId, first: u64, count: u64) {
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        let taken = state.blocks.take(first, count);
        state.records = records_near(&state.blocks, 0, u64::MAX - 1);
        if taken.is_empty() {
            return;
        }
        let end = taken.last().map_or(first, FileExtent::end);
        let is_file = state.is_file();
        let old = FormerRange { first, count: end - first, extents: taken.clone() };
        self.undo(cx, Undo::Blocks(node.0, old));
        for extent in &taken {
            if let Some((_, place)) = extent.place.block() {
                self.free_blocks(cx, place, extent.count, !is_file);
            }
        }
        self.prune(cx, node.0);
        self.change_inode(cx, node.0, true);
    }

    /// Frees mapping blocks that map nothing any more.
    fn prune(&mut self, cx: &mut Context, node: u32) {
        let Some(state) = self.nodes.get(&node) else { return };
        let per_block = self.block_bytes() / 4;
        if state.maps == Maps::default() {
            return;
        }
        let mut maps = state.maps.clone();
        let ends: Vec<u64> =
            maps.leaves.iter().skip(1).map(|leaf| leaf.first).chain([u64::MAX]).collect();
        for (leaf, end) in maps.leaves.iter_mut().zip(ends) {
            leaf.records = state.blocks.within(leaf.first, end - leaf.first).count() as u64;
        }
        let is_empty = state.blocks.is_empty();
        maps.leaves.retain(|leaf| leaf.records > 0);
        if let Some(first) = maps.leaves.first_mut() {
            first.first = 0;
        }
        if maps.leaves.is_empty() {
            maps.indexes.clear();
        }
        maps.indirect.retain(|&(key, number), _| {
            let (level, depth) = (u32::from(key / 16), u32::from(key % 16));
            let start: u64 = 12 + (1..level).map(|l| per_block.pow(l)).sum::<u64>();
            let span = per_block.pow(level - depth);
            !is_empty && state.blocks.within(start + number * span, span).next().is_some()
        });
        if maps == state.maps {
            return;
        }
        let kept: std::collections::BTreeSet<u64> = maps.places().collect();
        let gone: Vec<u64> = state.maps.places().filter(|place| !kept.contains(place)).collect();
        self.change_maps(cx, node, |old| *old = maps);
        if let Some(state) = self.nodes.get_mut(&node) {
            state.unsynced.retain(|place| kept.contains(place));
        }
        for place in gone {
            self.free_blocks(cx, place, 1, true);
        }
    }

    pub(super) fn reshape_run(
        &mut self,
        cx: &mut Context,
        run: FileRun,
        how: Reshape,
        size: Bytes,
    ) -> Result<(), Errno> {
        self.learn_late(cx.now);
        match how {
            Reshape::Punch => {
                self.drop_windows(run.node);
                self.undelay(run.node, run.first, run.count);
                self.remove(cx, run.node, run.first, run.count);
            }
            Reshape::Allocate => self.give_unwritten(cx, run, size)?,
            Reshape::Zero => {
                self.give_unwritten(cx, run, size)?;
                self.unwrite(cx, run)?;
            }
        }
        if let Some(node) = self.nodes.get_mut(&run.node.0) {
            node.size = node.size.max(size.0);
        }
        let disk = self.node(run.node).map_or(0, |node| node.size_disk);
        self.change_size_disk(cx, run.node.0, disk.max(size.0));
        self.change_inode(cx, run.node.0, true);
        self.wait_if_full(cx);
        Ok(())
    }

    /// Blocks of a range are unwritten ones again (`EXT4_GET_BLOCKS_CONVERT_UNWRITTEN`).
    fn unwrite(&mut self, cx: &mut Context, run: FileRun) -> Result<(), Errno> {
        let Some(node) = self.node(run.node) else { return Ok(()) };
        let extents: Vec<FileExtent> = node.blocks.within(run.first, run.count).collect();
        for extent in extents {
            if let Place::Written(device, block) = extent.place {
                let place = Place::Unwritten(device, block);
                self.record(cx, run.node.0, FileExtent { place, ..extent })?;
            }
        }
        Ok(())
    }

    /// Gives unwritten blocks to what has none (`ext4_alloc_file_blocks`); the file grows with them
    /// up to `length`.
    fn give_unwritten(
        &mut self,
        cx: &mut Context,
        run: FileRun,
        length: Bytes,
    ) -> Result<(), Errno> {
        let mut at = run.first;
        while at < run.end() {
            let rest = FileRun { node: run.node, first: at, count: run.end() - at };
            let mapped = self.place_of(rest);
            if mapped.place.block().is_some() {
                at += mapped.count;
                continue;
            }
            let size = self.node(run.node).map_or(0, |node| node.size);
            let wish = Wish {
                node: run.node.0,
                first: at,
                count: mapped.count,
                size,
                is_unwritten: true,
                // Normalised only beyond what one unwritten extent can hold.
                is_exact: run.count <= 32767,
            };
            let placed = self.place(cx, wish)?;
            self.change_inode(cx, wish.node, true);
            self.undelay(run.node, at, placed.count);
            if let Some(node) = self.nodes.get_mut(&run.node.0) {
                let reached =
                    (at + placed.count) * u64::from(self.allocator.geometry().block_bytes);
                node.size = node.size.max(reached.min(length.0));
            }
            at += placed.count;
        }
        Ok(())
    }
}

/// Folios of the pages of a write, if none is there yet.
fn folios((first, end): (u64, u64), are_large: bool) -> u64 {
    if !are_large {
        return end - first;
    }
    let (mut at, mut count) = (first, 0);
    while at < end {
        at += 1 << largest_order(at, end - at);
        count += 1;
    }
    count
}
