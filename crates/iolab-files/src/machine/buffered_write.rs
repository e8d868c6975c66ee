//! Writes through the page cache.

use iolab_model::error::Errno;
use iolab_model::{Bytes, Ns};

use super::engine::{BACKING, Machine};
use super::flush::{FlushWork, Scope};
use super::task::{Flow, RunBy, TaskIndex, Work};
use super::write_out::Extent;
use crate::api::block::{FileRun, Place};
use crate::api::file_system::{Promise, Touch, Use, Write};
use crate::api::frame::{FrameFlags, largest_order};
use crate::api::make::Kernel;
use crate::api::write_back::{Pause, TaskId};

/// Pages that a writer dirties before the limits are looked at: the kernel looks after each, which
/// makes no difference below its least threshold of 32 pages. (mm/page-writeback.c: 128 KiB.)
const PAGES_PER_LOOK: u64 = 32;

/// A write, step by step.
#[derive(Debug)]
pub(super) struct WriteWork {
    pub(super) owner: u32,
    lane: u32,
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) start: u64,
    /// Promise to be kept before it returns (`O_SYNC`, `O_DSYNC`, `RWF_SYNC`).
    promise: Option<Promise>,
    /// Lane and handle that it came by.
    by: Option<(u32, u32)>,
    pub(super) phase: Phase,
    /// The limits are to be looked at.
    looks: bool,
    /// Slept before it got room in a transaction.
    pub(super) has_slept: bool,
    is_at_end: bool,
    /// Page after the folio that is being filled, and its order.
    folio: (u64, u8),
    /// First and last unit hold data around the write, from before it got blocks of its own.
    holds: [bool; 2],
    /// Handle of the stream whose buffer it empties.
    stream: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Lock,
    Tail,
    Prepare,
    Fill,
    Admit,
    Dirty,
    End,
}

impl WriteWork {
    pub const fn new(owner: u32, lane: u32, at: u64, end: u64) -> Self {
        Self {
            owner,
            lane,
            at,
            end,
            start: at,
            promise: None,
            by: None,
            phase: Phase::Lock,
            looks: false,
            has_slept: false,
            is_at_end: false,
            folio: (0, 0),
            holds: [false; 2],
            stream: None,
        }
    }

    /// Writes what the buffer of a stream holds.
    pub const fn of_stream(mut self, handle: u32) -> Self {
        self.stream = Some(handle);
        self
    }

    pub const fn promising(mut self, promise: Option<Promise>, by: (u32, u32)) -> Self {
        (self.promise, self.by) = (promise, Some(by));
        self
    }

    /// Begins at the end of the file, wherever that is once the lock is there.
    pub const fn appending(mut self, is_at_end: bool) -> Self {
        self.is_at_end = is_at_end;
        self
    }
}

impl Machine {
    pub(super) fn step_write(&mut self, index: TaskIndex, work: &mut WriteWork) -> Flow {
        if self.own_cache().is_some() {
            return self.step_record_write(index, work);
        }
        if work.looks && self.looks_at_limits(index, work.lane) {
            return Flow::More;
        }
        work.looks = false;
        match work.phase {
            Phase::Lock => {
                self.take_lock(index, work.owner, Use::Write);
                work.phase = Phase::Tail;
            }
            Phase::Tail => {
                self.find_end(work);
                self.read_tail(index, work.owner, (work.at, work.end));
                if self.moves_blocks() {
                    work.holds = self.edges_with_data(work);
                    self.fill_edges(index, work);
                }
                work.phase = Phase::Prepare;
            }
            Phase::Prepare => {
                if self.moves_blocks() && self.has_lost_edge(work, work.end) {
                    work.phase = Phase::Tail;
                    return Flow::More;
                }
                let range = (work.at, work.end);
                self.dirty_tail(index, work.owner, range);
                work.holds = self.edges_with_data(work);
                self.hold_edges(work);
                let fresh = self.fresh_edges(work.owner, range);
                if let Err(errno) = self.prepare(index, work.owner, range, false) {
                    return Flow::Failed(errno);
                }
                self.clear_fresh(work.owner, range, fresh);
                work.phase = Phase::Fill;
            }
            Phase::Fill => {
                self.fill_edges(index, work);
                work.phase = Phase::Dirty;
            }
            Phase::Admit => work.phase = Phase::Dirty,
            Phase::Dirty => {
                let end = ((work.at / 4096 + PAGES_PER_LOOK) * 4096).min(work.end);
                if self.has_lost_edge(work, end) {
                    work.phase = Phase::Fill;
                    return Flow::More;
                }
                let pages = self.dirty_some(index, work, end);
                let task = TaskId(work.lane);
                work.looks = self.throttle.dirtied(self.now, task, BACKING, pages);
                if work.at >= work.end {
                    work.phase = Phase::End;
                }
                if work.looks && self.catch_up(index) {
                    return Flow::More;
                }
            }
            Phase::End => return self.end_write(index, work),
        }
        Flow::More
    }

