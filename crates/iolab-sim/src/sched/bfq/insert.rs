//! A request arrives: what it tells about its process, what it changes for the queue in service.

use super::entity::Class;
use super::expire::Reason;
use super::marks::Mark;
use super::raising::INTERACTIVE_IDLE_MS;
use super::state::{Bfq, MS};
use crate::api::request::{RequestId, Requests};

/// Idleness is judged over at most about this time.
const OBSERVATION: u64 = 200 * MS;

/// A lone request smaller than this does not end the wait.
const SMALL: u32 = 32;

/// Requests that come within this many idle periods are in time.
const IN_TIME: u64 = 3;

impl Bfq {
    /// Finds the queue of a request's process and counts the request there.
    pub(super) fn assign(&mut self, requests: &Requests, request: RequestId) -> u32 {
        let process = self.process_of(requests[request].submitter);
        let is_sync = requests[request].is_sync();
        let (mut id, is_new) = self.find_or_add_queue(process, is_sync);
        let must_split = !is_new
            && self.queue(id).has(Mark::Shared)
            && self.queue(id).has(Mark::MustSplit)
            && !self.processes.get(process).is_stably_merged;
        if must_split {
            (id, _) = self.split_process(process, id);
        }
        self.queue_mut(id).allocated += 1;
        self.processes.get_mut(process).requests += 1;
        let item = self.items.get_mut(request);
        (item.queue, item.process) = (id, process);
        if self.queue(id).users == 1 && is_sync {
            self.queue_mut(id).owner = Some(process);
            if must_split {
                self.resume_habits(process, id);
            }
        }
        self.join_burst(id);
        id
    }

    fn find_or_add_queue(&mut self, process: u32, is_sync: bool) -> (u32, bool) {
        let row = self.processes.get(process);
        if let Some(id) = if is_sync { row.sync } else { row.unsync } {
            return (id, false);
        }
        let id = self.queue_for(process, is_sync, false);
        if is_sync {
            self.set_sync_queue(process, Some(id));
        } else {
            self.processes.get_mut(process).unsync = Some(id);
        }
        (id, true)
    }

    /// Takes a request.
    pub(super) fn take(&mut self, requests: &Requests, request: RequestId) {
        let id = self.assign(requests, request);
        let id = self.redirect(requests, request, id);
        self.learn_think_time(id);
        self.learn_distance(requests, request, id);
        self.enqueue(requests, request, id);
        self.free_forgotten();
    }

    /// Sends a request to the queue that its process is being merged into, if it is.
    fn redirect(&mut self, requests: &Requests, request: RequestId, id: u32) -> u32 {
        let process = self.items.get(request).process;
        let Some(into) = self.find_cooperator(id, requests[request].sector, process) else {
            return id;
        };
        self.queue_mut(into).allocated += 1;
        self.queue_mut(id).allocated -= 1;
        if self.processes.get(process).sync == Some(id) {
            self.move_process(process, id, into);
        }
        self.set_mark(id, Mark::JustCreated, false);
        self.free_if_unused(id);
        self.items.get_mut(request).queue = into;
        into
    }

    fn learn_think_time(&mut self, id: u32) {
        let (now, slice_idle) = (self.now, self.settings.slice_idle);
        let queue = self.queue_mut(id);
        if queue.in_flight == 0 && !queue.is_busy() {
            queue.habits.think.sample(now, 2 * slice_idle);
        }
        let queue = self.queue(id);
        let is_settled = self.is_past(queue.split + self.ticks_of(INTERACTIVE_IDLE_MS));
        let is_judged = queue.is_sync() && self.class_of(id) != Class::Idle && slice_idle > 0;
        if !is_judged || !is_settled {
            return;
        }
        let is_short = !queue.habits.think.is_longer_than(slice_idle / 2);
        if is_short != queue.has(Mark::ShortThink) {
            self.set_mark(id, Mark::ShortThink, is_short);
            self.adapt_to_think_time(id, is_short);
        }
    }

