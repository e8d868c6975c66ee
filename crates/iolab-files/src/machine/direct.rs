//! Direct reads and writes, past the page cache.

use iolab_model::{Bytes, Sector};

use super::engine::Machine;
use super::flush::FlushWork;
use super::request::{Cargo, OutgoingKind, Want};
use super::task::{Flow, RunBy, TaskIndex, Work};
use super::write_out::{Extent, Manner};
use crate::api::block::{BlockRun, FileRun, Mapped, Place};
use crate::api::file_system::{Promise, Touch, Use};

/// A direct transfer, step by step.
#[derive(Debug)]
pub(super) struct DirectWork {
    owner: u32,
    at: u64,
    end: u64,
    is_write: bool,
    is_at_end: bool,
    promise: Option<Promise>,
    /// Lane and handle that it came by.
    by: Option<(u32, u32)>,
    phase: u8,
    /// First and last block, where it covers a part of them only, held no data before.
    fresh: [bool; 2],
    /// Length of the file before it, if it becomes longer.
    before: Option<u64>,
}

impl DirectWork {
    pub const fn new(owner: u32, (at, end): (u64, u64), is_write: bool) -> Self {
        Self {
            owner,
            at,
            end,
            is_write,
            is_at_end: false,
            promise: None,
            by: None,
            phase: 0,
            fresh: [false; 2],
            before: None,
        }
    }

    pub const fn promising(mut self, promise: Option<Promise>, by: (u32, u32)) -> Self {
        (self.promise, self.by) = (promise, Some(by));
        self
    }

    pub const fn appending(mut self, is_at_end: bool) -> Self {
        self.is_at_end = is_at_end;
        self
    }

    const fn pages(&self) -> Extent {
        Extent { owner: self.owner, from: self.at / 4096, end: self.end.div_ceil(4096) }
    }
}

impl Machine {
    pub(super) fn step_direct(&mut self, index: TaskIndex, work: &mut DirectWork) -> Flow {
        work.phase += 1;
        match work.phase {
            1 => {
                let may = if work.is_write { self.may_change() } else { self.may_read() };
                if let Err(errno) = may {
                    return Flow::Failed(errno);
                }
                let usage = self.usage(work);
                self.take_lock(index, work.owner, usage);
            }
            2 => {
                if work.is_at_end {
                    let (size, length) = (self.tree.node(work.owner).size, work.end - work.at);
                    (work.at, work.end) = (size, size + length);
                }
                if self.clear_cache(index, work.pages()) {
                    work.phase = 1;
                }
            }
            3 if work.is_write => {
                self.cache.invalidate(work.owner, work.pages().from, work.pages().end);
                let range = (work.at, work.end);
                work.fresh = self.fresh_edges(work.owner, range);
                if let Err(errno) = self.prepare(index, work.owner, range, true) {
                    return Flow::Failed(errno);
                }
            }
            3 => self.cost_of_place(index, work),
            4 => self.send_direct(index, work),
            // Pages that are being read have old data: they are waited for, and go.
            _ if work.is_write && self.awaits_range(index, work.owner, (work.at, work.end)) => {
                work.phase = 4;
            }
            _ => return self.end_direct(index, work),
        }
        Flow::More
    }

    fn usage(&self, work: &DirectWork) -> Use {
        let block = u64::from(self.facts.block_bytes);
        let is_inside = work.end <= self.tree.node(work.owner).size && !work.is_at_end;
        match work.is_write {
            false => Use::DirectRead,
            true if is_inside && (work.at | work.end).is_multiple_of(block) => Use::DirectOverwrite,
            true => Use::DirectWrite,
        }
    }

    /// Dirty pages of the range are written first; tells whether to do it again, because pages were
    /// changed while they were being written.
    fn clear_cache(&mut self, index: TaskIndex, extent: Extent) -> bool {
        if self.own_cache().is_some()
            || self.cache.file(extent.owner).dirty() == 0
                && self.tree.node(extent.owner).writes.is_empty()
        {
            return false;
        }
        let manner = Manner {
            runner: self.task(index).runner,
            is_sync: true,
            is_background: false,
            pages_max: u64::MAX,
            is_limited: false,
        };
        let sent = self.write_out(extent, manner);
        let writes = core::mem::take(&mut self.tree.node_mut(extent.owner).writes);
        for &id in &writes {
            self.await_request(index, id);
        }
        self.tree.node_mut(extent.owner).writes = writes;
        sent.was_busy
    }

    fn cost_of_place(&mut self, index: TaskIndex, work: &DirectWork) {
        let run = self.run_of(work);
        let mut cx = self.context(self.tasks[index as usize].runner);
        self.fs.map_cost(&mut cx, run);
        self.apply(index, cx);
    }