    /// A write that appends begins where the file ends now.
    pub(super) fn find_end(&self, work: &mut WriteWork) {
        if work.is_at_end {
            let size = self.tree.node(work.owner).size;
            let length = work.end - work.at;
            (work.at, work.start, work.end) = (size, size, size + length);
        }
    }

    /// Asks the file system for the space of a write.
    pub(super) fn prepare(
        &mut self,
        index: TaskIndex,
        owner: u32,
        (at, end): (u64, u64),
        is_direct: bool,
    ) -> Result<(), Errno> {
        self.may_change()?;
        self.check_end(end)?;
        let block = u64::from(self.facts.block_bytes);
        let node = self.tree.node(owner);
        // Whole units are written, and so they need a place, up to the end of the file.
        let unit = if self.facts.clusters.is_some() && !is_direct { self.whole_bytes() } else { 1 };
        let (from, until) = (at / unit * unit, end.next_multiple_of(unit).min(node.size.max(end)));
        let first = from / block;
        let run = FileRun { node: node.id, first, count: until.div_ceil(block) - first };
        let (size, start, end) = (Bytes(node.size), Bytes(from), Bytes(until));
        let write = Write { run, size, start, end, is_direct };
        let mut cx = self.context(self.tasks[index as usize].runner);
        let result = self.fs.prepare(&mut cx, write);
        self.apply(index, cx);
        result
    }

    /// Reads the pages that a write covers in part, if they hold something.
    fn fill_edges(&mut self, index: TaskIndex, work: &WriteWork) {
        let size = self.tree.node(work.owner).size;
        let pages = self.unit_pages();
        let unit = pages * 4096;
        let (first, last) = (work.at / unit, (work.end - 1) / unit);
        for (number, holds) in [first, last].into_iter().zip(work.holds) {
            let (from, until) = (number * unit, (number + 1) * unit);
            if covers(work, (from, until), size) {
                continue;
            }
            let page = number * pages;
            if self.lacks_page(work.owner, page) {
                if !holds {
                    continue;
                }
                let runner = self.task(index).runner;
                self.read_range(work.owner, (from, until), (page, page + pages), runner);
            }
            for page in page..page + pages {
                self.await_page(index, work.owner, page);
            }
            if first == last {
                break;
            }
        }
    }

    /// Edges that hold data stay in memory, if their blocks may be moved: they are written again.
    fn hold_edges(&mut self, work: &WriteWork) {
        let pages = self.unit_pages();
        let edges = [work.at / (pages * 4096), (work.end - 1) / (pages * 4096)];
        let moves = self.moves_blocks();
        let mut new = 0;
        for (number, _) in edges.into_iter().zip(work.holds).filter(|(_, holds)| moves && *holds) {
            for page in number * pages..(number + 1) * pages {
                if let Some(frame) = self.cache.frame(work.owner, page) {
                    new += u64::from(self.cache.set_dirty(frame));
                }
            }
        }
        if new > 0 {
            self.note_dirty(work.owner);
        }
    }

    /// Tell whether a write gives blocks new places that hold data already.
    pub(super) fn moves_blocks(&self) -> bool {
        self.facts.clusters.is_some_and(|clusters| clusters.moves_tails)
    }

