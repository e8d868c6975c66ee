//! Reads and writes of file systems with a cache of their own: whole records travel, and writers
//! are let into transactions.

use iolab_model::op::Access;
use iolab_model::{Bytes, Ns};

use super::buffered_read::ReadWork;
use super::buffered_write::{Phase, WriteWork};
use super::engine::Machine;
use super::task::{Flow, RunBy, TaskIndex};
use crate::api::block::{FileRun, Mapped, Place};
use crate::api::file_system::{CacheKind, Use};
use crate::api::own_cache::{Admission, DirectIo, OwnCache};
use crate::api::read_ahead::NewFolio;

/// Bytes of a read that are asked for at once (`zfs_read_chunk_size`, 1 MiB).
const READ_CHUNK: u64 = 1 << 20;

impl Machine {
    /// The file system's own cache, if it has one.
    #[inline]
    pub(super) const fn own_cache(&self) -> Option<OwnCache> {
        match self.facts.cache {
            CacheKind::Own(own) => Some(own),
            CacheKind::Pages | CacheKind::Bypass => None,
        }
    }

    /// Most blocks of a file in one request: as many as the queue takes, or a record.
    pub(super) fn request_blocks(&self) -> u64 {
        let per_page = self.blocks_per_page();
        if self.own_cache().is_some() {
            return self.unit_pages() * per_page;
        }
        let sectors = u64::from(self.facts.block_bytes) / 512;
        (self.max_sectors() / 8 * 8 / sectors).max(per_page)
    }

    /// Tell whether files can be opened so.
    pub(super) fn takes_access(&self, access: Access) -> bool {
        let own = self.own_cache();
        access != Access::Direct || own.is_none_or(|own| own.direct != DirectIo::Refused)
    }

    /// Way that a transfer goes.
    pub(super) fn way_of(
        &self,
        owner: u32,
        (at, end): (u64, u64),
        access: Access,
        is_write: bool,
    ) -> Access {
        if access == Access::Direct && self.facts.buffers_direct {
            return Access::Plain;
        }
        let Some(own) = self.own_cache().filter(|_| access == Access::Direct) else {
            return access;
        };
        let unit = self.unit_pages();
        let pages = (at / 4096 / unit * unit, end.div_ceil(4096).next_multiple_of(unit));
        let is_dirty = self.cache.file(owner).next_dirty(pages.0, pages.1).is_some();
        let is_past = own.direct == DirectIo::Reads && !is_write && !is_dirty;
        if is_past { Access::Direct } else { Access::Plain }
    }

    /// Tell whether a transfer can go past the cache. Where the file system decides itself what
    /// does, no transfer of a mapped file, and no write of blocks that it has not yet, unless
    /// direct I/O gives them.
    pub(super) fn can_go_past(
        &self,
        owner: u32,
        (at, end): (u64, u64),
        is_write: bool,
        is_appending: bool,
    ) -> bool {
        let Some(clusters) = self.facts.clusters else { return true };
        if self.tree.node(owner).mappings > 0 {
            return false;
        }
        if !is_write || clusters.bypass.extends {
            return true;
        }
        let block = u64::from(self.facts.block_bytes);
        let (node, last) = (self.tree.node(owner), end.div_ceil(block));
        let mut first = at / block;
        while first < last {
            let run = FileRun { node: node.id, first, count: last - first };
            let Mapped { place, count } = self.fs.map(run);
            if !matches!(place, Place::Written(..)) {
                return false;
            }
            first += count.max(1);
        }
        end <= node.size && !is_appending
    }

    // --- Reads ---

    pub(super) fn step_record_read(
        &mut self,
        index: TaskIndex,
        work: &mut ReadWork,
        own: OwnCache,
    ) -> Flow {
        let unit = self.unit_pages() * 4096;
        loop {
            let end = work.end.min(self.tree.node(work.owner).size);
            if work.at >= end {
                return self.end_read(index, work);
            }
            if work.looked_at.is_none_or(|until| work.at >= until) {
                let until = (work.at + READ_CHUNK).min(end);
                self.look_at_records(index, work, until, own);
                work.looked_at = Some(until);
            }
            let until = ((work.at / unit + 1) * unit).min(end);
            let pages = (work.at / 4096, until.div_ceil(4096));
            for page in pages.0..pages.1 {
                self.await_page(index, work.owner, page);
            }
            if self.task(index).pending > 0 {
                return Flow::More;
            }
            self.copy_range(index, work, until);
            if !own.keeps_data {
                let first = pages.0 * 4096 / unit * unit / 4096;
                self.cache.give_up(work.owner, first, first + self.unit_pages());
            }
        }
    }

    /// Starts to read the records that a call uses, and those that will be used next.
    fn look_at_records(&mut self, index: TaskIndex, work: &ReadWork, until: u64, own: OwnCache) {
        let runner = self.task(index).runner;
        let pages = self.unit_pages();
        let unit = pages * 4096;
        let (first, end) = (work.at / unit, until.div_ceil(unit));
        let used = (work.at / 4096, until.div_ceil(4096));
        for record in first..end {
            self.read_record(work.owner, record * pages, used, runner);
        }
        let Some(rules) = own.fetch.filter(|rules| work.end - work.at < rules.request_bytes) else {
            return;
        };
        let now = self.now;
        let node = self.tree.node_mut(work.owner);
        let records = node.size.div_ceil(unit);
        if let Some((from, to)) = node.fetch.access(now, (first, end), records, &rules) {
            for record in from..to {
                self.read_record(work.owner, record * pages, (0, 0), runner);
            }
        }
    }

