//! A random order of all records that needs no memory: each once per pass, every pass the same.
//!
//! A counter goes through mixing steps that can be undone (multiplication with an odd number, a
//! shift that is added without carry), all within the bits that hold the largest record; numbers
//! beyond it are left out. So no record comes twice. Left out: any likeness to a fair shuffle that
//! goes beyond what tests of runs and neighbours show.

use iolab_model::Seed;

use super::Records;

const ROUNDS: usize = 3;

/// The order.
#[derive(Clone, Debug)]
pub struct Shuffled {
    records: u64,
    /// All bits of numbers up to the next power of two.
    mask: u64,
    shift: u32,
    /// Odd.
    factors: [u64; ROUNDS],
    addends: [u64; ROUNDS],
    next: u64,
}

impl Shuffled {
    pub(super) fn new(records: u64, seed: Seed) -> Self {
        let bits = 64 - (records - 1).leading_zeros().min(63);
        let mask = u64::MAX >> (64 - bits);
        let mut random = seed.stream("shuffled", 0);
        let factors = std::array::from_fn(|_| random.next_u64() | 1);
        let addends = std::array::from_fn(|_| random.next_u64());
        Self { records, mask, shift: bits.div_ceil(2), factors, addends, next: 0 }
    }

    #[inline]
    fn mixed(&self, count: u64) -> u64 {
        let mut value = count;
        for round in 0..ROUNDS {
            value = value.wrapping_mul(self.factors[round]).wrapping_add(self.addends[round]);
            value &= self.mask;
            value ^= value >> self.shift;
        }
        value
    }
}

impl Records for Shuffled {
    #[inline]
    fn next(&mut self) -> u64 {
        loop {
            let value = self.mixed(self.next);
            self.next = (self.next + 1) & self.mask;
            if value < self.records {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_record_comes_once_per_pass(records in 1_u64..3000, seed: u64) {
            let mut order = Shuffled::new(records, Seed(seed));
            let first: Vec<u64> = (0..records).map(|_| order.next()).collect();
            let second: Vec<u64> = (0..records).map(|_| order.next()).collect();
            prop_assert_eq!(&first, &second, "every pass is the same");
            let mut sorted = first;
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..records).collect::<Vec<_>>());
        }
    }

    #[test]
    fn neighbours_are_as_rare_as_by_chance() {
        let records = 100_000;
        for seed in 0..20 {
            let mut order = Shuffled::new(records, Seed(seed));
            let all: Vec<u64> = (0..records).map(|_| order.next()).collect();
            let near = all.windows(2).filter(|w| w[0].abs_diff(w[1]) < 100).count();
            // By chance 0.2 %: 200 of 100 000.
            assert!(near < 600, "seed {seed}: {near} steps of less than 100 records");
            let up = all.windows(2).filter(|w| w[0] < w[1]).count();
            assert!((40_000..60_000).contains(&up), "seed {seed}: {up} steps upwards");
        }
    }
}
