//! Cooperators: processes that read the same place in turn share one queue, until they seek.
//!
//! Source: Linux 4.1 block/cfq-iosched.c. Where two neighbours are close, the kernel takes the one
//! that its tree's shape happens to offer; here it is the nearer one, the higher if equally near.

use std::collections::VecDeque;

use iolab_model::Sector;

use super::process::ProcessSlot;
use super::queue::{Marks, QueueId};
use super::scheduler::Cfq;
use super::tree::Class;
use crate::api::request::Requests;

/// Distance up to which a request is "close", in sectors.
pub(super) const CLOSE_SECTORS: u64 = 8 * 1024;

/// Busy queues by the sector of their next request, one tree per priority level. Of queues with
/// the same sector only the first is in.
#[derive(Debug, Default)]
pub(super) struct PositionTrees {
    levels: [VecDeque<(Sector, QueueId)>; 8],
}

impl PositionTrees {
    /// Adds a queue; false if its place is taken.
    fn insert(&mut self, level: u8, sector: Sector, queue: QueueId) -> bool {
        let tree = &mut self.levels[usize::from(level)];
        let place = tree.partition_point(|&(other, _)| other < sector);
        if tree.get(place).is_some_and(|&(other, _)| other == sector) {
            return false;
        }
        tree.insert(place, (sector, queue));
        true
    }

    /// Removes what is there.
    fn remove(&mut self, level: u8, sector: Sector) {
        let tree = &mut self.levels[usize::from(level)];
        let place = tree.partition_point(|&(other, _)| other < sector);
        debug_assert!(tree.get(place).is_some_and(|&(other, _)| other == sector));
        tree.remove(place);
    }

    /// The queue at `sector`, else the nearest one that is close.
    fn closest(&self, level: u8, sector: Sector) -> Option<QueueId> {
        let tree = &self.levels[usize::from(level)];
        let place = tree.partition_point(|&(other, _)| other < sector);
        let above = tree.get(place);
        let below = place.checked_sub(1).and_then(|place| tree.get(place));
        [above, below]
            .into_iter()
            .flatten()
            .map(|&(other, queue)| (other.0.abs_diff(sector.0), queue))
            .filter(|&(distance, _)| distance <= CLOSE_SECTORS)
            .min_by_key(|&(distance, _)| distance)
            .map(|(_, queue)| queue)
    }
}

impl Cfq {
    /// The queue's next request has changed: re-sorts it.
    pub(super) fn update_position_at(&mut self, requests: &Requests, id: QueueId) {
        let sector = self.queues[id].next.map(|next| requests[next].sector);
        self.set_position(id, sector);
    }

    /// The queue's priority may have changed, or its place has become free: re-sorts it.
    pub(super) fn update_position(&mut self, id: QueueId) {
        let sector = self.queues[id].next_sector;
        self.set_position(id, sector);
    }

    fn set_position(&mut self, id: QueueId, sector: Option<Sector>) {
        let queue = &mut self.queues[id];
        queue.next_sector = sector;
        let level = queue.level;
        let wanted = if queue.class == Class::Idle { None } else { sector.map(|s| (level, s)) };
        if wanted.is_some() && queue.position == wanted {
            return;
        }
        self.remove_position(id);
        if let Some((level, sector)) = wanted
            && self.positions.insert(level, sector, id)
        {
            self.queues[id].position = wanted;
        }
    }

    /// Takes a queue out of its position tree.
    pub(super) fn remove_position(&mut self, id: QueueId) {
        if let Some((level, sector)) = self.queues[id].position.take() {
            self.positions.remove(level, sector);
        }
    }

    /// A queue that is about to read where this (empty) one has just read.
    pub(super) fn close_cooperator(&self, id: QueueId) -> Option<QueueId> {
        let queue = &self.queues[id];
        let is_candidate = queue.class != Class::Idle && queue.is_sync && !queue.seeks.is_seeky();
        if !is_candidate || self.group.queues == 1 {
            return None;
        }
        let found = self.positions.closest(queue.level, self.last_position)?;
        let other = &self.queues[found];
        let is_alike = (other.class == Class::RealTime) == (queue.class == Class::RealTime);
        (other.is_sync && !other.seeks.is_seeky() && is_alike).then_some(found)
    }

    /// Plans to redirect the processes of one queue to the other, the fewer to the more.
    pub(super) fn plan_merge(&mut self, id: QueueId, found: QueueId) {
        if self.queues[found].processes == 0 {
            return;
        }
        let mut other = found;
        while let Some(next) = self.queues[other].merge_into {
            if next == id {
                return;
            }
            other = next;
        }
        let (own, others) = (self.queues[id].processes, self.queues[other].processes);
        if own == 0 || others == 0 || other == id {
            return;
        }
        let (from, to) = if others >= own { (id, other) } else { (other, id) };
        self.queues[from].merge_into = Some(to);
        self.queues[to].processes += self.queues[from].processes;
    }

    /// The process submits: it now uses the queue that its own was merged into.
    pub(super) fn follow_merge(&mut self, process: ProcessSlot, id: QueueId) -> QueueId {
        let Some(to) = self.queues[id].merge_into else { return id };
        self.processes.get_mut(process).queues[1] = Some(to);
        self.queues[to].marks.set(Marks::SHARED);
        self.queues[id].processes -= 1;
        self.free_if_unused(id);
        to
    }

    /// The process submits to a queue that is to be split: it stays if it is the last one there,
    /// else it gets a new queue (answers nothing).
    pub(super) fn split(&mut self, process: ProcessSlot, id: QueueId) -> Option<QueueId> {
        if self.queues[id].processes == 1 {
            self.queues[id].marks.clear(Marks::SHARED.with(Marks::SPLIT));
            return Some(id);
        }
        self.processes.get_mut(process).queues[1] = None;
        self.leave(id);
        None
    }

    /// One process less uses a queue, and the queues that it was to be redirected to.
    pub(super) fn leave(&mut self, id: QueueId) {
        let mut next = self.queues[id].merge_into;
        while let Some(other) = next {
            next = self.queues[other].merge_into;
            self.queues[other].processes -= 1;
            self.free_if_unused(other);
        }
        self.queues[id].processes -= 1;
        self.free_if_unused(id);
    }

    /// Frees a queue that neither requests nor processes hold.
    pub(super) fn free_if_unused(&mut self, id: QueueId) {
        let queue = &self.queues[id];
        if queue.requests > 0 || queue.processes > 0 {
            return;
        }
        if self.active == Some(id) {
            self.expire(false);
        }
        self.queues.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_close_queue_is_found() {
        let mut trees = PositionTrees::default();
        assert!(trees.insert(4, Sector(10_000), QueueId(0)));
        assert!(trees.insert(4, Sector(30_000), QueueId(1)));
        assert!(!trees.insert(4, Sector(30_000), QueueId(2)), "the place is taken");
        assert_eq!(trees.closest(4, Sector(10_000)), Some(QueueId(0)));
        assert_eq!(trees.closest(4, Sector(18_192)), Some(QueueId(0)));
        assert_eq!(trees.closest(4, Sector(18_193)), None);
        assert_eq!(trees.closest(4, Sector(21_808)), Some(QueueId(1)));
        assert_eq!(trees.closest(3, Sector(10_000)), None);
        trees.remove(4, Sector(10_000));
        assert_eq!(trees.closest(4, Sector(10_000)), None);
    }
}
