//! Positions at which the queues that may still be merged want to read next.
//!
//! Two queues at the same sector: only the first is listed, as in the kernel. The kernel's answer
//! among two close ones depends on the shape of its tree; here the lower one wins.

use std::collections::btree_map::Entry;

use iolab_model::Sector;

use super::entity::Class;
use super::state::Bfq;
use crate::api::request::Requests;

/// Within this many sectors requests are close.
// Linux block/bfq-iosched.c: BFQQ_CLOSE_THR.
const CLOSE: u64 = 8 * 1024;

/// Tell whether two positions are close.
pub(super) const fn is_close(a: Sector, b: Sector) -> bool {
    a.0.abs_diff(b.0) <= CLOSE
}

impl Bfq {
    /// Too long after its first service for a queue to be merged.
    // Linux block/bfq-iosched.c: bfq_merge_time_limit, HZ/10.
    pub(super) fn is_too_late_to_merge(&self, id: u32) -> bool {
        let queue = self.queue(id);
        queue.habits.raising.backlog_service > 0
            && self.is_past(queue.first_service + i64::from(self.hz.0 / 10))
    }

    /// Lists a queue under its next request, or not at all.
    pub(super) fn update_position(&mut self, requests: &Requests, id: u32) {
        if self.device.is_parallel_flash {
            return;
        }
        self.remove_position(id);
        let Some(next) = self.queue(id).next else {
            return;
        };
        if self.class_of(id) == Class::Idle || self.is_too_late_to_merge(id) {
            return;
        }
        let sector = requests[next].sector;
        if let Entry::Vacant(place) = self.positions.entry(sector) {
            place.insert(id);
            self.queue_mut(id).position = Some(sector);
        }
    }

    /// Lists a queue no more.
    pub(super) fn remove_position(&mut self, id: u32) {
        if let Some(sector) = self.queue_mut(id).position.take() {
            self.positions.remove(&sector);
        }
    }

    /// A listed queue that wants to read close to `sector`.
    pub(super) fn queue_close_to(&self, sector: Sector) -> Option<u32> {
        let above = self.positions.range(sector..).next();
        let exact = above.filter(|&(&other, _)| other == sector);
        let below = self.positions.range(..sector).next_back();
        [exact, below, above]
            .into_iter()
            .flatten()
            .find(|&(&other, _)| is_close(other, sector))
            .map(|(_, &id)| id)
    }
}
