//! The worker that runs a program: passive, as every worker.
//!
//! It goes through the tree of nodes ([`tree`]), begins the steps that it finds ([`leaf`]), chooses
//! what they work on ([`choose`]) and takes the ends of their calls ([`job`]). An operation may be
//! several calls one after the other (open and map; a whole file piece by piece): its latency is
//! that of all of them. Everything that is drawn follows from the seed and the worker's ordinal;
//! which files exist at that moment also depends on the other workers.

mod choose;
mod job;
mod kept_open;
mod leaf;
mod pace;
mod replay;
mod rules;
mod serve;
mod tree;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use iolab_model::error::Errno;
use iolab_model::op::Op;
use iolab_model::seed::Stream;
use iolab_model::{Completion, Ns, Seed, Submission};

use super::code::Code;
use super::course::{Map, Way};
use super::description::Pace;
use super::operation::OperationCount;
use super::stage::{FileId, Stage};
use super::tally::Tally;
use crate::bursting::Bursting;
use crate::following::Following;
use crate::group::{Gate, GroupState};
use crate::report::StreamReport;
use crate::spec::{LockPolicy, Phase, Tenant};
use crate::stream::advice;
use crate::worker::{Step, Worker};
use job::Job;
use leaf::Begun;
use pace::Directed;
pub use replay::OpenRecorded;
use replay::Replay;
use serve::Serving;
use tree::Frame;

/// Workers of a phase whose histograms are in memory before they count.
const RESIDENT_MAX: u32 = 128;

/// State in the life of a worker, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Life {
    OpenKept,
    Before,
    ArriveStart,
    WaitStart,
    Delayed,
    Timed,
    ArriveEnd,
    WaitEnd,
    After,
    CloseAll,
    Done,
}

/// An open file.
#[derive(Clone, Copy, Debug)]
struct Open {
    file: FileId,
    is_mapped: bool,
    /// The last read found the end: the next one begins at the front.
    is_at_end: bool,
}

/// A handle slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    open: Option<Open>,
    /// The file that is or was open.
    last: Option<FileId>,
}

/// Name of a tenant's stream of random numbers: what does the same draws alike.
fn name_of_draws(phase: &Phase, tenant: usize, code: &Code) -> String {
    let of = code.program.draws_of.as_ref().unwrap_or(&phase.name);
    format!("{} of {of}", phase.tenants[tenant].name)
}

/// Tell whether histograms are in memory before they count.
fn is_resident(phase: &Phase) -> bool {
    phase.tenants.iter().map(|tenant| tenant.workers).sum::<u32>() <= RESIDENT_MAX
}

/// Tenant whose workers must have ended before another begins.
fn awaited(phase: &Phase, name: Option<&str>) -> Option<usize> {
    name.and_then(|name| phase.tenants.iter().position(|other| other.name == name))
}

/// Object that a step worked on last.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    file: Option<FileId>,
    at: u64,
    key: Option<(usize, u64)>,
}

/// Places and files that were picked so far.
#[derive(Debug, Default)]
struct Picked {
    /// Number of places, by node and file.
    counts: BTreeMap<(usize, FileId), u64>,
    /// Ways through files, by node and file.
    ways: BTreeMap<(usize, FileId), Way>,
    /// Units that were picked in this pass, by file.
    maps: BTreeMap<FileId, Map>,
    /// Files that are served, by set.
    serving: BTreeMap<usize, Serving>,
}

/// Way in which a worker makes transfers, whatever their step says.
#[derive(Clone, Copy, Debug)]
struct Touch {
    /// Lock of a file around each of them.
    lock: LockPolicy,
    /// Of so many one is done by a thread of the kernel; 0: none.
    kernel_thread_every: u64,
}

impl Touch {
    fn of(tenant: &Tenant) -> Self {
        Self { lock: tenant.lock, kernel_thread_every: tenant.manner.kernel_thread_every }
    }
}

/// Slots that stay empty while others could be filled.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Number of them now.
    idle: u32,
    /// Slots that must be empty, but for one, before they are filled again; 0: none.
    drained: u32,
}

impl Room {
    fn of(tenant: &Tenant, following: Option<&Following>, depth: u32) -> Self {
        let idle = following.and_then(|it| it.idle_slots(depth)).unwrap_or(0);
        let drained = tenant.manner.refill_at.map_or(0, |at| depth.saturating_sub(at + 1));
        Self { idle, drained }
    }

