//! `BlockQueue`: split, plug, merge, slots, scheduler, dispatch to the layer below.
//!
//! The order of steps is the kernel's: split to the limits, try the plug, try the scheduler's
//! requests, take a slot (or wait for one), collect in the plug, insert, dispatch while the device
//! has room. Left out: several hardware queues, per-CPU caches, polling.
//!
//! Source: Linux 4.20 block/blk-core.c, block/elevator.c; 6.18 block/blk-mq.c, blk-mq-sched.c,
//! blk-merge.c (behaviour).

use std::collections::VecDeque;

use iolab_model::trace_event::{Action, Operation as Letters};
use iolab_model::{Ns, TraceEvent};

use super::accounting::Accounting;
use super::chain::{Chains, Owner};
use super::charged::Charged;
use super::flush::{FlushMachine, Next};
use super::merge::{MergeIndex, MergeLimits};
use super::parameters::QueueParameters;
use super::slots::Slots;
use super::throttle::{Throttle, ThrottleContext};
use super::waiters::Waiters;
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, ProcessId, Status};
use crate::api::layer::{Incident, Info, Layer, WriteCache};
use crate::api::request::{Request, RequestId, Requests};
use crate::api::scheduler::{Framework, Hz, Scheduler, SchedulerContext};
use crate::error::SimError;
use crate::sched::SchedulerKind;
use crate::software::{CostTable, ProcessorClocks};

/// A queue with a scheduler in front of a device.
pub struct BlockQueue {
    pub(super) info: Info,
    pub(super) below: Box<dyn Layer>,
    pub(super) kind: SchedulerKind,
    pub(crate) scheduler: Box<dyn Scheduler>,
    pub(super) framework: Framework,
    pub(super) uses_index: bool,
    pub(super) limits: MergeLimits,
    pub(super) nomerges: u8,
    pub(super) depth: u32,
    pub(super) look_ahead: usize,
    pub(crate) requests: Requests,
    pub(super) chains: Chains,
    pub(super) index: MergeIndex,
    pub(super) slots: Slots,
    pub(super) throttle: Option<Throttle>,
    pub(super) waiters: Waiters,
    pub(crate) plug: Vec<RequestId>,
    pub(super) dispatch_list: VecDeque<RequestId>,
    pub(super) in_flight: u32,
    pub(super) refuse_every: u32,
    pub(super) offered: u32,
    pub(super) flush: FlushMachine,
    pub(super) steps: Vec<Next>,
    pub(super) finished: Vec<Ended>,
    pub(super) scratch: Vec<Ended>,
    pub(super) run_at: Ns,
    /// The same of a scheduler that had requests and gave none; a worker that is called earlier is
    /// the same one (Linux 6.18 block/blk-mq.c: `mod_delayed_work`).
    rerun_at: Ns,
    hz: Hz,
    pub(super) accounting: Accounting,
    pub(super) events: Option<Vec<TraceEvent>>,
    /// Cost of the scheduler's calls; none: they take no time.
    charged: Option<Box<Charged>>,
    /// Requests given to the scheduler.
    pub(super) inserted: u64,
    /// Number of this queue in its stack, and of the newest request.
    device: u16,
    newest: u64,
}

