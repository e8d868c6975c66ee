//! The end of a slot: what it cost, the next budget, and where the queue goes.

use super::marks::Mark;
use super::rate::SHORT_TIME;
use super::state::{Bfq, MS};
use crate::api::request::Requests;

/// Slots shorter than this say nothing about speed.
const SHORT_SLOT: u64 = MS;

/// Slots longer than this tell a slow queue by its service.
const LONG_SLOT: u64 = 20 * MS;

/// Milliseconds charged for a short slot on a rotational device: one seek.
// Linux block/bfq-iosched.c: the initial value of bfq_slice_idle.
const SEEK_MS: u64 = 8;

/// Reason why a slot ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Waited for it in vain.
    TooIdle,
    /// Its time is over.
    Timeout,
    /// The next request costs more than is left of the budget.
    Exhausted,
    /// Empty, and not worth waiting for.
    NoMore,
    /// Another queue may be more urgent.
    Preempted,
}

impl Bfq {
    /// Ends the slot of the queue in service.
    pub(super) fn expire(&mut self, requests: &Requests, id: u32, reason: Reason) {
        let speed = self.speed_of_slot(id, false);
        self.expire_judged(requests, id, reason, speed);
    }

    /// The same when the idle timer ended the slot: the time spent waiting does not count.
    pub(super) fn expire_by_timer(&mut self, requests: &Requests, id: u32, reason: Reason) {
        let speed = self.speed_of_slot(id, true);
        self.expire_judged(requests, id, reason, speed);
    }

    fn expire_judged(&mut self, requests: &Requests, id: u32, reason: Reason, speed: (bool, u64)) {
        let (is_slow, ms) = speed;
        let entity = self.entity(id);
        let is_wasteful =
            reason == Reason::Timeout && entity.budget_left() >= (entity.budget / 3) as i64;
        if !self.is_raised(id) && (is_slow || is_wasteful) {
            self.charge_time(id, ms);
        }
        if self.settings.is_low_latency {
            if !self.is_raised(id) {
                self.queue_mut(id).habits.raising.started = self.ticks;
            }
            if self.queue(id).backlog.is_empty() {
                self.plan_soft_start(id);
            }
        }
        self.stop_measurement();
        self.set_next_budget(requests, id, reason);
        self.end_slot(id, reason);
        if self.queue(id).is_busy() {
            self.update_position_with_work(requests, id);
        }
        let may_resume =
            !self.queue(id).is_busy() && reason != Reason::Timeout && reason != Reason::Exhausted;
        if may_resume {
            self.set_mark(id, Mark::Resumable, true);
        } else {
            self.entity_mut(id).service = 0;
        }
        self.free_forgotten();
        self.free_if_unused(id);
    }

    fn update_position_with_work(&mut self, requests: &Requests, id: u32) {
        if !self.queue(id).backlog.is_empty() {
            self.update_position(requests, id);
        }
    }

    fn plan_soft_start(&mut self, id: u32) {
        if self.queue(id).in_flight == 0 {
            self.queue_mut(id).habits.raising.soft_start = self.soft_start(id);
        } else {
            self.set_mark(id, Mark::SoftStartPending, true);
        }
    }

    /// Tell whether the slot was slow, and the milliseconds it is charged for if so.
    fn speed_of_slot(&self, id: u32, is_idle_excluded: bool) -> (bool, u64) {
        let queue = self.queue(id);
        if !queue.is_sync() {
            return (false, 0);
        }
        let end = if is_idle_excluded { self.slot.idling_started } else { self.now };
        let length = end.saturating_sub(self.slot.started);
        if length < SHORT_SLOT {
            let ms = if self.device.is_rotational { SEEK_MS } else { SHORT_TIME / MS };
            return (queue.is_seeky(), ms);
        }
        let is_slow = if length > LONG_SLOT {
            self.entity(id).service < self.max_budget / 2
        } else {
            queue.is_seeky()
        };
        (is_slow, length / MS)
    }

    /// Charges the time of the slot as if the device had run at its peak rate.
    fn charge_time(&mut self, id: u32, ms: u64) {
        let timeout_ms = self.hz.ms_of_ticks(self.settings.timeout as u64).max(1);
        let entity = self.entity_mut(id);
        let service = entity.service;
        let by_time = self.max_budget * ms.min(timeout_ms) / timeout_ms;
        let charged = by_time.max(service);
        let entity = self.entity_mut(id);
        entity.budget = entity.budget.max(charged);
        self.serve(id, charged - service);
    }

