//! Mapped files: faults, and stores that make pages dirty.

use iolab_model::Bytes;
use iolab_model::error::Errno;

use super::engine::{BACKING, Machine};
use super::task::{Flow, TaskIndex};
use crate::api::frame::FrameFlags;
use crate::api::read_ahead::{Hint, NewFolio, ReadAccess, ReadAhead};
use crate::api::write_back::TaskId;

/// Copying from or to mapped memory, page by page.
#[derive(Debug)]
pub(super) struct TouchWork {
    owner: u32,
    lane: u32,
    at: u64,
    end: u64,
    start: u64,
    is_write: bool,
    hint: Hint,
    /// Asked the file system for space, for the page that is next.
    is_prepared: bool,
    looks: bool,
    /// Page that was asked for, and whether alone, since the read of several has failed.
    looked_for: Option<(u64, bool)>,
}

impl TouchWork {
    pub const fn new(owner: u32, lane: u32, (at, end): (u64, u64), is_write: bool) -> Self {
        Self {
            owner,
            lane,
            at,
            end,
            start: at,
            is_write,
            hint: Hint::Normal,
            is_prepared: false,
            looks: false,
            looked_for: None,
        }
    }

    pub const fn advised(mut self, hint: Hint) -> Self {
        self.hint = hint;
        self
    }
}

impl Machine {
    pub(super) fn step_touch(&mut self, index: TaskIndex, work: &mut TouchWork) -> Flow {
        loop {
            if work.looks && self.looks_at_limits(index, work.lane) {
                return Flow::More;
            }
            work.looks = false;
            if work.at >= work.end {
                self.task(index).bytes = Bytes(work.end - work.start);
                return Flow::Done;
            }
            let page = work.at / 4096;
            if page >= self.pages_of(work.owner) {
                // Cut off since it was mapped: SIGBUS, which ends the copy.
                return Flow::Failed(Errno::EIO);
            }
            let is_mapped = self.is_mapped(work, page);
            if let Some(flow) = (!is_mapped).then(|| self.fault(index, work, page)).flatten() {
                return flow;
            }
            let until = ((page + 1) * 4096).min(work.end);
            if let Some(frame) = self.cache.frame(work.owner, page) {
                self.cache.frames[frame].flags.set(FrameFlags::YOUNG);
                self.cache.frames[frame].flags.clear(FrameFlags::UNUSED);
            }
            let cost = (until - work.at) * self.settings.cost.copy_ns_per_kib / 1024;
            self.spend(index, cost);
            if work.is_write {
                self.copied_in(index, work.owner, (work.at, until), None);
            } else {
                self.copied_out(index, work.owner, (work.at, until), None);
            }
            work.at = until;
            work.is_prepared = false;
        }
    }

    /// Tell whether the page can be used without a fault.
    fn is_mapped(&self, work: &TouchWork, page: u64) -> bool {
        let needed = if work.is_write { FrameFlags::WRITABLE } else { FrameFlags::MAPPED };
        let frame = self.cache.frame(work.owner, page);
        frame.is_some_and(|frame| self.cache.frames[frame].flags.has(needed))
    }

    /// A fault; answers with a flow if the task has to wait or has failed.
    fn fault(&mut self, index: TaskIndex, work: &mut TouchWork, page: u64) -> Option<Flow> {
        if !self.is_page_here(work, page) {
            if let Err(errno) = self.may_read() {
                return Some(Flow::Failed(errno));
            }
            let before = work.looked_for.filter(|&(of, _)| self.has_failed_reads && of == page);
            if let Some((_, true)) = before {
                return Some(Flow::Failed(Errno::EIO));
            }
            work.looked_for = Some((page, before.is_some()));
            self.fault_in(index, work, page);
            let is_linux = self.facts.clusters.is_none() && self.own_cache().is_none();
            self.await_page_end(index, work.owner, page, !is_linux);
            if self.task(index).pending > 0 {
                return Some(Flow::More);
            }
        }
        if work.is_write && !work.is_prepared {
            work.is_prepared = true;
            let size = self.tree.node(work.owner).size;
            let range = (page * 4096, ((page + 1) * 4096).min(size));
            if let Err(errno) = self.prepare(index, work.owner, range, false) {
                // SIGBUS, where the file system cannot be written any more.
                let errno = if self.stop.is_some() { Errno::EIO } else { errno };
                return Some(Flow::Failed(errno));
            }
            if self.task(index).pending > 0 {
                return Some(Flow::More);
            }
        }
        let cost = self.settings.cost;
        self.spend(index, cost.page_ns);
        self.counts.faults_minor += 1;
        if work.is_write {
            // What was read with it has pushed it out of memory: the fault comes again.
            let Some(frame) = self.cache.frame(work.owner, page) else { return Some(Flow::More) };
            let flags = &mut self.cache.frames[frame].flags;
            flags.set(FrameFlags::WRITABLE);
            flags.set(FrameFlags::MAPPED);
            // Before anything is read ahead: a dirty page does not leave memory for it.
            let is_new = self.cache.set_dirty(frame);
            if is_new {
                self.dirty_units(work.owner, (page, page + 1));
                self.note_dirty(work.owner);
                work.looks = self.throttle.dirtied(self.now, TaskId(work.lane), BACKING, 1);
            }
        }
        self.map_page(index, work, page);
        None
    }

