//! Merges: a bio that made a queued request longer, and two requests that became one.
//!
//! Source: Linux 4.1 block/cfq-iosched.c.

use super::flow::NOWHERE;
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
        let ticket = *self.tickets.get(id);
        let queue = &mut self.queues[ticket.queue];
        queue.sorted.remove(ticket.sorted);
        let sorted = queue.sorted.insert(requests[id].sector, id);
        self.tickets.get_mut(id).sorted = sorted;
        self.consider(requests, ticket.queue, id);
    }

    /// Two requests became one.
    pub(super) fn join(&mut self, requests: &Requests, survivor: RequestId, absorbed: RequestId) {
        let (kept, lost) = (*self.tickets.get(survivor), *self.tickets.get(absorbed));
        if kept.queue == lost.queue {
            let queue = &mut self.queues[kept.queue];
            let fifo = queue.fifo.inherit(kept.fifo, lost.fifo);
            self.tickets.get_mut(survivor).fifo = fifo;
            // The absorbed request has left the FIFO, or its place is the survivor's now.
            self.tickets.get_mut(absorbed).fifo = NOWHERE;
            if queue.next == Some(absorbed) {
                queue.next = Some(survivor);
            }
        } else if self.queues[lost.queue].next == Some(absorbed) {
            self.queues[lost.queue].next = self.next_after(requests, absorbed);
        }
        self.forget(requests, absorbed);
        let queue = &self.queues[lost.queue];
        let is_over = queue.marks.has(Marks::BUSY) && queue.is_empty();
        if is_over && self.active != Some(lost.queue) {
            self.make_idle(lost.queue);
        }
        self.release_request(&lost);
    }
}
