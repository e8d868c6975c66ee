//! Choice between waiting for the next request of an empty queue and serving others.
//!
//! Waiting pays for throughput where the queue reads on sequentially, and it is needed for
//! guarantees where queues must get different shares.

use super::entity::Class;
use super::marks::Mark;
use super::rate::SHORT_TIME;
use super::state::{Bfq, MS};

/// Foreign requests in the device that make waiting worthwhile for a raised queue.
const FOREIGN_IN_FLIGHT: u32 = 4;

/// Shortest idle period for a raised queue.
const RAISED_IDLE: u64 = 20 * MS;

impl Bfq {
    /// Waiting raises throughput and hurts nobody who is raised.
    pub(super) fn idling_boosts_throughput(&self, id: u32) -> bool {
        let queue = self.queue(id);
        if queue.users == 0 || self.raised_busy > 0 {
            return false;
        }
        let has_no_queueing = self.device.has_queueing == Some(false);
        let is_steady =
            !queue.is_seeky() && queue.has(Mark::IoBound) && queue.has(Mark::ShortThink);
        let is_rotational = self.device.is_rotational;
        (is_rotational && has_no_queueing) || ((is_rotational || has_no_queueing) && is_steady)
    }

    /// Without waiting the queue would lose its share.
    pub(super) fn idling_is_guaranteed(&self, id: u32) -> bool {
        let queue = self.queue(id);
        if queue.users == 0 {
            return false;
        }
        let busy = self.busy_queues();
        let must_protect = self.is_raised(id)
            && (self.raised_busy < busy
                || self.device.in_flight >= queue.in_flight + FOREIGN_IN_FLIGHT);
        must_protect || busy == 1 || self.is_asymmetric(id)
    }

    /// Tell whether to wait for a queue that is or becomes empty.
    pub(super) fn is_better_to_idle(&self, id: u32) -> bool {
        if self.queue(id).users == 0 {
            return false;
        }
        if self.settings.is_strict {
            return true;
        }
        let never = self.settings.slice_idle == 0
            || !self.queue(id).is_sync()
            || self.class_of(id) == Class::Idle;
        !never && (self.idling_boosts_throughput(id) || self.idling_is_guaranteed(id))
    }

    /// Empty, and worth waiting for.
    pub(super) fn must_idle(&self, id: u32) -> bool {
        self.queue(id).backlog.is_empty() && self.is_better_to_idle(id)
    }

    /// Starts to wait for the queue in service.
    pub(super) fn start_idling(&mut self, id: u32) {
        self.set_mark(id, Mark::Awaited, true);
        let mut period = self.settings.slice_idle;
        if self.is_raised(id) {
            period = period.max(RAISED_IDLE);
        } else if self.queue(id).is_seeky() && !self.is_asymmetric(id) {
            period = period.min(SHORT_TIME);
        }
        self.slot.idling_started = self.now;
        self.slot.idling_started_ticks = self.ticks;
        self.slot.timer = self.now + period;
    }

    /// Stops waiting.
    pub(super) fn stop_idling(&mut self, id: u32) {
        self.set_mark(id, Mark::Awaited, false);
        self.slot.timer = u64::MAX;
    }
}