impl BlockQueue {
    /// A queue in front of `below`, attached at `now`.
    pub fn new(
        now: Ns,
        parameters: &QueueParameters,
        below: Box<dyn Layer>,
    ) -> Result<Self, SimError> {
        let device = below.info();
        parameters.check(device.depth)?;
        let depth = parameters.queue_depth.unwrap_or(device.depth).min(device.depth);
        let (kind, framework) = (parameters.scheduler, parameters.scheduler.framework());
        let slots = slots_of(parameters, kind, depth);
        let context = SchedulerContext {
            is_rotational: parameters.rotational.unwrap_or(device.is_rotational),
            hz: Hz(parameters.hz),
            slots,
            depth,
            cpus: parameters.cpus,
            attached: now,
        };
        let mut scheduler = kind.attach(&context);
        for (name, &value) in &parameters.tunables {
            scheduler.tune(name, value)?;
        }
        let throttle = parameters.throttling_target(context.is_rotational).map(|target| {
            Throttle::new(ThrottleContext {
                target,
                // A SCSI queue knows its device's depth; others count their slots.
                depth: if parameters.look_ahead == 0 { depth } else { slots },
                has_write_cache: device.write_cache != WriteCache::Through,
                hz: Hz(parameters.hz),
            })
        });
        let info = Info { depth: u32::MAX, max_sectors: u32::MAX, chunk_sectors: 0, ..device };
        Ok(Self {
            info,
            below,
            kind,
            scheduler,
            framework,
            uses_index: !kind.finds_own_merges() && parameters.nomerges < 2,
            limits: limits_of(parameters, &device),
            nomerges: parameters.nomerges,
            depth,
            look_ahead: parameters.look_ahead.min(1) as usize,
            requests: Requests::default(),
            chains: Chains::default(),
            index: MergeIndex::default(),
            slots: Slots::new(framework, slots),
            throttle,
            waiters: Waiters::default(),
            plug: Vec::new(),
            dispatch_list: VecDeque::new(),
            in_flight: 0,
            refuse_every: parameters.refuse_every,
            offered: 0,
            flush: FlushMachine::default(),
            steps: Vec::new(),
            finished: Vec::new(),
            scratch: Vec::new(),
            run_at: Ns::MAX,
            rerun_at: Ns::MAX,
            hz: context.hz,
            accounting: Accounting::default(),
            events: None,
            charged: None,
            inserted: 0,
            device: 0,
            newest: 0,
        })
    }

    /// From now on the scheduler's calls take time of the submitters' processors.
    #[must_use]
    pub fn charged(mut self, table: &CostTable, processors: ProcessorClocks) -> Self {
        let charged = || Box::new(Charged::new(table, self.kind, processors));
        self.charged = (!table.is_free()).then(charged);
        self
    }

    /// Counters of the queue.
    pub const fn accounting(&self) -> &Accounting {
        &self.accounting
    }

    /// The bios that a request carries, its first one first; those that were split are left out.
    pub fn carried(&self, id: RequestId) -> impl Iterator<Item = BioId> {
        self.chains.owners(id).filter_map(|owner| match owner {
            Owner::Bio(bio) => Some(bio),
            Owner::Split(_) | Owner::Flush(_) => None,
        })
    }

    /// The layer below.
    pub fn below(&self) -> &dyn Layer {
        &*self.below
    }

    /// A request of one bio with a number of its own.
    pub(super) fn numbered(&mut self, bio: &Bio, now: Ns) -> Request {
        self.newest += 1;
        Request { number: self.newest, ..Request::of(bio, now) }
    }

    /// Changes a tunable of the scheduler while it runs.
    pub fn tune(&mut self, name: &str, value: u64) -> Result<(), SimError> {
        self.scheduler.tune(name, value)
    }

    /// Asks the scheduler until the device is full or it returns nothing.
    fn run(&mut self, now: Ns) {
        self.run_at = Ns::MAX;
        let mut is_in_vain = true;
        while self.in_flight < self.depth {
            if self.has_to_wait(now) {
                return;
            }
            let Some(id) = self.next_request(now) else {
                if is_in_vain {
                    self.plan_rerun(now);
                }
                return;
            };
            is_in_vain = false;
            if self.is_refused(now, id) {
                return;
            }
            self.issue(now, id);
        }
        if self.dispatch_list.len() < self.look_ahead
            && !self.has_to_wait(now)
            && let Some(id) = self.pull(now)
        {
            self.dispatch_list.push_back(id);
        }
    }

    /// blk-mq asks again later, unless that is planned already.
    fn plan_rerun(&mut self, now: Ns) {
        let is_asked = self.framework == Framework::MultiQueue && self.scheduler.has_requests();
        if is_asked && self.rerun_at == Ns::MAX {
            self.rerun_at = rerun_after(self.hz, now);
        }
    }

