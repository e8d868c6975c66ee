//! Stalls: when writers are slowed down or stopped, because background jobs cannot follow.
//!
//! Conditions of `RocksDB` 7.8 (`column_family.cc`, wiki "Write Stalls"). Left out: the rate of
//! delayed writers, which there falls and rises with the work that is pending; here it is the one
//! that was set.

use iolab_model::Ns;

use crate::options::LsmOptions;
use crate::version::Version;

/// Pace of writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as they can.
    Free,
    /// At the delayed rate.
    Delayed,
    /// Not at all.
    Stopped,
}

/// State of the writers, and of the time that they lost.
#[derive(Debug)]
pub struct Stall {
    pub pace: Pace,
    /// Compactions may run beside each other.
    pub is_pressed: bool,
    pub pending_bytes: u64,
    /// Instant until which delayed bytes are paid for.
    pub paid_until: Ns,
    /// Instant until which the writer at the front waits.
    pub front_until: Option<Ns>,
    /// Instant from which the writer at the front waits.
    pub since: Option<Ns>,
    pub lost: Ns,
    /// Waits of a writer.
    pub count: u64,
}

impl Stall {
    pub const fn new() -> Self {
        Self {
            pace: Pace::Free,
            is_pressed: false,
            pending_bytes: 0,
            paid_until: Ns(0),
            front_until: None,
            since: None,
            lost: Ns(0),
            count: 0,
        }
    }

    /// Looks at the tables and at the number of write buffers that are full.
    pub fn refresh(&mut self, version: &Version, options: &LsmOptions, full_buffers: u64) {
        let runs = version.runs(options.compaction_style);
        self.pending_bytes = version.pending_bytes(options);
        let (pending, soft) = (self.pending_bytes, options.soft_pending_compaction_bytes_limit);
        let (runs_slow, runs_stop) =
            (options.level0_slowdown_writes_trigger, options.level0_stop_writes_trigger);
        let hard = options.hard_pending_compaction_bytes_limit;
        let most = options.max_write_buffer_number;
        let is_over = |limit: u64| limit > 0 && pending >= limit;
        let compacts = !options.disable_auto_compactions;
        let is_stopped = full_buffers >= most || compacts && (runs >= runs_stop || is_over(hard));
        let is_delayed = most > 3
            && full_buffers >= most - 1
            && full_buffers > options.min_write_buffer_number_to_merge
            || compacts && (runs >= runs_slow || is_over(soft));
        self.pace = match (is_stopped, is_delayed) {
            (true, _) => Pace::Stopped,
            (_, true) => Pace::Delayed,
            _ => Pace::Free,
        };
        let trigger = options.level0_file_num_compaction_trigger;
        let above = runs_slow.saturating_sub(trigger) / 4;
        let pressed_from = (2 * trigger).min(trigger + above);
        self.is_pressed =
            runs >= pressed_from || self.pace != Pace::Free || soft > 0 && pending >= soft / 4;
    }

    /// A writer at the front waits.
    pub fn begin(&mut self, now: Ns) {
        if self.since.is_none() {
            self.since = Some(now);
            self.count += 1;
        }
    }

    /// The writer at the front goes on.
    pub fn end(&mut self, now: Ns) {
        if let Some(since) = self.since.take() {
            self.lost += now.since(since);
        }
        self.front_until = None;
    }

    /// Instant from which a delayed writer of so many bytes may go on.
    pub fn turn(&mut self, now: Ns, bytes: u64, rate: u64) -> Ns {
        if let Some(until) = self.front_until {
            return until;
        }
        let cost = bytes.saturating_mul(1_000_000_000) / rate.max(1);
        self.paid_until = self.paid_until.max(now) + Ns(cost);
        self.front_until = Some(self.paid_until);
        self.paid_until
    }
}
