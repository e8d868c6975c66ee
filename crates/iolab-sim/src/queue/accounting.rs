//! Counters of a queue: integrals over time, so that Little's law holds exactly.

use iolab_model::Ns;

use crate::api::request::{Direction, Request};

/// A number that changes in time, and its integral.
#[derive(Clone, Copy, Debug, Default)]
pub struct Integral {
    level: u64,
    since: Ns,
    /// Sum of level times nanoseconds.
    pub area: u128,
    /// Nanoseconds with a level above zero.
    pub busy: Ns,
}

impl Integral {
    /// The number changes by `step` at `now`.
    pub fn change(&mut self, now: Ns, step: i64) {
        let passed = now.since(self.since);
        self.area += u128::from(self.level) * u128::from(passed.0);
        if self.level > 0 {
            self.busy += passed;
        }
        self.since = now;
        self.level = self.level.checked_add_signed(step).expect("a level never falls below zero");
    }

    /// The number now.
    pub const fn level(&self) -> u64 {
        self.level
    }
}

/// Counts of one queue since the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accounting {
    /// Bios merged into requests, per direction.
    pub merged: [u64; 2],
    /// Pairs of requests joined.
    pub joined: u64,
    /// Requests completed, per direction.
    pub completed: [u64; 2],
    /// Sectors completed, per direction.
    pub sectors: [u64; 2],
    /// Flush commands completed.
    pub flushes: u64,
    /// Bios that were split.
    pub split: u64,
    /// Bios that waited in front of write-back throttling.
    pub throttled: u64,
    /// Requests waiting in the host (iostat's `wait`): allocated, not yet issued.
    pub waiting: Integral,
    /// Requests at the device (iostat's `actv`).
    pub active: Integral,
    /// Sum over completed requests of the time from allocation to issue, in ns.
    pub wait_total: u128,
    /// Sum over completed requests of the time from issue to completion, in ns.
    pub service_total: u128,
    /// Sum of the times from allocation to the end, by direction.
    ticks: [u128; 2],
}

/// Tell whether a counter is a state of the instant: it tells nothing of a whole trial.
pub fn is_of_the_instant(name: &str) -> bool {
    name.ends_with("_level") || name.ends_with("_since_ns")
}

impl Accounting {
    /// A request got its slot.
    pub fn allocated(&mut self, now: Ns) {
        self.waiting.change(now, 1);
    }

    /// A request was absorbed by another before it was issued, after waiting since `allocated`.
    pub fn absorbed(&mut self, now: Ns, allocated: Ns) {
        self.waiting.change(now, -1);
        self.wait_total += u128::from(now.since(allocated).0);
        self.joined += 1;
    }

    /// A request went to the device.
    pub fn issued(&mut self, now: Ns, request: &Request) {
        self.waiting.change(now, -1);
        self.active.change(now, 1);
        self.wait_total += u128::from(now.since(request.allocated).0);
    }

    /// The device finished a request.
    pub fn completed(&mut self, now: Ns, request: &Request) {
        self.active.change(now, -1);
        self.service_total += u128::from(now.since(request.issued).0);
        if request.sectors == 0 {
            self.flushes += 1;
            return;
        }
        let direction = request.direction().index();
        self.completed[direction] += 1;
        self.sectors[direction] += u64::from(request.sectors);
        self.ticks[direction] += u128::from(now.since(request.allocated).0);
    }

    /// Flat names and values.
    pub fn counters(&self) -> Vec<(String, f64)> {
        let name = |d: Direction| ["read", "write"][d.index()];
        let mut all = Vec::new();
        for d in Direction::ALL {
            let i = d.index();
            all.push((format!("{}_requests", name(d)), self.completed[i] as f64));
            all.push((format!("{}_bytes", name(d)), self.sectors[i] as f64 * 512.0));
            all.push((format!("{}_merges", name(d)), self.merged[i] as f64));
            all.push((format!("{}_ticks_ns", name(d)), self.ticks[i] as f64));
        }
        all.push(("joined".into(), self.joined as f64));
        all.push(("flushes".into(), self.flushes as f64));
        all.push(("split_bios".into(), self.split as f64));
        all.push(("throttled_bios".into(), self.throttled as f64));
        all.push(("wait_ns_integral".into(), self.waiting.area as f64));
        all.push(("active_ns_integral".into(), self.active.area as f64));
        all.push(("busy_ns".into(), self.active.busy.0 as f64));
        all.push(("wait_busy_ns".into(), self.waiting.busy.0 as f64));
        for (name, integral) in [("waiting", &self.waiting), ("active", &self.active)] {
            all.push((format!("{name}_level"), integral.level as f64));
            all.push((format!("{name}_since_ns"), integral.since.0 as f64));
        }
        all
    }
}
