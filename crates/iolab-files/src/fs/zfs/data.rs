//! Records: how they become dirty, and the places that they get when their group is written.

use iolab_model::Ns;
use iolab_model::error::Errno;

use super::driver::Zfs;
use super::group::{Calls, Change, Entry, Group, InLog, Stage};
use super::metadata::MetaKey;
use super::options::BLOCK;
use crate::api::block::{DeviceId, FileRun, Mapped, NodeId, Place};
use crate::api::context::{Context, Tid};
use crate::api::file_system::{Step, Write};

/// Work of a write in a record: a transaction, its reservation, buffers. [fit: the 144 KB/s that D5
/// prints for writes of one byte, less its calls]
const WRITE_WORK: Ns = Ns(3_500);

impl Zfs {
    /// Blocks that may not be used by data: 1/64 of all.
    pub(super) fn reserve(&self) -> u64 {
        self.slabs.blocks() / 64
    }

    /// Blocks that data may still have.
    pub(super) fn room(&self) -> u64 {
        let promised = self.dirty_bytes().div_ceil(BLOCK);
        self.slabs.free().saturating_sub(self.reserve()).saturating_sub(promised)
    }

    pub(super) fn prepare_write(&mut self, cx: &mut Context, write: Write) -> Result<(), Errno> {
        let run = write.run;
        let per_record = self.record_blocks();
        let (first, end) = (run.first / per_record, run.end().div_ceil(per_record));
        let blocks = (end - first) * per_record;
        let file_blocks = write.size.0.max(write.end.0).div_ceil(BLOCK);
        let needs = blocks.min(file_blocks.saturating_sub(first * per_record));
        if needs > self.room() {
            return Err(Errno::ENOSPC);
        }
        let size = write.size.0.max(write.end.0);
        // A file of one record has a block of its length, others have whole records.
        let (whole, old) = (self.rules.record_bytes, write.size.0);
        let Some(node) = self.nodes.get_mut(&run.node.0) else { return Err(Errno::EINVAL) };
        node.state.size = size;
        let of_group = self.open.dirty.entry(run.node.0).or_default();
        for record in first..end {
            node.dirty.insert(record);
            let has = if of_group.insert(record) { 0 } else { whole.min(old) };
            self.open.bytes += (whole.min(size) - has).next_multiple_of(BLOCK);
        }
        self.note_write(cx, run, write.end.0 - write.start.0, size);
        cx.spends(WRITE_WORK);
        Ok(())
    }

    /// Notes a write; small ones in one block after each other are one entry.
    fn note_write(&mut self, cx: &mut Context, run: FileRun, bytes: u64, size: u64) {
        let tid = Tid(self.last.0 + 1);
        if let Some(last) = self.open.entries.last_mut()
            && last.log == InLog::No
            && bytes < BLOCK
            && let Change::Write(of, calls, to) = &mut last.change
            && *of == run
            && calls.bytes == bytes
        {
            calls.count += 1;
            *to = size.max(*to);
            (last.tid, self.last, self.open.last) = (tid, tid, tid);
            return cx.changes(tid);
        }
        self.change(cx, Change::Write(run, Calls { bytes, count: 1 }, size));
    }

    pub(super) fn place_of(&self, run: FileRun) -> Mapped {
        let hole = Mapped { place: Place::Hole, count: run.count };
        let Some(node) = self.node(run.node) else { return hole };
        let per_record = self.record_blocks();
        let record = run.first / per_record;
        let dirty = node.dirty.range(record..).next().copied();
        let until = dirty.map_or(u64::MAX, |dirty| dirty * per_record);
        if until <= run.first {
            let count = (record + 1) * per_record - run.first;
            return Mapped { place: Place::Delayed, count: count.min(run.count) };
        }
        node.state.places.mapped(run.first, run.count.min(until - run.first))
    }

