//! Readings of the device's counters while a phase runs, as the kernel's `stat` file would tell.
//!
//! They are a tenth of a second of virtual time apart; when there are too many, every second one
//! is given up and the distance doubles, as with real devices. Requests that wait in the host and
//! those at the device count together, as in Linux.
//!
//! Exact readings have the distance that somebody asked for, none is given up, and beside each
//! stands what the processors did and what waited in the host, as Solaris counts it: an idle
//! processor waits while any request is outstanding.

use iolab_model::Ns;
use iolab_model::readings::{
    FIRST_INTERVAL_MS, HostReading, READINGS_MAX, keep_every_second, since_first,
};

/// Distance of the first readings.
const INTERVAL: Ns = Ns::from_ms(FIRST_INTERVAL_MS);

/// Exact readings that are kept at most; later ones are not taken.
const EXACT_MAX: usize = 1 << 20;

/// Readings since the first one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadingsTaken {
    /// Times since the first reading, in ns.
    pub at_ns: Vec<u64>,
    /// Counts since then, in the order of the kernel's `stat` file (Linux
    /// Documentation/block/stat.rst).
    pub counters: Vec<Vec<u64>>,
    /// Beside each of them what the host did since then; empty unless readings are exact.
    pub host: Vec<HostReading>,
}

/// Time of the processors between two instants.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostTime {
    /// All processors.
    pub all: Ns,
    /// Part of it at which they were busy.
    pub busy: Ns,
    /// A request is outstanding.
    pub is_waiting: bool,
    /// Charged to workers since the first reading.
    pub worked: Ns,
    /// Part of it that they compute themselves.
    pub computed: Ns,
}

/// Processors since the first reading.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Host {
    sum: HostReading,
}

impl Host {
    /// Time passes in which nothing begins or ends.
    pub fn pass(&mut self, time: HostTime) {
        let sum = &mut self.sum;
        // Work that was asked for may still lie ahead: no more of it is done than time passed.
        let user = (time.computed.0 - sum.user_ns.min(time.computed.0)).min(time.busy.0);
        sum.user_ns += user;
        sum.system_ns += time.busy.0 - user;
        let rest = time.all.0 - time.busy.0;
        *(if time.is_waiting { &mut sum.wait_ns } else { &mut sum.idle_ns }) += rest;
        sum.calls_ns = time.worked.since(time.computed).0;
    }
}

/// Counters of the device over time.
#[derive(Clone, Debug)]
pub(super) struct Readings {
    began: Ns,
    next: Ns,
    interval: Ns,
    is_exact: bool,
    at: Vec<Ns>,
    rows: Vec<Vec<u64>>,
    /// Queue of the host at the first reading: requests times ns, ns with any.
    queue: (u64, u64),
    hosts: Vec<HostReading>,
    pub host: Host,
}

impl Readings {
    /// Begins with a reading now; those that follow have this distance exactly, if one is asked
    /// for.
    pub fn begin(now: Ns, every: Option<Ns>, counters: &[(String, f64)]) -> Self {
        let interval = every.map_or(INTERVAL, |every| every.max(Ns::from_ms(1)));
        let mut readings = Self {
            began: now,
            next: now + interval,
            interval,
            is_exact: every.is_some(),
            at: Vec::new(),
            rows: Vec::new(),
            queue: queue_of(now, counters),
            hosts: Vec::new(),
            host: Host::default(),
        };
        readings.take(now, counters);
        readings
    }

    /// Tell whether readings have the distance that was asked for.
    pub const fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Time of the next reading.
    pub const fn next(&self) -> Ns {
        self.next
    }

    /// The reading that is due at `now`.
    pub fn look(&mut self, now: Ns, counters: &[(String, f64)]) {
        if self.is_exact {
            self.take(now, counters);
            self.next = if self.at.len() < EXACT_MAX { now + self.interval } else { Ns::MAX };
            return;
        }
        if self.at.len() >= READINGS_MAX {
            self.interval = Ns(self.interval.0 * 2);
            keep_every_second(&mut self.at);
            keep_every_second(&mut self.rows);
        }
        self.take(now, counters);
        let passed = now.since(self.began).0 / self.interval.0;
        self.next = self.began + Ns((passed + 1) * self.interval.0);
    }

    fn take(&mut self, now: Ns, counters: &[(String, f64)]) {
        self.at.push(now);
        self.rows.push(row(now, counters));
        if self.is_exact {
            let (queued, busy) = queue_of(now, counters);
            self.hosts.push(HostReading {
                queued_ns: queued.saturating_sub(self.queue.0),
                queue_busy_ns: busy.saturating_sub(self.queue.1),
                ..self.host.sum
            });
        }
    }

    /// The readings, one of now included.
    pub fn end(mut self, now: Ns, counters: &[(String, f64)]) -> ReadingsTaken {
        self.take(now, counters);
        ReadingsTaken {
            at_ns: self.at.iter().map(|at| at.since(self.began).0).collect(),
            counters: since_first(&self.rows).unwrap_or_default(),
            host: self.hosts,
        }
    }
}

