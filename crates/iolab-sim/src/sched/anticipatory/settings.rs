//! The tunables, and states for scenario files.
//!
//! Source: Linux 2.6.32 block/as-iosched.c (names, units, defaults and ranges in sysfs).

use super::Anticipatory;
use super::history::Average;
use crate::api::bio::ProcessId;
use crate::sched::common::INT_MAX;
use crate::tunable::{Tunable, TunableInfo, Tuned, Unit};

const fn time(name: &'static str, default: u64, about: &'static str) -> TunableInfo {
    TunableInfo { name, unit: Unit::Milliseconds, default, min: 0, max: INT_MAX, about }
}

impl Tuned for Anticipatory {
    const TUNABLES: &'static [Tunable<Self>] = &[
        Tunable {
            info: time("read_expire", 125, "Age at which a sync request is served first."),
            get: |s| s.hz.ms_of_ticks(s.expire[0]),
            set: |s, ms| s.expire[0] = s.hz.ticks_of_ms(ms),
        },
        Tunable {
            info: time("write_expire", 250, "Age at which an async request is served first."),
            get: |s| s.hz.ms_of_ticks(s.expire[1]),
            set: |s, ms| s.expire[1] = s.hz.ticks_of_ms(ms),
        },
        Tunable {
            info: time("antic_expire", 6, "Longest wait for a process; 0: never wait."),
            get: |s| s.hz.ms_of_ticks(s.wait_expire),
            set: |s, ms| s.wait_expire = s.hz.ticks_of_ms(ms),
        },
        Tunable {
            info: time("read_batch_expire", 500, "Time for sync requests while async ones wait."),
            get: |s| s.hz.ms_of_ticks(s.batch_expire[0]),
            set: |s, ms| s.batch_expire[0] = s.hz.ticks_of_ms(ms),
        },
        Tunable {
            info: time("write_batch_expire", 125, "Time that a write batch should take."),
            get: |s| s.hz.ms_of_ticks(s.batch_expire[1]),
            set: |s, ms| s.batch_expire[1] = s.hz.ticks_of_ms(ms),
        },
    ];
}

impl Anticipatory {
    /// "process 1: {`think_samples`: 256, `think_mean_ms`: 10, ...}" or "`write_batch_count`: 6".
    pub(super) fn take_on(&mut self, state: &str) -> bool {
        if let Some(count) = state.strip_prefix("write_batch_count: ") {
            let count = count.parse().ok();
            self.batch.writes = count.unwrap_or(self.batch.writes);
            return count.is_some();
        }
        let parts = state.strip_prefix("process ").and_then(|rest| rest.split_once(": {"));
        let Some((Ok(process), fields)) = parts.map(|(id, rest)| (id.parse::<u32>(), rest)) else {
            return false;
        };
        let fields = fields.trim_end_matches('}').split(", ").map(|field| field.split_once(": "));
        let (mut think, mut seek) = ((0, 0), (0, 0));
        let mut has_completed = false;
        for field in fields {
            let Some((name, text)) = field else {
                return false;
            };
            let number = text.parse::<u64>();
            match (name, number) {
                ("think_samples", Ok(samples)) => think.0 = samples,
                ("think_mean_ms", Ok(ms)) => think.1 = self.hz.ticks_of_ms(ms),
                ("seek_samples", Ok(samples)) => seek.0 = samples,
                ("seek_mean_sectors", Ok(sectors)) => seek.1 = sectors,
                ("has_completed_io", _) => has_completed = text == "true",
                _ => return false,
            }
        }
        let process = self.history.process(ProcessId(process));
        process.think = Average::steady(think.0, think.1);
        process.seek = Average::steady(seek.0, seek.1);
        process.has_completed = has_completed;
        true
    }
}