    fn run_of(&self, work: &DirectWork) -> FileRun {
        let block = u64::from(self.facts.block_bytes);
        let first = work.at / block;
        let node = self.tree.node(work.owner).id;
        FileRun { node, first, count: work.end.div_ceil(block) - first }
    }

    fn send_direct(&mut self, index: TaskIndex, work: &mut DirectWork) {
        let block = u64::from(self.facts.block_bytes);
        let size = self.tree.node(work.owner).size;
        if work.is_write {
            work.before = (work.end > size).then_some(size);
            self.tree.node_mut(work.owner).size = size.max(work.end);
        } else {
            work.end = work.end.min(size.max(work.at));
        }
        let runner = self.task(index).runner;
        let direct = self.facts.clusters.map_or(u64::MAX, |clusters| clusters.direct_bytes);
        let most = (self.max_sectors() * 512).min(direct);
        if work.is_write {
            self.clear_fresh(work.owner, (work.at, work.end), work.fresh);
        } else {
            self.read_past(index, work.owner, (work.at, work.end));
        }
        let (mut at, end) = self.travelling(work, size);
        while at < end {
            let first = at / block;
            let count = end.div_ceil(block) - first;
            let run = FileRun { node: self.tree.node(work.owner).id, first, count };
            let Mapped { place, count } = self.fs.map(run);
            let until = ((first + count.max(1)) * block).min(end);
            let is_there = match place {
                Place::Written(..) => true,
                Place::Unwritten(..) => work.is_write,
                Place::Hole | Place::Delayed => false,
            };
            if let Some((device, to)) = place.block().filter(|_| is_there) {
                if work.is_write {
                    self.clean_aliases(BlockRun { device, first: to, count });
                }
                let kind = if work.is_write { OutgoingKind::Write } else { OutgoingKind::Read };
                while at < until {
                    let bytes = (until - at).min(most);
                    // The last sector of a file that ends inside one is read whole.
                    let sectors = bytes.div_ceil(512);
                    let sector = Sector(to * (block / 512) + (at - first * block) / 512);
                    let want = Want::new(kind, device, sector, sectors);
                    let last = (at + bytes).div_ceil(block);
                    let carried = FileRun { first: at / block, count: last - at / block, ..run };
                    let cargo = if work.is_write {
                        Cargo::Direct(work.owner, carried)
                    } else {
                        Cargo::Plain
                    };
                    let id = self.send(want, cargo, runner);
                    self.await_request(index, id);
                    if work.is_write && self.keeps_data() {
                        let data = self.bytes_from(index, bytes, None);
                        self.carry_bytes(id, (device, sector), &data);
                    }
                    at += bytes;
                }
            }
            at = until;
        }
    }

    /// Bytes that travel for a transfer: whole records where a cache of the file system's own has
    /// them, because their checksums cover all of them.
    fn travelling(&self, work: &DirectWork, size: u64) -> (u64, u64) {
        if self.own_cache().is_none() || work.is_write {
            return (work.at, work.end);
        }
        let unit = self.unit_pages() * 4096;
        let end = work.end.next_multiple_of(unit).min(size.next_multiple_of(4096));
        (work.at / unit * unit, end.max(work.end))
    }

    /// A direct write has failed: the file does not become longer by it.
    ///
    /// Source: Linux fs/ext4/file.c (`ext4_handle_inode_extension`), `fs/xfs/xfs_file.c`
    /// (`xfs_dio_write_end_io`): the length changes with the success.
    pub(super) fn undo_direct(&mut self, work: &DirectWork) {
        let Some(before) = work.before else { return };
        let node = self.tree.node_mut(work.owner);
        if node.size != work.end {
            return;
        }
        node.size = before;
        let id = node.id;
        if self.stop.is_none() {
            let mut cx = self.context(RunBy::FileSystem(0));
            let cut = self.fs.truncate(&mut cx, id, Bytes(work.end), Bytes(before));
            debug_assert!(cut.is_ok(), "a shorter file has room");
            self.apply_alone(cx);
        }
    }

    fn end_direct(&mut self, index: TaskIndex, work: &DirectWork) -> Flow {
        if work.is_write {
            self.cache.invalidate(work.owner, work.pages().from, work.pages().end);
        }
        let touch = if work.is_write { Touch::Written } else { Touch::Read };
        let id = self.tree.node(work.owner).id;
        let mut cx = self.context(self.tasks[index as usize].runner);
        self.fs.touch(&mut cx, id, touch);
        self.apply(index, cx);
        self.task(index).bytes = Bytes(work.end.saturating_sub(work.at));
        if let Some(promise) = work.promise {
            let works = &mut self.task(index).works;
            let flush = FlushWork::file(work.owner, promise).by(work.by);
            works.push(Work::Flush(flush));
            works.push(Work::Unlock(work.owner));
        }
        Flow::Done
    }
}
