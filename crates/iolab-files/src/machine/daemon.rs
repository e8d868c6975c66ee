//! Threads of the kernel: jobs of the file system, and the flusher.

use iolab_model::Sector;
use iolab_model::op::Token;

use super::engine::{BACKING, Event, Machine};
use super::request::{Cargo, OutgoingKind, Want};
use super::task::{Flow, RunBy, TaskIndex, Work};
use super::tree::DEVICE;
use super::write_out::{Extent, Manner};
use crate::api::block::{BlockRun, DeviceId, FileRun};
use crate::api::context::{Caller, Context};
use crate::api::file_system::{FsJob, JobId, Step, WriteFlags};
use crate::api::write_back::{Chunk, ChunkEnd};

/// A job of the file system, step by step.
#[derive(Debug)]
pub(super) struct JobWork {
    job: FsJob,
    at: usize,
}

/// A chunk of write-back.
#[derive(Debug)]
pub(super) struct FlusherWork {
    chunk: Chunk,
    sent: u64,
    /// The scan has gone round: it ends where it began.
    wrapped_at: Option<u64>,
    /// Nothing could be sent because all of it is being written: waited for that once.
    has_waited: bool,
}

impl FlusherWork {
    const fn new(chunk: Chunk) -> Self {
        Self { chunk, sent: 0, wrapped_at: None, has_waited: false }
    }
}

impl JobWork {
    /// Name of the job.
    pub const fn id(&self) -> JobId {
        self.job.id
    }
}

impl Machine {
    // --- Jobs ---

    /// Starts every job that the file system has now.
    pub(super) fn poll_jobs(&mut self) {
        while self.stop.is_none() {
            let mut cx = Context::new(self.now, Caller::default());
            let job = self.fs.poll(&mut cx);
            let has_effects = !cx.effects.is_empty();
            let is_over = job.is_none();
            if let Some(job) = job {
                self.ask_for_room_again();
                let index = self.spawn(RunBy::FileSystem(0), Token(0));
                self.task(index).works.push(Work::Job(JobWork { job, at: 0 }));
                self.calendar.plan(self.now, Event::Resume(index));
            }
            if has_effects {
                self.apply_quietly(cx);
            }
            if is_over {
                return;
            }
        }
    }

    /// Effects of the daemons' own decisions: metadata that they changed, and their processor.
    fn apply_quietly(&mut self, cx: Context) {
        self.charge(RunBy::FileSystem(0), cx.effects.cpu.0);
        for run in cx.effects.dirtied {
            self.dirty_metadata(run);
        }
        for run in cx.effects.push {
            if let Some(owner) = self.tree.of_id(run.node) {
                let pages = self.blocks_per_page();
                let (from, end) = (run.first / pages, run.end().div_ceil(pages));
                self.push_out(Extent { owner, from, end }, RunBy::Flusher);
            }
        }
    }

    pub(super) fn step_job(&mut self, index: TaskIndex, work: &mut JobWork) -> Flow {
        while let Some(step) = work.job.steps.get(work.at).cloned() {
            work.at += 1;
            match step {
                Step::Wait => return Flow::More,
                Step::Spend(duration) => {
                    self.spend(index, duration.0);
                }
                Step::Data(run) => self.job_data(index, run, work.job.is_sync),
                Step::WaitData(node) => {
                    if let Some(owner) = self.tree.of_id(node) {
                        self.await_writes(index, owner);
                    }
                }
                Step::Dirtied(run) => self.job_dirtied(index, run, work.job.is_sync),
                Step::Copy(_, to) => {
                    self.job_write(index, to, WriteFlags::default(), work.job.is_sync);
                }
                Step::Write(run, flags) => self.job_write(index, run, flags, work.job.is_sync),
                Step::WriteSectors(device, first, sectors, flags) => {
                    let range = (first.0, first.0 + u64::from(sectors));
                    self.job_sectors(index, (device, range), flags, work.job.is_sync);
                }
                Step::Flush(device) => self.send_flush(index, device),
            }
        }
        if self.task(index).pending > 0 {
            return Flow::More;
        }
        if self.stop.is_none() {
            let mut cx = self.context(RunBy::FileSystem(0));
            self.fs.job_done(&mut cx, work.job.id);
            self.apply_quietly(cx);
            self.release_waits();
            self.look_for_stop();
        }
        self.ask_for_room_again();
        Flow::Done
    }

    /// Those who waited for a transaction that is durable now go on.
    fn release_waits(&mut self) {
        let durable = self.fs.durable();
        self.let_go(durable, None);
    }

    fn job_data(&mut self, index: TaskIndex, run: FileRun, is_sync: bool) {
        let Some(owner) = self.tree.of_id(run.node) else { return };
        let pages = self.blocks_per_page();
        let runner = self.task(index).runner;
        let extent = Extent { owner, from: run.first / pages, end: run.end().div_ceil(pages) };
        let manner = Manner {
            runner,
            is_sync,
            is_background: false,
            pages_max: u64::MAX,
            is_limited: false,
        };
        self.write_out(extent, manner);
        self.await_writes(index, owner);
    }

