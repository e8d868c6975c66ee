//! Knowledge of anticipatory about processes: how long they think, how far they go, whether they
//! come back.
//!
//! Fixed point: 256 is 1. Source: Linux 2.6.32 block/as-iosched.c (behaviour and constants).

use std::collections::BTreeMap;

use iolab_model::Sector;

use crate::api::bio::ProcessId;
use crate::api::scheduler::Hz;

/// Ticks, of an instant or a duration; negative before the simulation began.
pub(super) type Ticks = i64;

/// Long before everything.
pub(super) const FAR_PAST: Ticks = -(1 << 40);

/// `(7 * old + 256 * value) / 8`.
const fn decayed(old: u64, value: u64) -> u64 {
    (7 * old + 256 * value) / 8
}

/// A decaying average.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Average {
    pub(super) samples: u64,
    pub(super) total: u64,
    pub(super) mean: u64,
}

impl Average {
    /// As if there had been so many samples of the same value.
    pub(super) const fn steady(samples: u64, mean: u64) -> Self {
        Self { samples, total: samples * mean, mean }
    }

    fn add(&mut self, value: u64) {
        self.samples = decayed(self.samples, 1);
        self.total = decayed(self.total, value);
    }

    /// Ticks of thinking. The mean is rounded by a constant, so the first ones weigh too much.
    pub(super) fn add_think(&mut self, ticks: u64) {
        self.add(ticks);
        self.mean = (self.total + 128) / self.samples;
    }

    /// Sectors of a seek; single long ones are cut.
    pub(super) fn add_seek(&mut self, sectors: u64) {
        let slack = if self.samples <= 60 { 2 * 1024 * 1024 } else { 2 * 1024 * 64 };
        self.add(sectors.min(4 * self.mean + slack));
        self.mean = (self.total + self.samples / 2) / self.samples;
    }
}

/// A process that issues requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    /// Requests here.
    pub(super) queued: u32,
    /// Requests dispatched that the device has not started.
    pub(super) dispatched: u32,
    pub(super) has_issued: bool,
    pub(super) has_completed: bool,
    pub(super) has_exited: bool,
    pub(super) last_completion: Ticks,
    /// End of its last request.
    pub(super) position: Sector,
    pub(super) think: Average,
    pub(super) seek: Average,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            queued: 0,
            dispatched: 0,
            has_issued: false,
            has_completed: false,
            has_exited: false,
            last_completion: FAR_PAST,
            position: Sector(0),
            think: Average::default(),
            seek: Average::default(),
        }
    }
}

/// All processes, and what new ones are like.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    processes: BTreeMap<ProcessId, Process>,
    /// Probability that a process that is waited for never comes back.
    pub(super) exit_probability: u64,
    /// Probability that no other process takes over for one that has ended.
    pub(super) no_cooperation: u64,
    new_think_total: u64,
    new_seek_total: u64,
}

impl History {
    pub(super) fn process(&mut self, id: ProcessId) -> &mut Process {
        self.processes.entry(id).or_default()
    }

    /// A process issues something: one that had ended is a new one of the same number.
    pub(super) fn renew(&mut self, id: ProcessId) {
        let process = self.process(id);
        if process.has_exited && process.queued + process.dispatched == 0 {
            *process = Process::default();
        }
    }

    /// Mean think time, in ticks, of processes that begin.
    pub(super) const fn new_think_mean(&self) -> u64 {
        self.new_think_total / 256
    }

    /// Mean seek distance, in sectors, of processes that begin.
    pub(super) const fn new_seek_mean(&self) -> u64 {
        self.new_seek_total / 256
    }

    /// A sync request from `start` to `end` counts as the process's next one.
    pub(super) fn sample(&mut self, id: ProcessId, now: Ticks, hz: Hz, span: (Sector, Sector)) {
        let (start, end) = span;
        let process = self.processes.entry(id).or_default();
        if process.has_issued || process.has_completed {
            let is_thinking = process.has_completed && process.queued + process.dispatched == 0;
            let think = if is_thinking {
                // Linux 2.6.32 block/as-iosched.c: `MAX_THINKTIME` HZ/50, less one tick.
                let cap = (u64::from(hz.0) / 50).saturating_sub(1);
                ((now - process.last_completion) as u64).min(cap)
            } else {
                0
            };
            let seek = process.position.0.abs_diff(start.0);
            if process.think.samples == 0 {
                self.new_think_total = decayed(self.new_think_total, think);
                self.exit_probability = decayed(self.exit_probability, 0);
            }
            process.think.add_think(think);
            if process.seek.samples == 0 {
                self.new_seek_total = decayed(self.new_seek_total, seek);
            }
            process.seek.add_seek(seek);
        }
        process.position = end;
        process.has_issued = true;
    }

    pub(super) fn raise_exit_probability(&mut self) {
        self.exit_probability = decayed(self.exit_probability, 1);
    }

    pub(super) fn raise_no_cooperation(&mut self) {
        self.no_cooperation = decayed(self.no_cooperation, 1);
    }

    pub(super) fn lower_no_cooperation(&mut self) {
        self.no_cooperation = decayed(self.no_cooperation, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_few_think_times_is_too_high() {
        // formula_checks: as_think_mean_ticks.
        let cases: [(&[u64], u64); 5] = [(&[1], 5), (&[1, 1], 3), (&[2], 6), (&[3], 7), (&[0], 4)];
        for (samples, mean) in cases {
            let mut average = Average::default();
            for &ticks in samples {
                average.add_think(ticks);
            }
            assert_eq!(average.mean, mean, "{samples:?}");
        }
    }

    #[test]
    fn weights_approach_256() {
        // formula_checks: decaying_sample_weight.
        let mut average = Average::default();
        let weights = [(); 4].map(|()| {
            average.add_think(0);
            average.samples
        });
        assert_eq!(weights, [32, 60, 84, 105]);
    }

    #[test]
    fn long_seeks_are_cut() {
        let mut average = Average::default();
        average.add_seek(100 << 20);
        assert_eq!(average.mean, 2 << 20);
    }

    #[test]
    fn only_idle_time_after_a_completion_is_thinking() {
        let mut history = History::default();
        let id = ProcessId(1);
        let span = (Sector(0), Sector(8));
        history.sample(id, 0, Hz(1_000), span);
        assert_eq!(history.process(id).think.samples, 0, "the first request says nothing");
        history.process(id).has_completed = true;
        history.process(id).last_completion = 5;
        history.process(id).queued = 1;
        history.sample(id, 10, Hz(1_000), span);
        assert_eq!(history.process(id).think.total, 0);
        history.process(id).queued = 0;
        history.sample(id, 10, Hz(1_000), span);
        assert_eq!(history.process(id).think.total, 256 * 5 / 8);
        assert_eq!(history.new_think_mean(), 0);
        let before = history.process(id).think.total;
        history.sample(id, 1_000, Hz(1_000), span);
        assert_eq!(history.process(id).think.total, (7 * before + 256 * 19) / 8, "capped");
    }
}
