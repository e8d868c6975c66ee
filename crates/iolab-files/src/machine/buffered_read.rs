//! Reads through the page cache.

use iolab_model::Bytes;
use iolab_model::error::Errno;

use super::engine::Machine;
use super::task::{Flow, RunBy, TaskIndex};
use crate::api::block::FileRun;
use crate::api::file_system::{Touch, Use};
use crate::api::frame::FrameFlags;
use crate::api::read_ahead::{CachedPages, NewFolio, ReadAhead, ReadState, ReadWindow};
use crate::readahead::reader::{Batch, FolioState, ReadCall, ReadPages};

/// A read, step by step.
#[derive(Debug)]
pub(super) struct ReadWork {
    pub owner: u32,
    pub lane: u32,
    pub handle: u32,
    /// Next byte.
    pub at: u64,
    /// Byte after the last one asked for.
    pub end: u64,
    /// Pages that are copied when they are here.
    batch: Option<Batch>,
    pub is_locked: bool,
    /// Unit that the file system's own read-ahead has looked at, and what it found.
    pub looked_at: Option<u64>,
    pub is_sequential: bool,
    /// Bytes copied so far.
    pub done: u64,
    /// Page that was asked for alone, since the read of several has failed.
    alone: Option<u64>,
    /// Handle of the stream whose buffer it fills.
    stream: Option<u32>,
}

impl ReadWork {
    pub const fn new(owner: u32, (lane, handle): (u32, u32), at: u64, end: u64) -> Self {
        Self {
            owner,
            lane,
            handle,
            at,
            end,
            batch: None,
            is_locked: false,
            looked_at: None,
            is_sequential: false,
            done: 0,
            alone: None,
            stream: None,
        }
    }

    /// Reads into the buffer of a stream.
    pub const fn of_stream(mut self, handle: u32) -> Self {
        self.stream = Some(handle);
        self
    }
}

/// The pages of a file while a task reads them.
struct PagesOfFile<'a> {
    machine: &'a mut Machine,
    owner: u32,
    runner: RunBy,
    used_from: u64,
    used_end: u64,
}

impl CachedPages for PagesOfFile<'_> {
    fn folio(&self, page: u64) -> Option<(u64, u8)> {
        self.machine.cache.view(self.owner).folio(page)
    }
}

impl ReadPages for PagesOfFile<'_> {
    #[inline]
    fn state(&self, page: u64) -> Option<FolioState> {
        let cache = &self.machine.cache;
        let frame = cache.frame(self.owner, page)?;
        let order = cache.frames[frame].order;
        let first = page >> order << order;
        let head = if order == 0 { frame } else { cache.frame(self.owner, first)? };
        let flags = cache.frames[head].flags;
        let own = cache.frames[frame].flags;
        Some(FolioState {
            first,
            order,
            is_marked: flags.has(FrameFlags::MARKER),
            is_up_to_date: own.has(FrameFlags::UP_TO_DATE),
            is_under_write_back: own.has(FrameFlags::WRITE_BACK),
        })
    }

    fn unmark(&mut self, first: u64) {
        if let Some(frame) = self.machine.cache.frame(self.owner, first) {
            self.machine.cache.frames[frame].flags.clear(FrameFlags::MARKER);
        }
    }

    fn submit(&mut self, window: ReadWindow) {
        let pages = self.machine.pages_of(self.owner);
        let mut new = Vec::new();
        let machine = &mut *self.machine;
        machine.rule.folios(window, pages, &machine.cache.view(self.owner), &mut new);
        self.machine.add_folios(self.owner, &new, (self.used_from, self.used_end), self.runner);
    }

    fn submit_alone(&mut self, page: u64) {
        let folio = NewFolio { first: page, order: 0, is_marked: false };
        let used = (self.used_from, self.used_end);
        self.machine.add_folios(self.owner, &[folio], used, self.runner);
    }

    fn view(&self) -> &dyn CachedPages {
        self
    }
}

impl Machine {
    /// Pages of a file, the last one perhaps in part.
    pub(super) fn pages_of(&self, owner: u32) -> u64 {
        self.tree.node(owner).size.div_ceil(4096)
    }

    /// Adds folios to the cache and starts to read them.
    pub(super) fn add_folios(
        &mut self,
        owner: u32,
        new: &[NewFolio],
        used: (u64, u64),
        runner: RunBy,
    ) {
        let is_ahead = used.0 == used.1;
        let mut run: Option<(u64, u64)> = None;
        for folio in new {
            let count = 1 << folio.order;
            for page in folio.first..folio.first + count {
                let frame = self.cache.add(owner, page);
                let state = &mut self.cache.frames[frame];
                state.order = folio.order;
                if (used.0..used.1).contains(&page) {
                    self.cache.counters.misses += 1;
                } else {
                    state.flags.set(FrameFlags::UNUSED);
                    self.cache.counters.read_ahead += 1;
                }
                if folio.is_marked && page == folio.first {
                    self.cache.frames[frame].flags.set(FrameFlags::MARKER);
                }
            }
            match &mut run {
                Some(run) if run.0 + run.1 == folio.first => run.1 += count,
                _ => {
                    if let Some(run) = run.replace((folio.first, count)) {
                        self.read_in(owner, run, runner, is_ahead);
                    }
                }
            }
        }
        if let Some(run) = run {
            self.read_in(owner, run, runner, is_ahead);
        }
    }

