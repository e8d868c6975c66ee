//! Write throttles of two times: who may change something in the open group.
//!
//! The old one counts, inflated by the worst case of what a block takes: `(parity + 1) * 3 * 2`, at
//! most 24. Here user data are counted, and its limits are divided by that.
//!
//! Source: `dsl_pool.c`, `dmu_tx.c` and `txg.c` of `OpenZFS` (described, not copied).

use iolab_model::Ns;

use super::driver::Zfs;
use super::options::ZfsRules;
use crate::api::own_cache::Admission;

/// Worst-case factor of the old throttle.
pub const INFLATION: u64 = 24;
/// Bytes below which a group says nothing of the device: 4 MiB, inflated.
const MEASURED_MIN: u64 = (4 << 20) / INFLATION;
/// Longest delay of a transaction (`zfs_delay_max_ns`).
const DELAY_MAX: u64 = 100_000_000;

/// Limits of a throttle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrottleRules {
    /// A group holds as much as the device writes in a time (before 0.6.3).
    Throughput {
        /// Time that writing a group should take.
        target: Ns,
        /// Least and most bytes of a group.
        bytes: (u64, u64),
        /// A tick of the clock.
        tick: Ns,
    },
    /// A limit of dirty data, with delays below it.
    Dirty {
        /// Most bytes.
        most: u64,
        /// Percent from which writers are delayed.
        delay_percent: u64,
        /// Delay at the middle of what is left, in ns.
        scale: u64,
        /// Percent from which the open group is closed.
        group_percent: u64,
    },
    /// None.
    Off,
}

/// State of a throttle.
#[derive(Clone, Debug)]
pub struct Throttle {
    rules: ThrottleRules,
    /// Bytes that a group may hold.
    limit: u64,
    /// Bytes per millisecond; 0: not measured yet.
    throughput: u64,
    /// Time at which the last delayed writer goes on.
    last_wake: Ns,
}

impl Throttle {
    pub const fn new(rules: &ZfsRules) -> Self {
        let rules = rules.throttle;
        let limit = match rules {
            ThrottleRules::Throughput { bytes, .. } => bytes.0,
            ThrottleRules::Dirty { most, .. } => most,
            ThrottleRules::Off => u64::MAX,
        };
        Self { rules, limit, throughput: 0, last_wake: Ns(0) }
    }

    /// Bytes that a group may hold now.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Tell whether so much dirty data lets the open group be closed.
    pub const fn wants_group(&self, dirty: u64) -> bool {
        match self.rules {
            ThrottleRules::Dirty { most, group_percent, .. } => dirty > most * group_percent / 100,
            ThrottleRules::Throughput { .. } | ThrottleRules::Off => false,
        }
    }

    /// The data of a group were written in a time.
    pub fn measure(&mut self, bytes: u64, elapsed: Ns) {
        let ThrottleRules::Throughput { target, bytes: (least, most), .. } = self.rules else {
            return;
        };
        if bytes > MEASURED_MIN && elapsed > Ns::from_ms(1) {
            let new = bytes * 1_000_000 / elapsed.0;
            let old = self.throughput;
            self.throughput = if old == 0 { new } else { (3 * old + new) / 4 };
        }
        self.limit = (self.throughput * (target.0 / 1_000_000)).clamp(least, most.max(least));
    }

    /// Delay of a transaction with so much dirty data, if there is one.
    pub const fn delay(&self, dirty: u64) -> Ns {
        let ThrottleRules::Dirty { most, delay_percent, scale, .. } = self.rules else {
            return Ns(0);
        };
        let least = most * delay_percent / 100;
        if dirty <= least {
            return Ns(0);
        }
        if dirty >= most {
            return Ns(DELAY_MAX);
        }
        let delay = scale as u128 * (dirty - least) as u128 / (most - dirty) as u128;
        if delay > DELAY_MAX as u128 { Ns(DELAY_MAX) } else { Ns(delay as u64) }
    }
}

impl Zfs {
    /// A writer asks for room in the open group.
    pub(super) fn admit_write(&mut self, now: Ns, bytes: u64, has_slept: bool) -> Admission {
        match self.throttle.rules {
            ThrottleRules::Off => Admission::Go,
            ThrottleRules::Throughput { tick, .. } => {
                let (open, limit) = (self.open.bytes, self.throttle.limit);
                let reserved = open + bytes / 2;
                if open > 0 && reserved > limit {
                    self.wants_next = true;
                    return Admission::Wait;
                }
                let is_close = open > 0 && reserved > limit - limit / 8;
                // The tick counts as long as the group before is not written yet.
                let delays = is_close && self.closed.is_some();
                if delays && !has_slept { Admission::Sleep(tick) } else { Admission::Go }
            }
            ThrottleRules::Dirty { most, .. } => {
                let dirty = self.dirty_bytes();
                if dirty >= most {
                    self.wants_next = true;
                    return Admission::Wait;
                }
                let delay = self.throttle.delay(dirty);
                if has_slept || delay == Ns(0) {
                    return Admission::Go;
                }
                // Writers of a pool go on one after the other.
                let wake = (self.throttle.last_wake + delay).max(now + delay.min(Ns(1)));
                let wake = if self.throttle.last_wake < now { now + delay } else { wake };
                self.throttle.last_wake = wake;
                Admission::Sleep(wake.since(now))
            }
        }
    }
}
