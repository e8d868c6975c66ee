//! `Machine`: a mounted file system with its memory, its operations in progress and its clock.
//!
//! Passive, as every layer below it: whoever owns it calls [`Machine::advance`] no later than at
//! [`Machine::next_event`], takes the requests out and tells when they have ended.

use std::path::PathBuf;

use iolab_model::error::Errno;
use iolab_model::op::Token;
use iolab_model::{Bytes, Calendar, Ns};

use super::call::HandleInfo;
use super::contents::Contents;
use super::processors::Processors;
use super::request::{OnItsWay, Outgoing, OutgoingId};
use super::settings::MachineSettings;
use super::task::{Flow, RunBy, Task, TaskIndex, Work};
use super::tree::{DEVICE, ROOT, Tree};
use crate::api::block::BlockRun;
use crate::api::context::{Caller, Context, Tid};
use crate::api::file_system::{CacheKind, Facts, FileSystem, Lock, Stoppage, Use};
use crate::api::frame::Replacement;
use crate::api::write_back::{BackingId, DirtyView, Flusher, Throttle};
use crate::cache::PageCache;
use crate::readahead::{LinuxReadAhead, ReadAheadRules};

/// The backing of the only mount there is.
pub(super) const BACKING: BackingId = BackingId(0);

/// Deciders of a machine.
pub struct Deciders {
    /// The mounted file system.
    pub file_system: Box<dyn FileSystem>,
    /// Throttling of writers.
    pub throttle: Box<dyn Throttle>,
    /// Write-back.
    pub flusher: Box<dyn Flusher>,
    /// Replacement of pages.
    pub replacement: Box<dyn Replacement>,
}

/// An operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineEnded {
    /// Its lane.
    pub lane: u32,
    /// Its token.
    pub token: Token,
    /// Time at which it was taken.
    pub submitted: Ns,
    /// Its outcome.
    pub outcome: Result<Bytes, Errno>,
}

/// Something that happens at an instant.
#[derive(Debug)]
pub(super) enum Event {
    /// A task goes on: its processor has got to it.
    Resume(TaskIndex),
    /// One of the things that a task waits for is this instant.
    Timer(TaskIndex),
    /// An operation ends.
    End(TaskIndex),
    /// A processor may have been left, and somebody waits for one.
    Processor(u16),
}

/// A worker's processor and open files.
#[derive(Debug, Default)]
pub(super) struct LaneState {
    pub cpu_free: Ns,
    /// Processor that its process had last, if processors are shared.
    pub place: Option<u16>,
    /// Its tasks that wait for a processor, and the work that they do first.
    pub held: Vec<(TaskIndex, u64)>,
    /// True if it lost its processor because its slice was over.
    pub is_over: bool,
    pub handles: Vec<Option<HandleInfo>>,
}

/// Counts of the machine itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub throttled: Ns,
    pub dirty_max: u64,
    pub read_bytes: u64,
    pub data_bytes: u64,
    pub metadata_bytes: u64,
    pub flushes: u64,
    pub faults_minor: u64,
    pub faults_major: u64,
}

/// A mounted file system in virtual time.
pub struct Machine {
    pub(super) now: Ns,
    pub(super) settings: MachineSettings,
    pub(super) cache: PageCache,
    pub(super) fs: Box<dyn FileSystem>,
    pub(super) facts: Facts,
    /// Page of the table of metadata at which those of a second device begin.
    pub(super) second_from: u64,
    pub(super) tree: Tree,
    pub(super) rule: LinuxReadAhead,
    pub(super) throttle: Box<dyn Throttle>,
    pub(super) flusher: Box<dyn Flusher>,
    pub(super) tasks: Vec<Task>,
    pub(super) free_tasks: Vec<TaskIndex>,
    pub(super) requests: Vec<OnItsWay>,
    pub(super) free_requests: Vec<OutgoingId>,
    pub(super) calendar: Calendar<Event>,
    pub(super) lanes: Vec<LaneState>,
    pub(super) processors: Processors,
    /// Processors' time of the kernel's threads: the flusher, and those of the file system.
    pub(super) threads: [Ns; 4],
    /// Time of processors charged to workers.
    pub(super) worked: Ns,
    /// Part of it that they asked for themselves.
    pub(super) computed: Ns,
    pub(super) out: Vec<Outgoing>,
    pub(super) ended: Vec<MachineEnded>,
    pub(super) waits: Vec<(Tid, TaskIndex)>,
    /// Writers that wait for room in a transaction, since when.
    pub(super) admissions: Vec<(TaskIndex, Ns)>,
    /// Set once a failure has stopped the file system.
    pub(super) stop: Option<Stoppage>,
    /// A read of pages has failed: absent pages may be such.
    pub(super) has_failed_reads: bool,
    pub(super) is_flusher_busy: bool,
    /// Task of the flusher that waits until fewer of its requests are on their way.
    pub(super) flusher_waits: Option<TaskIndex>,
    pub(super) flusher_requests: u32,
    pub(super) counts: Counts,
    /// Files that became dirty so far.
    pub(super) dirtied: u64,
    /// Room for the runs of the next context, empty.
    pub(super) spare_runs: (Vec<BlockRun>, Vec<BlockRun>),
    /// Data of files, if somebody looks at them.
    pub(super) contents: Option<Box<Contents>>,
}

