//! Pauses of files: times in which no access to one is under way.
//!
//! They are those of the file, not of its tasks: a pool of eight tasks, each of which waits for 200
//! ms, uses the file each 25 ms, and so do eight tasks that come one after the other.

use schemars::JsonSchema;
use serde::Serialize;

/// Times between two accesses that are shorter are those of strace itself.
pub const PAUSE_NS: u64 = 1_000_000;
/// Share of the time of a file from which on its pauses are no accident of a busy machine.
const TOLD_SHARE: f64 = 0.1;
/// Share of all pauses that those of one length must have not to be accidents.
const LENGTH_SHARE: f64 = 0.05;
/// Pauses after more accesses than this, on average, are told if they are longer than what a busy
/// machine makes now and then.
const SELDOM: u64 = 10;
const LONG_NS: u64 = 10_000_000;
/// Share of the time of a file from which on half of that is long.
const MOST: f64 = 0.5;
/// Share of the mean below which the shortest pause lies if they are of several lengths.
const SPREAD: f64 = 0.7;

/// Pauses of a file, of a millisecond at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AccessPauses {
    /// Number of them.
    pub count: u64,
    /// Their sum.
    pub total_ns: u64,
    /// The shortest one.
    pub least_ns: u64,
    /// The longest one.
    pub longest_ns: u64,
}

impl AccessPauses {
    /// One pause, or none if it has no length.
    pub const fn of_one(pause_ns: u64) -> Self {
        let count = if pause_ns > 0 { 1 } else { 0 };
        Self { count, total_ns: pause_ns, least_ns: pause_ns, longest_ns: pause_ns }
    }

    /// Adds one.
    pub fn add(&mut self, pause_ns: u64) {
        self.merge(&Self::of_one(pause_ns));
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        let of = |pauses: &Self| (pauses.count > 0).then_some(pauses.least_ns);
        self.least_ns = [of(self), of(other)].into_iter().flatten().min().unwrap_or(0);
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }

    /// The mean, if there are any.
    pub fn mean_ns(&self) -> Option<u64> {
        self.total_ns.checked_div(self.count)
    }

    /// True if they make a good part of so long a time with so many accesses, and are no accident.
    pub fn are_told(&self, lasted_ns: Option<u64>, accesses: u64) -> bool {
        let lasted = lasted_ns.unwrap_or(0) as f64;
        let is_usual = self.accesses_each(accesses) <= SELDOM;
        let is_most = self.total_ns as f64 >= MOST * lasted;
        let long_ns = if is_most { LONG_NS / 2 } else { LONG_NS };
        let is_long = self.mean_ns().is_some_and(|mean| mean >= long_ns);
        self.count > 0 && self.total_ns as f64 >= TOLD_SHARE * lasted && (is_usual || is_long)
    }

    /// True if they have several lengths.
    pub fn are_spread(&self) -> bool {
        self.mean_ns().is_some_and(|mean| (self.least_ns as f64) < SPREAD * mean as f64)
    }

    /// Accesses from one of them to the next, of so many.
    pub fn accesses_each(&self, accesses: u64) -> u64 {
        let each = accesses as f64 / (self.count + 1) as f64;
        (each.round() as u64).max(1)
    }
}

/// Pauses of a file: between all its accesses, between its reads and between its writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FilePauses {
    /// Between all accesses.
    pub all: AccessPauses,
    /// Between its reads, whatever lies between them.
    pub reads: AccessPauses,
    /// Between its writes.
    pub writes: AccessPauses,
    /// Sum of those between all accesses, accidents of a busy machine too.
    pub idle_ns: u64,
}

impl FilePauses {
    /// Pauses between all accesses, between the reads and between the writes.
    pub fn of(all: &PauseLengths, [reads, writes]: &[PauseLengths; 2]) -> Self {
        let idle_ns = all.all().total_ns;
        Self { all: all.usual(), reads: reads.usual(), writes: writes.usual(), idle_ns }
    }
}

/// Pauses by length: each row has those of up to twice the length of the row before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PauseLengths {
    rows: Vec<AccessPauses>,
}

impl PauseLengths {
    /// Adds a pause; shorter ones than [`PAUSE_NS`] are none.
    pub fn add(&mut self, pause_ns: u64) {
        let Some(row) = (pause_ns / PAUSE_NS).checked_ilog2() else { return };
        if self.rows.len() <= row as usize {
            self.rows.resize_with(row as usize + 1, AccessPauses::default);
        }
        self.rows[row as usize].add(pause_ns);
    }

    /// Sum of all.
    pub fn all(&self) -> AccessPauses {
        let mut all = AccessPauses::default();
        self.rows.iter().for_each(|row| all.merge(row));
        all
    }

    /// Sum of those that are no accidents.
    pub fn usual(&self) -> AccessPauses {
        let all = self.all();
        let mut usual = AccessPauses::default();
        for row in &self.rows {
            if row.total_ns as f64 >= LENGTH_SHARE * all.total_ns as f64 {
                usual.merge(row);
            }
        }
        usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accidents_are_no_pauses() {
        let mut lengths = PauseLengths::default();
        for pause in [999_999, 1_300_000, 1_900_000] {
            lengths.add(pause);
        }
        assert_eq!(lengths.usual().count, 2);
        for pause in [1_000_000_000, 1_000_200_000] {
            lengths.add(pause);
        }
        let usual = lengths.usual();
        assert_eq!(
            (usual.count, usual.mean_ns(), usual.are_spread()),
            (2, Some(1_000_100_000), false)
        );
        assert!(usual.are_told(Some(2_100_000_000), 1000));
        let mut few = PauseLengths::default();
        for pause in [3_000_000; 4] {
            few.add(pause);
        }
        assert!(!few.usual().are_told(Some(20_000_000), 400));
        assert!(few.usual().are_told(Some(20_000_000), 40));
    }
}
