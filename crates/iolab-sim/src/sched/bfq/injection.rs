//! Injection: requests of other queues while the queue in service is waited for.
//!
//! How many may be in the device then is learnt: the time from arrival to completion of a queue's
//! first request is measured without injection, and with it; while it stays below 1.5 times the
//! base, the limit grows by one, else it shrinks.

use super::marks::Mark;
use super::queue::Ticks;
use super::rate::LARGE_ON_FLASH;
use super::state::Bfq;
use crate::api::request::{RequestId, Requests};

/// The limit starts anew after this time.
const RESET_MS: u64 = 1_000;

/// Shortest time between lowering the limit and the next measurement.
const SAMPLE_MS: u64 = 10;

/// Shortest time between changes for a change of the think time.
const THINK_CHANGE_MS: u64 = 100;

/// The measurement in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Injection {
    /// The next request dispatched for the queue in service is to be measured.
    pub(super) awaits_dispatch: bool,
    /// The request that is measured, and since when.
    pub(super) measured: Option<RequestId>,
    since: u64,
    /// Something was injected since.
    has_injected: bool,
}

impl Bfq {
    fn reset_inject_limit(&mut self, id: u32) {
        self.injection.measured = None;
        let ticks = self.ticks;
        let queue = self.queue_mut(id);
        let has_short_think = queue.has(Mark::ShortThink);
        queue.habits.base_service_time = 0;
        queue.habits.inject_limit = u32::from(!has_short_think);
        queue.habits.inject_lowered = ticks;
    }

    fn is_since_lowered(&self, id: u32, ms: u64) -> bool {
        self.queue(id).habits.inject_lowered + self.ticks_of(ms) <= self.ticks
    }

    /// The think time has become short or long.
    pub(super) fn adapt_to_think_time(&mut self, id: u32, is_short: bool) {
        if self.queue(id).habits.base_service_time == 0
            && (!is_short || self.is_since_lowered(id, THINK_CHANGE_MS))
        {
            self.reset_inject_limit(id);
        }
    }

    /// A queue without other requests gets one: the occasion to measure.
    pub(super) fn prepare_measurement(&mut self, id: u32) {
        if self.is_since_lowered(id, RESET_MS) {
            self.reset_inject_limit(id);
        }
        let is_device_empty = self.device.in_flight == 0;
        let can_compare = self.queue(id).habits.base_service_time > 0
            && self.injection.has_injected
            && !is_device_empty;
        if self.in_service == Some(id)
            && (is_device_empty || can_compare)
            && self.is_since_lowered(id, SAMPLE_MS)
        {
            self.injection.since = self.now;
            self.injection.awaits_dispatch = true;
            if is_device_empty {
                self.injection.has_injected = false;
            }
        }
    }

    /// The slot ends: nothing is measured any more.
    pub(super) fn stop_measurement(&mut self) {
        self.injection.awaits_dispatch = false;
        self.injection.has_injected = false;
        self.injection.measured = None;
    }

    /// The measured request is done (and still counted as in the device).
    pub(super) fn finish_measurement(&mut self, id: u32) {
        let took = self.now - self.injection.since;
        let is_last = self.device.in_flight == 1;
        let (ticks, most) = (self.ticks, self.device.most_in_flight);
        let has_injected = self.injection.has_injected;
        let habits = &mut self.queue_mut(id).habits;
        let base = habits.base_service_time;
        let old_limit = habits.inject_limit;
        if base > 0 && has_injected {
            let threshold = (base * 3) >> 1;
            if took >= threshold && old_limit > 0 {
                habits.inject_limit -= 1;
                habits.inject_lowered = ticks;
            } else if took < threshold && old_limit <= most {
                habits.inject_limit += 1;
            }
        }
        if (base == 0 && is_last) || took < base {
            if base == 0 {
                habits.inject_limit = old_limit.max(1);
            }
            habits.base_service_time = took;
        } else if !has_injected && is_last {
            habits.base_service_time = took;
        }
        self.injection.measured = None;
        self.injection.has_injected = false;
    }

    /// A queue to serve while `id`, in service and empty, is waited for.
    pub(super) fn queue_to_inject(&mut self, requests: &Requests, id: u32) -> Option<u32> {
        let related = self.related_queue(requests, id);
        if related.is_some() {
            return related;
        }
        let may_inject = !self.idling_boosts_throughput(id)
            && (!self.is_raised(id)
                || self.raised_busy > 1
                || !self.queue(id).has(Mark::ShortThink));
        if may_inject { self.any_queue_to_inject(requests, id) } else { None }
    }

    /// The same process's async queue, its waker, or a queue that it wakes.
    fn related_queue(&self, requests: &Requests, id: u32) -> Option<u32> {
        let queue = self.queue(id);
        let is_ready =
            |other: u32| self.queue(other).is_busy() && self.can_afford_next(requests, other);
        let unsync = queue.owner.and_then(|owner| {
            let other = self.processes.get(owner).unsync?;
            let next = self.queue(other).next?;
            (self.items.get(next).process == owner).then_some(other)
        });
        [unsync, queue.waker, queue.woken.first().copied()]
            .into_iter()
            .flatten()
            .find(|&other| is_ready(other))
    }

    fn any_queue_to_inject(&mut self, requests: &Requests, id: u32) -> Option<u32> {
        let queue = self.queue(id);
        let habits = &queue.habits;
        let may_inject_all = !self.is_raised(id) || !queue.has(Mark::ShortThink);
        // The kernel adds nanoseconds to ticks here, so in practice this never comes true.
        let is_idle_for_long =
            self.slot.idling_started_ticks + self.settings.slice_idle as Ticks <= self.ticks;
        let is_unmeasured = habits.inject_limit == 0 && habits.base_service_time == 0;
        let limit = if is_unmeasured && queue.has(Mark::Awaited) && is_idle_for_long {
            1
        } else {
            habits.inject_limit
        };
        if self.device.in_flight >= limit {
            return None;
        }
        let mut candidate = self.agenda.newest;
        while let Some(other) = candidate {
            if self.may_inject(requests, other, may_inject_all) {
                self.injection.has_injected = true;
                return Some(other);
            }
            candidate = self.entity(other).older;
        }
        None
    }

    fn may_inject(&self, requests: &Requests, other: u32, may_inject_all: bool) -> bool {
        if !(may_inject_all || self.is_raised(other)) || !self.can_afford_next(requests, other) {
            return false;
        }
        // One large request at a time on flash: they take long, and the drive prefers them.
        let is_large =
            self.queue(other).next.is_some_and(|next| requests[next].sectors >= LARGE_ON_FLASH);
        self.device.is_rotational || !is_large || self.device.in_flight == 0
    }
}