impl Machine {
    /// A machine with a fresh, mounted file system; files lie below `root`.
    pub fn new(start: Ns, settings: MachineSettings, deciders: Deciders, root: PathBuf) -> Self {
        let Deciders { file_system: fs, throttle, flusher, replacement } = deciders;
        let facts = fs.facts();
        let mut rules = match settings.read_ahead_era {
            Some(era) => ReadAheadRules::of_era(era, facts.has_large_folios),
            None => ReadAheadRules::of(settings.kernel, facts.has_large_folios),
        };
        rules.walk = settings.walk;
        let memory_bytes = match facts.cache {
            CacheKind::Own(own) => own.bytes,
            CacheKind::Pages | CacheKind::Bypass => settings.memory_bytes,
        };
        let mut cache = PageCache::new(memory_bytes / 4096, replacement);
        cache.open_file(DEVICE);
        cache.open_file(ROOT);
        // Behind the device of data, with a gap: pages of two devices never are neighbours.
        let device_pages = (fs.space().total * u64::from(facts.block_bytes)).div_ceil(4096);
        let second_from = (device_pages + 1).next_multiple_of(4096);
        Self {
            now: start,
            settings,
            cache,
            tree: Tree::new(root, fs.root()),
            fs,
            facts,
            second_from,
            rule: LinuxReadAhead::new(rules),
            throttle,
            flusher,
            tasks: Vec::new(),
            free_tasks: Vec::new(),
            requests: Vec::new(),
            free_requests: Vec::new(),
            calendar: Calendar::default(),
            lanes: Vec::new(),
            processors: Processors::new(settings.processors, settings.slice),
            threads: [Ns(0); 4],
            worked: Ns(0),
            computed: Ns(0),
            out: Vec::new(),
            ended: Vec::new(),
            waits: Vec::new(),
            admissions: Vec::new(),
            stop: None,
            has_failed_reads: false,
            is_flusher_busy: false,
            flusher_waits: None,
            flusher_requests: 0,
            counts: Counts::default(),
            dirtied: 0,
            spare_runs: (Vec::new(), Vec::new()),
            contents: None,
        }
    }

    /// A new lane's number.
    pub fn add_lane(&mut self) -> u32 {
        self.lanes.push(LaneState::default());
        self.lanes.len() as u32 - 1
    }

    /// Current time.
    pub const fn now(&self) -> Ns {
        self.now
    }

    /// Time of the next event.
    pub fn next_event(&self) -> Ns {
        let daemons = if self.is_flusher_busy { Ns::MAX } else { self.flusher.next_timer() };
        self.calendar.next_event().min(self.file_system_timer()).min(daemons)
    }

    /// Lets the clock reach `now`, before requests are told to have ended.
    pub fn advance_clock(&mut self, now: Ns) {
        self.now = self.now.max(now);
    }

    /// Does what is due at `now`.
    pub fn advance(&mut self, now: Ns) {
        self.now = self.now.max(now);
        while let Some((_, event)) = self.calendar.take_due(self.now) {
            match event {
                Event::Resume(task) => {
                    if self.go_on(task, 0, false).is_some() {
                        self.run(task);
                    }
                }
                Event::End(task) => self.end(task),
                Event::Processor(number) => self.look_at_processor(number),
                Event::Timer(task) => {
                    self.task(task).pending -= 1;
                    let is_ready = self.task(task).pending == 0 && self.task(task).is_waiting;
                    if is_ready && self.go_on(task, 0, true).is_some() {
                        self.run(task);
                    }
                }
            }
        }
        if self.file_system_timer() <= self.now {
            self.poll_jobs();
        }
        if self.flusher.next_timer() <= self.now {
            self.drive_flusher();
        }
    }