    fn learn_distance(&mut self, requests: &Requests, request: RequestId, id: u32) {
        let is_far = self.is_far(self.queue(id).last_end.0, &requests[request]);
        let queue = self.queue_mut(id);
        queue.seeks = queue.seeks << 1 | u32::from(is_far);
        self.drop_seeky_soft(id);
    }

    fn enqueue(&mut self, requests: &Requests, request: RequestId, id: u32) {
        let was_raised = self.is_raised(id);
        self.queued += 1;
        if self.queue(id).is_sync() {
            let process = self.items.get(request).process;
            if self.processes.get(process).requests <= 1 {
                self.look_for_waker(id);
                self.prepare_measurement(id);
            }
            self.learn_idleness(id);
        }
        let is_sync = requests[request].is_sync();
        let expire = if is_sync { self.settings.expire_sync } else { self.settings.expire_unsync };
        self.items.get_mut(request).deadline = self.now + expire;
        let Self { queues, items, .. } = self;
        queues[id as usize].backlog.insert(items, request, requests[request].sector);
        let has_changed = self.consider_next(requests, request, id);
        let mut is_interactive = false;
        if self.queue(id).is_busy() {
            if !was_raised {
                self.raise_after_pause(id);
            }
            if has_changed {
                self.follow_next(requests, id);
            }
        } else {
            is_interactive = self.become_busy(requests, request, id);
        }
        if self.settings.is_low_latency && (!was_raised || !self.is_raised(id) || is_interactive) {
            self.queue_mut(id).habits.raising.started = self.ticks;
        }
        self.queue_mut(id).last_end = requests[request].end();
        self.end_wait(requests, request, id);
    }

    /// Tell whether the process is busy with I/O at least 80 % of the time.
    fn learn_idleness(&mut self, id: u32) {
        let (now, has_plug_clock) = (self.now, self.settings.has_plug_clock);
        let queue = self.queue_mut(id);
        let habits = &mut queue.habits;
        let total = now - habits.observed_since;
        if queue.backlog.is_empty() && queue.in_flight == 0 {
            let last = habits.think.last_completion;
            let idle =
                if has_plug_clock { now.wrapping_sub(last) } else { now.saturating_sub(last) };
            habits.idle_time = habits.idle_time.wrapping_add(idle);
        }
        if queue.marks.has(Mark::JustCreated) {
            return;
        }
        queue.marks.set(Mark::IoBound, habits.idle_time.wrapping_mul(5) <= total);
        if total > OBSERVATION {
            habits.observed_since = now - (total >> 1);
            habits.idle_time >>= 1;
        }
    }

    /// Tell whether a queued request is a better next one; true if it is.
    pub(super) fn consider_next(
        &mut self,
        requests: &Requests,
        request: RequestId,
        id: u32,
    ) -> bool {
        let old = self.queue(id).next;
        let last = self.device.last_position;
        let next = self.back_seek().better(requests, old, Some(request), last);
        self.queue_mut(id).next = next;
        if next != old {
            self.update_position(requests, id);
        }
        next != old
    }

    /// The next request has changed: the budget must cover it, unless the queue is in service.
    pub(super) fn follow_next(&mut self, requests: &Requests, id: u32) {
        if self.in_service == Some(id) {
            return;
        }
        let Some((_, charge)) = self.next_charge(requests, id) else {
            return;
        };
        let service = self.entity(id).service;
        let budget = self.queue(id).max_budget.max(charge).max(service);
        if self.entity(id).budget != budget {
            self.entity_mut(id).budget = budget;
            self.agenda.activate_or_requeue(id, false, false);
            self.recount_class(id);
        }
    }