    /// Counts service.
    pub(super) fn serve(&mut self, id: u32, sectors: u64) {
        let (ticks, is_raised) = (self.ticks, self.is_raised(id));
        let queue = self.queue_mut(id);
        if queue.habits.raising.backlog_service == 0 {
            queue.first_service = ticks;
        }
        if is_raised {
            queue.habits.raising.service += sectors;
        }
        queue.habits.raising.backlog_service += sectors;
        self.agenda.served(id, sectors);
    }

    fn set_next_budget(&mut self, requests: &Requests, id: u32, reason: Reason) {
        let min = self.min_budget();
        let is_raised = self.is_raised(id);
        let queue = self.queue(id);
        let old = if is_raised { 2 * min } else { queue.max_budget };
        let budget = if !queue.is_sync() {
            self.max_budget
        } else if is_raised {
            old
        } else {
            match reason {
                Reason::TooIdle if queue.in_flight > 0 => (old * 2).min(self.max_budget),
                Reason::TooIdle if old > 5 * min => old - 4 * min,
                Reason::TooIdle => min,
                Reason::Timeout => (old * 2).min(self.max_budget),
                Reason::Exhausted => (old * 4).min(self.max_budget),
                Reason::NoMore => self.entity(id).service.max(min),
                Reason::Preempted => return,
            }
        };
        let is_capped = self.knows_rate() && self.settings.user_max_budget == 0;
        let budget = if is_capped { budget.min(self.max_budget) } else { budget };
        self.queue_mut(id).max_budget = budget;
        if let Some((_, charge)) = self.next_charge(requests, id) {
            self.entity_mut(id).budget = budget.max(charge);
        }
    }

    /// Takes the queue out of service: to the trees again, or away if it has nothing to do.
    pub(super) fn end_slot(&mut self, id: u32, reason: Reason) {
        let queue = self.queue(id);
        if queue.has(Mark::Shared) && queue.is_seeky() {
            self.set_mark(id, Mark::MustSplit, true);
        }
        let is_kept = reason == Reason::Preempted && self.idling_is_guaranteed(id);
        if self.queue(id).backlog.is_empty() && !is_kept {
            if self.queue(id).in_flight == 0 {
                self.queue_mut(id).slot_end = self.ticks;
            }
            self.leave_busy(id, true);
        } else {
            self.agenda.activate_or_requeue(id, false, true);
            self.recount_class(id);
        }
        self.stop_idling(id);
        self.in_service = None;
        self.agenda.end_service();
    }

    /// A queue is no longer busy.
    pub(super) fn leave_busy(&mut self, id: u32, is_expiration: bool) {
        let class = self.queue(id).busy_class;
        self.set_mark(id, Mark::Busy, false);
        self.busy[class] -= 1;
        self.raised_busy -= u32::from(self.is_raised(id));
        self.agenda.deactivate(id, is_expiration);
        if self.queue(id).in_flight == 0 {
            self.agenda.uncount(id);
        }
    }

    /// A queue becomes busy.
    pub(super) fn enter_busy(&mut self, id: u32) {
        let was_waiting = self.queue(id).has(Mark::Resumable);
        self.agenda.activate_or_requeue(id, was_waiting, false);
        self.set_mark(id, Mark::Resumable, false);
        self.set_mark(id, Mark::Busy, true);
        let class = self.class_of(id).index();
        self.queue_mut(id).busy_class = class;
        self.busy[class] += 1;
        let is_raised = self.is_raised(id);
        if self.queue(id).in_flight == 0 && !is_raised {
            self.agenda.count(id);
        }
        self.raised_busy += u32::from(is_raised);
        self.move_to_front_of_woken(id);
    }

    /// A change of class took effect while the queue was busy.
    pub(super) fn recount_class(&mut self, id: u32) {
        let (old, new) = (self.queue(id).busy_class, self.class_of(id).index());
        if old != new && self.queue(id).is_busy() {
            self.busy[old] -= 1;
            self.busy[new] += 1;
            self.queue_mut(id).busy_class = new;
        }
    }
}