    /// Tell whether a unit that was read because it is written in part, and is about to be, has
    /// left memory while the writer slept.
    fn has_lost_edge(&self, work: &WriteWork, end: u64) -> bool {
        let pages = self.unit_pages();
        let unit = pages * 4096;
        let edges = [work.start / unit, (work.end - 1) / unit];
        edges.into_iter().zip(work.holds).any(|(number, holds)| {
            let is_next = number * unit < end && (number + 1) * unit > work.at;
            holds && is_next && self.lacks_page(work.owner, number * pages)
        })
    }

    /// Tell whether a page of a unit of a file is not cached.
    pub(super) fn lacks_page(&self, owner: u32, first: u64) -> bool {
        let end = (first + self.unit_pages()).min(self.pages_of(owner));
        (first..end.max(first + 1)).any(|page| self.cache.frame(owner, page).is_none())
    }

    /// Tell whether the first and the last unit of a write hold data that it does not replace.
    fn edges_with_data(&self, work: &WriteWork) -> [bool; 2] {
        let size = self.tree.node(work.owner).size;
        let pages = self.unit_pages();
        let unit = pages * 4096;
        [work.at / unit, (work.end - 1) / unit].map(|number| {
            let range = (number * unit, (number + 1) * unit);
            let page = number * pages;
            // Data that have no place yet may get one, and leave memory, before they are looked at.
            let are_waiting = (page..page + pages).any(|page| {
                self.cache.frame(work.owner, page).is_some_and(|frame| {
                    let flags = self.cache.frames[frame].flags;
                    flags.has(FrameFlags::DIRTY) || flags.has(FrameFlags::WRITE_BACK)
                })
            });
            !covers(work, range, size) && (are_waiting || self.holds_data(work, page, size))
        })
    }

    /// Tell whether blocks of a unit that a write does not cover whole hold data. Larger units than
    /// a page are read whole; of a page only the blocks that the write touches count.
    fn holds_data(&self, work: &WriteWork, page: u64, size: u64) -> bool {
        let block = u64::from(self.facts.block_bytes);
        let (per_page, pages) = (self.blocks_per_page(), self.unit_pages());
        let node = self.tree.node(work.owner).id;
        (page * per_page..(page + pages) * per_page).any(|number| {
            let (from, until) = (number * block, (number + 1) * block);
            let is_touched = pages > 1 || work.at < until && work.end > from;
            let is_whole = work.at <= from && work.end >= until.min(size.max(work.end));
            let run = FileRun { node, first: number, count: 1 };
            is_touched && !is_whole && matches!(self.fs.map(run).place, Place::Written(..))
        })
    }

    /// Page after the folio that a write makes at a page, and its order; 0 of one that is there. No
    /// page of a new one may be there.
    fn new_folio(&self, work: &WriteWork, page: u64) -> (u64, u8) {
        let left = (work.end - (page * 4096).max(work.at)) / 4096;
        let is_there = |page| self.cache.frame(work.owner, page);
        if !self.facts.writes_large_folios || is_there(page).is_some() {
            return (page + 1, 0);
        }
        let mut order = largest_order(page, left);
        while (page..page + (1 << order)).any(|page| is_there(page).is_some()) {
            order -= 1;
        }
        // Folios of two pages are made since 6.9.
        if order == 1 && self.settings.kernel < Kernel::new(6, 9) {
            order = 0;
        }
        (page + (1 << order), order as u8)
    }