    /// A call has ended, when so many slots were empty.
    fn call_ended(&mut self, empty: usize) {
        if self.drained > 0 && empty == 0 {
            self.idle = self.drained;
        }
    }

    /// Number of slots that stay empty of so many; those that had to drain may be filled again.
    fn idle_of(&mut self, empty: usize) -> usize {
        let idle = self.idle as usize;
        if self.drained > 0 && empty > idle {
            self.idle = 0;
        }
        idle
    }
}

/// State of a step that was begun and waits.
#[derive(Debug, Default)]
struct Waiting {
    /// A step that is counted and waits, and since when.
    step: Option<(usize, Ns)>,
    /// The semaphore where it waits: with how many, and above which number it may not post.
    resting: Option<(usize, u64, Option<u64>)>,
    /// Number that a step that waits at a semaphore has drawn.
    semaphore_wants: Option<u64>,
    /// Operations that were under way when it began to wait for a share of them.
    under_way_at_first: Option<u32>,
    /// Broadcasts that there had been when it began to wait for one.
    broadcasts_at_first: Option<u64>,
    /// Slot of a step that was begun and must be begun again.
    held_slot: Option<usize>,
    /// Place in the order of slots that are taken in turn.
    rotor: usize,
    /// A job that begins when all others have ended.
    alone: Option<Box<Job>>,
}

/// One worker of a tenant with a program.
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct ProgramWorker<'a, G> {
    group: G,
    stage: &'a Stage,
    code: Arc<Code>,
    tenant: usize,
    index: u32,
    workers: u32,
    is_stonewalled: bool,
    life: Life,
    random: Stream,
    /// Root of what all workers scatter in the same way.
    key: u64,
    /// Path through the tree.
    frames: Vec<Frame>,
    /// Index of the list of the program that it goes through.
    list: usize,
    at: usize,
    /// A step that could not begin yet.
    pending: Option<usize>,
    jobs: Vec<Option<Job>>,
    free: Vec<u32>,
    /// Jobs whose next call is due.
    ready: Vec<u32>,
    /// The job that must end before the next step begins.
    blocked: Option<u32>,
    slots: Vec<Slot>,
    /// Handles of files that steps keep open by themselves, behind the slots.
    kept: BTreeMap<(FileId, u8), u32>,
    /// Of these, to be opened before the timed region: node and number of the file.
    to_open: Vec<(usize, u32)>,
    last: Vec<Last>,
    /// Places and files that were picked so far.
    picked: Picked,
    /// Operations at the time a trigger fired last, by node.
    fired: Vec<u64>,
    tallies: Vec<Tally>,
    started: Ns,
    ended: Ns,
    earliest: Ns,
    thinking_until: Ns,
    deadline: Ns,
    out_of_time: Option<Ns>,
    busy_from: Option<Ns>,
    in_flight: u32,
    /// Meant beginning of the pass under way.
    intended: Ns,
    next_arrival: Ns,
    passes: u64,
    /// Operations and bytes that were begun.
    issued: (u64, u64),
    /// True if it found nothing more to do.
    is_out_of_work: bool,
    has_left: bool,
    /// Tenant whose workers must have ended before it begins.
    awaited: Option<usize>,
    /// From then on, or from the phase's beginning on, so long nothing happens.
    begins_ns: Ns,
    /// Time at which its tenant's turn came.
    turn: Option<Ns>,
    /// The barrier where it waits, and what it waits with.
    at_barrier: Option<(usize, u64)>,
    /// True if it came to the barrier where its tenant begins.
    has_come: bool,
    /// State of a step that was begun and waits.
    waiting: Waiting,
    /// Ends of the parts of the phase.
    cuts_ns: Vec<Ns>,
    /// Position in the recorded stream of its program.
    replay: Replay,
    /// Rules of its tenant; absent: there are none.
    following: Option<Box<Following>>,
    /// Pauses between bursts, if it makes any.
    bursting: Option<Box<Bursting>>,
    /// Way in which it makes transfers.
    touch: Touch,
    /// Reads and writes that have rates of their own.
    directed: Directed,
    /// Slots that stay empty in the timed region.
    room: Room,
    report: StreamReport,
}

