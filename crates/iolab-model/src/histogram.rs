//! A high-dynamic-range histogram of nanoseconds: bounded memory, bounded relative error,
//! mergeable.
//!
//! Log-linear buckets after Tene's HDR histogram: below 2^8 every value has its own count; above,
//! each power of two is divided into 2^7 = 128 equal parts, so a recorded value is known to within
//! 1/128 (0.8 %). Values above [`Histogram::VALUE_MAX`] (2^42 - 1 ns, 73 minutes) are counted
//! there;
//! `max` keeps the exact largest. Percentiles are merged by adding counts, never by averaging.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Each power of two is divided into `2^SUB_BUCKET_BITS` parts.
pub const SUB_BUCKET_BITS: u32 = 7;
const SUB_BUCKETS: u64 = 1 << SUB_BUCKET_BITS;
const VALUE_BITS: u32 = 42;
const LENGTH: usize = ((VALUE_BITS - SUB_BUCKET_BITS + 1) as usize) << SUB_BUCKET_BITS;

/// Index of the count that holds `value`.
#[inline]
pub const fn index_of(value: u64) -> usize {
    let capped = if value > Histogram::VALUE_MAX { Histogram::VALUE_MAX } else { value };
    // `| (2 * SUB_BUCKETS - 1)` makes all values below 2^8 share shift 0 without a branch.
    let shift = 64 - SUB_BUCKET_BITS - 1 - (capped | (2 * SUB_BUCKETS - 1)).leading_zeros();
    (((shift as u64) << SUB_BUCKET_BITS) + (capped >> shift)) as usize
}

/// Smallest and largest value that share the count at `index`.
pub const fn range_of(index: usize) -> (u64, u64) {
    let index = index as u64;
    if index < 2 * SUB_BUCKETS {
        return (index, index);
    }
    let shift = (index >> SUB_BUCKET_BITS) - 1;
    let low = (index - (shift << SUB_BUCKET_BITS)) << shift;
    (low, low + (1 << shift) - 1)
}

/// Counts of nanosecond values.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; LENGTH]>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    /// Largest value that has a bucket of its own kind.
    pub const VALUE_MAX: u64 = (1 << VALUE_BITS) - 1;

    /// An empty histogram; 36 KiB, whatever is recorded later.
    pub fn new() -> Self {
        let counts: Box<[u64; LENGTH]> =
            vec![0; LENGTH].into_boxed_slice().try_into().expect("the length is LENGTH");
        Self { counts, count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// An empty histogram whose memory is there: no page of it is fetched by the first value that
    /// is recorded, in the middle of what is timed.
    pub fn resident() -> Self {
        let mut histogram = Self::new();
        // The smallest page of any machine has 4096 bytes.
        for count in histogram.counts.iter_mut().step_by(4096 / size_of::<u64>()) {
            *count = core::hint::black_box(0);
        }
        histogram
    }

    /// Counts one value several times.
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.counts[index_of(value)] += times;
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.counts[index_of(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Counts many values; answers the largest of them, or 0.
    ///
    /// Sums stay in registers between them.
    #[inline]
    pub fn record_each(&mut self, values: impl Iterator<Item = u64>) -> u64 {
        let (mut count, mut sum, mut min, mut max) = (0, 0_u128, u64::MAX, 0);
        for value in values {
            self.counts[index_of(value)] += 1;
            count += 1;
            sum += u128::from(value);
            min = min.min(value);
            max = max.max(value);
        }
        self.count += count;
        self.sum += sum;
        self.min = self.min.min(min);
        self.max = self.max.max(max);
        max
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Number of values recorded.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Smallest value recorded, exact; `None` when empty.
    pub const fn min(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.min) }
    }

    /// Largest value recorded, exact; `None` when empty.
    pub const fn max(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.max) }
    }

    /// Sum of the exact values.
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// Arithmetic mean of the exact values; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Smallest and largest value of each bucket that holds any, and how many it holds; the ends
    /// are within the exact minimum and maximum.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(index, count)| {
            let (low, high) = range_of(index);
            let high = if index == LENGTH - 1 { self.max } else { high };
            (low.max(self.min), high.clamp(self.min, self.max), *count)
        })
    }

    /// The value below or at which the share `quantile` (0..=1) of all values lies; `None` when
    /// empty.
    ///
    /// The answer is the upper end of the bucket, capped by the exact minimum and maximum, so the
    /// relative error is at most 1/128 and never understates.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = ((quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                // The last bucket also holds everything above VALUE_MAX: only `max` is known there.
                let high = if index == LENGTH - 1 { self.max } else { range_of(index).1 };
                return Some(high.clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }
}