    /// Takes the requests that go out.
    pub fn take_requests(&mut self, into: &mut Vec<Outgoing>) {
        into.append(&mut self.out);
    }

    /// Takes the operations that have ended.
    pub fn take_ended(&mut self, into: &mut Vec<MachineEnded>) {
        into.append(&mut self.ended);
    }

    // --- Tasks ---

    pub(super) fn spawn(&mut self, runner: RunBy, token: Token) -> TaskIndex {
        let now = self.now;
        if let Some(index) = self.free_tasks.pop() {
            let mut works = core::mem::take(&mut self.tasks[index as usize].works);
            works.clear();
            self.tasks[index as usize] = Task { works, ..Task::new(runner, token, now) };
            return index;
        }
        self.tasks.push(Task::new(runner, token, now));
        self.tasks.len() as u32 - 1
    }

    pub(super) fn task(&mut self, index: TaskIndex) -> &mut Task {
        &mut self.tasks[index as usize]
    }

    /// Lets a task go on until it waits or ends.
    pub(super) fn run(&mut self, index: TaskIndex) {
        self.task(index).is_waiting = false;
        loop {
            if self.must_wait(index) {
                self.task(index).is_waiting = true;
                return;
            }
            if let Some(errno) = self.task(index).error {
                self.give_up(index, errno);
            }
            let task = self.task(index);
            let Some(mut work) = task.works.pop() else {
                return self.finish(index);
            };
            let depth = task.works.len();
            match self.step(index, &mut work) {
                Flow::More => self.task(index).works.insert(depth, work),
                Flow::Done => {}
                Flow::Failed(errno) => self.task(index).error = Some(errno),
            }
        }
    }

    /// Tell whether a task waits for something, a transaction included.
    fn must_wait(&mut self, index: TaskIndex) -> bool {
        let tid = self.task(index).wait_tid.take();
        if let Some(tid) = tid.filter(|&tid| self.fs.durable() < tid) {
            if let Some(stop) = self.stop {
                self.task(index).fail(stop.waiting);
            } else {
                self.task(index).pending += 1;
                self.waits.push((tid, index));
                self.poll_jobs();
            }
        }
        self.task(index).pending > 0
    }

    fn step(&mut self, index: TaskIndex, work: &mut Work) -> Flow {
        match work {
            Work::Read(read) => self.step_read(index, read),
            Work::Write(write) => self.step_write(index, write),
            Work::Direct(direct) => self.step_direct(index, direct),
            Work::Flush(flush) => self.step_flush(index, flush),
            Work::Touch(touch) => self.step_touch(index, touch),
            Work::Name(name) => self.step_name(index, name),
            Work::Job(job) => self.step_job(index, job),
            Work::Flusher(flusher) => self.step_flusher(index, flusher),
            Work::Burn(duration) => {
                let duration = duration.0;
                self.spend(index, duration);
                Flow::Done
            }
            Work::Answer(bytes) => {
                self.task(index).bytes = *bytes;
                Flow::Done
            }
            Work::FromStream(handle, bytes) => {
                let (handle, bytes) = (*handle, bytes.0);
                self.copied_from_stream(index, handle, bytes);
                Flow::Done
            }
            Work::Unlock(node) => {
                let node = *node;
                if self.catch_up(index) {
                    return Flow::More;
                }
                self.unlock(index, node);
                Flow::Done
            }
        }
    }

    /// An event that a task waited for has happened.
    pub(super) fn wake(&mut self, index: TaskIndex, cost_ns: u64) {
        let task = self.task(index);
        task.pending -= 1;
        if task.pending > 0 || !task.is_waiting {
            return;
        }
        if let Some(at) = self.go_on(index, cost_ns, true) {
            self.calendar.plan(at.max(self.now), Event::Resume(index));
        }
    }

