//! Bursts: many queues created shortly after each other belong to one task that wants throughput,
//! so none of them is raised.

use super::marks::Mark;
use super::queue::{FAR_PAST, Ticks};
use super::state::Bfq;

/// Queues that make a burst large, and the longest gap between two of them.
// Linux block/bfq-iosched.c: bfq_large_burst_thresh, bfq_burst_interval.
const LARGE: u32 = 8;
pub(super) const INTERVAL_MS: u64 = 180;

/// Within this time after a split a queue does not count as created.
const SPLIT_GRACE_MS: u64 = 10;

/// The burst in progress.
#[derive(Clone, Debug)]
pub(super) struct Burst {
    list: Vec<u32>,
    pub(super) size: u32,
    pub(super) is_large: bool,
    pub(super) last_insertion: Ticks,
}

impl Default for Burst {
    fn default() -> Self {
        Self { list: Vec::new(), size: 0, is_large: false, last_insertion: FAR_PAST }
    }
}

impl Bfq {
    /// A queue gets its first request.
    pub(super) fn join_burst(&mut self, id: u32) {
        let queue = self.queue(id);
        if !queue.has(Mark::JustCreated) || (self.burst.size == 0 && self.busy_queues() > 0) {
            return;
        }
        let is_listed = queue.has(Mark::InBurstList) || queue.has(Mark::InLargeBurst);
        if is_listed || queue.split + self.ticks_of(SPLIT_GRACE_MS) >= self.ticks {
            return;
        }
        let interval = self.ticks_of(INTERVAL_MS);
        if self.is_past(self.burst.last_insertion + interval) {
            self.restart_burst(id);
        } else if self.burst.is_large {
            self.set_mark(id, Mark::InLargeBurst, true);
        } else {
            self.extend_burst(id);
        }
        self.burst.last_insertion = self.ticks;
    }

    fn restart_burst(&mut self, id: u32) {
        self.burst.is_large = false;
        self.clear_burst_list();
        self.burst.size = 0;
        if self.busy_queues() == 0 {
            self.list_in_burst(id);
            self.burst.size = 1;
        }
    }

    fn extend_burst(&mut self, id: u32) {
        self.burst.size += 1;
        if self.burst.size < LARGE {
            self.list_in_burst(id);
            return;
        }
        self.burst.is_large = true;
        for place in 0..self.burst.list.len() {
            self.set_mark(self.burst.list[place], Mark::InLargeBurst, true);
        }
        self.set_mark(id, Mark::InLargeBurst, true);
        self.clear_burst_list();
    }

    fn clear_burst_list(&mut self) {
        while let Some(id) = self.burst.list.pop() {
            self.set_mark(id, Mark::InBurstList, false);
        }
    }

    /// Puts a queue on the list.
    pub(super) fn list_in_burst(&mut self, id: u32) {
        self.burst.list.push(id);
        self.set_mark(id, Mark::InBurstList, true);
    }

    /// Takes a queue off the list.
    pub(super) fn leave_burst(&mut self, id: u32) {
        if self.queue(id).has(Mark::InBurstList) {
            self.burst.list.retain(|&other| other != id);
            self.set_mark(id, Mark::InBurstList, false);
        }
    }
}
