//! 0, 1, 2, ... and again from 0.

use super::Records;

/// Ascending order.
#[derive(Clone, Debug)]
pub struct Sequential {
    records: u64,
    next: u64,
}

impl Sequential {
    pub(super) fn new(records: u64) -> Self {
        Self { records, next: 0 }
    }
}

impl Records for Sequential {
    #[inline]
    fn next(&mut self) -> u64 {
        let record = self.next;
        self.next = if record + 1 == self.records { 0 } else { record + 1 };
        record
    }
}