    /// Tell whether software has no time for a dispatch yet; plans it for when it has.
    fn has_to_wait(&mut self, now: Ns) -> bool {
        let Some(charged) = &mut self.charged else { return false };
        let asks_scheduler = self.dispatch_list.is_empty() && self.scheduler.has_requests();
        let at = charged.dispatch_at(now, asks_scheduler);
        self.run_at = at.unwrap_or(self.run_at);
        at.is_some()
    }

    /// The scheduler's timer before a call, where it matters.
    fn timer_before(&self) -> (Ns, u64) {
        if self.charged.is_none() {
            return (Ns::MAX, 0);
        }
        (self.scheduler.next_timer(), self.scheduler.timers_set())
    }

    fn next_request(&mut self, now: Ns) -> Option<RequestId> {
        self.dispatch_list.pop_front().or_else(|| self.pull(now))
    }

    fn pull(&mut self, now: Ns) -> Option<RequestId> {
        // Linux 6.18 block/blk-mq-sched.c: an elevator without work (`has_work`) is not asked, so
        // that an empty queue changes nothing in it.
        if self.framework == Framework::MultiQueue && !self.scheduler.has_requests() {
            return None;
        }
        let before = self.timer_before();
        let id = self.scheduler.dispatch(now, &self.requests);
        if let Some(charged) = &mut self.charged
            && is_timer_set(before, &*self.scheduler)
        {
            charged.timer_set(now);
        }
        let id = id?;
        if self.uses_index {
            self.index.remove(id, self.requests[id].end());
        }
        Some(id)
    }

    /// Puts a request back if the device refuses it; the next completion runs the queue again.
    fn is_refused(&mut self, now: Ns, id: RequestId) -> bool {
        self.offered = self.offered.wrapping_add(1);
        let is_by_count = self.refuse_every > 0 && self.offered.is_multiple_of(self.refuse_every);
        let is_refused = self.in_flight > 0 && (is_by_count || self.below.is_busy());
        if is_refused {
            let request = self.requests[id];
            if self.flush.is_bypassing(self.chains.first(id)) {
                self.dispatch_list.push_front(id);
            } else {
                self.scheduler.activate(now, &self.requests, id);
                self.scheduler.requeue(now, &self.requests, id);
            }
            self.trace(now, Action::Requeued, &request);
        }
        is_refused
    }

    fn issue(&mut self, now: Ns, id: RequestId) {
        self.requests[id].issued = now;
        let request = self.requests[id];
        if !self.flush.is_bypassing(self.chains.first(id)) {
            self.scheduler.activate(now, &self.requests, id);
        }
        self.trace(now, Action::Issued, &request);
        self.accounting.issued(now, &request);
        if let Some(throttle) = &mut self.throttle {
            throttle.issued(id, &request);
        }
        self.in_flight += 1;
        let bio = Bio {
            id: BioId(id.0),
            operation: request.operation,
            sector: request.sector,
            sectors: request.sectors,
            flags: request.flags,
            submitter: request.submitter,
            segments: request.segments,
        };
        self.below.submit(now, &bio);
    }

    /// The end of a command is that of every bio in it, whether it went well or not.
    fn complete(&mut self, now: Ns, id: RequestId, status: Status) {
        let request = self.requests[id];
        self.in_flight -= 1;
        self.trace(now, Action::Completed, &request);
        self.accounting.completed(now, &request);
        if let Some(throttle) = &mut self.throttle {
            throttle.completed(now, id, &request);
        }
        let is_flush = request.operation == Operation::Flush;
        let is_bypassing = is_flush || self.flush.is_bypassing(self.chains.first(id));
        let (before, first) = (self.timer_before(), self.finished.len());
        if !is_bypassing {
            self.scheduler.complete(now, &self.requests, id);
            self.give_slot(&request);
        }
        if is_flush {
            let mut next = core::mem::take(&mut self.steps);
            self.flush.flush_done(now, status, &mut next);
            self.follow(now, &mut next);
            self.steps = next;
            self.chains.take(id);
        } else {
            while let Some(owner) = self.chains.take(id) {
                self.piece_done(now, owner, status);
            }
        }
        self.requests.remove(id);
        (self.run_at, self.rerun_at) = (now, Ns::MAX);
        if let Some(charged) = &mut self.charged {
            let runs_worker = match self.framework {
                Framework::Legacy => self.scheduler.asks_for_worker(),
                Framework::MultiQueue => self.kind.is_elevator() && self.scheduler.has_requests(),
            };
            let has_timer = is_timer_set(before, &*self.scheduler);
            let at = charged.completed(now, request.submitter, (has_timer, runs_worker));
            self.finished.drain(first..).for_each(|ended| charged.tell(at, ended));
        }
    }

