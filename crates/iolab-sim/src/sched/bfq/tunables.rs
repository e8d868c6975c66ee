//! The tunables, as in `/sys/block/<device>/queue/iosched`.

use super::marks::Mark;
use super::state::{Bfq, MS};
use crate::tunable::{Tunable, TunableInfo, Tuned, Unit};

/// Largest C `int`, the upper limit of most files.
const INT_MAX: u64 = i32::MAX as u64;

/// One row: name, unit, default (rotational, HZ = 1000), range, sentence.
const fn info(
    name: &'static str,
    unit: Unit,
    default: u64,
    range: (u64, u64),
    about: &'static str,
) -> TunableInfo {
    TunableInfo { name, unit, default, min: range.0, max: range.1, about }
}

impl Bfq {
    fn set_user_max_budget(&mut self, sectors: u64) {
        self.settings.user_max_budget = sectors;
        self.max_budget = if sectors == 0 { self.budget_of_rate() } else { sectors };
    }

    fn set_timeout(&mut self, ms: u64) {
        self.settings.timeout = self.ticks_of(ms);
        if self.settings.user_max_budget == 0 {
            self.max_budget = self.budget_of_rate();
        }
    }

    fn set_strict(&mut self, is_strict: bool) {
        if is_strict && !self.settings.is_strict {
            self.settings.slice_idle = self.settings.slice_idle.max(8 * MS);
        }
        self.settings.is_strict = is_strict;
    }

    fn set_low_latency(&mut self, is_on: bool) {
        if !is_on && self.settings.is_low_latency {
            for id in 0..self.queues.len() as u32 {
                if self.queue(id).has(Mark::Live) && self.is_raised(id) {
                    self.end_raising(id);
                }
            }
        }
        self.settings.is_low_latency = is_on;
    }
}

impl Tuned for Bfq {
    const TUNABLES: &'static [Tunable<Self>] = &[
        Tunable {
            info: info(
                "fifo_expire_sync",
                Unit::Milliseconds,
                125,
                (1, INT_MAX),
                "Age from which a synchronous request is served out of order, once per slot.",
            ),
            get: |bfq| bfq.settings.expire_sync / MS,
            set: |bfq, ms| bfq.settings.expire_sync = ms * MS,
        },
        Tunable {
            info: info(
                "fifo_expire_async",
                Unit::Milliseconds,
                250,
                (1, INT_MAX),
                "The same for asynchronous requests.",
            ),
            get: |bfq| bfq.settings.expire_unsync / MS,
            set: |bfq, ms| bfq.settings.expire_unsync = ms * MS,
        },
        Tunable {
            info: info(
                "back_seek_max",
                Unit::KibiBytes,
                16 * 1024,
                (0, INT_MAX),
                "Farthest that the next request may lie behind the head.",
            ),
            get: |bfq| bfq.settings.back_seek_kib,
            set: |bfq, kib| bfq.settings.back_seek_kib = kib,
        },
        Tunable {
            info: info(
                "back_seek_penalty",
                Unit::Count,
                2,
                (1, INT_MAX),
                "How many times a distance counts backwards.",
            ),
            get: |bfq| bfq.settings.back_penalty,
            set: |bfq, penalty| bfq.settings.back_penalty = penalty,
        },
        Tunable {
            info: info(
                "slice_idle",
                Unit::Milliseconds,
                8,
                (0, INT_MAX),
                "How long to wait for the next request of the queue in service.",
            ),
            get: |bfq| bfq.settings.slice_idle / MS,
            set: |bfq, ms| bfq.settings.slice_idle = ms * MS,
        },
        Tunable {
            info: info(
                "slice_idle_us",
                Unit::Microseconds,
                8_000,
                (0, u32::MAX as u64),
                "The same in microseconds.",
            ),
            get: |bfq| bfq.settings.slice_idle / 1_000,
            set: |bfq, us| bfq.settings.slice_idle = us * 1_000,
        },
        Tunable {
            info: info(
                "max_budget",
                Unit::Sectors,
                0,
                (0, INT_MAX),
                "Ceiling of a budget; 0: what the device transfers in timeout_sync.",
            ),
            get: |bfq| bfq.settings.user_max_budget,
            set: Self::set_user_max_budget,
        },
        Tunable {
            info: info(
                "timeout_sync",
                Unit::Milliseconds,
                125,
                (1, INT_MAX),
                "Longest slot of a queue, of async writes too; kept in whole ticks.",
            ),
            get: |bfq| bfq.hz.ms_of_ticks(bfq.settings.timeout as u64),
            set: Self::set_timeout,
        },
        Tunable {
            info: info(
                "strict_guarantees",
                Unit::Switch,
                0,
                (0, 1),
                "One request in the device at a time, and always wait.",
            ),
            get: |bfq| u64::from(bfq.settings.is_strict),
            set: |bfq, value| bfq.set_strict(value == 1),
        },
        Tunable {
            info: info(
                "low_latency",
                Unit::Switch,
                1,
                (0, 1),
                "Raise the weight of interactive and soft real-time processes.",
            ),
            get: |bfq| u64::from(bfq.settings.is_low_latency),
            set: |bfq, value| bfq.set_low_latency(value == 1),
        },
    ];
}
