//! Distances between requests that follow each other on a device.
//!
//! Rule of btt(1): 0 if the request begins or ends within the one before, otherwise from the nearer
//! end of that. Left out: the arm's real way, which only the drive knows.

use iolab_model::histogram::Histogram;

/// Places for different distances that are counted exactly, for the most frequent one.
const PLACES: usize = 1 << 13;
/// Places that a distance may have; if others have them all, it is not counted.
const CHOICES: usize = 8;

/// Number of occurrences of each distance: a table of fixed size, because every request asks it.
#[derive(Clone)]
struct Tally {
    /// Distance and count; a count of 0 is a free place.
    places: Box<[(u64, u32)]>,
    is_full: bool,
}

impl Default for Tally {
    fn default() -> Self {
        Self { places: vec![(0, 0); PLACES].into_boxed_slice(), is_full: false }
    }
}

impl Tally {
    #[inline]
    fn add(&mut self, distance: u64) {
        // Fibonacci hashing: the upper bits of the product are well mixed.
        let hash = distance.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        for choice in 0..CHOICES {
            let place = &mut self.places[(hash as usize + choice) % PLACES];
            if place.1 == 0 || place.0 == distance {
                *place = (distance, place.1.saturating_add(1));
                return;
            }
        }
        self.is_full = true;
    }
}

/// Distances of one kind on one device.
#[derive(Clone)]
pub struct Seeks {
    last: (u64, u64),
    /// Distances in sectors.
    pub distances: Histogram,
    /// Requests that begin exactly where the one before ended.
    pub sequential: u64,
    zeros: u64,
    tally: Tally,
}

impl Default for Seeks {
    fn default() -> Self {
        Self {
            last: (0, 0),
            distances: Histogram::new(),
            sequential: 0,
            zeros: 0,
            tally: Tally::default(),
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
        let has_before = self.distances.count() > 0;
        self.sequential += u64::from(has_before && start == last_end);
        self.last = (start, end);
        self.distances.record(distance);
        if distance == 0 {
            self.zeros += 1;
        } else {
            self.tally.add(distance);
        }
    }

    /// Tell whether there were more different distances than can be counted exactly.
    pub const fn is_mode_rough(&self) -> bool {
        self.tally.is_full
    }

    /// Number of distances.
    pub const fn count(&self) -> u64 {
        self.distances.count()
    }

    /// The most frequent distances, ascending, and how often each occurs.
    pub fn modes(&self) -> (Vec<u64>, u64) {
        let counted = || self.tally.places.iter().filter(|(_, count)| *count > 0);
        let most = counted().map(|(_, count)| u64::from(*count)).max().unwrap_or(0).max(self.zeros);
        let others = counted().filter(|(_, count)| u64::from(*count) == most);
        let mut modes: Vec<u64> = others.map(|(distance, _)| *distance).collect();
        if self.zeros == most && most > 0 {
            modes.push(0);
        }
        modes.sort_unstable();
        (modes, most)
    }

    /// Number that btt prints as the median: a distance that at least half of all have, otherwise
    /// 0.
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
