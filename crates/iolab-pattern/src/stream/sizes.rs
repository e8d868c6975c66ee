//! Sizes of accesses, and the few that stand for many.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// Accesses of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SizeShare {
    /// Bytes of one access.
    pub bytes: u64,
    /// Number of them.
    pub count: u64,
    /// Share of all accesses.
    pub share: f64,
}

/// Sizes of the accesses of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct DirectionSizes {
    /// Number of different sizes.
    pub different: u64,
    /// Sizes that stand for all, the most frequent first. Of many different ones neighbours are
    /// joined to their mean: the rarest first, none with another of twice its bytes or more.
    pub drawn: Vec<SizeShare>,
}

/// Number of accesses of each size.
pub type SizeCounts = BTreeMap<u64, u64>;

/// Sizes down to which neighbours are joined.
const DRAWN: usize = 20;
/// Factor from which on two sizes are never joined.
const FACTOR: u64 = 2;

/// Accesses of one size beside which a single shorter one is the rest of the file.
const ENOUGH: u64 = 8;

/// Neighbouring sizes as one.
#[derive(Clone, Copy)]
struct Joined {
    bytes: u128,
    count: u64,
    /// Greatest common divisor of its sizes, which its mean keeps.
    step: u64,
}

impl Joined {
    fn mean(&self) -> u64 {
        let (count, step) = (u128::from(self.count.max(1)), u128::from(self.step.max(1)));
        let steps = (self.bytes + count * step / 2) / (count * step);
        u64::try_from(steps.max(1) * step).unwrap_or(u64::MAX)
    }

    fn with(&self, other: &Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            count: self.count + other.count,
            step: common_divisor(self.step, other.step),
        }
    }

    fn is_joinable(&self, other: &Self) -> bool {
        let (small, large) = (self.mean().min(other.mean()), self.mean().max(other.mean()));
        large < small.saturating_mul(FACTOR)
    }
}

fn common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}

impl DirectionSizes {
    /// Sizes by their numbers.
    pub fn of(counts: &SizeCounts) -> Self {
        let each = |(bytes, count): (&u64, &u64)| Joined {
            bytes: u128::from(*bytes) * u128::from(*count),
            count: *count,
            step: *bytes,
        };
        let mut rows: Vec<Joined> = counts.iter().map(each).collect();
        while rows.len() > DRAWN && join_rarest(&mut rows) {}
        let total: u64 = rows.iter().map(|row| row.count).sum();
        let share = |row: &Joined| SizeShare {
            bytes: row.mean(),
            count: row.count,
            share: row.count as f64 / total.max(1) as f64,
        };
        let mut drawn: Vec<SizeShare> = rows.iter().map(share).collect();
        drawn.sort_by_key(|row| (std::cmp::Reverse(row.count), row.bytes));
        Self { different: counts.len() as u64, drawn }
    }

    /// The same without the rest at the end of a file: one access that is shorter than the others,
    /// which moves what is left.
    #[must_use]
    pub fn without_rest(&self) -> Self {
        let mut kept = self.clone();
        if let [first, .., last] = self.drawn.as_slice()
            && last.count == 1
            && first.count >= ENOUGH
            && last.bytes < first.bytes
            && self.different == 2
        {
            kept.drawn = vec![SizeShare { share: 1.0, ..*first }];
            kept.different = 1;
        }
        kept
    }

    /// The same without sizes that are no multiples, unless all are such.
    #[must_use]
    pub fn without_parts_of(&self, unit: u64) -> Self {
        let whole: Vec<SizeShare> =
            self.drawn.iter().filter(|row| row.bytes % unit == 0).copied().collect();
        if whole.is_empty() {
            return self.clone();
        }
        let total: u64 = whole.iter().map(|row| row.count).sum();
        let share = |row: SizeShare| SizeShare { share: row.count as f64 / total as f64, ..row };
        let different = self.different - (self.drawn.len() - whole.len()) as u64;
        Self { different, drawn: whole.into_iter().map(share).collect() }
    }

    /// True if all sizes are multiples.
    pub fn are_whole(&self, unit: u64) -> bool {
        self.drawn.iter().all(|row| row.bytes % unit == 0)
    }

    /// Number of accesses.
    pub fn accesses(&self) -> u64 {
        self.drawn.iter().map(|row| row.count).sum()
    }

    /// Bytes of all accesses.
    pub fn bytes(&self) -> u64 {
        let each = self.drawn.iter().map(|row| row.bytes.saturating_mul(row.count));
        each.fold(0, u64::saturating_add)
    }
}

/// Joins the rarest pair of neighbours that may be joined; false if there is none.
fn join_rarest(rows: &mut Vec<Joined>) -> bool {
    let pairs = rows.windows(2).enumerate().filter(|(_, pair)| pair[0].is_joinable(&pair[1]));
    let Some((at, _)) = pairs.min_by_key(|(_, pair)| pair[0].count + pair[1].count) else {
        return false;
    };
    rows[at] = rows[at].with(&rows[at + 1]);
    rows.remove(at + 1);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: impl IntoIterator<Item = (u64, u64)>) -> DirectionSizes {
        DirectionSizes::of(&rows.into_iter().collect())
    }

    #[test]
    fn a_few_sizes_stand_for_themselves() {
        let found = of([(24, 100), (4096, 250), (65_536, 1)]);
        let drawn: Vec<_> = found.drawn.iter().map(|row| (row.bytes, row.count)).collect();
        assert_eq!(drawn, [(4096, 250), (24, 100), (65_536, 1)]);
        assert_eq!((found.different, found.accesses()), (3, 351));
    }

    #[test]
    fn many_sizes_are_joined_with_their_neighbours_and_keep_count_bytes_and_step() {
        // Lines of a log, and one write that is a thousand times as large.
        let rows = (10..400).map(|at| (at * 8, 1 + at % 3)).chain([(1 << 20, 2)]);
        let (counts, bytes) =
            rows.clone().fold((0, 0), |(n, sum), (bytes, count)| (n + count, sum + bytes * count));
        let found = of(rows);
        assert!(found.drawn.len() <= DRAWN && found.different == 391, "{found:?}");
        assert_eq!(found.accesses(), counts);
        assert!(found.drawn.iter().all(|row| row.bytes % 8 == 0));
        assert!(found.drawn.iter().any(|row| (row.bytes, row.count) == (1 << 20, 2)));
        let drawn: u64 = found.drawn.iter().map(|row| row.bytes * row.count).sum();
        assert!(drawn.abs_diff(bytes) * 100 < bytes, "{drawn} of {bytes}");
    }

    #[test]
    fn the_rest_at_the_end_of_a_file_is_no_size() {
        assert_eq!(of([(4096, 63), (26, 1)]).without_rest(), of([(4096, 63)]));
        for kept in [of([(4096, 63), (26, 2)]), of([(4096, 63), (1 << 20, 1)])] {
            assert_eq!(kept.without_rest(), kept);
        }
    }

    #[test]
    fn sizes_of_any_order_of_magnitude_are_no_overflow() {
        let found = of((0..64).map(|bit| (1_u64 << bit, u64::MAX / 64)));
        assert_eq!(found.drawn.len(), 64);
    }
}