impl Histogram {
    /// The value at place `(count + 1) * quantile` of all values in order, between two of them in
    /// proportion (Weibull's plotting position; Hyndman and Fan's sixth definition, American
    /// Statistician 50(4), 1996); `None` when empty.
    ///
    /// Unlike [`Histogram::quantile`] it does not lean to one side with few values, so that two
    /// samples of one distribution agree on average whatever their counts are. Values that share a
    /// bucket are taken to be spread evenly over it: the result is off by half a bucket at most.
    pub fn interpolated(&self, quantile: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let place = quantile.clamp(0.0, 1.0) * (self.count + 1) as f64;
        let below = place.floor().max(1.0).min(self.count as f64) as u64;
        let above = (below + 1).min(self.count);
        let (low, high) = self.ordered(below, above);
        let share = (place - below as f64).clamp(0.0, 1.0);
        Some(low + share * (high - low))
    }

    /// The values at two ranks, 1-based, `first` not above `second`.
    fn ordered(&self, first: u64, second: u64) -> (f64, f64) {
        let (mut seen, mut found) = (0, [None; 2]);
        for (index, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            for (rank, slot) in [first, second].into_iter().zip(&mut found) {
                if slot.is_none() && rank <= seen + count {
                    *slot = Some(self.inside(index, (rank - seen) as f64 - 0.5, count as f64));
                }
            }
            seen += count;
            if found[1].is_some() {
                break;
            }
        }
        (found[0].unwrap_or(self.max as f64), found[1].unwrap_or(self.max as f64))
    }

    /// The value `place` values into a bucket of `count`, kept within the exact extremes.
    fn inside(&self, index: usize, place: f64, count: f64) -> f64 {
        if index == LENGTH - 1 {
            return self.max as f64; // It also holds everything above VALUE_MAX.
        }
        let (low, high) = range_of(index);
        let value = low as f64 + (high - low) as f64 * (place / count);
        value.clamp(self.min as f64, self.max as f64)
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish_non_exhaustive()
    }
}

/// The form in which histograms are stored and exchanged: only the counts that are not zero.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sparse {
    /// Of the values: always `ns`.
    unit: String,
    /// Values that were recorded.
    count: u64,
    /// The smallest.
    min: u64,
    /// The largest.
    max: u64,
    /// Of all values.
    sum: u128,
    /// Each power of two is divided into two to this power of parts.
    sub_bucket_bits: u32,
    /// Index of a part, and the values in it; parts without values are left out.
    counts: Vec<(u32, u64)>,
}

