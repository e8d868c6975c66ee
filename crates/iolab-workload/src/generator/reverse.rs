//! The last record first, then down to 0, and again from the end.

use super::Records;

/// Descending order (`IOzone` test 3).
#[derive(Clone, Debug)]
pub struct Reverse {
    records: u64,
    left: u64,
}

impl Reverse {
    pub(super) fn new(records: u64) -> Self {
        Self { records, left: records }
    }
}

impl Records for Reverse {
    #[inline]
    fn next(&mut self) -> u64 {
        self.left = if self.left == 0 { self.records } else { self.left } - 1;
        self.left
    }
}
