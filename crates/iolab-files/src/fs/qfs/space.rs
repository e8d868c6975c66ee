//! DAUs of files: given at write(2), one after the other, and taken back by truncate and unlink.

use std::sync::Arc;

use iolab_model::error::Errno;
use iolab_model::{Bytes, Ns};

use super::driver::QfsFs;
use super::geometry::Geometry;
use super::node::indirect_run;
use crate::api::block::{DeviceId, FileRun, Mapped, NodeId, Place};
use crate::api::context::{Context, HoldBack};
use crate::api::file_system::{ClosedHandle, Write};
use crate::fs::journal::FormerNode;
use crate::fs::write_behind::gather;

/// Work of finding a place for a DAU. [assume]
const PLACE_WORK: Ns = Ns(5_000);
const UNIT: u64 = Geometry::UNIT;

/// Units that were taken for a write: device, first, units.
type Taken = Vec<(DeviceId, u64, u64)>;

impl QfsFs {
    pub(super) fn prepare_write(&mut self, cx: &mut Context, write: Write) -> Result<(), Errno> {
        let node = write.run.node;
        let (start, end) = (write.start.0, write.end.0);
        // Looked at once for each write(2); a completion below the mark wakes the writer. [code]
        if let Some(bytes) = self.rules.throttle_bytes.filter(|_| !write.is_direct) {
            cx.effects.throttle = Some(HoldBack { node, above: Bytes(bytes), until: Bytes(bytes) });
        }
        let missing = self.missing(node, (start, end));
        if !missing.is_empty() {
            self.give_daus(cx, node.0, &missing)?;
        }
        if end > write.size.0 || !missing.is_empty() {
            self.change_inode(cx, node.0, true);
        }
        if let Some(state) = self.nodes.get_mut(&node.0) {
            state.size = state.size.max(end);
        }
        Ok(())
    }

    /// DAUs of a range of bytes that have no place: first unit in the file, units. A file that
    /// begins with a whole large DAU gets no small ones. [code]
    fn missing(&mut self, node: NodeId, (start, end): (u64, u64)) -> Vec<(u64, u64)> {
        let geometry = self.geometry;
        let Some(state) = self.nodes.get_mut(&node.0) else { return Vec::new() };
        if state.extents.is_empty() {
            let is_long = start == 0 && end >= geometry.dau * UNIT;
            state.is_large = !geometry.is_dual || is_long;
        }
        let (mut at, last) = (start / UNIT, end.div_ceil(UNIT));
        let mut missing = Vec::new();
        while at < last {
            let found = state.extents.mapped(at, last - at);
            if found.place != Place::Hole {
                at += found.count;
                continue;
            }
            let (first, count) = geometry.slot(at, state.is_large);
            missing.push((first, count));
            at = first + count;
        }
        missing
    }

    /// Gives places to DAUs of a file; a failure changes nothing.
    fn give_daus(
        &mut self,
        cx: &mut Context,
        number: u32,
        missing: &[(u64, u64)],
    ) -> Result<(), Errno> {
        let node = self.nodes.get_mut(&number).ok_or(Errno::EINVAL)?;
        let mut before = FormerNode::new(node);
        for &slot in missing {
            before.keep(&node.extents, slot);
        }
        let mut taken = Taken::new();
        for &slot in missing {
            if self.give_dau(cx, number, slot, &mut taken).is_none() {
                for (device, first, count) in taken {
                    self.pools.give(device, first, count);
                }
                if let Some(node) = self.nodes.get_mut(&number) {
                    before.undo(node);
                }
                return Err(Errno::ENOSPC);
            }
        }
        self.note(cx, number, before);
        Ok(())
    }

    fn give_dau(
        &mut self,
        cx: &mut Context,
        number: u32,
        (at, count): (u64, u64),
        taken: &mut Taken,
    ) -> Option<()> {
        let node = self.nodes.get(&number)?;
        let before = at.checked_sub(1).and_then(|unit| node.extents.get(unit));
        let behind = before.and_then(|extent| extent.place_of(at - 1).block());
        // Behind the DAU before it, else the first free one. [assume]
        let near = behind.map_or(0, |(_, last)| last + 1);
        let first = if count == self.geometry.dau {
            self.pools.take_large(near)?
        } else {
            self.pools.take_small(near, count)?
        };
        taken.push((DeviceId::MAIN, first, count));
        self.give_indirect(cx, number, at, taken)?;
        let place = Place::Unwritten(DeviceId::MAIN, first);
        self.nodes.get_mut(&number)?.extents.set(at, count, place);
        self.change_map(cx, first);
        cx.spends(PLACE_WORK);
        Some(())
    }

    /// Indirect blocks up to the one that points at a DAU of a file; it changes.
    fn give_indirect(
        &mut self,
        cx: &mut Context,
        number: u32,
        unit: u64,
        taken: &mut Taken,
    ) -> Option<()> {
        let node = self.nodes.get(&number)?;
        let Some(wanted) = self.geometry.indirect(unit, node.is_large) else { return Some(()) };
        let mut count = node.indirect.len() as u64;
        while count <= wanted {
            let (device, first) = self.pools.take_meta(Geometry::META_DAU)?;
            taken.push((device, first, Geometry::META_DAU));
            Arc::make_mut(&mut self.nodes.get_mut(&number)?.indirect).push((device, first));
            count += 1;
        }
        let place = self.nodes.get(&number)?.indirect[wanted as usize];
        self.change(cx, indirect_run(place));
        Some(())
    }