impl<'a, G: GroupState> ProgramWorker<'a, G> {
    /// Worker number `index` of tenant number `tenant` of `phase`.
    pub fn new(
        (phase, tenant): (&Phase, usize),
        index: u32,
        (seed, depth): (Seed, u32),
        stage: &'a Stage,
        group: G,
    ) -> Self {
        let described = &phase.tenants[tenant];
        let code = stage.code(tenant);
        let name = name_of_draws(phase, tenant, &code);
        let (is_paced, is_resident) = (code.program.is_paced(), is_resident(phase));
        let following = Following::of(described);
        let mut worker = Self {
            group,
            stage,
            tenant,
            index,
            workers: described.workers,
            is_stonewalled: phase.is_stonewalled,
            life: Life::OpenKept,
            random: seed.stream(&name, u64::from(index)),
            key: seed.stream("places", 0).next_u64(),
            frames: Vec::new(),
            list: 0,
            at: 0,
            pending: None,
            jobs: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            ready: Vec::new(),
            blocked: None,
            slots: vec![Slot::default(); code.slots.len()],
            kept: BTreeMap::new(),
            to_open: Vec::new(),
            last: vec![Last::default(); code.flats.len()],
            picked: Picked::default(),
            fired: vec![0; code.flats.len()],
            tallies: code.tallies.iter().map(|_| Tally::new(is_paced, is_resident)).collect(),
            started: Ns(0),
            ended: Ns(0),
            earliest: Ns(0),
            thinking_until: Ns(0),
            deadline: Ns::MAX,
            out_of_time: None,
            busy_from: None,
            in_flight: 0,
            intended: Ns(0),
            next_arrival: Ns(0),
            passes: 0,
            issued: (0, 0),
            is_out_of_work: false,
            has_left: false,
            awaited: awaited(phase, code.program.begins_after.as_deref()),
            begins_ns: described.begins_of(index),
            turn: None,
            at_barrier: None,
            has_come: false,
            waiting: Waiting::default(),
            cuts_ns: phase.cuts_ns.clone(),
            replay: Replay::default(),
            room: Room::of(described, following.as_deref(), depth),
            following,
            directed: Directed::default(),
            bursting: described.manner.burst.map(|rule| Box::new(Bursting::new(rule))),
            touch: Touch::of(described),
            report: StreamReport { worker: index, ..StreamReport::default() },
            code,
        };
        worker.to_open = worker.files_to_open();
        worker
    }

    /// Counts of the worker.
    pub fn report(&self) -> StreamReport {
        let ended = match self.out_of_time {
            // A stonewall ends with what was done before it fell.
            Some(end) if end == self.deadline || !self.is_stonewalled => self.ended.max(end),
            _ => self.ended,
        };
        let mut report = StreamReport {
            elapsed_ns: ended.since(self.started).0,
            started_ns: self.started.0,
            gap_ns_max: self.report.gap_ns_max.max(ended.since(self.ended).0),
            ..self.report.clone()
        };
        if let Some(following) = &self.following {
            following.add_to(&mut report);
        }
        report
    }

    /// Counts of each operation of its program.
    pub fn operations(&self) -> Vec<OperationCount> {
        let all = self.tallies.iter().zip(&self.code.tallies);
        all.map(|(tally, counted)| tally.operation(counted)).collect()
    }

    fn is_timed(&self) -> bool {
        self.life == Life::Timed
    }

    fn submit(&mut self, token: u32, op: Op, now: Ns) -> Step {
        let is_timed = self.is_timed();
        self.in_flight += 1;
        let intended = if is_timed { self.intended } else { now };
        let token = iolab_model::op::Token(token);
        Step::Submit(Submission { token, intended, is_timed, op })
    }

    /// Everything around the timed region; `None`: ask again.
    fn live(&mut self, now: Ns) -> Option<Step> {
        match self.life {
            Life::OpenKept => match self.to_open.pop() {
                Some((node, number)) => self.open_kept(node, number, now),
                None => self.go(Life::Before, 0),
            },
            Life::Before => match self.go_through(now) {
                Some(step) => Some(step),
                None => self.go(Life::ArriveStart, 1),
            },
            Life::ArriveStart => {
                self.group.arrive(Gate::Start);
                self.go(Life::WaitStart, 1)
            }
            Life::WaitStart if self.group.is_open(Gate::Start) => {
                self.go(Life::Delayed, 1);
                // Who waits further on lets the others see first that the gate is open.
                let is_delayed = self.stage.has_turns || self.begins_ns.0 > 0;
                is_delayed.then_some(Step::SleepUntil(now))
            }
            Life::Delayed => self.begin_in_turn(now),
            Life::Timed => self.timed(now),
            Life::ArriveEnd => {
                self.leave();
                self.group.arrive(Gate::End);
                self.go(Life::WaitEnd, 2);
                // Whoever waits for its end is asked at this very instant.
                self.stage.has_turns.then_some(Step::SleepUntil(now))
            }
            Life::WaitEnd if self.group.is_open(Gate::End) => self.go(Life::After, 2),
            Life::WaitStart | Life::WaitEnd => Some(Step::Await),
            Life::After => match self.go_through(now) {
                Some(step) => Some(step),
                None => self.go(Life::CloseAll, 2),
            },
            Life::CloseAll => match self.close_one(now) {
                Some(step) => Some(step),
                None => self.go(Life::Done, 2),
            },
            Life::Done => Some(Step::Finished),
        }
    }