    fn job_dirtied(&mut self, index: TaskIndex, run: BlockRun, is_sync: bool) {
        let (from, end) = self.metadata_pages(run);
        let runner = self.task(index).runner;
        let manner = Manner {
            runner,
            is_sync: is_sync || self.own_cache().is_none(),
            is_background: false,
            pages_max: u64::MAX,
            is_limited: false,
        };
        self.write_out(Extent { owner: DEVICE, from, end }, manner);
        self.await_writes(index, DEVICE);
    }

    fn job_write(&mut self, index: TaskIndex, run: BlockRun, flags: WriteFlags, is_sync: bool) {
        let sectors = u64::from(self.facts.block_bytes) / 512;
        let range = (run.first * sectors, run.end() * sectors);
        self.job_sectors(index, (run.device, range), flags, is_sync);
    }

    fn job_sectors(
        &mut self,
        index: TaskIndex,
        (device, (from, end)): (DeviceId, (u64, u64)),
        flags: WriteFlags,
        is_sync: bool,
    ) {
        let mut at = from;
        let most = self.max_sectors();
        let runner = self.task(index).runner;
        let mut is_first = true;
        while at < end {
            let now = (end - at).min(most);
            let want = Want {
                is_meta: true,
                is_sync,
                is_preflush: flags.is_preflush && is_first,
                is_fua: flags.is_fua && at + now == end,
                ..Want::new(OutgoingKind::Write, device, Sector(at), now)
            };
            let id = self.send(want, Cargo::Plain, runner);
            self.await_request(index, id);
            at += now;
            is_first = false;
        }
    }

    /// Sends a flush of a device's write cache; the task waits for it.
    pub(super) fn send_flush(&mut self, index: TaskIndex, device: DeviceId) {
        let want =
            Want { is_preflush: true, ..Want::new(OutgoingKind::Flush, device, Sector(0), 0) };
        let runner = self.task(index).runner;
        let id = self.send(want, Cargo::Plain, runner);
        self.await_request(index, id);
    }

    // --- Flusher ---

    /// Starts the flusher if it has something to write now.
    pub(super) fn drive_flusher(&mut self) {
        if self.is_flusher_busy {
            return;
        }
        let Some(chunk) = self.next_chunk() else { return };
        self.is_flusher_busy = true;
        let index = self.spawn(RunBy::Flusher, Token(0));
        self.task(index).works.push(Work::Flusher(FlusherWork::new(chunk)));
        self.calendar.plan(self.now, Event::Resume(index));
    }

    fn next_chunk(&mut self) -> Option<Chunk> {
        let wants = self.throttle.wants_background(&self.dirty_view()) || self.takes_request();
        self.flusher.poll(self.now, wants, self.throttle.bandwidth(BACKING))
    }

    /// Reclaim asked for write-back.
    fn takes_request(&mut self) -> bool {
        core::mem::take(&mut self.cache.wants_flusher)
    }

    pub(super) fn step_flusher(&mut self, index: TaskIndex, work: &mut FlusherWork) -> Flow {
        let owner = self.tree.of_id(work.chunk.file.node);
        if let Some(owner) = owner {
            let cursor = self.tree.node(owner).cursor;
            let (from, end) = (cursor, work.wrapped_at.unwrap_or(u64::MAX));
            let manner = Manner {
                runner: RunBy::Flusher,
                is_sync: false,
                is_background: work.chunk.is_background,
                pages_max: work.chunk.pages_max - work.sent,
                is_limited: true,
            };
            let sent = self.write_out(Extent { owner, from, end }, manner);
            work.sent += sent.pages;
            self.tree.node_mut(owner).cursor = if sent.next == u64::MAX { 0 } else { sent.next };
            if sent.is_full {
                self.flusher_waits = Some(index);
                self.task(index).pending += 1;
                return Flow::More;
            }
            let is_at_end = sent.next == u64::MAX && work.sent < work.chunk.pages_max;
            if is_at_end && work.wrapped_at.is_none() && cursor > 0 {
                work.wrapped_at = Some(cursor);
                return Flow::More;
            }
        }
        let is_still_dirty = owner.is_some_and(|owner| self.cache.file(owner).dirty() > 0);
        let is_stuck = is_still_dirty && work.sent == 0;
        if let Some(owner) = owner.filter(|_| is_stuck && !work.has_waited) {
            // Linux fs/fs-writeback.c: inode_sleep_on_writeback.
            work.has_waited = true;
            self.await_writes(index, owner);
            return Flow::More;
        }
        let file = work.chunk.file;
        self.flusher.sent(self.now, ChunkEnd { file, pages: work.sent, is_still_dirty });
        if let Some(owner) = owner.filter(|_| !is_still_dirty) {
            self.tree.node_mut(owner).is_queued = false;
        }
        let next = if is_stuck { None } else { self.next_chunk() };
        match next {
            Some(chunk) => {
                *work = FlusherWork::new(chunk);
                Flow::More
            }
            None => Flow::Done,
        }
    }
}
