//! Keys that are known to the workers of a phase.

use std::sync::atomic::{AtomicU64, Ordering};

use super::amount::Amount;
use super::files::KeySpace;
use crate::acknowledged::Acknowledged;

/// A key space in use.
#[derive(Debug)]
pub(super) struct KeyState {
    pub(super) space: KeySpace,
    /// The number that is given out next.
    next: AtomicU64,
    /// Numbers that are in the store.
    acknowledged: Acknowledged,
    /// The records are to be put before the phase.
    pub(super) is_to_load: bool,
}

impl KeyState {
    pub(super) fn new(space: &KeySpace, is_first: bool) -> Self {
        Self {
            space: space.clone(),
            next: AtomicU64::new(space.records),
            acknowledged: Acknowledged::of(space.records),
            is_to_load: is_first && !space.is_loaded && space.records > 0,
        }
    }

    /// Size of a value.
    pub(super) fn value_bytes(&self) -> &Amount {
        &self.space.value_bytes
    }

    /// Number of keys without a gap.
    pub(super) fn known(&self) -> u64 {
        self.acknowledged.count()
    }

    /// A number that nobody has used.
    pub(super) fn fresh(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The record of a number is in the store.
    pub(super) fn acknowledge(&self, number: u64) {
        self.acknowledged.add(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_prefix_without_gaps_is_known() {
        let space = KeySpace {
            name: "t".into(),
            records: 10,
            value_bytes: Amount::Constant(1),
            is_hashed: true,
            is_loaded: false,
        };
        let keys = KeyState::new(&space, true);
        let fresh: Vec<u64> = (0..3).map(|_| keys.fresh()).collect();
        assert_eq!(fresh, [10, 11, 12]);
        keys.acknowledge(12);
        keys.acknowledge(11);
        assert_eq!(keys.known(), 10);
        keys.acknowledge(10);
        assert_eq!(keys.known(), 13);
        keys.acknowledge(3);
        assert_eq!(keys.known(), 13);
    }
}