    /// Copies into some pages and makes them dirty; answers how many became so.
    pub(super) fn dirty_some(&mut self, index: TaskIndex, work: &mut WriteWork, end: u64) -> u64 {
        let first = work.at / 4096;
        let last = end.div_ceil(4096);
        let mut new = 0;
        for page in first..last {
            if page >= work.folio.0 {
                work.folio = self.new_folio(work, page);
            }
            let is_new = self.keeps_data() && self.cache.frame(work.owner, page).is_none();
            let frame = self.cache.add(work.owner, page);
            if is_new {
                self.begin_page(work.owner, page, (work.start, work.end), work.holds);
            }
            if work.folio.1 > 0 {
                self.cache.frames[frame].order = work.folio.1;
            }
            self.cache.frames[frame].flags.set(FrameFlags::UP_TO_DATE);
            self.cache.used(frame);
            new += u64::from(self.cache.set_dirty(frame));
        }
        let cost = self.settings.cost.copy(end - work.at, last - first);
        self.spend(index, cost);
        self.copied_in(index, work.owner, (work.at, end), work.stream);
        let start = core::mem::replace(&mut work.at, end);
        let node = self.tree.node_mut(work.owner);
        node.size = node.size.max(end);
        let id = node.id;
        if self.facts.clusters.is_some() || self.own_cache().is_some() {
            new += self.dirty_units(work.owner, (first, last));
        }
        if new > 0 {
            self.note_dirty(work.owner);
        }
        if self.facts.clusters.is_some() {
            let mut cx = self.context(self.tasks[index as usize].runner);
            self.fs.copied(&mut cx, id, Bytes(start), Bytes(end));
            self.apply(index, cx);
        }
        if self.cache.wants_flusher {
            self.drive_flusher();
        }
        new
    }

    /// Looks at the limits; tells whether the task waits.
    pub(super) fn looks_at_limits(&mut self, index: TaskIndex, lane: u32) -> bool {
        let view = self.dirty_view();
        if self.throttle.wants_background(&view) {
            self.flusher.wake(self.now, false);
            self.drive_flusher();
        }
        match self.throttle.look(self.now, TaskId(lane), BACKING, &view) {
            Pause::Go => false,
            Pause::Sleep(duration) => {
                self.counts.throttled += duration;
                let at = self.now + duration.max(Ns(1));
                self.wait_until(index, at);
                true
            }
            Pause::Write(pages) => {
                self.write_for_others(index, pages);
                self.task(index).pending > 0
            }
        }
    }

    /// A writer above the limits writes pages itself (kernels up to 3.1).
    fn write_for_others(&mut self, index: TaskIndex, pages: u64) {
        let runner = self.task(index).runner;
        let mut left = pages;
        let owners: Vec<u32> = self.tree.indices().collect();
        for owner in owners {
            if left == 0 || self.cache.file(owner).dirty() == 0 {
                continue;
            }
            let manner = super::write_out::Manner {
                runner,
                is_sync: false,
                is_background: false,
                pages_max: left,
                is_limited: false,
            };
            let sent = self.write_out(Extent { owner, from: 0, end: u64::MAX }, manner);
            left -= sent.pages.min(left);
            self.await_writes(index, owner);
        }
        if left == pages {
            // Nothing to write: the queue is full of it. 100 ms, as `congestion_wait`.
            let at = self.now + Ns::from_ms(100);
            self.wait_until(index, at);
        }
    }

    pub(super) fn end_write(&mut self, index: TaskIndex, work: &WriteWork) -> Flow {
        let runner = self.task(index).runner;
        let id = self.tree.node(work.owner).id;
        let mut cx = self.context(runner);
        self.fs.touch(&mut cx, id, Touch::Written);
        self.apply(index, cx);
        self.task(index).bytes = Bytes(work.end - work.start);
        if let Some(promise) = work.promise {
            let (from, end) = (work.start / 4096, work.end.div_ceil(4096));
            let extent = Extent { owner: work.owner, from, end };
            let scope = Scope::Pages(extent, promise);
            let flush = FlushWork::new(scope).by(work.by);
            let works = &mut self.task(index).works;
            works.push(Work::Flush(flush));
            works.push(Work::Unlock(work.owner));
        }
        debug_assert!(matches!(runner, RunBy::Lane(_)), "kernel threads write no files");
        Flow::Done
    }
}

/// Tell whether nothing of a range of a file is left of what was there before a write.
fn covers(work: &WriteWork, (from, until): (u64, u64), size: u64) -> bool {
    from >= size || work.at <= from && work.end >= until.min(size.max(work.end))
}
