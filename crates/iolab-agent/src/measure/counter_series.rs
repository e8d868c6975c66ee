//! Counters of the block devices while a phase runs, read now and then.
//!
//! Readings are a tenth of a second apart; when there are too many, every second one is given up
//! and the distance doubles. So a series is bounded, and a short phase costs two readings. Left
//! out: phases in slices, which are shorter than the distance.

use std::time::{Duration, Instant};

use iolab_drive::record::CounterSeries;
use iolab_model::readings::{FIRST_INTERVAL_MS, READINGS_MAX, keep_every_second, since_first};

use super::request::Counter;

/// Distance of the first readings.
const INTERVAL: Duration = Duration::from_millis(FIRST_INTERVAL_MS);
/// Most counters of a reading: newer kernels add some at the end.
const COUNTERS_MAX: usize = 32;
/// Readings of all devices of a trial during one phase.
#[derive(Debug)]
pub struct Readings {
    began: Instant,
    last: Instant,
    interval: Duration,
    at_ns: Vec<u64>,
    /// By device, in the order of the request; of each as many as there are times.
    rows: Vec<Vec<Vec<u64>>>,
}

impl Readings {
    /// Begins with a reading now.
    pub fn begin(counters: &[Counter]) -> Self {
        let now = Instant::now();
        let mut readings = Self {
            began: now,
            last: now,
            interval: INTERVAL,
            at_ns: Vec::new(),
            rows: vec![Vec::new(); counters.len()],
        };
        readings.take(counters, now);
        readings
    }

    /// Takes a reading if it is time.
    pub fn look(&mut self, counters: &[Counter]) {
        self.look_at(counters, Instant::now());
    }

    fn look_at(&mut self, counters: &[Counter], now: Instant) {
        if now.duration_since(self.last) < self.interval {
            return;
        }
        if self.at_ns.len() == READINGS_MAX {
            self.thin_out();
        }
        self.take(counters, now);
    }

    /// The last reading.
    pub fn end(&mut self, counters: &[Counter]) {
        self.take(counters, Instant::now());
    }

    fn take(&mut self, counters: &[Counter], now: Instant) {
        self.last = now;
        self.at_ns.push(now.duration_since(self.began).as_nanos() as u64);
        for (rows, counter) in self.rows.iter_mut().zip(counters) {
            let text = std::fs::read_to_string(&counter.stat_path).unwrap_or_default();
            rows.push(fields(&text));
        }
    }

    fn thin_out(&mut self) {
        self.interval *= 2;
        keep_every_second(&mut self.at_ns);
        self.rows.iter_mut().for_each(keep_every_second);
    }

    /// Series of the device of this place in the request; none if it could not always be read.
    pub fn series(&self, device: usize) -> Option<CounterSeries> {
        let rows = self.rows.get(device)?;
        let counters = since_first(rows)?;
        Some(CounterSeries { at_ns: self.at_ns.clone(), counters, host: Vec::new() })
    }
}

fn fields(text: &str) -> Vec<u64> {
    text.split_whitespace().take(COUNTERS_MAX).map_while(|field| field.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(folder: &tempfile::TempDir) -> Vec<Counter> {
        let stat_path = folder.path().join("stat");
        vec![Counter { name: "loop8".to_owned(), stat_path }]
    }

    #[test]
    fn counters_are_told_from_the_first_reading_on_and_a_level_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let counters = counter(&folder);
        std::fs::write(&counters[0].stat_path, "10 0 80 5 20 0 160 9 3 12 14\n").unwrap();
        let mut readings = Readings::begin(&counters);
        std::fs::write(&counters[0].stat_path, "14 1 88 6 20 0 160 9 1 15 19\n").unwrap();
        readings.look(&counters);
        assert_eq!(readings.at_ns.len(), 1, "it is not time yet");
        readings.end(&counters);
        let series = readings.series(0).unwrap();
        assert_eq!(series.counters[0], [0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0]);
        assert_eq!(series.counters[1], [4, 1, 8, 1, 0, 0, 0, 0, 1, 3, 5]);
        assert_eq!((series.at_ns[0], series.at_ns.len()), (0, 2));
        std::fs::remove_file(&counters[0].stat_path).unwrap();
        readings.end(&counters);
        assert!(readings.series(0).is_none(), "a device that went away has no series");
    }

    #[test]
    fn a_long_phase_has_fewer_readings_further_apart() {
        let folder = tempfile::tempdir().unwrap();
        let counters = counter(&folder);
        std::fs::write(&counters[0].stat_path, "1 0 8 5 2 0 16 9 3 12 14\n").unwrap();
        let mut readings = Readings::begin(&counters);
        for tenth in 1..1000_u32 {
            readings.look_at(&counters, readings.began + INTERVAL * tenth);
        }
        assert!(readings.interval >= INTERVAL * 8);
        assert!(readings.at_ns.len() <= READINGS_MAX);
        assert!(readings.at_ns.is_sorted() && readings.at_ns[0] == 0);
        assert_eq!(readings.series(0).unwrap().counters.len(), readings.at_ns.len());
    }
}
