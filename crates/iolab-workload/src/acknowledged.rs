//! A growing range of numbers of which only the part without gaps counts.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Numbers that are done, from 0 on.
#[derive(Debug)]
pub struct Acknowledged {
    /// All numbers below are done.
    count: AtomicU64,
    /// Numbers that are done behind a gap.
    ahead: Mutex<BTreeSet<u64>>,
}

impl Acknowledged {
    /// The first `count` numbers are done.
    pub fn of(count: u64) -> Self {
        Self { count: AtomicU64::new(count), ahead: Mutex::default() }
    }

    /// Number of those without a gap.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// A number is done.
    pub fn add(&self, number: u64) {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = self.count.load(Ordering::Relaxed);
        if number < count {
            return;
        }
        ahead.insert(number);
        while ahead.remove(&count) {
            count += 1;
        }
        self.count.store(count, Ordering::Release);
    }
}
