//! Splitting a shared queue again, and the state that a process gets back then.

use super::marks::Mark;
use super::process::Saved;
use super::queue::FAR_PAST;
use super::raising::RAISE;
use super::state::Bfq;

impl Bfq {
    /// Remembers, for the only user of a queue, what that queue was like.
    pub(super) fn save_habits(&mut self, id: u32) {
        let Some(owner) = self.queue(id).owner else {
            return;
        };
        let queue = self.queue(id);
        let mut saved = Saved {
            habits: queue.habits,
            raise: self.entity(id).raise,
            weight: self.entity(id).original_weight,
            marks: queue.marks,
        };
        let would_be_raised = queue.has(Mark::JustCreated)
            && !queue.has(Mark::InLargeBurst)
            && self.settings.is_low_latency;
        if would_be_raised {
            saved.raise = RAISE;
            saved.habits.raising.interactive_started = FAR_PAST;
            saved.habits.raising.longest = self.raising_duration();
            saved.habits.raising.started = self.ticks;
        }
        self.processes.get_mut(owner).saved = Some(saved);
    }

    /// Takes a process out of a shared, seeky queue. Answers with its queue and whether that one
    /// existed before.
    pub(super) fn split_process(&mut self, process: u32, id: u32) -> (u32, bool) {
        if self.queue(id).has(Mark::InLargeBurst)
            && let Some(saved) = &mut self.processes.get_mut(process).saved
        {
            saved.marks.add(Mark::InLargeBurst);
        }
        if self.queue(id).users == 1 {
            self.set_mark(id, Mark::Shared, false);
            self.set_mark(id, Mark::MustSplit, false);
            return (id, true);
        }
        let waker = self.queue(id).waker;
        self.set_sync_queue(process, None);
        self.release_successors(id);
        self.release_user(id);
        let new = self.queue_for(process, true, true);
        self.set_sync_queue(process, Some(new));
        self.restore_burst(process, new);
        self.queue_mut(new).split = self.ticks;
        if let Some(waker) = waker.filter(|&waker| self.queue(waker).has(Mark::Live)) {
            self.set_waker(new, waker);
        }
        (new, false)
    }

    fn restore_burst(&mut self, process: u32, id: u32) {
        let Some(saved) = self.processes.get(process).saved else {
            return;
        };
        let was_listed = saved.marks.has(Mark::InBurstList);
        let is_in_large =
            saved.marks.has(Mark::InLargeBurst) || (was_listed && self.burst.is_large);
        self.set_mark(id, Mark::InLargeBurst, is_in_large);
        if !is_in_large && was_listed {
            self.list_in_burst(id);
        }
    }

    /// Gives a queue that was split off the state of before the merge.
    pub(super) fn resume_habits(&mut self, process: u32, id: u32) {
        let Some(saved) = self.processes.get(process).saved else {
            return;
        };
        self.set_mark(id, Mark::ShortThink, saved.marks.has(Mark::ShortThink));
        self.set_mark(id, Mark::IoBound, saved.marks.has(Mark::IoBound));
        let old = self.queue(id).habits.raising;
        let mut habits = saved.habits;
        habits.raising.soft_start = old.soft_start;
        habits.raising.backlog_started = old.backlog_started;
        habits.raising.backlog_service = old.backlog_service;
        self.queue_mut(id).habits = habits;
        self.entity_mut(id).new_weight = saved.weight;
        if self.settings.is_low_latency {
            self.set_raise(id, saved.raise);
        }
        self.stop_resumed_raising(id);
        self.entity_mut(id).must_reweigh = true;
    }

    fn stop_resumed_raising(&mut self, id: u32) {
        let raising = self.queue(id).habits.raising;
        let is_in_burst = self.queue(id).has(Mark::InLargeBurst);
        let is_over = self.is_past(raising.started + raising.longest);
        if !self.is_raised(id) || !(is_in_burst || is_over) {
            return;
        }
        let is_interactive_on = raising.interactive_started + self.raising_duration() >= self.ticks;
        if self.is_soft(id) && !is_in_burst && is_interactive_on {
            self.return_to_interactive(id);
        } else {
            self.set_raise(id, 1);
        }
    }
}
