//! Effects of calls of the file system, carried out.

use iolab_model::Sector;

use super::engine::Machine;
use super::node::HeldBack;
use super::request::{Cargo, OutgoingKind, Want};
use super::task::TaskIndex;
use super::tree::DEVICE;
use super::write_out::Extent;
use crate::api::block::{BlockRun, DeviceId};
use crate::api::context::{Context, Effects};
use crate::api::frame::FrameFlags;
use crate::api::write_back::FileKey;

impl Machine {
    /// Carries out what a call asked for; the task goes on when nothing of it is waited for.
    pub(super) fn apply(&mut self, index: TaskIndex, cx: Context) {
        let Effects { mut reads, mut dirtied, cpu, push, pushes_all, wait, throttle, .. } =
            cx.effects;
        if cpu.0 > 0 {
            self.spend(index, cpu.0);
        }
        for run in reads.drain(..) {
            self.read_metadata(index, run);
        }
        for run in dirtied.drain(..) {
            self.dirty_metadata(run);
        }
        self.spare_runs = (reads, dirtied);
        for run in push {
            if let Some(owner) = self.tree.of_id(run.node) {
                let pages = self.blocks_per_page();
                let (from, end) = (run.first / pages, run.end().div_ceil(pages));
                let runner = self.task(index).runner;
                self.push_out(Extent { owner, from, end }, runner);
            }
        }
        if pushes_all {
            self.flusher.wake(self.now, true);
            self.drive_flusher();
        }
        let throttled = throttle.and_then(|hold| Some((self.tree.of_id(hold.node)?, hold)));
        if let Some((owner, hold)) = throttled {
            let since = self.now;
            let node = self.tree.node_mut(owner);
            if node.bytes_out > hold.above.0 {
                node.held_back.push(HeldBack { task: index, until: hold.until.0, since });
                self.task(index).pending += 1;
            }
        }
        if wait.is_some() {
            let task = self.task(index);
            task.wait_tid = task.wait_tid.max(wait);
        }
        self.poll_jobs();
    }

    /// Pages of the table of metadata that hold a run of blocks.
    pub(super) fn metadata_pages(&self, run: BlockRun) -> (u64, u64) {
        let block = u64::from(self.facts.block_bytes);
        let from = if run.device == DeviceId::MAIN { 0 } else { self.second_from };
        (from + run.first * block / 4096, from + (run.end() * block).div_ceil(4096))
    }

    /// Device of a page of the table of metadata, and its page there.
    pub(super) const fn metadata_place(&self, page: u64) -> (DeviceId, u64) {
        match page.checked_sub(self.second_from) {
            Some(within) => (DeviceId(1), within),
            None => (DeviceId::MAIN, page),
        }
    }

    /// Reads metadata that no cache holds; the task waits for them.
    fn read_metadata(&mut self, index: TaskIndex, run: BlockRun) {
        let (from, end) = self.metadata_pages(run);
        let mut page = from;
        while page < end {
            let Some(frame) = self.cache.frame(DEVICE, page) else {
                let first = page;
                while page < end && self.cache.frame(DEVICE, page).is_none() {
                    page += 1;
                }
                let want = Want {
                    is_meta: true,
                    ..Want::new(
                        OutgoingKind::Read,
                        run.device,
                        Sector(self.metadata_place(first).1 * 8),
                        (page - first) * 8,
                    )
                };
                let runner = self.task(index).runner;
                let id = self.send(want, Cargo::Read(DEVICE, first, page - first), runner);
                for index in first..page {
                    let frame = self.cache.add(DEVICE, index);
                    self.cache.frames[frame].content = u64::from(id.0);
                }
                self.await_request(index, id);
                continue;
            };
            if self.cache.frames[frame].flags.has(FrameFlags::UP_TO_DATE) {
                self.cache.used(frame);
            } else {
                self.await_page(index, DEVICE, page);
            }
            page += 1;
        }
    }

    /// Metadata changed outside a journal: dirty pages of the device.
    pub(super) fn dirty_metadata(&mut self, run: BlockRun) {
        let (from, end) = self.metadata_pages(run);
        for page in from..end {
            let known = self.cache.frame(DEVICE, page).map(|frame| self.cache.frames[frame].flags);
            if known.is_some_and(|flags| {
                flags.has(FrameFlags::DIRTY) && flags.has(FrameFlags::UP_TO_DATE)
            }) {
                continue;
            }
            let frame = self.cache.add(DEVICE, page);
            self.cache.frames[frame].flags.set(FrameFlags::UP_TO_DATE);
            self.cache.set_dirty(frame);
        }
        self.note_dirty(DEVICE);
    }

    /// A file has dirty pages: the flusher hears of it.
    pub(super) fn note_dirty(&mut self, owner: u32) {
        let node = self.tree.node_mut(owner);
        if !node.is_queued {
            node.is_queued = true;
            self.dirtied += 1;
            node.dirtied_at = self.dirtied;
            let key = FileKey { backing: super::engine::BACKING, node: node.id };
            if self.own_cache().is_none() {
                self.flusher.dirtied(self.now, key);
            }
        }
        self.counts.dirty_max = self.counts.dirty_max.max(self.cache.dirty);
    }

    /// A file has no dirty pages any more.
    pub(super) fn note_clean(&mut self, owner: u32) {
        let node = self.tree.node_mut(owner);
        if node.is_queued && self.cache.file(owner).dirty() == 0 {
            node.is_queued = false;
            let key = FileKey { backing: super::engine::BACKING, node: node.id };
            self.flusher.cleaned(key);
        }
    }
}