    /// Indirect block that is looked at to find a place.
    pub(super) fn map_reads(&self, cx: &mut Context, run: FileRun) {
        let Some(state) = self.node(run.node) else { return };
        let number = self.geometry.indirect(run.first, state.is_large);
        let place = number.and_then(|number| state.indirect.get(number as usize));
        if let Some(&place) = place {
            cx.reads(indirect_run(place));
        }
    }

    pub(super) fn place_of(&self, run: FileRun) -> Mapped {
        self.node(run.node).map_or(Mapped { place: Place::Hole, count: run.count }, |node| {
            node.extents.mapped(run.first, run.count)
        })
    }

    /// Units hold data now. Their DAUs were recorded before: this is no change of metadata, and a
    /// crash does not undo it.
    pub(super) fn mark_written(&mut self, run: FileRun) {
        if let Some(node) = self.nodes.get_mut(&run.node.0) {
            node.extents.mark_written(run.first, run.count);
        }
    }

    /// Data were copied into the cache.
    pub(super) fn gather_pages(&mut self, cx: &mut Context, node: NodeId, range: (u64, u64)) {
        let sizes = (self.rules.lengths.write, Geometry::CACHE_UNIT);
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        gather(&mut state.behind, sizes, range, |waiting| {
            cx.effects.push.push(run_of(node, waiting));
        });
    }

    /// Nothing waits any more: all of it was asked for.
    pub(super) fn forget_behind(&mut self, node: NodeId) {
        if let Some(state) = self.nodes.get_mut(&node.0) {
            state.behind = (0, 0);
        }
    }

    pub(super) fn close_handle(&mut self, cx: &mut Context, node: NodeId, closed: ClosedHandle) {
        if !closed.was_writer {
            return;
        }
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        let waiting = core::mem::take(&mut state.behind);
        if waiting.1 > 0 {
            cx.effects.push.push(run_of(node, waiting));
        }
    }

    /// A file gets a length; DAUs behind it are freed.
    pub(super) fn resize(&mut self, cx: &mut Context, node: NodeId, to: u64) {
        let (size, is_large) =
            self.node(node).map_or((0, false), |state| (state.size, state.is_large));
        let keeps = self.geometry.units_of(size.min(to), is_large);
        let first = to.div_ceil(UNIT);
        self.keep_range(cx, node.0, (first, keeps.saturating_sub(first)));
        self.take_away(cx, node, (keeps, u64::MAX - keeps));
        if let Some(state) = self.nodes.get_mut(&node.0) {
            // The rest of the last DAU shows zeros when the file grows again.
            state.extents.mark_unwritten(first, keeps.saturating_sub(first));
            state.size = to;
            state.behind = (0, 0);
        }
        self.change_inode(cx, node.0, true);
        let blocks = [self.inode_block(node.0)];
        self.order(cx, &blocks);
    }

    /// Frees the DAUs of a range, and indirect blocks that point at nothing any more.
    pub(super) fn take_away(&mut self, cx: &mut Context, node: NodeId, (first, count): (u64, u64)) {
        let geometry = self.geometry;
        self.keep_range(cx, node.0, (first, count));
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        let gone = state.extents.take(first, count);
        let last = state.extents.last().map(|extent| extent.end() - 1);
        let needs = last.and_then(|unit| geometry.indirect(unit, state.is_large));
        let needs = needs.map_or(0, |number| number as usize + 1);
        let needs = needs.min(state.indirect.len());
        let indirect = Arc::make_mut(&mut state.indirect).split_off(needs);
        for extent in gone {
            if let Some((device, place)) = extent.place.block() {
                self.release(cx, device, place, extent.count);
            }
        }
        for (device, place) in indirect {
            self.release(cx, device, place, Geometry::META_DAU);
        }
    }

    /// Whole DAUs become holes (`F_FREESP`).
    pub(super) fn reshape_run(&mut self, cx: &mut Context, run: FileRun) {
        let Some(is_large) = self.node(run.node).map(|state| state.is_large) else { return };
        let slot = |unit| self.geometry.slot(unit, is_large);
        let (begin, count) = slot(run.first);
        let first = if begin == run.first { begin } else { begin + count };
        let (end, _) = slot(run.end());
        self.keep_range(cx, run.node.0, (run.first, run.count));
        if let Some(state) = self.nodes.get_mut(&run.node.0) {
            // DAUs that are given back in part stay, and show zeros.
            state.extents.mark_unwritten(run.first, run.count);
        }
        if end > first {
            self.take_away(cx, run.node, (first, end - first));
        }
        self.change_inode(cx, run.node.0, true);
    }
}

fn run_of(node: NodeId, (from, length): (u64, u64)) -> FileRun {
    FileRun { node, first: from / UNIT, count: length / UNIT }
}
