//! Periods of time: when something happened, and when a device had something to do.

/// Periods that are kept of each kind.
const RANGES_MAX: usize = 1 << 12;
/// Gap that ends a period of activity: btt's default.
const GAP_NS: u64 = 100_000_000;

/// Periods in which events follow each other within a tenth of a second.
#[derive(Clone, Default)]
pub struct Ranges(pub Vec<(u64, u64)>);

impl Ranges {
    /// Adds an event.
    #[inline]
    pub fn add(&mut self, now_ns: u64) {
        if let Some((_, end)) = self.0.last_mut() {
            if now_ns < *end {
                return;
            }
            if now_ns - *end < GAP_NS || self.0.len() == RANGES_MAX {
                if let Some(last) = self.0.last_mut() {
                    last.1 = now_ns;
                }
                return;
            }
        }
        self.0.push((now_ns, now_ns));
    }
}

/// Periods that may still grow together; more are only kept when a request takes longer than as
/// many periods of others.
const OPEN_MAX: usize = 1 << 10;

/// The time covered by intervals that end in order of time.
#[derive(Clone, Default)]
pub struct Covered {
    open: std::collections::VecDeque<(u64, u64)>,
    closed: u64,
    closed_ns: u64,
    end_ns: u64,
}

impl Covered {
    /// Adds an interval; one that ends before it begins has no length.
    #[inline]
    pub fn add(&mut self, mut begin_ns: u64, mut end_ns: u64) {
        begin_ns = begin_ns.min(end_ns);
        self.end_ns = self.end_ns.max(end_ns);
        while let Some(&(begin, end)) = self.open.back() {
            if end < begin_ns {
                break;
            }
            begin_ns = begin_ns.min(begin);
            end_ns = end_ns.max(end);
            self.open.pop_back();
        }
        self.open.push_back((begin_ns, end_ns));
        if self.open.len() > OPEN_MAX
            && let Some((begin, end)) = self.open.pop_front()
        {
            self.closed += 1;
            self.closed_ns = self.closed_ns.saturating_add(end - begin);
        }
    }

    /// Number of periods.
    pub fn count(&self) -> u64 {
        self.closed + self.open.len() as u64
    }

    /// Time that they cover.
    pub fn total_ns(&self) -> u64 {
        let lengths = self.open.iter().map(|(begin, end)| end - begin);
        lengths.fold(self.closed_ns, u64::saturating_add)
    }

    /// End of the last.
    pub const fn end_ns(&self) -> u64 {
        self.end_ns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The naive twin marks every nanosecond.
        #[test]
        fn covered_time_is_that_of_a_naive_twin(
            mut pairs in prop::collection::vec((0_u64..200, 0_u64..30), 1..60),
        ) {
            pairs.sort_by_key(|(begin, length)| begin + length);
            let mut covered = Covered::default();
            // Twice as fine, so that periods that touch are one and others are not.
            let mut is_marked = vec![false; 500];
            for (begin, length) in pairs {
                covered.add(begin, begin + length);
                is_marked[(2 * begin) as usize..=(2 * (begin + length)) as usize].fill(true);
            }
            let runs = is_marked.split(|marked| !marked).filter(|run| !run.is_empty());
            let lengths: Vec<u64> = runs.map(|run| (run.len() as u64 - 1) / 2).collect();
            prop_assert_eq!(covered.count(), lengths.len() as u64);
            prop_assert_eq!(covered.total_ns(), lengths.iter().sum::<u64>());
        }
    }
}
