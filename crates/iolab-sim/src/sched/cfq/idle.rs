//! Waiting with work queued: for whom, how long, and what happens when the time is over.
//!
//! Source: Linux 4.1 block/cfq-iosched.c.

use iolab_model::Ns;

use super::clock::Tick;
use super::process::ProcessSlot;
use super::queue::{Marks, QueueId};
use super::scheduler::Cfq;
use super::tree::Class;
use crate::api::bio::{Bio, Flags};
use crate::api::request::Requests;

/// Queued requests that make a queue "deep".
const DEEP_REQUESTS: usize = 4;

/// Ability of the device to take several commands at once, as far as is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queueing {
    answer: Option<bool>,
    depth_max: u32,
    samples: u32,
}

/// Load that the detector looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Requests in all queues.
    pub queued: u32,
    /// Requests at the device.
    pub in_driver: u32,
    /// Requests of the active queue, queued or under way, if it is one to wait for.
    pub awaited: Option<u32>,
}

impl Queueing {
    /// Requests at the device that prove queueing; below it, there is no load to judge by.
    const DEPTH: u32 = 5;
    /// Loaded completions before the answer.
    const SAMPLES: u32 = 50;

    /// Taken for true until it is known.
    pub fn is_likely(self) -> bool {
        self.answer != Some(false)
    }

    /// A request was completed (and is still counted in `load`).
    pub fn note(&mut self, load: Load) {
        self.depth_max = self.depth_max.max(load.in_driver);
        let is_idle = load.queued <= Self::DEPTH && load.in_driver <= Self::DEPTH;
        if self.answer == Some(true) || is_idle {
            return;
        }
        // A queue that is waited for may not have given the device enough to do.
        let is_held_back = load.awaited.is_some_and(|requests| requests < Self::DEPTH);
        if is_held_back && load.in_driver < Self::DEPTH {
            return;
        }
        self.samples += 1;
        if self.samples > Self::SAMPLES {
            self.answer = Some(self.depth_max >= Self::DEPTH);
        }
    }
}

impl Cfq {
    /// Tell whether the device stays idle for this (busy) queue when it is empty.
    pub(super) fn should_idle(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        if self.settings.slice_idle == 0 || queue.class == Class::Idle {
            return false;
        }
        let seeks_cost_nothing = !self.is_rotational && self.queueing.is_likely();
        if queue.marks.has(Marks::IDLE_WINDOW) && !seeks_cost_nothing {
            return true;
        }
        let Some((tree, _)) = queue.place else { return false };
        let tree = self.group.tree(tree);
        tree.len() == 1 && queue.is_sync && !tree.think.is_longer_than(self.settings.slice_idle)
    }

    /// A request came: is the queue worth waiting for?
    pub(super) fn update_idle_window(
        &mut self,
        requests: &Requests,
        id: QueueId,
        process: ProcessSlot,
    ) {
        let queue = &mut self.queues[id];
        if !queue.is_sync || queue.class == Class::Idle {
            return;
        }
        if queue.len() >= DEEP_REQUESTS {
            queue.marks.set(Marks::DEEP);
        }
        let process = self.processes.get(process);
        let is_told_not_to =
            queue.next.is_some_and(|next| requests[next].flags.contains(Flags::NO_IDLE));
        let is_hopeless = process.is_gone
            || self.settings.slice_idle == 0
            || (!queue.marks.has(Marks::DEEP) && queue.seeks.is_seeky());
        if is_told_not_to || is_hopeless {
            queue.marks.clear(Marks::IDLE_WINDOW);
        } else if process.think.is_known() {
            let is_slow = process.think.is_longer_than(self.settings.slice_idle);
            queue.marks.put(Marks::IDLE_WINDOW, !is_slow);
        }
    }

    /// The active queue is empty and its last request was completed: wait for the next?
    pub(super) fn start_waiting(&mut self, id: QueueId) {
        if !self.is_rotational && self.queueing.is_likely() {
            return;
        }
        let for_queue = self.should_idle(id);
        let time = if for_queue { self.settings.slice_idle } else { self.settings.group_idle };
        let queue = &self.queues[id];
        if time == 0 || queue.in_flight > 0 || (!for_queue && self.group.queues > 1) {
            return;
        }
        let Some(process) = self.active_process.map(|slot| self.processes.get(slot)) else {
            return;
        };
        let rest = queue.slice.end - self.clock.now;
        if process.is_gone || process.think.is_longer_than(rest) {
            return;
        }
        self.queues[id].marks.set(Marks::AWAITED);
        self.timer_at = self.clock.instant(self.clock.now.saturating_add(time));
        self.timers_set += 1;
    }

    /// Tell whether the active queue, the only one of its group, is to get more time because the
    /// next request is expected too late for the slice.
    pub(super) fn should_extend(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let is_group_slow = self.group.think.is_longer_than(self.settings.group_idle);
        if !queue.is_empty() || self.group.queues > 1 || is_group_slow {
            return false;
        }
        let rest: Tick = queue.slice.end - self.clock.now;
        rest <= 1
            || self
                .active_process
                .is_some_and(|slot| self.processes.get(slot).think.is_longer_than(rest))
    }

    /// The idle timer has ended.
    pub(super) fn idle_timer(&mut self) {
        self.stop_timer();
        let Some(id) = self.active else { return };
        let queue = &mut self.queues[id];
        if queue.marks.has(Marks::MUST_DISPATCH) {
            return;
        }
        if !queue.is_slice_used(self.clock.now) {
            if !queue.is_empty() {
                return;
            }
            queue.marks.clear(Marks::DEEP);
        }
        self.expire(false);
    }

    /// Tell whether the idle timer runs.
    pub(super) fn is_timer_running(&self) -> bool {
        self.timer_at != Ns::MAX
    }

    /// Stops the idle timer.
    pub(super) fn stop_timer(&mut self) {
        self.timer_at = Ns::MAX;
    }

    /// Tell whether this bio is what the device is kept idle for.
    pub(super) fn waits_for(&self, bio: &Bio) -> bool {
        self.queue_of(bio).is_some_and(|id| {
            let marks = self.queues[id].marks;
            marks.has(Marks::AWAITED) && !marks.has(Marks::GRANTED)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queueing_is_judged_after_fifty_loaded_completions() {
        let loaded = |in_driver| Load { queued: 6, in_driver, awaited: None };
        for (in_driver, answer) in [(4, false), (5, true)] {
            let mut queueing = Queueing::default();
            for _ in 0..50 {
                queueing.note(loaded(in_driver));
                assert_eq!(queueing.answer, None);
            }
            assert!(queueing.is_likely());
            queueing.note(loaded(in_driver));
            assert_eq!(queueing.answer, Some(answer));
        }
    }

    #[test]
    fn a_held_back_device_proves_nothing() {
        let mut queueing = Queueing::default();
        for _ in 0..1_000 {
            queueing.note(Load { queued: 5, in_driver: 5, awaited: None });
            queueing.note(Load { queued: 9, in_driver: 1, awaited: Some(4) });
        }
        assert_eq!(queueing.samples, 0);
    }
}
