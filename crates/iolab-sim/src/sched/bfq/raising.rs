//! Weight raising: interactive processes weigh 30 times, soft real-time ones 3000 times as much.
//!
//! Interactive is whoever starts after more than 2 s without work, for as long as a large program
//! takes to load on this device. Soft real-time is whoever pauses after each batch and needs less
//! than 7000 sectors per second.
//!
//! Source of the constants: Linux block/bfq-iosched.c, `bfq_init_queue` and
//! `max_service_from_wr`.

use super::marks::Mark;
use super::queue::{FAR_PAST, Ticks};
use super::state::{Bfq, MS};

/// Factor for interactive processes, and for soft real-time ones.
pub(super) const RAISE: u32 = 30;
// Linux block/bfq-iosched.h: BFQ_SOFTRT_WEIGHT_FACTOR, 100.
const SOFT_RAISE: u32 = 30 * 100;

/// Duration of soft real-time raising.
const SOFT_MS: u64 = 300;

/// Idle for longer than this: interactive.
pub(super) const INTERACTIVE_IDLE_MS: u64 = 2_000;

/// An async queue whose last request is older than this is raised too.
const UNSYNC_PAUSE_MS: u64 = 500;

/// Idle for this long: no longer part of a burst.
const BURST_IDLE_MS: u64 = 10_000;

/// Sectors per second of a soft real-time process.
const SOFT_RATE: i64 = 7_000;

/// Sectors after which interactive raising ends.
const SERVICE_LIMIT: u64 = 120_000;

/// Only this weight (level 4) is raised: others were set on purpose.
const DEFAULT_WEIGHT: u32 = 40;

/// Raise that a queue that becomes busy qualifies for.
#[derive(Clone, Copy, Debug)]
struct Verdict {
    is_interactive: bool,
    is_soft: bool,
    deserves: bool,
}

impl Bfq {
    pub(super) const fn soft_duration(&self) -> Ticks {
        self.ticks_of(SOFT_MS)
    }

    /// Tell whether a raised queue is raised as soft real-time.
    pub(super) fn is_soft(&self, id: u32) -> bool {
        self.queue(id).habits.raising.longest == self.soft_duration()
    }

    /// Changes the factor; the weight follows.
    pub(super) fn set_raise(&mut self, id: u32, raise: u32) {
        let was_raised = self.is_raised(id);
        if self.entity(id).raise == raise {
            return;
        }
        let entity = self.entity_mut(id);
        entity.raise = raise;
        entity.must_reweigh = true;
        if self.queue(id).is_busy() {
            self.raised_busy += u32::from(raise > 1 && !was_raised);
            self.raised_busy -= u32::from(raise <= 1 && was_raised);
        }
    }

    /// An idle queue gets a request: decides about raising. True if it counts as interactive.
    pub(super) fn raise_on_arrival(&mut self, id: u32, process: u32) -> bool {
        let is_idle_for_long = self.is_idle_for(id, INTERACTIVE_IDLE_MS);
        let verdict = self.judge(id, process, is_idle_for_long);
        if !self.queue(id).has(Mark::JustCreated)
            && is_idle_for_long
            && self.is_past(self.queue(id).slot_end + self.ticks_of(BURST_IDLE_MS))
        {
            self.leave_burst(id);
            self.set_mark(id, Mark::InLargeBurst, false);
        }
        self.set_mark(id, Mark::JustCreated, false);
        let is_settled = self.is_past(self.queue(id).split + self.ticks_of(INTERACTIVE_IDLE_MS));
        if self.settings.is_low_latency && is_settled {
            self.apply(id, verdict);
        }
        verdict.is_interactive
    }

    fn is_idle_for(&self, id: u32, ms: u64) -> bool {
        let queue = self.queue(id);
        queue.in_flight == 0 && self.is_past(queue.slot_end + self.ticks_of(ms))
    }

    fn judge(&self, id: u32, process: u32, is_idle_for_long: bool) -> Verdict {
        let queue = self.queue(id);
        let is_in_burst = queue.has(Mark::InLargeBurst);
        let has_default_weight = self.entity(id).new_weight == DEFAULT_WEIGHT;
        let is_soft = !queue.is_totally_seeky()
            && !is_in_burst
            && self.is_past(queue.habits.raising.soft_start)
            && queue.in_flight == 0
            && has_default_weight;
        let is_interactive = !is_in_burst && is_idle_for_long && has_default_weight;
        let is_own = queue.owner.is_some() || self.processes.get(process).is_stably_merged;
        let deserves = self.settings.is_low_latency
            && (self.is_raised(id) || (queue.is_sync() && is_own && (is_interactive || is_soft)));
        Verdict { is_interactive, is_soft, deserves }
    }

