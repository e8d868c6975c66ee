//! Throughput over time in bounded memory: when the slices are used up, neighbours are merged.

use iolab_model::Ns;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A series never has more slices than this; 100 ms slices last 102 s before they become 200 ms.
const SLICES_MAX: usize = 1024;

/// Ops, bytes and the longest latency of consecutive, equally wide slices of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Width of a slice.
    pub interval_ns: u64,
    /// Ops that ended in each slice.
    pub ops: Vec<u64>,
    /// Bytes they moved.
    pub bytes: Vec<u64>,
    /// Longest service time among them.
    pub latency_ns_max: Vec<u64>,
    /// Start of slice 0; taken from the first op recorded.
    #[serde(skip)]
    origin: Option<Ns>,
    /// The slice of the latest op, from its first to its last nanosecond: the next op mostly ends
    /// there, too, and a division takes longer than all the rest.
    #[serde(skip)]
    latest: Slice,
}

/// A slice and what it covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slice {
    index: usize,
    from: u64,
    width: u64,
}

impl Series {
    /// An empty series with slices of `interval`.
    pub fn new(interval: Ns) -> Self {
        assert!(interval.0 > 0, "a slice has a width");
        let (ops, bytes, latency_ns_max) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            interval_ns: interval.0,
            ops,
            bytes,
            latency_ns_max,
            origin: None,
            latest: Slice::default(),
        }
    }

    /// Gets the memory of the first slices now.
    pub fn get_ready(&mut self) {
        const FIRST: usize = 64;
        for values in [&mut self.ops, &mut self.bytes, &mut self.latency_ns_max] {
            // Written, and not only reserved: its page is fetched here, and nowhere else.
            values.resize(FIRST, core::hint::black_box(0));
            values.clear();
        }
    }

    /// Sets the beginning of time; later calls change nothing.
    pub fn begin(&mut self, origin: Ns) {
        self.origin.get_or_insert(origin);
    }

    /// Counts an op that ended at `completed`.
    #[inline]
    pub fn record(&mut self, completed: Ns, bytes: u64, latency: Ns) {
        if completed.0.wrapping_sub(self.latest.from) >= self.latest.width {
            self.find(completed);
        }
        let slice = self.latest.index;
        self.ops[slice] += 1;
        self.bytes[slice] += bytes;
        self.latency_ns_max[slice] = self.latency_ns_max[slice].max(latency.0);
    }

    /// Counts `ops` ops that ended from `first` to `last`, each of `bytes`, if all of these lie in
    /// the latest slice; else counts nothing and answers false.
    #[inline]
    pub fn record_run(
        &mut self,
        (first, last): (Ns, Ns),
        (ops, bytes): (u64, u64),
        longest: Ns,
    ) -> bool {
        let Slice { index, from, width } = self.latest;
        let is_within = |at: Ns| at.0.wrapping_sub(from) < width;
        if !(is_within(first) && is_within(last)) {
            return false;
        }
        self.ops[index] += ops;
        self.bytes[index] += ops * bytes;
        self.latency_ns_max[index] = self.latency_ns_max[index].max(longest.0);
        true
    }

    /// Makes the slice of `completed` the latest one.
    #[cold]
    fn find(&mut self, completed: Ns) {
        let origin = *self.origin.get_or_insert(completed);
        let mut index = (completed.since(origin).0 / self.interval_ns) as usize;
        if index >= self.ops.len() {
            index = self.grow(index);
        }
        let width = self.interval_ns;
        self.latest = Slice { index, from: origin.0 + index as u64 * width, width };
    }

    #[cold]
    fn grow(&mut self, mut slice: usize) -> usize {
        while slice >= SLICES_MAX {
            self.halve();
            slice /= 2;
        }
        let length = self.ops.len().max(slice + 1);
        self.ops.resize(length, 0);
        self.bytes.resize(length, 0);
        self.latency_ns_max.resize(length, 0);
        slice
    }

    /// Merges pairs of slices.
    fn halve(&mut self) {
        let add = |values: &mut Vec<u64>| {
            *values = values.chunks(2).map(|pair| pair.iter().sum()).collect();
        };
        add(&mut self.ops);
        add(&mut self.bytes);
        self.latency_ns_max =
            self.latency_ns_max.chunks(2).map(|p| p.iter().copied().max().unwrap_or(0)).collect();
        self.interval_ns *= 2;
        self.latest = Slice::default();
    }

    /// Adds a series that began at the same time; the finer one is coarsened first.
    pub fn merge(&mut self, mut other: Self) {
        while self.interval_ns < other.interval_ns {
            self.halve();
        }
        while other.interval_ns < self.interval_ns {
            other.halve();
        }
        if other.ops.len() > self.ops.len() {
            self.grow(other.ops.len() - 1);
        }
        for (i, ops) in other.ops.iter().enumerate() {
            self.ops[i] += ops;
            self.bytes[i] += other.bytes[i];
            self.latency_ns_max[i] = self.latency_ns_max[i].max(other.latency_ns_max[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_keeps_its_sums_in_bounded_memory() {
        let mut series = Series::new(Ns(10));
        series.begin(Ns(0));
        for i in 0..1_000_000_u64 {
            series.record(Ns(i), 2, Ns(i));
        }
        assert!(series.ops.len() <= SLICES_MAX);
        assert_eq!(series.ops.iter().sum::<u64>(), 1_000_000);
        assert_eq!(series.bytes.iter().sum::<u64>(), 2_000_000);
        assert_eq!(series.latency_ns_max.iter().max(), Some(&999_999));
        let full = series.interval_ns;
        assert!(
            series.ops[..series.ops.len() - 1].iter().all(|&ops| ops == full),
            "slices are equally wide"
        );
    }

    #[test]
    fn ops_of_a_run_are_counted_together_where_they_lie_in_one_slice() {
        let (mut together, mut single) = (Series::new(Ns(100)), Series::new(Ns(100)));
        for series in [&mut together, &mut single] {
            series.begin(Ns(1000));
            series.record(Ns(1010), 8, Ns(10));
        }
        for end in [1020, 1050, 1099] {
            single.record(Ns(end), 8, Ns(30));
        }
        assert!(together.record_run((Ns(1020), Ns(1099)), (3, 8), Ns(30)));
        assert_eq!(together, single);
        assert!(!together.record_run((Ns(1099), Ns(1100)), (2, 8), Ns(30)), "the next slice");
        assert_eq!(together, single, "nothing was counted");
    }

    #[test]
    fn merging_aligns_widths() {
        let (mut a, mut b) = (Series::new(Ns(10)), Series::new(Ns(40)));
        a.begin(Ns(0));
        b.begin(Ns(0));
        (0..100).for_each(|i| a.record(Ns(i), 1, Ns(i)));
        (0..200).for_each(|i| b.record(Ns(i), 1, Ns(1)));
        a.merge(b);
        assert_eq!((a.interval_ns, a.ops.iter().sum::<u64>()), (40, 300));
        assert_eq!(a.ops, [80, 80, 60, 40, 40]);
    }
}