    fn go(&mut self, life: Life, list: usize) -> Option<Step> {
        (self.life, self.list, self.at) = (life, list, 0);
        self.frames.clear();
        self.pending = None;
        None
    }

    /// Begins the timed region when its tenant's turn has come, or to end at once if all is over.
    fn begin_in_turn(&mut self, now: Ns) -> Option<Step> {
        if !self.group.is_stopped() {
            if self.awaited.is_some_and(|tenant| !self.stage.has_ended(tenant)) {
                return Some(Step::Await);
            }
            if let Some(step) = self.meet_at_beginning(now) {
                return Some(step);
            }
            let begins = *self.turn.get_or_insert(now) + self.begins_ns;
            if now < begins {
                return Some(Step::SleepUntil(begins));
            }
        }
        self.begin(now);
        None
    }

    /// Waits at the barrier where its tenant begins.
    fn meet_at_beginning(&mut self, now: Ns) -> Option<Step> {
        let barrier = self.code.begins_at.filter(|_| !self.has_come)?;
        match self.come_to(barrier, now) {
            Begun::Later => Some(Step::Await),
            begun => {
                self.has_come = true;
                // The others see first that it is open.
                matches!(begun, Begun::Sleep(_)).then_some(Step::SleepUntil(now))
            }
        }
    }

    fn begin(&mut self, now: Ns) {
        self.life = Life::Timed;
        (self.started, self.ended, self.earliest) = (now, now, now);
        (self.intended, self.next_arrival) = (now, now);
        self.stage.sources.iter().for_each(|source| source.begin(now));
        self.bursting.iter_mut().for_each(|burst| burst.begin(now));
        let time = self.code.program.limit.time_ns;
        self.deadline = time.map_or(Ns::MAX, |time| now + time);
        // The list of the timed region begins at its end: the first pass is begun as all others.
        self.at = self.code.lists[1].len();
    }

    fn timed(&mut self, now: Ns) -> Option<Step> {
        if self.group.is_stopped() || now >= self.deadline {
            self.out_of_time.get_or_insert(now.min(self.deadline));
            return self.end_timed();
        }
        if self.is_out_of_work || self.is_at_limit() {
            return self.end_timed();
        }
        if self.code.program.recorded.is_some() {
            return self.timed_recorded(now);
        }
        if self.frames.is_empty()
            && self.at == self.code.lists[1].len()
            && let Some(step) = self.begin_pass(now)
        {
            return step;
        }
        let step = self.go_through(now);
        if step.is_none() {
            self.end_pass(now);
        }
        step
    }

    fn is_at_limit(&self) -> bool {
        let limit = &self.code.program.limit;
        let (ops, bytes) = self.issued;
        limit.ops.is_some_and(|most| ops >= most)
            || limit.total_bytes.is_some_and(|most| bytes >= most.0)
            || self.code.counted.is_some_and(|(tally, most)| self.tallies[tally].begun >= most)
    }

    /// The timed region is over for this worker as soon as nothing is in flight.
    fn end_timed(&mut self) -> Option<Step> {
        if self.is_stonewalled && !self.group.is_stopped() {
            self.group.stop();
        }
        if self.is_busy() {
            return Some(Step::Await);
        }
        if let (Pace::Rate { passes_per_s }, Some(end)) =
            (&self.code.program.pace, self.out_of_time)
        {
            let due = (end.since(self.started + self.delayed()).as_seconds() * passes_per_s).ceil()
                as u64;
            self.report.missed_ops = Some(due.saturating_sub(self.passes));
        }
        self.leave_composites();
        // The end does not wait for who sleeps, nor does what comes after it.
        self.thinking_until = Ns(0);
        self.go(Life::ArriveEnd, 2)
    }

