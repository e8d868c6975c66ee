//! Choosing the queue and the request to serve; completions; the idle timer.

use super::entity::Class;
use super::expire::Reason;
use super::marks::Mark;
use super::queue::decayed_samples;
use super::state::Bfq;
use crate::api::request::{RequestId, Requests};

/// More requests than this in the device at once: it queues. Judged over so many samples.
// Linux block/bfq-iosched.c: BFQ_HW_QUEUE_THRESHOLD, BFQ_HW_QUEUE_SAMPLES.
const QUEUEING: u32 = 3;
const QUEUEING_SAMPLES: u32 = 32;

impl Bfq {
    /// The slot's time is over.
    pub(super) fn is_slot_over(&self, id: u32) -> bool {
        self.queue(id).slot_end <= self.ticks
    }

    /// The same, but a queue that is waited for is spared unless it has used little.
    fn may_time_out(&self, id: u32) -> bool {
        let entity = self.entity(id);
        let is_spared =
            self.queue(id).has(Mark::Awaited) && entity.budget_left() < (entity.budget / 3) as i64;
        !is_spared && self.is_slot_over(id)
    }

    /// The next request for the device.
    pub(super) fn choose(&mut self, requests: &Requests) -> Option<RequestId> {
        if let Some(request) = self.returned.pop_front() {
            let id = self.items.get(request).queue;
            self.queue_mut(id).in_flight += 1;
            self.device.in_flight += 1;
            return Some(request);
        }
        let must_wait = self.settings.is_strict && self.device.in_flight > 0;
        if self.busy_queues() == 0 || must_wait {
            return None;
        }
        let id = self.select(requests)?;
        let request = self.serve_from(requests, id);
        self.device.in_flight += 1;
        self.free_forgotten();
        Some(request)
    }

    /// The queue to serve from: the one in service, a new one, or one whose requests are injected.
    fn select(&mut self, requests: &Requests) -> Option<u32> {
        let mut current = self.in_service;
        if let Some(id) = current
            && self.may_time_out(id)
            && !self.must_idle(id)
        {
            self.expire(requests, id, Reason::Timeout);
            current = None;
        }
        loop {
            let id = match current {
                Some(id) => id,
                None => self.start_slot()?,
            };
            let reason = if self.queue(id).next.is_some() {
                if self.can_afford_next(requests, id) {
                    if self.queue(id).has(Mark::Awaited) {
                        self.stop_idling(id);
                    }
                    return Some(id);
                }
                Reason::Exhausted
            } else {
                let is_kept = self.queue(id).has(Mark::Awaited)
                    || (self.queue(id).in_flight > 0 && self.is_better_to_idle(id));
                if is_kept {
                    return self.queue_to_inject(requests, id);
                }
                Reason::NoMore
            };
            self.expire(requests, id, reason);
            current = None;
        }
    }

    /// Puts the next queue in service.
    fn start_slot(&mut self) -> Option<u32> {
        if self.busy_queues() == 0 {
            return None;
        }
        let id = self.agenda.serve_next()?;
        self.set_mark(id, Mark::AgeExamined, false);
        self.budgets_assigned = decayed_samples(self.budgets_assigned);
        self.shift_soft(id);
        let entity = self.entity(id);
        let factor =
            if self.is_soft(id) { 1 } else { i64::from(entity.weight / entity.original_weight) };
        self.slot.started = self.now;
        let end = self.ticks + self.settings.timeout * factor;
        self.queue_mut(id).slot_end = end;
        self.in_service = Some(id);
        self.device.service_position = iolab_model::Sector(0);
        Some(id)
    }

    fn serve_from(&mut self, requests: &Requests, id: u32) -> RequestId {
        let (request, charge) =
            self.next_charge(requests, id).expect("only queues with a next request are selected");
        self.serve(id, charge);
        let is_in_service = self.in_service == Some(id);
        if is_in_service && self.injection.awaits_dispatch {
            self.injection.awaits_dispatch = false;
            self.injection.measured = Some(request);
        }
        self.queue_mut(id).in_flight += 1;
        self.observe_dispatch(&requests[request], is_in_service);
        self.remove(requests, request, id);
        if is_in_service {
            self.review_raising(id);
            if self.busy_queues() > 1 && self.class_of(id) == Class::Idle {
                self.expire(requests, id, Reason::Exhausted);
            }
        }
        request
    }