    fn finish(&mut self, index: TaskIndex) {
        let runner = self.task(index).runner;
        let at = *self.cpu(runner);
        if at <= self.now {
            self.end(index);
        } else {
            self.calendar.plan(at, Event::End(index));
        }
    }

    fn end(&mut self, index: TaskIndex) {
        if let Some(node) = self.task(index).locked {
            self.unlock(index, node);
        }
        let Task { runner, token, submitted, error, bytes, .. } = *self.task(index);
        self.free_tasks.push(index);
        match runner {
            RunBy::Lane(lane) => {
                let outcome = error.map_or(Ok(bytes), Err);
                self.ended.push(MachineEnded { lane, token, submitted, outcome });
            }
            RunBy::FileSystem(_) => self.poll_jobs(),
            RunBy::Flusher => {
                self.is_flusher_busy = false;
                self.drive_flusher();
            }
        }
    }

    // --- Locks ---

    pub(super) fn take_lock(&mut self, index: TaskIndex, node: u32, usage: Use) {
        let lock = self.fs.lock(usage);
        if lock == Lock::Free {
            return;
        }
        self.task(index).locked = Some(node);
        if !self.tree.node_mut(node).lock.take(index, lock) {
            self.task(index).pending += 1;
        }
    }

    pub(super) fn unlock(&mut self, index: TaskIndex, node: u32) {
        if self.task(index).locked.take().is_none() {
            return;
        }
        let mut next = Vec::new();
        self.tree.node_mut(node).lock.release(&mut next);
        let cost = self.settings.cost.complete_ns;
        for task in next {
            self.wake(task, cost);
        }
    }

    // --- Time of processors ---

    pub(super) fn cpu(&mut self, runner: RunBy) -> &mut Ns {
        match runner {
            RunBy::Lane(lane) => &mut self.lanes[lane as usize].cpu_free,
            RunBy::Flusher => &mut self.threads[0],
            RunBy::FileSystem(thread) => &mut self.threads[1 + usize::from(thread).min(2)],
        }
    }

    /// Charges work to the processor of a process; answers when it is done.
    pub(super) fn charge(&mut self, runner: RunBy, cost_ns: u64) -> Ns {
        let now = self.now;
        if matches!(runner, RunBy::Lane(_)) {
            self.worked += Ns(cost_ns);
        }
        let cpu = self.cpu(runner);
        *cpu = (*cpu).max(now) + Ns(cost_ns);
        *cpu
    }

    pub(super) fn spend(&mut self, index: TaskIndex, cost_ns: u64) -> Ns {
        let runner = self.task(index).runner;
        self.charge(runner, cost_ns)
    }

    /// Lets the clock reach the processor of a task; tells whether it has to wait for that.
    pub(super) fn catch_up(&mut self, index: TaskIndex) -> bool {
        let runner = self.task(index).runner;
        let at = *self.cpu(runner);
        if at <= self.now {
            return false;
        }
        self.wait_until(index, at);
        true
    }

    /// Makes a task wait until an instant.
    pub(super) fn wait_until(&mut self, index: TaskIndex, at: Ns) {
        self.task(index).pending += 1;
        self.calendar.plan(at.max(self.now), Event::Timer(index));
    }

    // --- Facts ---

    pub(super) fn caller(&self, runner: RunBy) -> Caller {
        match runner {
            RunBy::Lane(lane) => {
                let cpu = self.processor_of(lane);
                // Workers have neighbouring process numbers, as children of one process do.
                Caller { pid: lane, cpu }
            }
            RunBy::FileSystem(_) | RunBy::Flusher => Caller::default(),
        }
    }

    pub(super) fn context(&mut self, runner: RunBy) -> Context {
        let (reads, dirtied) = core::mem::take(&mut self.spare_runs);
        let mut cx = Context::new(self.now, self.caller(runner));
        (cx.effects.reads, cx.effects.dirtied) = (reads, dirtied);
        cx
    }

    pub(super) fn dirty_view(&self) -> DirtyView {
        let dirty = self.cache.dirty + self.cache.write_back;
        DirtyView {
            dirtyable: self.cache.pages_max(),
            dirty,
            device_dirty: dirty,
            cpus: u32::from(self.settings.cpus),
        }
    }

    /// Blocks of a page.
    pub(super) fn blocks_per_page(&self) -> u64 {
        4096 / u64::from(self.facts.block_bytes)
    }
}