    pub(super) fn step_read(&mut self, index: TaskIndex, work: &mut ReadWork) -> Flow {
        if !work.is_locked {
            if let Err(errno) = self.may_read() {
                return Flow::Failed(errno);
            }
            work.is_locked = true;
            self.take_lock(index, work.owner, Use::Read);
            self.look_for_place(index, work);
            if self.task(index).pending > 0 {
                return Flow::More;
            }
        }
        if let Some(own) = self.own_cache() {
            return self.step_record_read(index, work, own);
        }
        if let Some(clusters) = self.facts.clusters {
            return self.step_clustered_read(index, work, clusters);
        }
        loop {
            if let Some(batch) = work.batch.take() {
                if let Some(flow) = self.read_again(index, work, batch) {
                    return flow;
                }
                self.copy_out(index, work, batch);
            }
            let end = work.end.min(self.tree.node(work.owner).size);
            if work.at >= end {
                return self.end_read(index, work);
            }
            let batch = self.next_batch(index, work);
            work.batch = Some(batch);
            if let Some(page) = batch.wait_for {
                // The last page of the folio is the last one to come.
                let last = batch.end.saturating_sub(1).max(page);
                self.await_page_end(index, work.owner, last, false);
                if self.task(index).pending > 0 {
                    return Flow::More;
                }
            }
        }
    }

    /// Lets the file system look for the place of what is read, if pages are absent.
    pub(super) fn look_for_place(&mut self, index: TaskIndex, work: &ReadWork) {
        let first = work.at / 4096;
        if self.cache.frame(work.owner, first).is_some() || work.at >= work.end {
            return;
        }
        let per_page = self.blocks_per_page();
        let pages = work.end.div_ceil(4096) - first;
        let id = self.tree.node(work.owner).id;
        let run = FileRun { node: id, first: first * per_page, count: pages * per_page };
        let mut cx = self.context(self.tasks[index as usize].runner);
        self.fs.map_cost(&mut cx, run);
        self.apply(index, cx);
    }

    fn next_batch(&mut self, index: TaskIndex, work: &ReadWork) -> Batch {
        let page = work.at / 4096;
        let runner = self.task(index).runner;
        let io_pages = self.settings.max_sectors_kb / 4;
        let (mut state, hint) = self.read_state(work.lane, work.handle);
        let call = ReadCall {
            end: work.end.div_ceil(4096),
            hint,
            io_pages,
            file_pages: self.pages_of(work.owner),
        };
        let rule = self.rule;
        let mut pages = PagesOfFile {
            machine: self,
            owner: work.owner,
            runner,
            used_from: page,
            used_end: call.end,
        };
        let batch = call.batch(&rule, &mut state, page, &mut pages);
        self.set_read_state(work.lane, work.handle, state);
        batch
    }

    /// Reads a page of a batch alone whose read has failed with others; if that fails too, so does
    /// the call, or it ends before that page.
    ///
    /// Source: Linux mm/filemap.c (`filemap_update_page`, `filemap_read`).
    fn read_again(&mut self, index: TaskIndex, work: &mut ReadWork, batch: Batch) -> Option<Flow> {
        let end = batch.end.min(self.pages_of(work.owner)).min(work.end.div_ceil(4096));
        let mut pages = work.at / 4096..if self.has_failed_reads { end } else { 0 };
        let page = pages.find(|&page| self.cache.frame(work.owner, page).is_none())?;
        if work.alone.replace(page) == Some(page) {
            if page * 4096 > work.at {
                self.copy_out(index, work, Batch { end: page, ..batch });
            }
            return Some(match work.done {
                0 => Flow::Failed(Errno::EIO),
                _ => self.end_read(index, work),
            });
        }
        let runner = self.task(index).runner;
        let folio = NewFolio { first: page, order: 0, is_marked: false };
        self.add_folios(work.owner, &[folio], (page, page + 1), runner);
        self.await_page_end(index, work.owner, page, false);
        work.batch = Some(batch);
        Some(Flow::More)
    }

    fn copy_out(&mut self, index: TaskIndex, work: &mut ReadWork, batch: Batch) {
        let size = self.tree.node(work.owner).size;
        let end = (batch.end * 4096).min(work.end).min(size);
        if end > work.at {
            self.copy_range(index, work, end);
        }
    }

    /// Copies from the cache up to a byte.
    pub(super) fn copy_range(&mut self, index: TaskIndex, work: &mut ReadWork, end: u64) {
        let (first, last) = (work.at / 4096, end.div_ceil(4096));
        for page in first..last {
            if let Some(frame) = self.cache.frame(work.owner, page) {
                self.cache.used(frame);
            }
        }
        self.cache.counters.used += last - first;
        let cost = self.settings.cost.copy(end - work.at, last - first);
        self.spend(index, cost);
        self.copied_out(index, work.owner, (work.at, end), work.stream);
        work.done += end - work.at;
        work.at = end;
    }

    pub(super) fn end_read(&mut self, index: TaskIndex, work: &ReadWork) -> Flow {
        let (mut state, _) = self.read_state(work.lane, work.handle);
        self.rule.ended(&mut state, work.at);
        self.set_read_state(work.lane, work.handle, state);
        let runner = self.task(index).runner;
        let mut cx = self.context(runner);
        let id = self.tree.node(work.owner).id;
        self.fs.touch(&mut cx, id, Touch::Read);
        self.apply(index, cx);
        self.task(index).bytes = Bytes(work.done);
        Flow::Done
    }

    fn read_state(&self, lane: u32, handle: u32) -> (ReadState, crate::api::read_ahead::Hint) {
        let handles = &self.lanes[lane as usize].handles;
        handles
            .get(handle as usize)
            .and_then(Option::as_ref)
            .map_or_else(Default::default, |info| (info.read, info.hint))
    }

    fn set_read_state(&mut self, lane: u32, handle: u32, state: ReadState) {
        let handles = &mut self.lanes[lane as usize].handles;
        if let Some(Some(info)) = handles.get_mut(handle as usize) {
            info.read = state;
        }
    }
}