/// Integrals are kept up to the last change; the level has not changed since. Answers the level,
/// and the time since then in ns.
fn rest_of(now: Ns, counters: &[(String, f64)], name: &str) -> (f64, f64) {
    let level = value(counters, &format!("{name}_level"));
    (level, (now.0 as f64 - value(counters, &format!("{name}_since_ns"))).max(0.0))
}

fn value(counters: &[(String, f64)], name: &str) -> f64 {
    counters.iter().find(|(known, _)| known == name).map_or(0.0, |(_, value)| *value)
}

/// Requests that waited in the host times ns, and ns with any.
fn queue_of(now: Ns, counters: &[(String, f64)]) -> (u64, u64) {
    let (level, rest) = rest_of(now, counters, "waiting");
    let busy = value(counters, "wait_busy_ns") + if level > 0.0 { rest } else { 0.0 };
    ((value(counters, "wait_ns_integral") + level * rest) as u64, busy as u64)
}

fn row(now: Ns, counters: &[(String, f64)]) -> Vec<u64> {
    let value = |name: &str| value(counters, name);
    let direction = |name: &str| {
        [
            value(&format!("{name}_requests")),
            value(&format!("{name}_merges")),
            value(&format!("{name}_bytes")) / 512.0,
            value(&format!("{name}_ticks_ns")) / 1e6,
        ]
    };
    let rest_of = |name: &str| rest_of(now, counters, name);
    let ((waiting, waited), (active, worked)) = (rest_of("waiting"), rest_of("active"));
    let busy = value("busy_ns") + if active > 0.0 { worked } else { 0.0 };
    let area = value("wait_ns_integral") + value("active_ns_integral");
    let rest = [waiting + active, busy / 1e6, (area + waiting * waited + active * worked) / 1e6];
    let all = direction("read").into_iter().chain(direction("write")).chain(rest);
    all.map(|number| number.round() as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(written: f64) -> Vec<(String, f64)> {
        vec![("write_bytes".into(), written * 512.0), ("active_level".into(), 3.0)]
    }

    #[test]
    fn readings_are_thinned_out_and_count_from_the_first_one() {
        let mut readings = Readings::begin(Ns(7), None, &counters(100.0));
        let mut looks = 0;
        for tenth in 1..=1000 {
            let now = Ns(7) + Ns::from_ms(tenth * 100);
            if now >= readings.next() {
                readings.look(now, &counters(100.0 + tenth as f64));
                looks += 1;
            }
        }
        let taken = readings.end(Ns(7) + Ns::from_seconds(101), &counters(2000.0));
        let (at, rows) = (taken.at_ns, taken.counters);
        assert!(taken.host.is_empty());
        assert!(at.len() <= READINGS_MAX + 1 && looks > READINGS_MAX);
        assert_eq!((at[0], rows[0][6], rows[0][8]), (0, 0, 3));
        assert!(at.windows(2).all(|pair| pair[0] < pair[1]));
        for (at, row) in at.iter().zip(&rows).take(at.len() - 1) {
            assert_eq!(row[6], at / 100_000_000, "sectors written by then");
        }
        assert_eq!(rows.last().unwrap()[6], 1900);
    }

    #[test]
    fn exact_readings_keep_their_distance_and_the_time_of_the_processors() {
        let mut readings = Readings::begin(Ns(7), Some(Ns::from_seconds(5)), &counters(0.0));
        for step in 1..=2000_u64 {
            let from = readings.next();
            assert_eq!(from, Ns(7) + Ns::from_seconds(5 * step));
            let computed = Ns::from_seconds(step.min(3));
            readings.host.pass(HostTime {
                all: Ns::from_seconds(5),
                busy: Ns::from_seconds(2),
                is_waiting: step % 2 == 0,
                worked: Ns::from_seconds(2 * step),
                computed,
            });
            readings.look(from, &counters(step as f64));
        }
        let taken = readings.end(Ns(7) + Ns::from_seconds(10_001), &counters(2001.0));
        assert_eq!((taken.at_ns.len(), taken.host.len()), (2002, 2002));
        let [second, last] = [2, 2000].map(|index| taken.host[index]);
        assert_eq!((second.user_ns, second.system_ns), (2_000_000_000, 2_000_000_000));
        assert_eq!(last.user_ns, 3_000_000_000);
        assert_eq!(last.wait_ns, last.idle_ns);
        let all = last.user_ns + last.system_ns + last.wait_ns + last.idle_ns;
        assert_eq!(all, 10_000 * 1_000_000_000);
        assert_eq!(last.calls_ns, 3_997_000_000_000);
    }

    #[test]
    fn computing_that_lies_ahead_takes_nothing_from_what_the_kernel_did() {
        let mut host = Host::default();
        let time = |computed| HostTime {
            all: Ns(10),
            busy: Ns(10),
            is_waiting: false,
            worked: Ns(100),
            computed: Ns(computed),
        };
        host.pass(time(0));
        host.pass(time(50));
        assert_eq!((host.sum.user_ns, host.sum.system_ns), (10, 10));
    }
}