    /// Tell whether calls are under way, or due.
    fn is_busy(&self) -> bool {
        self.in_flight > 0 || !self.ready.is_empty()
    }

    /// Says once that others need not wait for it any more.
    fn leave(&mut self) {
        if std::mem::replace(&mut self.has_left, true) {
            return;
        }
        if let Some(flow) = self.code.flow {
            self.stage.flows[flow].leave(self.tenant);
        }
        let waits = self.at_barrier.take();
        for (index, barrier) in self.stage.barriers.iter().enumerate() {
            let ticket = waits.filter(|(at, _)| *at == index).map(|(_, ticket)| ticket);
            barrier.leave(self.tenant, ticket);
        }
        self.stage.leave(self.tenant);
    }

    /// After a failure: let nobody wait for this worker, end.
    fn give_up(&mut self) -> Step {
        if self.in_flight > 0 {
            return Step::Await;
        }
        self.leave();
        self.group.stop();
        for (gate, arrived_at) in [(Gate::Start, Life::ArriveStart), (Gate::End, Life::ArriveEnd)] {
            if self.life <= arrived_at {
                self.group.arrive(gate);
            }
        }
        self.life = Life::Done;
        Step::Finished
    }

    fn fail(&mut self, message: impl FnOnce() -> String) {
        self.report.errors += 1;
        self.report.first_error.get_or_insert_with(message);
    }

    /// Failure of an operation, in words.
    fn failed_call(&mut self, node: Option<usize>, file: Option<FileId>, errno: Errno) {
        let name = node.map_or("closing a file".to_owned(), |node| {
            format!("the operation {}", self.code.flats[node].node.name())
        });
        let on = file.map_or(String::new(), |file| {
            let set = &self.stage.sets[file.set as usize];
            format!(" on file number {} of the set {}", file.number, set.name)
        });
        let reason = std::io::Error::from_raw_os_error(errno.0);
        let hint = match errno {
            Errno::EOPNOTSUPP => {
                "; this target cannot do that: leave the step out, or use another testbed"
            }
            other => advice(other),
        };
        self.fail(|| format!("{name}{on}: {reason}{hint}"));
    }

    /// Counts time in which calls were under way, and the longest gap between two ends.
    fn note_time(&mut self, completion: &Completion) {
        let from =
            self.busy_from.map_or(completion.submitted, |from| from.min(completion.submitted));
        if self.in_flight == 0 {
            self.report.call_ns += completion.completed.since(from).0;
            self.busy_from = None;
        } else {
            self.busy_from = Some(from);
        }
        let gap = completion.completed.since(self.ended).0;
        self.report.gap_ns_max = self.report.gap_ns_max.max(gap);
        self.ended = completion.completed;
    }

    /// Places picked so far by a node whose order all workers share.
    fn shared_count(&self, node: usize) -> u64 {
        self.stage.cursors[self.tenant][node].fetch_add(1, Ordering::Relaxed)
    }
}

impl<G: GroupState> Worker for ProgramWorker<'_, G> {
    fn so_far(&self) -> Option<(StreamReport, Vec<OperationCount>)> {
        Some((self.report(), self.operations()))
    }

    fn next(&mut self, now: Ns) -> Step {
        loop {
            if self.report.errors > 0 && self.life != Life::Done {
                return self.give_up();
            }
            if let Some(token) = self.ready.pop() {
                if let Some(op) = self.jobs[token as usize].as_mut().and_then(Job::next_op) {
                    return self.submit(token, op, now);
                }
                continue;
            }
            if self.blocked.is_some() {
                return Step::Await;
            }
            if let Some(step) = self.live(now) {
                return step;
            }
        }
    }

    fn rest(&mut self) -> bool {
        let Some((semaphore, count, high_water)) =
            self.waiting.resting.filter(|_| self.pending.is_some())
        else {
            return false;
        };
        let semaphore = &self.stage.semaphores[semaphore];
        match high_water {
            Some(most) => semaphore.rest_until_room(most),
            None => semaphore.rest_until_enough(count),
        }
        true
    }

    fn complete(&mut self, completion: &Completion) -> bool {
        self.in_flight -= 1;
        let is_timed = self.is_timed();
        if is_timed {
            self.note_time(completion);
        }
        let counts = self.call_ended(completion, is_timed);
        counts && !self.following.as_ref().is_some_and(|following| following.is_anew())
    }

    #[inline]
    fn begun_anew(&mut self) -> Option<Ns> {
        if self.following.is_some() { self.take_anew() } else { None }
    }
}
