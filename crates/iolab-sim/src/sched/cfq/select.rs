//! The decision at each dispatch attempt: who owns the device, and may it dispatch now.
//!
//! Source: Linux 4.1 block/cfq-iosched.c; order of the checks as in the kernel.

use super::clock::Tick;
use super::queue::{Marks, Queue, QueueId};
use super::scheduler::Cfq;
use super::tree::{Class, Kind, TreeId};
use crate::api::request::{RequestId, Requests};

/// Shortest time for a workload, in ticks (`CFQ_MIN_TT`).
const WORKLOAD_TICKS_MIN: Tick = 2;

/// Longest time for a workload; absurd tunables would give more than the kernel's 32 bits hold.
const WORKLOAD_TICKS_MAX: Tick = u32::MAX as Tick;

/// The workload that is being served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    pub class: Class,
    pub kind: Kind,
    /// End of its time.
    pub end: Tick,
}

impl Serving {
    /// Before the first.
    pub fn new(now: Tick) -> Self {
        Self { class: Class::BestEffort, kind: Kind::Async, end: now }
    }
}

/// Decision about the active queue.
enum Verdict {
    /// Permission to go on.
    Keep,
    /// Nothing for now, it stays active.
    Wait,
    /// Its turn is over; the one named (a queue that reads the same place) or another is next.
    Change(Option<QueueId>),
}

impl Cfq {
    /// The queue to dispatch from; nothing if it pays to wait.
    pub(super) fn select(&mut self) -> Option<QueueId> {
        let verdict = self.active.map_or(Verdict::Change(None), |active| self.judge_active(active));
        let cooperator = match verdict {
            Verdict::Keep => return self.active,
            Verdict::Wait => return None,
            Verdict::Change(cooperator) => cooperator,
        };
        self.expire(false);
        if cooperator.is_none() {
            self.choose_workload();
        }
        let next = cooperator.or_else(|| self.group.first(self.serving.class, self.serving.kind));
        self.set_active(next);
        next
    }

    fn judge_active(&mut self, id: QueueId) -> Verdict {
        let now = self.clock.now;
        let queue = &self.queues[id];
        let (is_empty, in_flight) = (queue.is_empty(), queue.in_flight);
        if self.queued == 0 {
            return Verdict::Wait;
        }
        if queue.marks.has(Marks::WAITS_BUSY) && !is_empty {
            return Verdict::Change(None);
        }
        if queue.is_slice_used(now) && !queue.marks.has(Marks::MUST_DISPATCH) {
            // It idled its slice away; let its last request complete before others get a turn.
            let is_alone = self.group.queues == 1 && is_empty && in_flight > 0;
            if is_alone && self.should_idle(id) {
                return Verdict::Wait;
            }
            return self.judge_group();
        }
        if !is_empty {
            return Verdict::Keep;
        }
        if let Some(cooperator) = self.close_cooperator(id) {
            if self.queues[id].merge_into.is_none() {
                self.plan_merge(id, cooperator);
            }
            return Verdict::Change(Some(cooperator));
        }
        if self.is_timer_running() {
            return Verdict::Wait;
        }
        let queue = &mut self.queues[id];
        let is_awaited_seeker = queue.seeks.is_seeky() && queue.marks.has(Marks::IDLE_WINDOW);
        if is_awaited_seeker && is_early(queue, now) {
            // A deep seeky queue that the device empties faster than it fills: not worth waiting.
            queue.marks.clear(Marks::IDLE_WINDOW.with(Marks::DEEP));
        }
        if in_flight > 0 && self.should_idle(id) {
            return Verdict::Wait;
        }
        self.judge_group()
    }

    /// Tell whether to wait for the group's requests at the device.
    fn judge_group(&self) -> Verdict {
        let is_waiting = self.settings.group_idle > 0
            && self.group.queues == 1
            && self.group.in_flight > 0
            && !self.group.think.is_longer_than(self.settings.group_idle);
        if is_waiting { Verdict::Wait } else { Verdict::Change(None) }
    }

    /// Chooses class and kind of workload, and how long it may last.
    fn choose_workload(&mut self) {
        let now = self.clock.now;
        self.serving.end = now - 1;
        if let Some(saved) = self.group.saved {
            let (class, kind) = (saved.class, saved.kind);
            self.serving = Serving { class, kind, end: now + saved.left };
        }
        let old_class = self.serving.class;
        let class = [Class::RealTime, Class::BestEffort]
            .into_iter()
            .find(|&class| self.group.busy(class) > 0)
            .unwrap_or(Class::Idle);
        self.serving.class = class;
        if class == Class::Idle {
            self.serving.end = now + 1;
            return;
        }
        let has_queues = self.group.first(class, self.serving.kind).is_some();
        if class == old_class && has_queues && now <= self.serving.end {
            return;
        }
        self.serving.kind = self.group.earliest_kind(class);
        self.serving.end = now + self.workload_slice();
    }