    /// Gives blocks of one record new places.
    pub(super) fn allocate_run(&mut self, run: FileRun) -> Result<Mapped, Errno> {
        let number = run.node.0;
        let per_record = self.record_blocks();
        let record = run.first / per_record;
        let wanted = run.count.min((record + 1) * per_record - run.first);
        let Some(node) = self.nodes.get_mut(&number) else { return Err(Errno::EINVAL) };
        let (mut count, mut place) = (wanted, self.slabs.take(wanted));
        while place.is_none() && count > 1 {
            count /= 2;
            place = self.slabs.take(count);
        }
        let place = Place::Written(DeviceId::MAIN, place.ok_or(Errno::ENOSPC)?);
        let run = FileRun { count, ..run };
        let old = node.state.places.take(run.first, count);
        node.state.places.set(run.first, count, place);
        if count == wanted {
            node.dirty.remove(&record);
        }
        let group = self.group_of(number, record);
        let old =
            old.into_iter().filter_map(|extent| Some((extent.place.block()?.1, extent.count)));
        group.freed.extend(old);
        let tid = group.last;
        let log = InLog::No;
        group.entries.push(Entry { tid, change: Change::Place(run, place), log });
        Ok(Mapped { place, count })
    }

    /// The oldest group that has a record to write, or the open one.
    fn group_of(&mut self, number: u32, record: u64) -> &mut Group {
        let has = |group: &Group| {
            group.dirty.get(&number).is_some_and(|records| records.contains(&record))
        };
        if let Some(syncing) = &mut self.syncing
            && syncing.stage == Stage::Data
            && has(&syncing.group)
        {
            return &mut syncing.group;
        }
        if let Some(closed) = &mut self.closed
            && has(closed)
        {
            return closed;
        }
        &mut self.open
    }

    /// Data have reached the device.
    pub(super) fn note_written(&mut self, run: FileRun) {
        if let Some(syncing) = &mut self.syncing {
            syncing.left = syncing.left.saturating_sub(run.count * BLOCK);
        }
    }

    /// The records of the group that is being written.
    pub(super) fn data_steps(&self) -> Vec<Step> {
        let Some(syncing) = &self.syncing else { return Vec::new() };
        let per_record = self.record_blocks();
        let mut runs: Vec<FileRun> = Vec::new();
        for (&number, records) in &syncing.group.dirty {
            let node = NodeId(number);
            for &record in records {
                let first = record * per_record;
                match runs.last_mut() {
                    Some(last) if last.node == node && last.end() == first => {
                        last.count += per_record;
                    }
                    _ => runs.push(FileRun { node, first, count: per_record }),
                }
            }
        }
        runs.into_iter().map(Step::Data).chain([Step::Wait]).collect()
    }

    /// Frees the blocks of a file from one on.
    pub(super) fn cut_places(&mut self, node: NodeId, first: u64, count: u64) {
        let per_record = self.record_blocks();
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        let gone = state.state.places.take(first, count);
        let whole = first.div_ceil(per_record)..first.saturating_add(count) / per_record;
        if whole.start < whole.end {
            let records: Vec<u64> = state.dirty.range(whole).copied().collect();
            for record in records {
                state.dirty.remove(&record);
            }
        }
        let gone =
            gone.into_iter().filter_map(|extent| Some((extent.place.block()?.1, extent.count)));
        self.open.freed.extend(gone);
    }

    pub(super) fn resize(&mut self, cx: &mut Context, node: NodeId, to: u64) {
        let keeps = to.div_ceil(BLOCK);
        self.cut_places(node, keeps, u64::MAX - keeps);
        let per_record = self.record_blocks();
        let record = keeps / per_record;
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        state.state.size = to;
        let is_cut = !keeps.is_multiple_of(per_record) || !to.is_multiple_of(BLOCK);
        if is_cut && state.dirty.contains(&record) {
            self.open.dirty.entry(node.0).or_default().insert(record);
        }
        self.change(cx, Change::Cut(node.0, to, keeps));
        self.touch_metadata(cx, MetaKey::dnode(node.0));
    }

    pub(super) fn reshape_run(&mut self, cx: &mut Context, run: FileRun) {
        // What is not a whole record would be filled with zeros; here its blocks go as well.
        self.cut_places(run.node, run.first, run.count);
        self.change(cx, Change::Hole(run));
        self.touch_metadata(cx, MetaKey::dnode(run.node.0));
    }
}
