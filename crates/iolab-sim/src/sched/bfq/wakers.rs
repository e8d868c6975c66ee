//! Wakers: queues whose completions let another queue go on.
//!
//! A queue that thinks long and, three times in a row, gets its next request right after a
//! completion of the same other queue is taken to wait for it; that other queue may then be served
//! while this one is waited for.

use super::marks::Mark;
use super::state::{Bfq, MS};

/// Latest arrival after the waker's completion.
const REACTION: u64 = 4 * MS;

/// Times in a row.
const TIMES: u32 = 3;

/// The detection starts anew after this many idle periods.
const PATIENCE: u64 = 128;

impl Bfq {
    /// A queue without other requests gets one.
    pub(super) fn look_for_waker(&mut self, id: u32) {
        let Some(last) = self.device.last_completed.filter(|&last| last != id) else {
            return;
        };
        let now = self.now;
        let queue = self.queue(id);
        if queue.has(Mark::ShortThink) || now - self.device.last_completion >= REACTION {
            return;
        }
        let patience = PATIENCE * self.settings.slice_idle;
        let queue = self.queue_mut(id);
        if queue.candidate_waker != Some(last) || now > queue.wakeups_since + patience {
            queue.candidate_waker = Some(last);
            queue.wakeups = 1;
            queue.wakeups_since = now;
        } else {
            queue.wakeups += 1;
        }
        if queue.wakeups == TIMES {
            queue.candidate_waker = None;
            self.set_waker(id, last);
        }
    }

    /// From now on `waker` wakes `id`.
    pub(super) fn set_waker(&mut self, id: u32, waker: u32) {
        self.clear_waker(id);
        let queue = self.queue_mut(id);
        queue.waker = Some(waker);
        queue.candidate_waker = None;
        self.queue_mut(waker).woken.insert(0, id);
    }

    fn clear_waker(&mut self, id: u32) {
        if let Some(old) = self.queue_mut(id).waker.take() {
            self.queue_mut(old).woken.retain(|&woken| woken != id);
        }
    }

    /// A queue became busy: it comes first among those its waker wakes.
    pub(super) fn move_to_front_of_woken(&mut self, id: u32) {
        if let Some(waker) = self.queue(id).waker {
            let woken = &mut self.queue_mut(waker).woken;
            if let Some(place) = woken.iter().position(|&other| other == id) {
                woken[..=place].rotate_right(1);
            }
        }
    }

    /// The users of a merged queue bring its waker along.
    pub(super) fn inherit_waker(&mut self, id: u32, into: u32) {
        if let Some(waker) = self.queue(id).waker
            && self.queue(into).waker.is_none()
            && waker != into
        {
            self.set_waker(into, waker);
        }
    }

    /// A queue is gone: nobody is woken by it or wakes it.
    pub(super) fn forget_waker(&mut self, id: u32) {
        self.clear_waker(id);
        while let Some(woken) = self.queue_mut(id).woken.pop() {
            self.queue_mut(woken).waker = None;
        }
        if self.device.last_completed == Some(id) {
            self.device.last_completed = None;
        }
        for queue in &mut self.queues {
            if queue.candidate_waker == Some(id) {
                queue.candidate_waker = None;
            }
        }
    }
}