    /// Time for the workload: its queues' part of the group's share of `target_latency`.
    fn workload_slice(&self) -> Tick {
        let Serving { class, kind, .. } = self.serving;
        let queues = self.group.tree(TreeId::of(class, kind)).len() as Tick;
        let busy = self.group.busy_average[class as usize].max(self.group.busy(class));
        let share = self.group.part_of(self.settings.target_latency);
        let mut slice = share.saturating_mul(queues) / Tick::from(busy);
        if kind == Kind::Async {
            let queues = Tick::from(self.group.busy_async());
            let most =
                self.settings.target_latency.saturating_mul(queues) / Tick::from(self.busy_queues);
            let [asynchronous, sync] = self.settings.slice;
            slice = slice.min(most).saturating_mul(asynchronous) / sync;
        } else {
            slice = slice.max(2 * self.settings.slice_idle);
        }
        slice.clamp(WORKLOAD_TICKS_MIN, WORKLOAD_TICKS_MAX)
    }

    /// Tell whether the active queue may have one more request at the device.
    fn may_dispatch(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let [async_in_flight, sync_in_flight] = self.in_flight;
        if async_in_flight > 0 && self.should_idle(id) {
            return false;
        }
        if sync_in_flight > 0 && !queue.is_sync {
            return false;
        }
        let half = if queue.class == Class::Idle { 1 } else { (self.settings.quantum / 2).max(1) };
        let Some(mut limit) = (if queue.in_flight < half {
            Some(Tick::from(half))
        } else {
            self.limit_beyond_half(queue)
        }) else {
            return false;
        };
        if !queue.is_sync && self.settings.is_low_latency {
            // The longer no synchronous request was late, the more asynchronous ones at once.
            let quiet = self.clock.now - self.last_delayed_sync;
            let depth = quiet / self.settings.slice[1];
            let is_first = depth == 0 && queue.in_flight == 0;
            limit = limit.min(if is_first { 1 } else { depth });
        }
        Tick::from(queue.in_flight) < limit
    }

    /// Limit of a queue that has half of `quantum` at the device; nothing if that is enough.
    fn limit_beyond_half(&self, queue: &Queue) -> Option<Tick> {
        if queue.class == Class::Idle {
            return None;
        }
        let is_only_sync = queue.is_sync && self.busy_sync_queues == 1;
        if is_only_sync || self.busy_queues == 1 {
            return Some(Tick::MAX);
        }
        let rest = self.settings.slice_idle.saturating_mul(queue.in_flight.into());
        let is_used_soon =
            queue.marks.has(Marks::FRESH) || self.clock.now.saturating_add(rest) > queue.slice.end;
        (!is_used_soon).then_some(self.settings.quantum.into())
    }

    /// Takes a request out of the active queue, if it may dispatch one.
    pub(super) fn dispatch_from(&mut self, requests: &Requests, id: QueueId) -> Option<RequestId> {
        if !self.may_dispatch(id) {
            return None;
        }
        let request = self.oldest_if_due(id).or(self.queues[id].next);
        let request = request.expect("an active queue that may dispatch has requests");
        self.take_out(requests, request);
        if self.active_process.is_none() {
            let process = self.tickets.get(request).process;
            self.processes.hold(process);
            self.active_process = Some(process);
        }
        let queue = &mut self.queues[id];
        queue.slice.dispatched += 1;
        queue.marks.clear(Marks::MUST_DISPATCH);
        let allowance = self.settings.async_allowance(queue.level);
        let is_over = !queue.is_sync && u64::from(queue.slice.dispatched) >= allowance;
        if self.busy_queues > 1 && (is_over || queue.class == Class::Idle) {
            queue.slice.end = self.clock.now + 1;
            self.expire(false);
        }
        Some(request)
    }

    /// The oldest request if its time has come; looked at once per slice.
    fn oldest_if_due(&mut self, id: QueueId) -> Option<RequestId> {
        let now = self.clock.instant(self.clock.now);
        let queue = &mut self.queues[id];
        if queue.marks.has(Marks::FIFO_CHECKED) {
            return None;
        }
        queue.marks.set(Marks::FIFO_CHECKED);
        queue
            .pending
            .fifo
            .head()
            .filter(|&(_, deadline)| deadline <= now)
            .map(|(request, _)| request)
    }
}

/// Tell whether less than half of the slice has passed.
fn is_early(queue: &Queue, now: Tick) -> bool {
    let passed = queue.slice.started.map_or(now, |started| now - started);
    queue.marks.has(Marks::FRESH) || queue.slice.end - now > passed
}
