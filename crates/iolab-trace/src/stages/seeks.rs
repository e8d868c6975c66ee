//! Distances between requests that follow each other on a device.
//!
//! Rule of btt(1): 0 if the request begins or ends within the one before, otherwise from the nearer
//! end of that. Left out: the arm's real way, which only the drive knows.

use std::collections::BTreeMap;

use iolab_model::histogram::Histogram;

/// Different distances that are counted exactly, for the most frequent one.
const EXACT_MAX: usize = 1 << 14;

/// Distances of one kind on one device.
#[derive(Clone)]
pub struct Seeks {
    last: (u64, u64),
    /// Distances in sectors.
    pub distances: Histogram,
    /// Requests that begin exactly where the one before ended.
    pub sequential: u64,
    zeros: u64,
    exact: BTreeMap<u64, u64>,
    /// Whether there were more different distances than are counted exactly.
    pub is_mode_rough: bool,
}

impl Default for Seeks {
    fn default() -> Self {
        Self {
            last: (0, 0),
            distances: Histogram::new(),
            sequential: 0,
            zeros: 0,
            exact: BTreeMap::new(),
            is_mode_rough: false,
        }
    }
}

impl Seeks {
    /// Adds a request.
    pub fn add(&mut self, start: u64, end: u64) {
        let (last_start, last_end) = self.last;
        let within = |sector| last_start <= sector && sector <= last_end;
        let distance = if within(start) || within(end) {
            0
        } else if start > last_end {
            start - last_end
        } else {
            last_start.abs_diff(start)
        };
        self.sequential += u64::from(start == last_end);
        self.last = (start, end);
        self.distances.record(distance);
        if distance == 0 {
            self.zeros += 1;
        } else if self.exact.len() < EXACT_MAX {
            *self.exact.entry(distance).or_default() += 1;
        } else if let Some(count) = self.exact.get_mut(&distance) {
            *count += 1;
        } else {
            self.is_mode_rough = true;
        }
    }

    /// How many there are.
    pub const fn count(&self) -> u64 {
        self.distances.count()
    }

    /// The most frequent distances, ascending, and how often each occurs.
    pub fn modes(&self) -> (Vec<u64>, u64) {
        let most = self.exact.values().copied().max().unwrap_or(0).max(self.zeros);
        let zero = (self.zeros == most && most > 0).then_some(0);
        let others =
            self.exact.iter().filter(|(_, count)| **count == most).map(|(value, _)| *value);
        (zero.into_iter().chain(others).collect(), most)
    }

    /// What btt prints as the median: a distance that at least half of all have, otherwise 0.
    pub fn btt_median(&self) -> u64 {
        let (modes, most) = self.modes();
        if most >= self.count() / 2 { modes.first().copied().unwrap_or(0) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_from_the_nearer_end() {
        let mut seeks = Seeks::default();
        for (start, end) in [(0, 8), (8, 16), (100, 108), (40, 48), (44, 52), (52, 60)] {
            seeks.add(start, end);
        }
        // 0, 0, 84 forward, 60 back, 0 within, 0 behind.
        assert_eq!(seeks.modes(), (vec![0], 4));
        assert_eq!(seeks.distances.sum(), 144);
        assert_eq!(seeks.sequential, 2);
    }
}
