//! Preemption: a request for another queue that does not let the active one finish.
//!
//! Source: Linux 4.1 block/cfq-iosched.c; the checks in the kernel's order.

use super::choice::is_urgent;
use super::cooperator::CLOSE_SECTORS;
use super::queue::{Marks, QueueId};
use super::scheduler::Cfq;
use super::tree::{Class, Kind};
use crate::api::request::Request;

impl Cfq {
    /// Tell whether `request`, just put into the queue `new`, is to be served before the active
    /// queue goes on.
    pub(super) fn preempts(&self, new: QueueId, request: &Request) -> bool {
        let Some(active) = self.active else { return false };
        let (old, new) = (&self.queues[active], &self.queues[new]);
        let is_real_time = new.class == Class::RealTime;
        if new.class == Class::Idle {
            return false;
        }
        if old.class == Class::Idle {
            return true;
        }
        if old.class == Class::RealTime && !is_real_time {
            return false;
        }
        if request.is_sync() && !old.is_sync {
            return true;
        }
        // A queue of another group would be refused here.
        if old.is_slice_used(self.clock.now)
            || self.shares_seeky_turn(active, new.kind(), new.place)
        {
            return true;
        }
        if is_urgent(request) && old.urgent == 0 {
            return true;
        }
        if is_real_time && old.class != Class::RealTime {
            return true;
        }
        if old.is_empty() && !self.should_idle(active) {
            return true;
        }
        let is_close = request.sector.0.abs_diff(self.last_position.0) <= CLOSE_SECTORS;
        self.active_process.is_some() && old.marks.has(Marks::AWAITED) && is_close
    }

    /// Seeky queues wait for each other as a whole: the second one takes over from the first, empty
    /// one.
    fn shares_seeky_turn(
        &self,
        active: QueueId,
        kind: Kind,
        place: Option<(super::tree::TreeId, super::clock::Tick)>,
    ) -> bool {
        self.serving.kind == Kind::SyncNoIdle
            && kind == Kind::SyncNoIdle
            && place.is_some_and(|(tree, _)| self.group.tree(tree).len() == 2)
            && self.queues[active].is_empty()
    }

    /// Ends the active queue's slice and puts `new` in front.
    pub(super) fn preempt(&mut self, new: QueueId) {
        let old_kind = self.active.map(|active| self.queues[active].kind());
        self.expire(true);
        if old_kind != Some(self.queues[new].kind()) {
            // Otherwise the interrupted workload would be resumed first.
            self.group.saved = None;
        }
        self.enqueue_in_front(new);
        let queue = &mut self.queues[new];
        queue.slice.end = 0;
        queue.marks.set(Marks::FRESH);
    }
}