    fn apply(&mut self, id: u32, verdict: Verdict) {
        if !self.is_raised(id) {
            if verdict.deserves {
                self.start_raising(id, verdict.is_interactive);
            }
        } else if verdict.is_interactive {
            self.queue_mut(id).habits.raising.longest = self.raising_duration();
            self.set_raise(id, RAISE);
        } else if self.queue(id).has(Mark::InLargeBurst) {
            self.set_raise(id, 1);
        } else if verdict.is_soft {
            if !self.is_soft(id) {
                let longest = self.soft_duration();
                let raising = &mut self.queue_mut(id).habits.raising;
                raising.interactive_started = raising.started;
                raising.longest = longest;
                self.set_raise(id, SOFT_RAISE);
            }
            self.queue_mut(id).habits.raising.started = self.ticks;
        }
    }

    fn start_raising(&mut self, id: u32, is_interactive: bool) {
        let duration = if is_interactive { self.raising_duration() } else { self.soft_duration() };
        let limit = 2 * self.min_budget();
        let raising = &mut self.queue_mut(id).habits.raising;
        raising.longest = duration;
        if is_interactive {
            raising.service = 0;
        } else {
            raising.interactive_started = FAR_PAST;
        }
        self.set_raise(id, if is_interactive { RAISE } else { SOFT_RAISE });
        let entity = self.entity_mut(id);
        entity.budget = entity.budget.min(limit);
    }

    /// A busy async queue gets a request after a pause.
    pub(super) fn raise_after_pause(&mut self, id: u32) {
        let raising = self.queue(id).habits.raising;
        let pause = self.ticks_of(UNSYNC_PAUSE_MS);
        if self.settings.is_low_latency
            && !self.queue(id).is_sync()
            && self.is_past(raising.started + pause)
        {
            self.queue_mut(id).habits.raising.longest = self.raising_duration();
            self.set_raise(id, RAISE);
        }
    }

    /// Ends raising, at once except for the weight.
    pub(super) fn end_raising(&mut self, id: u32) {
        let is_soft = self.is_soft(id);
        let ticks = self.ticks;
        let raising = &mut self.queue_mut(id).habits.raising;
        if !is_soft {
            raising.soft_start = ticks;
        }
        raising.longest = 0;
        raising.started = ticks;
        self.set_raise(id, 1);
        self.entity_mut(id).must_reweigh = true;
    }

    /// Soft real-time raising ends while the interactive period is still on.
    pub(super) fn return_to_interactive(&mut self, id: u32) {
        let longest = self.raising_duration();
        let raising = &mut self.queue_mut(id).habits.raising;
        raising.longest = longest;
        raising.started = raising.interactive_started;
        self.set_raise(id, RAISE);
        self.entity_mut(id).must_reweigh = true;
    }

    /// The interactive period that soft real-time raising interrupted is over.
    fn is_interactive_over(&self, id: u32) -> bool {
        let started = self.queue(id).habits.raising.interactive_started;
        self.is_past(started + self.raising_duration())
    }

    /// A request of the queue in service leaves: ends raising whose time or service is over.
    pub(super) fn review_raising(&mut self, id: u32) {
        if self.is_raised(id) {
            let raising = self.queue(id).habits.raising;
            if self.queue(id).has(Mark::InLargeBurst) {
                self.end_raising(id);
            } else if self.is_past(raising.started + raising.longest) {
                if !self.is_soft(id) || self.is_interactive_over(id) {
                    self.end_raising(id);
                } else {
                    self.return_to_interactive(id);
                }
            }
            if self.is_raised(id) && !self.is_soft(id) && raising.service > SERVICE_LIMIT {
                self.end_raising(id);
            }
        }
        let entity = self.entity(id);
        if (entity.weight > entity.original_weight) != (entity.raise > 1) {
            self.agenda.reweigh(id, false);
        }
    }

    /// Only far jumps lately: not soft real-time.
    pub(super) fn drop_seeky_soft(&mut self, id: u32) {
        if self.is_raised(id) && self.is_soft(id) && self.queue(id).is_totally_seeky() {
            if self.is_interactive_over(id) {
                self.end_raising(id);
            } else {
                self.return_to_interactive(id);
            }
        }
    }

    /// From when on the queue may count as soft real-time: when its rate so far has dropped to
    /// the limit, and never for one that goes on at once.
    pub(super) fn soft_start(&self, id: u32) -> Ticks {
        let raising = self.queue(id).habits.raising;
        let hz = i64::from(self.hz.0);
        let by_rate = raising.backlog_started + hz * raising.backlog_service as i64 / SOFT_RATE;
        let idle = (self.settings.slice_idle / (1_000 * MS / u64::from(self.hz.0))) as Ticks;
        raising.soft_start.max(by_rate).max(self.ticks + idle + 4)
    }

    /// A queue goes into service: time without service does not count for soft real-time.
    pub(super) fn shift_soft(&mut self, id: u32) {
        let queue = self.queue(id);
        let (raising, slot_end) = (queue.habits.raising, queue.slot_end);
        if self.is_raised(id)
            && self.is_soft(id)
            && self.is_past(raising.started)
            && self.is_past(slot_end)
        {
            let ticks = self.ticks;
            self.queue_mut(id).habits.raising.started =
                if slot_end > raising.started { raising.started + ticks - slot_end } else { ticks };
        }
    }
}
