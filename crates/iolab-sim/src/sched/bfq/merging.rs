//! Merging queues: processes that read interleaved, or that were started together, share a queue.
//!
//! A merge is a redirection: requests that the process submits from now on go to the other queue.
//! Three occasions: a request close to what the queue in service reads, or to what another young
//! queue wants to read; queues created within 180 ms of each other, at once on flash with queueing
//! (or unknown); the same on other devices after 600 ms if waiting for the queue does not pay.

use iolab_model::Sector;

use super::bursts::INTERVAL_MS;
use super::entity::Class;
use super::marks::Mark;
use super::position::is_close;
use super::state::Bfq;

/// A reference for stable merges is at most this old.
// Linux block/bfq-iosched.c: bfq_activation_stable_merging.
const REFERENCE_MS: u64 = 600;

/// A late stable merge is considered after this time.
// Linux block/bfq-iosched.c: bfq_late_stable_merging.
const LATE_MERGE_MS: u64 = 600;

impl Bfq {
    /// The queue that a process using `id` should use from now on for a request at `sector`.
    pub(super) fn find_cooperator(&mut self, id: u32, sector: Sector, process: u32) -> Option<u32> {
        if let Some(successor) = self.queue(id).successor {
            return Some(successor);
        }
        if self.device.is_parallel_flash || !self.queue(id).is_sync() {
            return None;
        }
        if let Some(suited) = self.processes.get(process).suited
            && self.is_time_for_late_merge(id)
        {
            return self.merge_late(id, suited, process);
        }
        if self.busy_queues() == 1 || self.is_too_late_to_merge(id) {
            return None;
        }
        if let Some(served) = self.in_service
            && served != id
            && is_close(sector, self.device.service_position)
            && self.may_cooperate(id, served)
            && let Some(found) = self.plan_merge(id, served)
        {
            return Some(found);
        }
        let close = self.queue_close_to(sector).filter(|&close| close != id)?;
        if self.may_cooperate(id, close) { self.plan_merge(id, close) } else { None }
    }

    fn may_cooperate(&self, id: u32, other: u32) -> bool {
        !self.is_too_late_to_merge(other)
            && self.class_of(id) != Class::Idle
            && self.class_of(id) == self.class_of(other)
            && !self.queue(id).is_seeky()
            && !self.queue(other).is_seeky()
            && self.queue(other).is_sync()
    }

    /// Plans to move the users of `id` to `other` (or to where those of `other` go).
    fn plan_merge(&mut self, id: u32, mut other: u32) -> Option<u32> {
        if self.queue(other).users == 0 {
            return None;
        }
        while let Some(successor) = self.queue(other).successor {
            if successor == id {
                return None;
            }
            other = successor;
        }
        let users = self.queue(id).users;
        if other == id || users == 0 || self.queue(other).users == 0 {
            return None;
        }
        self.queue_mut(id).successor = Some(other);
        self.queue_mut(other).users += users;
        Some(other)
    }

    fn is_time_for_late_merge(&self, id: u32) -> bool {
        let queue = self.queue(id);
        let delay = self.ticks_of(LATE_MERGE_MS);
        !queue.has(Mark::JustCreated)
            && self.is_past(queue.split + delay)
            && self.is_past(queue.created + delay)
    }

    fn merge_late(&mut self, id: u32, suited: u32, process: u32) -> Option<u32> {
        let pays = self.idling_boosts_throughput(id);
        let is_possible = !pays && self.queue(id).users > 0 && self.queue(suited).users > 0;
        let found = if is_possible { self.plan_merge(id, suited) } else { None };
        if let Some(found) = found {
            self.mark_stably_merged(process, found);
        }
        self.withdraw_suit(process);
        found
    }

    fn mark_stably_merged(&mut self, process: u32, with: u32) {
        self.processes.get_mut(process).is_stably_merged = true;
        if let Some(owner) = self.queue(with).owner {
            self.processes.get_mut(owner).is_stably_merged = true;
        }
    }

    /// A queue was just created: merges it with one created shortly before, now or later.
    pub(super) fn merge_if_created_together(&mut self, id: u32, process: u32) -> u32 {
        let Some(reference) = self.reference_queue else {
            self.reference_queue = Some(id);
            return id;
        };
        let (queue, other) = (self.queue(id), self.queue(reference));
        let is_too_old = other.created + self.ticks_of(REFERENCE_MS) < queue.created;
        let differs = queue.level != other.level || self.class_of(id) != self.class_of(reference);
        if is_too_old || differs {
            self.reference_queue = Some(id);
            return id;
        }
        if other.created + self.ticks_of(INTERVAL_MS) < queue.created {
            return id;
        }
        if self.device.is_parallel_flash {
            let Some(found) = self.plan_merge(id, reference) else {
                return id;
            };
            self.mark_stably_merged(process, found);
            self.queue_mut(id).owner = Some(process);
            self.move_process(process, id, found);
            return found;
        }
        self.withdraw_suit(process);
        self.queue_mut(reference).suitors += 1;
        self.processes.get_mut(process).suited = Some(reference);
        id
    }

    /// Carries out a planned merge for one process.
    pub(super) fn move_process(&mut self, process: u32, id: u32, into: u32) {
        self.save_habits(id);
        self.save_habits(into);
        if self.queue(id).has(Mark::IoBound) {
            self.set_mark(into, Mark::IoBound, true);
        }
        self.set_mark(id, Mark::IoBound, false);
        self.inherit_waker(id, into);
        self.inherit_raising(id, into);
        self.set_sync_queue(process, Some(into));
        self.set_mark(into, Mark::Shared, true);
        self.queue_mut(into).owner = None;
        self.queue_mut(id).owner = None;
        if self.reference_queue == Some(id) {
            self.reference_queue = Some(into);
        }
        self.release_user(id);
    }

    fn inherit_raising(&mut self, id: u32, into: u32) {
        if !self.is_raised(id) {
            return;
        }
        let raise = self.entity(id).raise;
        if !self.is_raised(into) {
            let source = self.queue(id).habits.raising;
            let raising = &mut self.queue_mut(into).habits.raising;
            raising.longest = source.longest;
            raising.started = source.started;
            raising.interactive_started = source.interactive_started;
            self.set_raise(into, raise);
        }
        self.set_raise(id, 1);
    }
}
