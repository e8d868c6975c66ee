//! `FreeRuns`: free runs of a device by their first unit.

use std::collections::BTreeMap;

/// Free space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeRuns {
    runs: BTreeMap<u64, u64>,
    units: u64,
}

impl FreeRuns {
    /// One free run.
    pub fn new(first: u64, count: u64) -> Self {
        let mut free = Self::default();
        free.give(first, count);
        free
    }

    /// Free units.
    pub const fn units(&self) -> u64 {
        self.units
    }

    /// Free units from a place on, without a gap.
    pub fn run_at(&self, at: u64) -> u64 {
        let found = self.runs.range(..=at).next_back();
        found.map_or(0, |(&first, &count)| (first + count).saturating_sub(at))
    }

    /// Frees a run, which must not be free.
    pub fn give(&mut self, first: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.units += count;
        let (mut from, mut end) = (first, first + count);
        if let Some((&before, &length)) = self.runs.range(..first).next_back() {
            debug_assert!(before + length <= first, "{first} is free already");
            if before + length == first {
                from = before;
            }
        }
        if let Some(length) = self.runs.remove(&end) {
            end += length;
        }
        self.runs.insert(from, end - from);
    }

    /// Uses a run, which must be free.
    pub fn occupy(&mut self, first: u64, count: u64) {
        if count == 0 {
            return;
        }
        let found = self.runs.range(..=first).next_back().map(|(&from, &length)| (from, length));
        let Some((from, length)) = found.filter(|(from, length)| from + length >= first + count)
        else {
            debug_assert!(false, "{first} is not free");
            return;
        };
        self.runs.remove(&from);
        self.units -= count;
        if from < first {
            self.runs.insert(from, first - from);
        }
        let rest = from + length - first - count;
        if rest > 0 {
            self.runs.insert(first + count, rest);
        }
    }

    /// First place of a run of this length that begins at a multiple of `align`: from `near` on to
    /// the end, then from the beginning.
    pub fn find(&self, near: u64, count: u64, align: u64) -> Option<u64> {
        let begin = |(&first, &length): (&u64, &u64), from: u64| {
            let place = first.max(from).next_multiple_of(align.max(1));
            (place + count <= first + length).then_some(place)
        };
        let start = self.runs.range(..=near).next_back().map_or(near, |(&first, _)| first);
        let behind = self.runs.range(start..).find_map(|run| begin(run, near));
        behind.or_else(|| self.runs.range(..=near).find_map(|run| begin(run, 0)))
    }
}
