//! Merges: a bio that made a queued request longer, and two requests that became one.
//!
//! Source: Linux 4.1 block/cfq-iosched.c.

use super::queue::Marks;
use super::scheduler::Cfq;
use crate::api::request::{RequestId, Requests};
use crate::api::scheduler::{Merge, MergeEnd};

impl Cfq {
    /// After a front merge the request starts earlier: it is sorted anew and considered anew.
    pub(super) fn note_merge(&mut self, requests: &Requests, merge: Merge) {
        if merge.end == MergeEnd::Back {
            return;
        }
        let id = merge.into;
        let ticket = self.tickets.get_mut(id);
        let pending = &mut self.queues[ticket.queue].pending;
        ticket.place = pending.moved(ticket.place, requests[id].sector);
        let queue = ticket.queue;
        self.consider(requests, queue, id);
    }

    /// Two requests became one.
    pub(super) fn join(&mut self, requests: &Requests, survivor: RequestId, absorbed: RequestId) {
        let (kept, lost) = (*self.tickets.get(survivor), *self.tickets.get(absorbed));
        let following = self.next_after(requests, absorbed);
        let queue = &mut self.queues[lost.queue];
        if kept.queue == lost.queue {
            let sector = requests[survivor].sector;
            let place = queue.pending.joined(kept.place, lost.place, sector);
            self.tickets.get_mut(survivor).place = place;
            if queue.next == Some(absorbed) {
                queue.next = Some(survivor);
            }
        } else {
            if queue.next == Some(absorbed) {
                queue.next = following;
            }
            queue.pending.remove(lost.place);
        }
        self.no_longer_queued(requests, absorbed);
        let queue = &self.queues[lost.queue];
        let is_over = queue.marks.has(Marks::BUSY) && queue.is_empty();
        if is_over && self.active != Some(lost.queue) {
            self.make_idle(lost.queue);
        }
        self.release_request(&lost);
    }
}
