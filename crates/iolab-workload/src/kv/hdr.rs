//! Histogram of whole microseconds as `HdrHistogram` keeps it with three significant digits, so
//! that percentiles, means and logs are those of programs that use it.
//!
//! Values below 2048 are exact; above, each power of two has 1024 equal parts. A value stands for
//! its part: the lowest of a minimum, the highest of a maximum and of a percentile, the middle of a
//! mean (`HdrHistogram` 2.1.4, `AbstractHistogram`).

/// Bits of the parts that are told apart: 2048 of them for three digits.
const PARTS_BITS: u32 = 11;
/// Parts of each power of two beyond the first 2048 values.
const HALF: usize = 1 << (PARTS_BITS - 1);

/// Counts by part; grows with the largest value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hdr {
    counts: Vec<u64>,
    total: u64,
}

/// Ordinal of the part that holds a value.
#[inline]
pub const fn index_of(value: u64) -> usize {
    let bucket = u64::BITS - (value | ((1 << PARTS_BITS) - 1)).leading_zeros() - PARTS_BITS;
    ((bucket as usize) << (PARTS_BITS - 1)) + (value >> bucket) as usize
}

/// Lowest value of a part, and how many values it holds.
pub const fn part_of(index: usize) -> (u64, u64) {
    if index < 2 * HALF {
        return (index as u64, 1);
    }
    let bucket = index / HALF - 1;
    (((index % HALF + HALF) as u64) << bucket, 1 << bucket)
}

impl Hdr {
    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let index = index_of(value);
        if index >= self.counts.len() {
            self.counts.resize((index + 1).next_power_of_two(), 0);
        }
        self.counts[index] += 1;
        self.total += 1;
    }

    /// Adds another one's counts.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
    }

    /// A histogram with these counts of parts.
    pub fn of(indices: &[u32], counts: &[u64]) -> Self {
        let mut made = Self::default();
        for (&index, &count) in indices.iter().zip(counts) {
            let index = index as usize;
            if index >= made.counts.len() {
                made.counts.resize(index + 1, 0);
            }
            made.counts[index] += count;
            made.total += count;
        }
        made
    }

    /// Parts that hold something: ordinal and count.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> + '_ {
        let parts = self.counts.iter().copied().enumerate();
        parts.filter(|(_, count)| *count > 0)
    }

    /// Number of values.
    pub const fn count(&self) -> u64 {
        self.total
    }

    /// Lowest value that the least one may have had; 0 of nothing.
    pub fn min(&self) -> u64 {
        self.parts().next().map_or(0, |(index, _)| part_of(index).0)
    }

    /// Highest value that the largest one may have had; 0 of nothing.
    pub fn max(&self) -> u64 {
        self.parts().next_back().map_or(0, |(index, _)| highest(index))
    }

    /// Mean of the middles of the parts; 0 of nothing.
    pub fn mean(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        let middle = |index| {
            let (lowest, size) = part_of(index);
            lowest + (size >> 1)
        };
        let sum: u128 = self.parts().map(|(i, n)| u128::from(middle(i)) * u128::from(n)).sum();
        sum as f64 / self.total as f64
    }

    /// Highest value of the part in which a percentile lies; 0 of nothing.
    pub fn percentile(&self, percent: f64) -> u64 {
        let wanted = (percent.min(100.0) / 100.0 * self.total as f64 + 0.5) as u64;
        let (mut seen, wanted) = (0, wanted.max(1));
        for (index, count) in self.parts() {
            seen += count;
            if seen >= wanted {
                return highest(index);
            }
        }
        0
    }
}

/// Highest value of a part.
const fn highest(index: usize) -> u64 {
    let (lowest, size) = part_of(index);
    lowest + size - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `HdrHistogram` 2.1.4 in recorded runs: one close of 14,120 to 14,127 us has a mean
    /// of 14,124 and a maximum of 14,127; two closes of 12 and 14,183 have a mean of 7096.
    #[test]
    fn parts_are_those_of_the_reference() {
        let mut one = Hdr::default();
        one.record(14_122);
        assert_eq!((one.min(), one.max(), one.mean()), (14_120, 14_127, 14_124.0));
        let mut two = Hdr::default();
        two.record(12);
        two.record(14_180);
        assert_eq!((two.min(), two.max(), two.mean()), (12, 14_183, 7096.0));
        assert_eq!((two.percentile(50.0), two.percentile(90.0)), (12, 14_183));
        assert_eq!(Hdr::default().percentile(50.0), 0);
    }

    proptest::proptest! {
        #[test]
        fn a_value_is_in_its_part(value in 0_u64..1 << 40, other in 0_u64..1 << 40) {
            let (lowest, size) = part_of(index_of(value));
            proptest::prop_assert!((lowest..lowest + size).contains(&value));
            proptest::prop_assert!(size <= 1 || size * 1000 <= lowest);
            proptest::prop_assert_eq!(index_of(value) <= index_of(other),
                                      value <= other || index_of(value) == index_of(other));
            let mut both = Hdr::default();
            both.record(value);
            let mut more = Hdr::default();
            more.record(other);
            both.merge(&more);
            let (indices, counts): (Vec<u32>, Vec<u64>) =
                both.parts().map(|(index, count)| (index as u32, count)).unzip();
            let again = Hdr::of(&indices, &counts);
            proptest::prop_assert_eq!((again.count(), again.max()), (2, both.max()));
        }
    }
}
