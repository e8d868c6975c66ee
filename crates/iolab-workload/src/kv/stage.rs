//! Counters that all clients of a store share.

use std::sync::atomic::{AtomicU64, Ordering};

use super::description::{KvAction, KvWork};
use crate::acknowledged::Acknowledged;

/// State of the keys, and of the progress.
#[derive(Debug)]
pub struct KvStage {
    /// Number of the next insert.
    next_insert: AtomicU64,
    /// Keys that are known to be there.
    acknowledged: Acknowledged,
    /// Number of the next sequential read.
    next_read: AtomicU64,
    /// Operations that have ended.
    done: AtomicU64,
}

impl KvStage {
    /// Nothing is done yet.
    pub fn new(work: &KvWork) -> Self {
        let first = match work.action {
            KvAction::Load => work.insert_start,
            KvAction::Run => work.known_records(),
        };
        Self {
            next_insert: AtomicU64::new(first),
            acknowledged: Acknowledged::of(work.known_records()),
            next_read: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }

    /// A key number that nobody has inserted.
    pub fn fresh(&self) -> u64 {
        self.next_insert.fetch_add(1, Ordering::Relaxed)
    }

    /// An insert of the run has ended, well or not.
    pub fn acknowledge(&self, number: u64) {
        self.acknowledged.add(number);
    }

    /// Number of the last key without a gap before it.
    #[inline]
    pub fn last(&self) -> u64 {
        self.acknowledged.count() - 1
    }

    /// Number of the next sequential read.
    pub fn next_read(&self) -> u64 {
        self.next_read.fetch_add(1, Ordering::Relaxed)
    }

    /// Operations that a client has ended since it said so last.
    pub fn add_done(&self, operations: u64) {
        self.done.fetch_add(operations, Ordering::Relaxed);
    }

    /// Operations that have ended.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}