    fn is_page_here(&self, work: &TouchWork, page: u64) -> bool {
        let unit = self.unit_pages();
        // What is stored into is written with its whole unit.
        let is_whole = !work.is_write || !self.lacks_page(work.owner, page / unit * unit);
        let frame = self.cache.frame(work.owner, page);
        let is_here = |frame| self.cache.frames[frame].flags.has(FrameFlags::UP_TO_DATE);
        is_whole && frame.is_some_and(is_here)
    }

    fn access_of(&self, work: &TouchWork, page: u64) -> ReadAccess {
        ReadAccess {
            page,
            request: 1,
            hint: work.hint,
            io_pages: self.settings.max_sectors_kb / 4,
            file_pages: self.pages_of(work.owner),
        }
    }

    /// Reads an absent page and what the rule reads with it.
    fn fault_in(&mut self, index: TaskIndex, work: &TouchWork, page: u64) {
        let (unit, runner) = (self.unit_pages(), self.task(index).runner);
        if self.cache.frame(work.owner, page).is_some() {
            let first = page / unit * unit;
            if work.is_write && self.lacks_page(work.owner, first) {
                let range = (first * 4096, (first + unit) * 4096);
                self.read_range(work.owner, range, (page, page + 1), runner);
            }
            return;
        }
        let is_alone = work.looked_for == Some((page, true));
        self.counts.faults_major += u64::from(!is_alone);
        if self.own_cache().is_some() {
            return self.read_record(work.owner, page, (page, page + 1), runner);
        }
        if let Some(clusters) = self.facts.clusters {
            self.clustered_fault(work.owner, page, work.hint, (clusters, runner));
            let first = page / unit * unit;
            if self.lacks_page(work.owner, first) {
                let range = (first * 4096, (first + unit) * 4096);
                self.read_range(work.owner, range, (page, page + 1), runner);
            }
            return;
        }
        if is_alone {
            let alone = NewFolio { first: page, order: 0, is_marked: false };
            return self.add_folios(work.owner, &[alone], (page, page + 1), runner);
        }
        let access = self.access_of(work, page);
        let mut state = self.tree.node(work.owner).mapped;
        let rule = self.rule;
        let window = rule.fault_miss(&mut state, access, &self.cache.view(work.owner));
        self.tree.node_mut(work.owner).mapped = state;
        let mut new = Vec::new();
        if let Some(window) = window {
            rule.folios(window, access.file_pages, &self.cache.view(work.owner), &mut new);
        }
        self.add_folios(work.owner, &new, (page, page + 1), runner);
        if self.cache.frame(work.owner, page).is_none() {
            let alone = NewFolio { first: page, order: 0, is_marked: false };
            self.add_folios(work.owner, &[alone], (page, page + 1), runner);
        }
    }

    /// Maps a present page, and at read faults those around it that carry no marker.
    ///
    /// Source: Linux mm/filemap.c, `next_uptodate_folio` (`filemap_map_pages` since 3.15): a marker
    /// must fault, or nobody would read ahead. A page that is mapped so is no fault of its own.
    fn map_page(&mut self, index: TaskIndex, work: &TouchWork, page: u64) {
        let is_single = work.is_write || self.facts.clusters.is_some();
        let around = if is_single { 0 } else { self.rule.fault_around_pages() };
        let (from, end) = match around {
            0 => (page, page + 1),
            pages => (page / pages * pages, (page / pages + 1) * pages),
        };
        let mut mapped = 0;
        for other in from..end.min(self.pages_of(work.owner)) {
            let Some(frame) = self.cache.frame(work.owner, other) else { continue };
            let flags = &mut self.cache.frames[frame].flags;
            if other != page && flags.has(FrameFlags::MARKER) {
                continue;
            }
            if flags.has(FrameFlags::UP_TO_DATE) && !flags.has(FrameFlags::MAPPED) {
                flags.set(FrameFlags::MAPPED);
                mapped += 1;
            }
        }
        if self.facts.clusters.is_some() {
            return;
        }
        let marked = self
            .cache
            .frame(work.owner, page)
            .filter(|&frame| self.cache.frames[frame].flags.has(FrameFlags::MARKER));
        if let Some(frame) = marked {
            self.cache.frames[frame].flags.clear(FrameFlags::MARKER);
        }
        let rule = self.rule;
        let access = self.access_of(work, page);
        let mut state = self.tree.node(work.owner).mapped;
        if around > 0 {
            rule.mapped_around(&mut state, mapped);
        }
        let is_fault = around == 0 || marked.is_some();
        let marked = marked.map(|_| page);
        let window = is_fault
            .then(|| rule.fault_hit(&mut state, access, marked, &self.cache.view(work.owner)))
            .flatten();
        self.tree.node_mut(work.owner).mapped = state;
        if let Some(window) = window {
            let mut new = Vec::new();
            rule.folios(window, access.file_pages, &self.cache.view(work.owner), &mut new);
            let runner = self.task(index).runner;
            self.add_folios(work.owner, &new, (0, 0), runner);
        }
    }
}