    /// Reads the absent pages of the record that holds a page.
    pub(super) fn read_record(&mut self, owner: u32, page: u64, used: (u64, u64), runner: RunBy) {
        let unit = self.unit_pages();
        let first = page / unit * unit;
        let end = (first + unit).min(self.pages_of(owner));
        let new: Vec<NewFolio> = (first..end)
            .filter(|&page| self.cache.frame(owner, page).is_none())
            .map(|first| NewFolio { first, order: 0, is_marked: false })
            .collect();
        if new.is_empty() {
            return;
        }
        let used = if used.0 == used.1 { used } else { (used.0, used.1.max(first + 1)) };
        self.add_folios(owner, &new, used, runner);
        self.join_pages(owner, (first, end));
    }

    /// The pages of a record leave the cache together.
    pub(super) fn join_pages(&mut self, owner: u32, (from, end): (u64, u64)) {
        let order = self.unit_pages().trailing_zeros() as u8;
        for page in from..end {
            if let Some(frame) = self.cache.frame(owner, page) {
                self.cache.frames[frame].order = order;
            }
        }
    }

    // --- Writes ---

    pub(super) fn step_record_write(&mut self, index: TaskIndex, work: &mut WriteWork) -> Flow {
        let unit = self.unit_pages() * 4096;
        let end = ((work.at / unit + 1) * unit).min(work.end);
        match work.phase {
            Phase::Lock => {
                self.take_lock(index, work.owner, Use::Write);
                work.phase = Phase::Prepare;
            }
            Phase::Tail | Phase::Prepare => {
                self.find_end(work);
                work.phase = Phase::Fill;
            }
            Phase::Fill => {
                self.fill_record(index, work.owner, (work.at, end));
                work.phase = Phase::Admit;
                if work.at > work.start && self.catch_up(index) {
                    return Flow::More;
                }
            }
            Phase::Admit => {
                if let Err(errno) = self.may_change() {
                    return Flow::Failed(errno);
                }
                self.ask_for_room(index, work, Bytes(end - work.at));
            }
            Phase::Dirty => {
                // It may have left memory while the writer slept.
                self.fill_record(index, work.owner, (work.at, end));
                if self.task(index).pending > 0 {
                    return Flow::More;
                }
                if let Err(errno) = self.prepare(index, work.owner, (work.at, end), false) {
                    return Flow::Failed(errno);
                }
                self.dirty_some(index, work, end);
                work.has_slept = false;
                work.phase = if work.at >= work.end { Phase::End } else { Phase::Fill };
            }
            Phase::End => return self.end_write(index, work),
        }
        Flow::More
    }

    /// Reads the record that a write covers in part, if it holds something.
    fn fill_record(&mut self, index: TaskIndex, owner: u32, (at, end): (u64, u64)) {
        let size = self.tree.node(owner).size;
        let pages = self.unit_pages();
        let unit = pages * 4096;
        let first = at / unit * pages;
        let from = first * 4096;
        if from >= size || at <= from && end >= (from + unit).min(size) {
            return;
        }
        let per_page = self.blocks_per_page();
        let last = (first + pages).min(size.div_ceil(4096));
        let node = self.tree.node(owner).id;
        let (mut block, blocks) = (first * per_page, last * per_page);
        let mut holds = false;
        while block < blocks && !holds {
            let found = self.fs.map(FileRun { node, first: block, count: blocks - block });
            holds = matches!(found.place, Place::Written(..));
            block += found.count.max(1);
        }
        if holds {
            let runner = self.task(index).runner;
            let used = (at / 4096, end.div_ceil(4096));
            self.read_record(owner, first, used, runner);
        }
        for page in first..last {
            self.await_page(index, owner, page);
        }
    }

    fn ask_for_room(&mut self, index: TaskIndex, work: &mut WriteWork, bytes: Bytes) {
        let mut answer = self.fs.admit(self.now, bytes, work.has_slept);
        if answer == Admission::Wait {
            // The next transaction may open at once.
            self.poll_jobs();
            answer = self.fs.admit(self.now, bytes, work.has_slept);
        }
        match answer {
            Admission::Go => work.phase = Phase::Dirty,
            Admission::Sleep(duration) => {
                work.has_slept = true;
                self.counts.throttled += duration;
                let at = self.now + duration.max(Ns(1));
                self.wait_until(index, at);
            }
            Admission::Wait => {
                self.admissions.push((index, self.now));
                self.task(index).pending += 1;
            }
        }
    }

    /// Writers that wait for room ask again.
    pub(super) fn ask_for_room_again(&mut self) {
        for (index, since) in core::mem::take(&mut self.admissions) {
            self.counts.throttled += self.now - since;
            self.wake(index, 0);
        }
    }
}
