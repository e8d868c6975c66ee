//! A queue: the requests of one process (or of several) and everything learnt about them.

use iolab_model::Sector;

use super::backlog::Backlog;
use super::marks::{Mark, Marks};
use crate::api::request::RequestId;

/// Ticks since some instant long ago; may lie in the far past.
pub(super) type Ticks = i64;

/// Before everything.
pub(super) const FAR_PAST: Ticks = i64::MIN / 4;

/// More than this many of the last 32 requests far from their predecessor: seeky.
// Linux block/bfq-iosched.c: BFQQ_SEEKY, hweight32 > 19.
const SEEKY_BITS: u32 = 19;

/// Fixed-point unit of the decaying averages.
const SAMPLE: u64 = 256;

/// Number of samples after one more: tends to 256.
pub(super) const fn decayed_samples(samples: u64) -> u64 {
    (7 * samples + SAMPLE) / 8
}

/// Time that the process takes from a completion to its next request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThinkTime {
    /// Instant of the last completion.
    pub(super) last_completion: u64,
    total: u64,
    samples: u64,
    mean: u64,
}

impl ThinkTime {
    /// Nothing known; the first sample will be the cap.
    pub(super) fn starting(now: u64) -> Self {
        Self { last_completion: now + 1, ..Self::default() }
    }

    /// One more sample, capped.
    pub(super) fn sample(&mut self, now: u64, cap: u64) {
        // A queue without a completion has one in the future: the difference wraps to the cap.
        let elapsed = now.wrapping_sub(self.last_completion).min(cap);
        self.samples = decayed_samples(self.samples);
        self.total = (7 * self.total + SAMPLE * elapsed) / 8;
        self.mean = (self.total + SAMPLE / 2) / self.samples;
    }

    /// Tell whether the mean is known and above `limit`.
    // Linux block/bfq-iosched.c: bfq_sample_valid, more than 80.
    pub(super) const fn is_longer_than(&self, limit: u64) -> bool {
        self.samples > 80 && self.mean > limit
    }
}

/// A raised weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raising {
    /// Longest duration of the present kind of raising, in ticks; 0 when it has ended.
    pub(super) longest: Ticks,
    /// Start of the raising; while not raised, the last arrival.
    pub(super) started: Ticks,
    /// Start of the interactive raising that a soft real-time one interrupted.
    pub(super) interactive_started: Ticks,
    /// Sectors served while raised.
    pub(super) service: u64,
    /// From here on the queue may count as soft real-time.
    pub(super) soft_start: Ticks,
    /// Begin of the present backlog, and the sectors served since.
    pub(super) backlog_started: Ticks,
    pub(super) backlog_service: u64,
}

/// The part of a queue's state that survives a merge and is restored by a split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    pub(super) think: ThinkTime,
    /// Begin of the observation of idleness, and the idle time since.
    pub(super) observed_since: u64,
    pub(super) idle_time: u64,
    pub(super) raising: Raising,
    /// Requests of others that may be in the device while it is waited for.
    pub(super) inject_limit: u32,
    /// Service time without injection; 0 if unknown.
    pub(super) base_service_time: u64,
    /// Time at which the limit was last lowered or reset.
    pub(super) inject_lowered: Ticks,
}

/// A queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) marks: Marks,
    /// The only process that uses it; `None` if shared or async.
    pub(super) owner: Option<u32>,
    pub(super) level: u8,
    /// Class under which it is counted as busy.
    pub(super) busy_class: usize,
    /// Processes that use it or are about to.
    pub(super) users: u32,
    /// Requests that belong to it, queued or in flight.
    pub(super) allocated: u32,
    /// Processes that may be merged into it later.
    pub(super) suitors: u32,
    /// Queue that its processes are being moved to.
    pub(super) successor: Option<u32>,
    pub(super) backlog: Backlog,
    pub(super) next: Option<RequestId>,
    /// Requests in the device.
    pub(super) in_flight: u32,
    pub(super) max_budget: u64,
    /// End of its slot; while it is idle, when it became so.
    pub(super) slot_end: Ticks,
    /// One bit per request, the last one lowest: far from its predecessor.
    pub(super) seeks: u32,
    /// End of the last request inserted.
    pub(super) last_end: Sector,
    pub(super) habits: Habits,
    pub(super) first_service: Ticks,
    pub(super) created: Ticks,
    pub(super) split: Ticks,
    pub(super) waker: Option<u32>,
    pub(super) candidate_waker: Option<u32>,
    pub(super) wakeups: u32,
    pub(super) wakeups_since: u64,
    /// Queues that this one wakes, latest first.
    pub(super) woken: Vec<u32>,
    /// Key in the list of positions.
    pub(super) position: Option<Sector>,
}

impl Queue {
    /// A fresh one, as of `now` (nanoseconds) and `ticks`.
    pub(super) fn new(is_sync: bool, level: u8, now: u64, ticks: Ticks) -> Self {
        let mut marks = Marks::default();
        for mark in [Mark::Live, Mark::IoBound] {
            marks.add(mark);
        }
        marks.set(Mark::Sync, is_sync);
        marks.set(Mark::JustCreated, is_sync);
        let raising = Raising {
            longest: 0,
            started: ticks,
            interactive_started: FAR_PAST,
            service: 0,
            soft_start: ticks,
            backlog_started: 0,
            backlog_service: 0,
        };
        let habits = Habits {
            think: ThinkTime::starting(now),
            observed_since: now,
            idle_time: 0,
            raising,
            inject_limit: 0,
            base_service_time: 0,
            inject_lowered: ticks,
        };
        Self {
            marks,
            owner: None,
            level,
            busy_class: 0,
            users: 0,
            allocated: 0,
            suitors: 0,
            successor: None,
            backlog: Backlog::default(),
            next: None,
            in_flight: 0,
            max_budget: 0,
            slot_end: FAR_PAST,
            seeks: 1,
            last_end: Sector(0),
            habits,
            first_service: 0,
            created: ticks,
            split: FAR_PAST,
            waker: None,
            candidate_waker: None,
            wakeups: 0,
            wakeups_since: 0,
            woken: Vec::new(),
            position: None,
        }
    }

    pub(super) const fn has(&self, mark: Mark) -> bool {
        self.marks.has(mark)
    }

    pub(super) const fn is_sync(&self) -> bool {
        self.marks.has(Mark::Sync)
    }

    pub(super) const fn is_busy(&self) -> bool {
        self.marks.has(Mark::Busy)
    }

    /// Mostly far jumps.
    pub(super) const fn is_seeky(&self) -> bool {
        self.seeks.count_ones() > SEEKY_BITS
    }

    /// Nothing but far jumps.
    pub(super) const fn is_totally_seeky(&self) -> bool {
        self.seeks == u32::MAX
    }
}
