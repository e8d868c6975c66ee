//! Cooperators: processes that read the same place in turn share one queue, until they seek.
//!
//! Source: Linux 4.1 block/cfq-iosched.c. Where two neighbours are close, the kernel takes the one
//! that its tree's shape happens to offer; here it is the nearer one, the higher if equally near.
//! Of queues at the same sector the kernel knows only the first; here the others take its place.

use std::collections::VecDeque;

use iolab_model::Sector;

use super::process::ProcessSlot;
use super::queue::{Marks, QueueId};
use super::scheduler::Cfq;
use super::tree::Class;

/// Distance up to which a request is "close", in sectors.
pub(super) const CLOSE_SECTORS: u64 = 8 * 1024;

/// Queues with requests by the sector of the next one, one tree per priority level.
///
/// They are brought up to date when they are asked: most requests come and go without that.
#[derive(Clone, Debug, Default)]
pub(super) struct PositionTrees {
    levels: [VecDeque<(Sector, QueueId)>; 8],
    /// Queues that are marked [`Marks::MOVED`].
    moved: Vec<QueueId>,
}

impl PositionTrees {
    /// Adds a queue; of queues with the same sector the first one is found.
    fn insert(&mut self, level: u8, sector: Sector, queue: QueueId) {
        let tree = &mut self.levels[usize::from(level)];
        let place = tree.partition_point(|&(other, _)| other <= sector);
        tree.insert(place, (sector, queue));
    }

    /// Removes a queue.
    fn remove(&mut self, level: u8, sector: Sector, queue: QueueId) {
        let tree = &mut self.levels[usize::from(level)];
        let equals = tree.partition_point(|&(other, _)| other < sector);
        let behind = tree.iter().skip(equals).position(|&(_, other)| other == queue);
        tree.remove(equals + behind.expect("a queue knows its position"));
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
    /// The queue's next request or its priority may have changed.
    pub(super) fn moved(&mut self, id: QueueId) {
        let marks = &mut self.queues[id].marks;
        if !marks.has(Marks::MOVED) {
            marks.set(Marks::MOVED);
            self.positions.moved.push(id);
        }
    }

    /// Brings the position trees up to date.
    fn settle_positions(&mut self) {
        let mut moved = core::mem::take(&mut self.positions.moved);
        for id in moved.drain(..) {
            let queue = &mut self.queues[id];
            queue.marks.clear(Marks::MOVED);
            let next = queue.next.filter(|_| queue.class != Class::Idle);
            let wanted = next.map(|next| (queue.level, self.tickets.get(next).place.sorted.0));
            let old = core::mem::replace(&mut queue.position, wanted);
            if old == wanted {
                continue;
            }
            if let Some((level, sector)) = old {
                self.positions.remove(level, sector, id);
            }
            if let Some((level, sector)) = wanted {
                self.positions.insert(level, sector, id);
            }
        }
        self.positions.moved = moved;
    }

    /// Takes a queue that will be freed out of the position trees.
    fn remove_position(&mut self, id: QueueId) {
        if let Some((level, sector)) = self.queues[id].position.take() {
            self.positions.remove(level, sector, id);
        }
        if self.queues[id].marks.has(Marks::MOVED) {
            self.positions.moved.retain(|&other| other != id);
        }
    }

    /// A queue that is about to read where this (empty) one has just read.
    pub(super) fn close_cooperator(&mut self, id: QueueId) -> Option<QueueId> {
        let queue = &self.queues[id];
        let is_candidate = queue.class != Class::Idle && queue.is_sync && !queue.seeks.is_seeky();
        if !is_candidate || self.group.queues == 1 {
            return None;
        }
        let level = queue.level;
        self.settle_positions();
        let found = self.positions.closest(level, self.last_position)?;
        let (queue, other) = (&self.queues[id], &self.queues[found]);
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
        self.remove_position(id);
        self.queues.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_close_queue_is_found() {
        let mut trees = PositionTrees::default();
        trees.insert(4, Sector(10_000), QueueId(0));
        trees.insert(4, Sector(30_000), QueueId(1));
        trees.insert(4, Sector(30_000), QueueId(2));
        assert_eq!(trees.closest(4, Sector(10_000)), Some(QueueId(0)));
        assert_eq!(trees.closest(4, Sector(18_192)), Some(QueueId(0)));
        assert_eq!(trees.closest(4, Sector(18_193)), None);
        assert_eq!(trees.closest(4, Sector(21_808)), Some(QueueId(1)));
        assert_eq!(trees.closest(3, Sector(10_000)), None);
        trees.remove(4, Sector(30_000), QueueId(1));
        assert_eq!(trees.closest(4, Sector(30_000)), Some(QueueId(2)));
        trees.remove(4, Sector(10_000), QueueId(0));
        assert_eq!(trees.closest(4, Sector(10_000)), None);
    }
}
