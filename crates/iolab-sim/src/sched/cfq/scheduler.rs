//! cfq's state and its hooks.

use std::collections::VecDeque;

use iolab_model::{Ns, Sector};

use super::clock::{Clock, Tick};
use super::cooperator::PositionTrees;
use super::flow::Ticket;
use super::group::Group;
use super::preset::Preset;
use super::process::{ProcessSlot, Processes};
use super::queue::{QueueId, Queues};
use super::select::Serving;
use super::settings::Settings;
use crate::api::bio::{Bio, ProcessId};
use crate::api::request::{RequestId, Requests};
use crate::api::scheduler::{Attach, Framework, Merge, Scheduler, SchedulerContext};
use crate::sched::common::PerRequest;

use super::idle::Queueing;

/// Completely fair queueing.
#[derive(Clone, Debug)]
pub struct Cfq {
    pub(super) clock: Clock,
    pub(super) settings: Settings,
    pub(super) is_rotational: bool,
    pub(super) queues: Queues,
    pub(super) processes: Processes,
    pub(super) group: Group,
    /// Asynchronous queues: real time by level, best effort by level, the idle class.
    pub(super) async_queues: [Option<QueueId>; 17],
    pub(super) positions: PositionTrees,
    pub(super) tickets: PerRequest<Ticket>,
    /// Queue that owns the device.
    pub(super) active: Option<QueueId>,
    /// Process of the first request of the slice: the process that is waited for.
    pub(super) active_process: Option<ProcessSlot>,
    pub(super) serving: Serving,
    /// Time at which the idle timer ends; the end of time if it does not run.
    pub(super) timer_at: Ns,
    /// Number of times that it was set.
    pub(super) timers_set: u64,
    /// End of the request that the device started last.
    pub(super) last_position: Sector,
    pub(super) busy_queues: u32,
    pub(super) busy_sync_queues: u32,
    /// Requests in all queues.
    pub(super) queued: u32,
    /// Requests that the device has.
    pub(super) in_driver: u32,
    /// Dispatched requests; indexed by "is synchronous".
    pub(super) in_flight: [u32; 2],
    pub(super) queueing: Queueing,
    /// Time at which a synchronous request was last completed late.
    pub(super) last_delayed_sync: Tick,
    /// Refused by the device, offered again first.
    pub(super) requeued: VecDeque<RequestId>,
    pub(super) presets: Vec<(ProcessId, Preset)>,
}

/// "Long ago", in ticks before the start of time.
const LONG_AGO: Tick = -(1 << 40);

impl Attach for Cfq {
    const FRAMEWORK: Framework = Framework::Legacy;

    /// Attached at instant 0 means: long ago, before the simulation began.
    fn attach(context: &SchedulerContext) -> Self {
        let mut clock = Clock::new(context.hz);
        clock.set(context.attached);
        let created = if context.attached == Ns(0) { LONG_AGO } else { clock.now };
        Self {
            clock,
            settings: Settings::defaults(context),
            is_rotational: context.is_rotational,
            queues: Queues::default(),
            processes: Processes::default(),
            group: Group::new(created),
            async_queues: [None; 17],
            positions: PositionTrees::default(),
            tickets: PerRequest::default(),
            active: None,
            active_process: None,
            serving: Serving::new(created),
            timer_at: Ns::MAX,
            timers_set: 0,
            last_position: Sector(0),
            busy_queues: 0,
            busy_sync_queues: 0,
            queued: 0,
            in_driver: 0,
            in_flight: [0; 2],
            queueing: Queueing::default(),
            // Linux 4.1 block/cfq-iosched.c: no request was late in the last second.
            last_delayed_sync: created - clock.second(),
            requeued: VecDeque::new(),
            presets: Vec::new(),
        }
    }
}

impl Scheduler for Cfq {
    fn insert(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        self.clock.set(now);
        self.take_in(requests, id);
    }

    fn dispatch(&mut self, now: Ns, requests: &Requests) -> Option<RequestId> {
        let again = self.requeued.pop_front();
        if again.is_some() || self.busy_queues == 0 {
            return again;
        }
        self.clock.set(now);
        let queue = self.select()?;
        self.dispatch_from(requests, queue)
    }

    fn activate(&mut self, _: Ns, requests: &Requests, id: RequestId) {
        self.in_driver += 1;
        self.last_position = requests[id].end();
    }

    fn complete(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        self.clock.set(now);
        self.completed(requests, id);
    }

    /// Linux 4.1 block/cfq-iosched.c: `cfq_completed_request` with nothing left at the device.
    fn asks_for_worker(&self) -> bool {
        self.in_driver == 0 && self.busy_queues > 0
    }

    fn requeue(&mut self, _: Ns, _: &Requests, id: RequestId) {
        self.in_driver -= 1;
        self.requeued.push_front(id);
    }

    fn next_timer(&self) -> Ns {
        self.timer_at
    }

    /// A high-resolution timer (since 4.8), which is set anew at each wait.
    fn timers_set(&self) -> u64 {
        self.timers_set
    }

    fn timer(&mut self, now: Ns, _: &Requests) {
        self.clock.set(now);
        self.idle_timer();
    }

    fn has_requests(&self) -> bool {
        self.queued > 0 || !self.requeued.is_empty()
    }

    fn must_grant(&self, bio: &Bio) -> bool {
        self.waits_for(bio)
    }

    fn exit(&mut self, now: Ns, process: ProcessId) {
        self.clock.set(now);
        self.process_ended(process);
    }

    fn front(&mut self, _: Ns, _: &Requests, bio: &Bio) -> Option<RequestId> {
        let queue = self.queue_of(bio)?;
        self.queues[queue].pending.sorted.starting_at(bio.end())
    }

    fn allows_merge(&mut self, _: Ns, requests: &Requests, into: RequestId, bio: &Bio) -> bool {
        let is_sync_enough = requests[into].is_sync() || !bio.is_sync();
        is_sync_enough && self.queue_of(bio) == Some(self.tickets.get(into).queue)
    }

    fn former(&self, _: &Requests, id: RequestId) -> Option<RequestId> {
        let ticket = self.tickets.get(id);
        self.queues[ticket.queue].pending.sorted.former(ticket.place.sorted)
    }

    fn latter(&self, _: &Requests, id: RequestId) -> Option<RequestId> {
        let ticket = self.tickets.get(id);
        self.queues[ticket.queue].pending.sorted.latter(ticket.place.sorted)
    }

    fn allows_join(&self, _: &Requests, first: RequestId, second: RequestId) -> bool {
        self.tickets.get(first).queue == self.tickets.get(second).queue
    }

    fn merged(&mut self, now: Ns, requests: &Requests, merge: Merge) {
        self.clock.set(now);
        self.note_merge(requests, merge);
    }

    fn joined(&mut self, now: Ns, requests: &Requests, survivor: RequestId, absorbed: RequestId) {
        self.clock.set(now);
        self.join(requests, survivor, absorbed);
    }

    fn preset(&mut self, state: &str) -> bool {
        self.take_preset(state)
    }
}
