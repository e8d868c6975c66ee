//! Extents of files: they grow with the file, and what was too much is given back.

use iolab_model::Ns;
use iolab_model::error::Errno;

use super::driver::VxFs;
use super::geometry::Geometry;
use crate::api::block::{DeviceId, FileRun, Mapped, NodeId, Place};
use crate::api::context::Context;
use crate::api::file_system::Write;

/// Work of finding a place for an extent. [assume]
const PLACE_WORK: Ns = Ns(10_000);
const UNIT: u64 = Geometry::UNIT;

impl VxFs {
    /// Units that a length needs, in whole blocks.
    pub(super) fn units_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(UNIT).next_multiple_of(self.geometry.block)
    }

    pub(super) fn prepare_write(&mut self, cx: &mut Context, write: Write) -> Result<(), Errno> {
        let number = write.run.node.0;
        let (start, end, size) = (write.start.0, write.end.0, write.size.0);
        let grows = end > size;
        if start > size {
            // What waits behind the end would become part of the file without ever being written.
            self.trim(cx, write.run.node, size);
        }
        let missing = self.missing(number, (start, end));
        if !missing.is_empty() {
            self.give(cx, number, &missing, grows)?;
        }
        if grows || !missing.is_empty() {
            self.change_inode(cx, number, true);
        }
        if grows && self.rules.flushes_first {
            let first = start / UNIT;
            let run = FileRun { node: write.run.node, first, count: end.div_ceil(UNIT) - first };
            self.flush_first(run);
        }
        if let Some(state) = self.nodes.get_mut(&number) {
            state.is_growing = grows;
            state.size = state.size.max(end);
        }
        Ok(())
    }

    /// Units of a range of bytes that have no place, as runs of whole blocks.
    fn missing(&self, number: u32, (start, end): (u64, u64)) -> Vec<(u64, u64)> {
        let Some(node) = self.nodes.get(&number) else { return Vec::new() };
        let block = self.geometry.block;
        let (mut at, end) = (start / UNIT / block * block, self.units_of(end));
        let mut runs = Vec::new();
        while at < end {
            let found = node.extents.mapped(at, end - at);
            if found.place == Place::Hole {
                runs.push((at, found.count));
            }
            at += found.count;
        }
        runs
    }

    /// Gives places to runs of a file; a failure changes nothing. `grows`: the last one makes the
    /// file longer, the others are holes in it.
    fn give(
        &mut self,
        cx: &mut Context,
        number: u32,
        runs: &[(u64, u64)],
        grows: bool,
    ) -> Result<(), Errno> {
        let needs: u64 = runs.iter().map(|(_, count)| count).sum();
        if needs > self.free.units() {
            return Err(Errno::ENOSPC);
        }
        for &(first, count) in runs {
            let node = self.nodes.get(&number).ok_or(Errno::EINVAL)?;
            let is_hole = !grows || node.extents.last().is_some_and(|last| last.end() > first);
            let wants = if is_hole { count } else { self.grown(number, count) };
            self.give_run(cx, number, (first, count, wants));
            if is_hole && self.rules.clears {
                self.clear_run(cx, number, (first, count));
            }
        }
        Ok(())
    }

    /// Fills new blocks with zeros; the caller waits until they and their record are written.
    fn clear_run(&mut self, cx: &mut Context, number: u32, (first, count): (u64, u64)) {
        let Some(node) = self.nodes.get(&number) else { return };
        let new: Vec<_> = node.extents.within(first, count).collect();
        for extent in new {
            if let Some((_, place)) = extent.place.block() {
                self.clear_first(place, extent.count);
            }
        }
        self.commit(cx);
    }

    /// Length of the next extent of a file that is written at its end: the first one is a power of
    /// two, every further one tries to double the file.
    fn grown(&self, number: u32, count: u64) -> u64 {
        let has = self.nodes.get(&number).map_or(0, |node| node.extents.blocks());
        let (first, longest) = self.rules.growth;
        let wants = if has == 0 { count.next_power_of_two().max(first) } else { has.min(longest) };
        // What all of it would not leave room for is not asked for.
        wants.max(count).next_multiple_of(self.geometry.block).min(self.free.units())
    }

    /// Gives `count` units to a file from `first` on, and up to `wants` if they lie together.
    pub(super) fn give_run(
        &mut self,
        cx: &mut Context,
        number: u32,
        (first, count, wants): (u64, u64, u64),
    ) {
        let (mut at, end) = (first, first + count);
        let mut wants = wants.max(count);
        while at < end {
            let Some((place, got)) = self.take(number, at, (end - at, wants)) else {
                debug_assert!(false, "there was room for all of it");
                return;
            };
            cx.spends(PLACE_WORK);
            self.change_map(cx, place);
            self.keep_range(cx, number, (at, got));
            if let Some(node) = self.nodes.get_mut(&number) {
                node.extents.set(at, got, Place::Unwritten(DeviceId::MAIN, place));
                node.allocations += 1;
            }
            at += got;
            wants = wants.saturating_sub(got).max(self.geometry.block);
        }
    }

    /// Takes a free run for a place of a file: behind the extent before it, or as long as wanted
    /// at a multiple of the alignment, or the half of that, and so on.
    fn take(&mut self, number: u32, at: u64, (needs, wants): (u64, u64)) -> Option<(u64, u64)> {
        let Geometry { block, align, .. } = self.geometry;
        let node = self.nodes.get(&number)?;
        let before = at.checked_sub(1).and_then(|before| node.extents.get(before));
        let behind = before.and_then(|extent| extent.place_of(at - 1).block());
        if let Some((_, last)) = behind {
            let room = self.free.run_at(last + 1) / block * block;
            if room >= needs {
                let count = room.min(wants);
                self.free.occupy(last + 1, count);
                return Some((last + 1, count));
            }
        }
        let near = behind.map_or_else(|| self.geometry.au_start(node.au), |(_, last)| last + 1);
        let mut count = wants;
        loop {
            let found = self.free.find(near, count, align);
            // Nothing so long is free at a multiple: what is needed may lie anywhere.
            let found = found.or_else(|| self.free.find(near, count, block));
            if let Some(first) = found {
                self.free.occupy(first, count);
                return Some((first, count));
            }
            if count <= block {
                return None;
            }
            count = (count / 2 / block * block).max(block);
        }
    }

    pub(super) fn place_of(&self, run: FileRun) -> Mapped {
        self.node(run.node).map_or(Mapped { place: Place::Hole, count: run.count }, |node| {
            node.extents.mapped(run.first, run.count)
        })
    }

    /// Dirty data are written where their extents are.
    pub(super) fn allocate_run(&self, run: FileRun) -> Result<Mapped, Errno> {
        self.place_of(run).to_write()
    }

    /// Units hold data now. Their extents were recorded before: this is no change of metadata, and
    /// a crash does not undo it.
    pub(super) fn mark_written(&mut self, run: FileRun) {
        if let Some(node) = self.nodes.get_mut(&run.node.0) {
            node.extents.mark_written(run.first, run.count);
        }
    }

    /// A file gets a length; what lies behind it is freed.
    pub(super) fn resize(&mut self, cx: &mut Context, node: NodeId, to: u64) {
        let size = self.node(node).map_or(0, |state| state.size);
        let keeps = self.units_of(size.min(to));
        self.take_away(cx, node, (keeps, u64::MAX - keeps));
        if let Some(state) = self.nodes.get_mut(&node.0) {
            state.size = to;
            (state.behind, state.is_growing) = ((0, 0), false);
        }
        self.change_inode(cx, node.0, true);
        self.order(cx, false);
    }

    /// Gives back what lies behind the end of a file that is not written any more.
    pub(super) fn trim(&mut self, cx: &mut Context, node: NodeId, size: u64) {
        let keeps = self.units_of(size);
        let last = self.node(node).and_then(|state| state.extents.last());
        if last.is_some_and(|last| last.end() > keeps) {
            self.take_away(cx, node, (keeps, u64::MAX - keeps));
            self.change_inode(cx, node.0, true);
        }
    }

    pub(super) fn take_away(&mut self, cx: &mut Context, node: NodeId, (first, count): (u64, u64)) {
        self.keep_range(cx, node.0, (first, count));
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        let gone = state.extents.take(first, count);
        for extent in gone {
            if let Some((_, place)) = extent.place.block() {
                self.release(cx, place, extent.count);
            }
        }
    }

    pub(super) fn reshape_run(&mut self, cx: &mut Context, run: FileRun) {
        // Whole blocks alone (`F_FREESP`).
        let block = self.geometry.block;
        let (first, end) = (run.first.next_multiple_of(block), run.end() / block * block);
        if end > first {
            self.take_away(cx, run.node, (first, end - first));
            self.change_inode(cx, run.node.0, true);
        }
    }
}