    fn piece_done(&mut self, now: Ns, owner: Owner, status: Status) {
        let Owner::Flush(index) = owner else { return self.owner_done(owner, status) };
        let mut next = core::mem::take(&mut self.steps);
        self.flush.data_done(now, index, status, &mut next);
        self.follow(now, &mut next);
        self.steps = next;
    }

    pub(super) fn owner_done(&mut self, owner: Owner, status: Status) {
        match owner {
            Owner::Bio(id) => self.finished.push(Ended { id, status }),
            Owner::Split(index) => self.finished.extend(self.chains.piece_done(index, status)),
            Owner::Flush(_) => unreachable!("a flush sequence is not owned by another"),
        }
    }

    pub(super) fn trace(&mut self, now: Ns, action: Action, request: &Request) {
        let Some(events) = &mut self.events else { return };
        events.push(TraceEvent {
            at: now,
            action,
            sector: request.sector,
            sectors: request.sectors,
            operation: letters(request),
            process: request.submitter.process.0,
            cpu: request.submitter.cpu,
            priority: request.submitter.priority.packed(),
            device: self.device,
            request: request.number,
        });
    }
}

impl Layer for BlockQueue {
    fn info(&self) -> Info {
        self.info
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        let (before, inserted) = (self.timer_before(), self.inserted);
        self.plug_bio(now, bio);
        self.unplug(now);
        if let Some(charged) = &mut self.charged {
            let inserted = self.inserted - inserted;
            let has_timer = is_timer_set(before, &*self.scheduler);
            charged.taken_in(now, bio.submitter, inserted, has_timer);
            let is_elevator = self.kind.is_elevator() && self.framework == Framework::MultiQueue;
            if is_elevator && inserted > 0 && self.in_flight < self.depth {
                self.run_at = self.run_at.max(charged.worker(now, bio.submitter));
            }
        }
        if self.throttle.as_ref().is_some_and(Throttle::has_woken) {
            self.wake(now);
        }
    }

    fn next_event(&self) -> Ns {
        let window_end = self.throttle.as_ref().map_or(Ns::MAX, Throttle::next_timer);
        let told = self.charged.as_ref().map_or(Ns::MAX, |charged| charged.next_event());
        let own = self.run_at.min(self.rerun_at).min(self.scheduler.next_timer());
        let own = own.min(window_end).min(told);
        own.min(self.below.next_event())
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        if let Some(charged) = &mut self.charged
            && charged.next_event() <= now
        {
            return charged.take_due(now, done);
        }
        if self.below.next_event() <= now {
            let mut ended = core::mem::take(&mut self.scratch);
            self.below.advance(now, &mut ended);
            for &Ended { id, status } in &ended {
                self.complete(now, RequestId(id.0), status);
            }
            if !ended.is_empty() {
                self.wake(now);
            }
            let is_done = !ended.is_empty();
            ended.clear();
            self.scratch = ended;
            done.append(&mut self.finished);
            if is_done {
                return;
            }
        }
        done.append(&mut self.finished);
        if let Some(throttle) = &mut self.throttle
            && throttle.next_timer() <= now
        {
            throttle.timer(now);
            self.wake(now);
        }
        if self.rerun_at <= now {
            self.rerun_at = Ns::MAX;
            self.run_at = self.run_at.min(now);
        }
        if self.scheduler.next_timer() <= now {
            self.scheduler.timer(now, &self.requests);
            self.rerun_at = Ns::MAX;
            match &mut self.charged {
                // The timer only asks a worker to come.
                Some(charged) => self.run_at = now + charged.switch(),
                None => self.run(now),
            }
        } else if self.run_at <= now {
            self.run(now);
        }
    }

