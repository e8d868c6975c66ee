//! Independent uniform draws: records repeat, as in fio's and `SNIA`'s random tests.

use iolab_model::Seed;
use iolab_model::seed::Stream;

use super::Records;

/// Uniform over all records.
#[derive(Clone, Debug)]
pub struct Uniform {
    records: u64,
    random: Stream,
}

impl Uniform {
    pub(super) fn new(records: u64, seed: Seed) -> Self {
        Self { records, random: seed.stream("uniform", 0) }
    }
}

impl Records for Uniform {
    #[inline]
    fn next(&mut self) -> u64 {
        self.random.below(self.records)
    }
}