    /// An idle queue has work again. True if it counts as interactive.
    fn become_busy(&mut self, requests: &Requests, request: RequestId, id: u32) -> bool {
        let completed = self.queue(id).habits.think.last_completion;
        let is_in_time = self.now <= completed + IN_TIME * self.settings.slice_idle;
        let process = self.items.get(request).process;
        let wants_to_preempt = self.set_budget_on_arrival(requests, id, is_in_time);
        let is_interactive = self.raise_on_arrival(id, process);
        let ticks = self.ticks;
        let queue = self.queue_mut(id);
        queue.habits.raising.backlog_started = ticks;
        queue.habits.raising.backlog_service = 0;
        queue.marks.remove(Mark::SoftStartPending);
        self.enter_busy(id);
        if let Some(served) = self.in_service
            && self.is_more_urgent(id, served, wants_to_preempt)
            && self.agenda.next_may_preempt()
        {
            self.expire(requests, served, Reason::Preempted);
        }
        is_interactive
    }

    /// The budget of a queue that becomes busy; true if it goes on with the rest of its last one.
    fn set_budget_on_arrival(&mut self, requests: &Requests, id: u32, is_in_time: bool) -> bool {
        let left = self.entity(id).budget_left();
        let max_budget = self.queue(id).max_budget;
        if self.queue(id).has(Mark::Resumable) && is_in_time && left > 0 {
            let entity = self.entity_mut(id);
            entity.budget = (left as u64).min(max_budget);
            entity.service = 0;
            return true;
        }
        let charge = self.next_charge(requests, id).map_or(0, |(_, charge)| charge);
        let entity = self.entity_mut(id);
        entity.service = 0;
        entity.budget = max_budget.max(charge);
        self.set_mark(id, Mark::Resumable, false);
        false
    }

    fn is_more_urgent(&self, id: u32, served: u32, wants_to_preempt: bool) -> bool {
        let (new, old) = (self.entity(id), self.entity(served));
        (wants_to_preempt && new.raise >= old.raise)
            || new.class < old.class
            || new.weight > old.weight
            || !self.is_better_to_idle(served)
    }

    /// The queue in service got what it was waited for.
    fn end_wait(&mut self, requests: &Requests, request: RequestId, id: u32) {
        if self.in_service != Some(id) || !self.queue(id).has(Mark::Awaited) {
            return;
        }
        let is_small = self.queue(id).backlog.len() == 1 && requests[request].sectors < SMALL;
        let is_timed_out = self.is_slot_over(id);
        if is_small && self.idling_boosts_throughput(id) && !is_timed_out {
            return;
        }
        self.stop_idling(id);
        if is_timed_out {
            self.expire(requests, id, Reason::Timeout);
        }
    }

    /// Forgets a queued request (dispatched or absorbed).
    pub(super) fn remove(&mut self, requests: &Requests, request: RequestId, id: u32) {
        if self.queue(id).next == Some(request) {
            let next = self.next_after(requests, request, id);
            self.queue_mut(id).next = next;
            self.follow_next(requests, id);
        }
        self.queued -= 1;
        let Self { queues, items, .. } = self;
        queues[id as usize].backlog.remove(items, request);
        if !self.queue(id).backlog.is_empty() {
            self.update_position(requests, id);
            return;
        }
        self.queue_mut(id).next = None;
        if self.queue(id).is_busy() && self.in_service != Some(id) {
            self.leave_busy(id, false);
            let entity = self.entity_mut(id);
            (entity.budget, entity.service) = (0, 0);
        }
        self.remove_position(id);
    }

    /// The next request once `request` is gone: the oldest if it is too old (examined once per
    /// slot), else the better neighbour.
    fn next_after(
        &mut self,
        requests: &Requests,
        request: RequestId,
        id: u32,
    ) -> Option<RequestId> {
        let now = self.now;
        let Self { queues, items, .. } = self;
        let queue = &mut queues[id as usize];
        if !queue.has(Mark::AgeExamined) {
            queue.marks.add(Mark::AgeExamined);
            let oldest = queue.backlog.oldest().filter(|&oldest| oldest != request);
            if let Some(oldest) = oldest.filter(|&oldest| items.get(oldest).deadline <= now) {
                return Some(oldest);
            }
        }
        let former = queue.backlog.former(items, request);
        let latter = queue
            .backlog
            .latter(items, request)
            .or_else(|| queue.backlog.first().filter(|&first| first != request));
        self.back_seek().better(requests, latter, former, requests[request].sector)
    }
}
