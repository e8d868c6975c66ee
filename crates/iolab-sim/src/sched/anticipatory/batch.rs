//! Batches: sync and async requests take turns by time.
//!
//! Source: Linux 2.6.32 block/as-iosched.c (behaviour).

use super::history::Ticks;
use super::{Anticipatory, Kind};
use crate::api::request::RequestId;
use crate::sched::common::INT_MAX;

/// Direction whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) kind: Kind,
    pub(super) end: Ticks,
    /// The other kind still drains.
    pub(super) has_changed: bool,
    /// A sync batch whose first request has not completed.
    pub(super) is_new: bool,
    /// The write batch ran out of writes, so its duration says nothing.
    pub(super) is_idled: bool,
    pub(super) writes: u64,
    pub(super) writes_left: u64,
}

impl Anticipatory {
    pub(super) fn is_batch_over(&self, now: Ticks) -> bool {
        !self.batch.has_changed
            && !self.batch.is_new
            && (now > self.batch.end
                || self.batch.kind == Kind::Async && self.batch.writes_left == 0)
    }

    /// Turns to the other kind (or begins anew with the same); answers with the oldest of it.
    pub(super) fn begin_batch(&mut self, now: Ticks, kind: Kind) -> Option<RequestId> {
        if self.batch.kind != kind {
            self.batch.has_changed = true;
            if kind == Kind::Async {
                self.batch.is_new = false;
            }
        }
        self.batch.kind = kind;
        if kind == Kind::Async {
            self.batch.writes_left = self.batch.writes;
            self.batch.is_idled = false;
        }
        self.last_check[kind as usize] = now;
        self.oldest(kind)
    }

    /// Adapts the length of write batches to how long the last one took.
    pub(super) fn resize_write_batch(&mut self, now: Ticks) {
        let target = self.batch_expire[Kind::Async as usize] as Ticks;
        let duration = (now - self.batch.end + target).max(0);
        let batch = &mut self.batch;
        if duration > target && !batch.is_idled {
            if duration > 3 * target {
                batch.writes /= 2;
            } else {
                batch.writes -= 1;
            }
        } else if duration < target && batch.writes_left == 0 {
            if target > 3 * duration {
                batch.writes *= 2;
            } else {
                batch.writes += 1;
            }
        }
        batch.writes = batch.writes.clamp(1, INT_MAX);
    }
}