impl JsonSchema for Histogram {
    fn schema_name() -> Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Sparse::json_schema(generator)
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        Sparse {
            unit: "ns".to_owned(),
            count: self.count,
            min: if self.count == 0 { 0 } else { self.min },
            max: self.max,
            sum: self.sum,
            sub_bucket_bits: SUB_BUCKET_BITS,
            counts: filled.map(|(index, &count)| (index as u32, count)).collect(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let sparse = Sparse::deserialize(deserializer)?;
        if sparse.unit != "ns" || sparse.sub_bucket_bits != SUB_BUCKET_BITS {
            return Err(D::Error::custom("histogram of another unit or resolution"));
        }
        let mut histogram = Self::new();
        for (index, count) in sparse.counts {
            let slot = histogram.counts.get_mut(index as usize);
            *slot.ok_or_else(|| D::Error::custom("histogram index out of range"))? += count;
            histogram.count = histogram.count.saturating_add(count);
        }
        if histogram.count != sparse.count {
            return Err(D::Error::custom("histogram counts do not add up to its count"));
        }
        histogram.sum = sparse.sum;
        histogram.min = if sparse.count == 0 { u64::MAX } else { sparse.min };
        histogram.max = sparse.max;
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn indices_are_dense_and_monotone() {
        let mut expected_low = 0;
        for index in 0..LENGTH {
            let (low, high) = range_of(index);
            assert_eq!(low, expected_low, "gap before index {index}");
            assert_eq!((index_of(low), index_of(high)), (index, index));
            expected_low = high + 1;
        }
        assert_eq!(expected_low, Histogram::VALUE_MAX + 1);
    }

    #[test]
    fn empty_has_no_quantile() {
        assert_eq!(Histogram::new().quantile(0.5), None);
        assert_eq!(Histogram::new().mean(), None);
    }

    #[test]
    fn huge_values_keep_their_exact_maximum() {
        let mut histogram = Histogram::new();
        histogram.record(u64::MAX);
        assert_eq!(histogram.quantile(1.0), Some(u64::MAX));
    }

    #[test]
    fn interpolated_quantiles_lie_between_two_values() {
        let mut histogram = Histogram::new();
        for value in [10, 20, 30, 40] {
            histogram.record(value);
        }
        // Place (4 + 1) * q of the values in order.
        assert_eq!(histogram.interpolated(0.5), Some(25.0));
        assert_eq!(histogram.interpolated(0.3), Some(15.0));
        assert_eq!(histogram.interpolated(0.0), Some(10.0));
        assert_eq!(histogram.interpolated(0.99), Some(40.0));
        assert_eq!(Histogram::new().interpolated(0.5), None);
    }

    proptest! {
        #[test]
        fn interpolated_quantiles_are_off_by_half_a_bucket_at_most(
            mut values in prop::collection::vec(0_u64..1 << 41, 1..300),
            quantile in 0.0_f64..=1.0,
        ) {
            let mut histogram = Histogram::new();
            for &value in &values {
                histogram.record(value);
            }
            values.sort_unstable();
            let n = values.len();
            let place = quantile * (n + 1) as f64;
            let below = (place.floor() as usize).clamp(1, n);
            let (low, high) = (values[below - 1] as f64, values[below.min(n - 1)] as f64);
            let exact = low + (place - below as f64).clamp(0.0, 1.0) * (high - low);
            let ours = histogram.interpolated(quantile).unwrap();
            // Even spread inside a bucket is an assumption: the bucket is what is promised.
            prop_assert!((ours - exact).abs() <= 1.0 + exact.max(high) / 128.0, "{ours} {exact}");
        }

        #[test]
        fn quantiles_agree_with_a_sorted_list(
            mut values in prop::collection::vec(0_u64..1 << 41, 1..300),
            quantile in 0.0_f64..=1.0,
        ) {
            let mut histogram = Histogram::new();
            for &value in &values {
                histogram.record(value);
            }
            values.sort_unstable();
            let rank = ((quantile * values.len() as f64).ceil() as usize).max(1) - 1;
            let (exact, ours) = (values[rank], histogram.quantile(quantile).unwrap());
            prop_assert!(ours >= exact && ours - exact <= exact / 128, "{ours} for {exact}");
        }

        #[test]
        fn merging_is_recording_both_and_json_is_identity(
            a in prop::collection::vec(any::<u64>(), 0..50),
            b in prop::collection::vec(any::<u64>(), 0..50),
        ) {
            let of = |values: &[u64]| {
                let mut h = Histogram::new();
                for &value in values {
                    h.record(value);
                }
                h
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(&merged, &of(&[a, b].concat()));
            let text = serde_json::to_string(&merged).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), merged);
        }
    }

    #[test]
    fn forged_json_is_refused() {
        let text = |count: u64, index: u64| {
            format!(
                "{{\"unit\":\"ns\",\"count\":{count},\"min\":1,\"max\":1,\"sum\":1,\
                 \"sub_bucket_bits\":7,\"counts\":[[{index},1]]}}"
            )
        };
        assert!(serde_json::from_str::<Histogram>(&text(1, 1)).is_ok());
        assert!(serde_json::from_str::<Histogram>(&text(2, 1)).is_err());
        assert!(serde_json::from_str::<Histogram>(&text(1, 999_999)).is_err());
    }
}