    /// A request is done, or came back refused.
    pub(super) fn finish(&mut self, requests: &Requests, request: RequestId) {
        let (id, process) = {
            let item = self.items.get(request);
            (item.queue, item.process)
        };
        if self.injection.measured == Some(request) {
            self.finish_measurement(id);
        }
        self.learn_queueing();
        self.device.in_flight -= 1;
        let (ticks, now) = (self.ticks, self.now);
        let queue = self.queue_mut(id);
        queue.in_flight -= 1;
        queue.habits.think.last_completion = now;
        if queue.in_flight == 0 && !queue.is_busy() {
            queue.slot_end = ticks;
            self.agenda.uncount(id);
        }
        self.observe_completion();
        self.device.last_completion = now;
        let is_shared = self.queue(id).has(Mark::Shared);
        self.device.last_completed = (!is_shared).then_some(id);
        self.learn_soft_start(id);
        if self.in_service == Some(id) {
            self.after_completion(requests, id);
        }
        self.release_request(id, process);
    }

    /// A request no longer belongs to its queue and process.
    pub(super) fn release_request(&mut self, id: u32, process: u32) {
        self.queue_mut(id).allocated -= 1;
        self.free_if_unused(id);
        self.processes.get_mut(process).requests -= 1;
        self.processes.reclaim(process);
        self.free_forgotten();
    }

    fn learn_soft_start(&mut self, id: u32) {
        let queue = self.queue(id);
        if queue.has(Mark::SoftStartPending)
            && queue.in_flight == 0
            && queue.backlog.is_empty()
            && self.entity(id).raise != super::raising::RAISE
        {
            self.queue_mut(id).habits.raising.soft_start = self.soft_start(id);
        }
    }

    /// The queue in service has one request less in the device: wait, go on, or end the slot.
    fn after_completion(&mut self, requests: &Requests, id: u32) {
        let in_flight = self.queue(id).in_flight;
        if self.must_idle(id) {
            if in_flight == 0 {
                self.start_idling(id);
            }
        } else if self.may_time_out(id) {
            self.expire(requests, id, Reason::Timeout);
        } else if self.queue(id).backlog.is_empty()
            && (in_flight == 0 || !self.is_better_to_idle(id))
        {
            self.expire(requests, id, Reason::NoMore);
        }
    }

    /// The wait for the queue in service is over.
    pub(super) fn end_idling(&mut self, requests: &Requests) {
        self.slot.timer = u64::MAX;
        let Some(id) = self.in_service else {
            return;
        };
        self.set_mark(id, Mark::Awaited, false);
        if self.is_slot_over(id) {
            self.expire_by_timer(requests, id, Reason::Timeout);
        } else if self.queue(id).backlog.is_empty() {
            self.expire_by_timer(requests, id, Reason::TooIdle);
        }
    }

    /// Tell whether the device works on several requests at once.
    fn learn_queueing(&mut self) {
        let device = &mut self.device;
        device.most_in_flight = device.most_in_flight.max(device.in_flight);
        if device.has_queueing == Some(true) || device.in_flight + self.queued <= QUEUEING {
            return;
        }
        let in_flight = device.in_flight;
        if let Some(id) = self.in_service {
            let queue = self.queue(id);
            let has_few = queue.in_flight + (queue.backlog.len() as u32) < QUEUEING;
            if queue.has(Mark::ShortThink) && has_few && in_flight < QUEUEING {
                return;
            }
        }
        let device = &mut self.device;
        device.queueing_samples += 1;
        if device.queueing_samples <= QUEUEING_SAMPLES {
            return;
        }
        let has_queueing = device.most_in_flight > QUEUEING;
        device.has_queueing = Some(has_queueing);
        device.most_in_flight = 0;
        device.queueing_samples = 0;
        device.is_parallel_flash = !device.is_rotational && has_queueing;
    }
}
