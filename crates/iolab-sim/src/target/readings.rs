//! Readings of the device's counters while a phase runs, as the kernel's `stat` file would tell.
//!
//! They are a tenth of a second of virtual time apart; when there are too many, every second one
//! is given up and the distance doubles, as with real devices. Requests that wait in the host and
//! those at the device count together, as in Linux.

use iolab_model::Ns;
use iolab_model::readings::{FIRST_INTERVAL_MS, READINGS_MAX, keep_every_second, since_first};

/// Distance of the first readings.
const INTERVAL: Ns = Ns::from_ms(FIRST_INTERVAL_MS);

/// Counters of the device over time.
#[derive(Clone, Debug)]
pub(super) struct Readings {
    began: Ns,
    next: Ns,
    interval: Ns,
    at: Vec<Ns>,
    rows: Vec<Vec<u64>>,
}

impl Readings {
    /// Begins with a reading now.
    pub fn begin(now: Ns, counters: &[(String, f64)]) -> Self {
        let mut readings = Self {
            began: now,
            next: now + INTERVAL,
            interval: INTERVAL,
            at: Vec::new(),
            rows: Vec::new(),
        };
        readings.take(now, counters);
        readings
    }

    /// Time of the next reading.
    pub const fn next(&self) -> Ns {
        self.next
    }

    /// The reading that is due at `now`.
    pub fn look(&mut self, now: Ns, counters: &[(String, f64)]) {
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
    }

    /// Times since the beginning, and what was counted since then, in the order of the kernel's
    /// `stat` file (Linux Documentation/block/stat.rst).
    pub fn end(mut self, now: Ns, counters: &[(String, f64)]) -> (Vec<u64>, Vec<Vec<u64>>) {
        self.take(now, counters);
        let rows = since_first(&self.rows).unwrap_or_default();
        (self.at.iter().map(|at| at.since(self.began).0).collect(), rows)
    }
}

fn row(now: Ns, counters: &[(String, f64)]) -> Vec<u64> {
    let value = |name: &str| {
        counters.iter().find(|(known, _)| known == name).map_or(0.0, |(_, value)| *value)
    };
    let direction = |name: &str| {
        [
            value(&format!("{name}_requests")),
            value(&format!("{name}_merges")),
            value(&format!("{name}_bytes")) / 512.0,
            value(&format!("{name}_ticks_ns")) / 1e6,
        ]
    };
    // Integrals are kept up to the last change; the level has not changed since.
    let rest_of = |name: &str| {
        let level = value(&format!("{name}_level"));
        (level, (now.0 as f64 - value(&format!("{name}_since_ns"))).max(0.0))
    };
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
        let mut readings = Readings::begin(Ns(7), &counters(100.0));
        let mut looks = 0;
        for tenth in 1..=1000 {
            let now = Ns(7) + Ns::from_ms(tenth * 100);
            if now >= readings.next() {
                readings.look(now, &counters(100.0 + tenth as f64));
                looks += 1;
            }
        }
        let (at, rows) = readings.end(Ns(7) + Ns::from_seconds(101), &counters(2000.0));
        assert!(at.len() <= READINGS_MAX + 1 && looks > READINGS_MAX);
        assert_eq!((at[0], rows[0][6], rows[0][8]), (0, 0, 3));
        assert!(at.windows(2).all(|pair| pair[0] < pair[1]));
        for (at, row) in at.iter().zip(&rows).take(at.len() - 1) {
            assert_eq!(row[6], at / 100_000_000, "sectors written by then");
        }
        assert_eq!(rows.last().unwrap()[6], 1900);
    }
}
