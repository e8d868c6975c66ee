//! Sets of sectors as sorted, disjoint, non-adjacent ranges.

/// A set of sectors; most hold one range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    list: Vec<(u64, u64)>,
}

impl Ranges {
    /// Forgets all, keeps the memory.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Tell whether nothing is in it.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The ranges, ascending: first sector and first sector after it.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.list.iter().copied()
    }

    /// Number of sectors.
    pub fn sectors(&self) -> u64 {
        self.iter().map(|(from, to)| to - from).sum()
    }

    /// Adds `from..to`; answers with the number of sectors that are new.
    pub fn add(&mut self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let first = self.list.partition_point(|&(_, end)| end < from);
        let last = self.list.partition_point(|&(start, _)| start <= to);
        let swallowed = &self.list[first..last];
        let known: u64 = self.within(from, to).map(|(from, to)| to - from).sum();
        let low = swallowed.first().map_or(from, |range| range.0.min(from));
        let high = swallowed.last().map_or(to, |range| range.1.max(to));
        self.list.splice(first..last, [(low, high)]);
        to - from - known
    }

    /// Parts inside `from..to`.
    pub fn within(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.list.partition_point(move |&(_, end)| end <= from);
        let inside = self.list[first..].iter().take_while(move |&&(start, _)| start < to);
        let clipped = inside.map(move |&(start, end)| (start.max(from), end.min(to)));
        clipped.filter(|(start, end)| start < end)
    }

    /// Parts of `from..to` that are not in it.
    pub fn missing(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let starts = core::iter::once(from).chain(self.within(from, to).map(|range| range.1));
        let ends = self.within(from, to).map(|range| range.0).chain(core::iter::once(to));
        starts.zip(ends).filter(|(start, end)| start < end)
    }

    /// Tell whether all of `from..to` is in it.
    pub fn covers(&self, from: u64, to: u64) -> bool {
        self.missing(from, to).next().is_none()
    }

    /// Tell whether anything of `from..to` is in it.
    pub fn touches(&self, from: u64, to: u64) -> bool {
        self.within(from, to).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// In lock step with a plain set of sectors.
        #[test]
        fn behaves_like_a_set(
            adds in proptest::collection::vec((0_u64..60, 0_u64..12), 0..12),
            window in (0_u64..60, 0_u64..30),
        ) {
            let mut ranges = Ranges::default();
            let mut set = BTreeSet::new();
            for (from, length) in adds {
                let before = set.len();
                set.extend(from..from + length);
                prop_assert_eq!(ranges.add(from, from + length), (set.len() - before) as u64);
            }
            prop_assert_eq!(ranges.sectors(), set.len() as u64);
            let list: Vec<(u64, u64)> = ranges.iter().collect();
            prop_assert!(list.windows(2).all(|pair| pair[0].1 < pair[1].0), "{list:?}");
            let (from, to) = (window.0, window.0 + window.1);
            let inside: Vec<u64> = ranges.within(from, to).flat_map(|(a, b)| a..b).collect();
            let absent: Vec<u64> = ranges.missing(from, to).flat_map(|(a, b)| a..b).collect();
            prop_assert_eq!(inside, set.range(from..to).copied().collect::<Vec<_>>());
            let expected: Vec<u64> = (from..to).filter(|at| !set.contains(at)).collect();
            prop_assert_eq!(&absent, &expected);
            prop_assert_eq!(ranges.covers(from, to), expected.is_empty());
            prop_assert_eq!(ranges.touches(from, to), set.range(from..to).next().is_some());
        }
    }
}