    fn exited(&mut self, now: Ns, process: ProcessId) {
        self.scheduler.exit(now, process);
        if self.scheduler.has_requests() {
            self.run_at = self.run_at.min(now);
        }
        self.below.exited(now, process);
    }

    fn age(&mut self) {
        self.below.age();
    }

    fn record_events(&mut self, queues: &mut u16) {
        self.device = *queues;
        *queues += 1;
        self.events.get_or_insert_default();
        self.below.record_events(queues);
    }

    fn take_events(&mut self, events: &mut Vec<TraceEvent>) {
        events.extend(self.events.iter_mut().flat_map(core::mem::take));
        self.below.take_events(events);
    }

    fn incidents(&self, list: &mut Vec<Incident>) {
        self.below.incidents(list);
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let mut all = self.accounting.counters();
        all.extend(self.charged.iter().flat_map(|charged| charged.counters()));
        all.extend(self.below.counters());
        all
    }
}

/// Instant at which blk-mq asks a scheduler again that had requests and gave none.
///
/// Linux 6.18 block/blk-mq-sched.c: `BLK_MQ_BUDGET_DELAY`, 3 ms in whole ticks; kernel/time/timer.c
/// (`calc_index`): a timer never ends early, so it ends a tick after the one it was set to.
pub fn rerun_after(hz: Hz, now: Ns) -> Ns {
    Ns((hz.ticks(now) + hz.ticks_of_ms(3) + 1) * hz.tick().0)
}

/// Tell whether a timer was set meanwhile.
fn is_timer_set((before, count): (Ns, u64), scheduler: &dyn Scheduler) -> bool {
    let after = scheduler.next_timer();
    after != Ns::MAX && (after != before || scheduler.timers_set() != count)
}

/// Limits of a request: of the settings and the device.
fn limits_of(parameters: &QueueParameters, device: &Info) -> MergeLimits {
    let soft = parameters.max_sectors_kb.map_or(u32::MAX, |kb| kb.saturating_mul(2));
    MergeLimits {
        max_sectors: soft.min(device.max_sectors).max(8),
        max_segments: parameters.max_segments.unwrap_or(u32::MAX),
        chunk_sectors: device.chunk_sectors,
        framework: parameters.scheduler.framework(),
    }
}

fn slots_of(parameters: &QueueParameters, kind: SchedulerKind, depth: u32) -> u32 {
    // Linux 4.20 include/linux/blkdev.h: BLKDEV_MAX_RQ = 128.
    let by_default = match kind.framework() {
        _ if !kind.is_elevator() => depth,
        Framework::Legacy => 128,
        Framework::MultiQueue => 2 * depth.min(128),
    };
    let wanted = parameters.nr_requests.unwrap_or(by_default);
    if kind.is_elevator() { wanted } else { wanted.min(depth) }
}

fn letters(request: &Request) -> Letters {
    let kind = match request.operation {
        Operation::Read => Letters::READ,
        Operation::Write => Letters::WRITE,
        Operation::Discard => Letters::DISCARD,
        Operation::Flush => Letters::FLUSH,
    };
    let flags = [
        (Flags::SYNC, Letters::SYNC),
        (Flags::FUA, Letters::FUA),
        (Flags::META, Letters::META),
        (Flags::PREFLUSH, Letters::PREFLUSH),
    ];
    flags
        .iter()
        .filter(|(flag, _)| request.flags.contains(*flag))
        .fold(kind, |all, &(_, letter)| all.with(letter))
}
