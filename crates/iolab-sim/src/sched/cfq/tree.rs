//! Service trees: queues of one workload in the order in which they will be served.

use std::collections::VecDeque;

use super::clock::Tick;
use super::queue::QueueId;
use super::think::ThinkTime;

/// Priority class of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Class {
    /// The usual one.
    #[default]
    BestEffort = 0,
    /// Always first.
    RealTime = 1,
    /// Only if nobody else has work.
    Idle = 2,
}

/// Sort of workload of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// No task waits for it.
    Async = 0,
    /// A task waits, but waiting for its next request does not pay.
    SyncNoIdle = 1,
    /// A task waits, and its next request is expected soon.
    Sync = 2,
}

impl Kind {
    /// In the order in which ties are decided.
    pub const ALL: [Self; 3] = [Self::Async, Self::SyncNoIdle, Self::Sync];
}

/// One of the seven service trees: a class and a kind, the idle class has only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeId(u8);

impl TreeId {
    /// Number of trees.
    pub const COUNT: usize = 7;

    /// Place of a queue of this sort.
    pub const fn of(class: Class, kind: Kind) -> Self {
        match class {
            Class::Idle => Self(6),
            Class::BestEffort | Class::RealTime => Self(class as u8 * 3 + kind as u8),
        }
    }

    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Queues by key; equal keys keep insertion order.
///
/// A sorted ring: there are few queues, and new keys mostly go to the end.
#[derive(Clone, Debug)]
pub(super) struct ServiceTree {
    entries: VecDeque<(Tick, QueueId)>,
    /// Pauses between a completion and the next request of any of its queues.
    pub think: ThinkTime,
}

impl ServiceTree {
    /// An empty tree.
    pub fn new(created: Tick) -> Self {
        Self { entries: VecDeque::new(), think: ThinkTime::new(created) }
    }

    /// Number of queues.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The next to be served, with its key.
    pub fn first(&self) -> Option<(Tick, QueueId)> {
        self.entries.front().copied()
    }

    /// The last to be served, with its key.
    pub fn last(&self) -> Option<(Tick, QueueId)> {
        self.entries.back().copied()
    }

    /// Adds a queue.
    pub fn insert(&mut self, key: Tick, queue: QueueId) {
        let place = self.entries.partition_point(|&(other, _)| other <= key);
        self.entries.insert(place, (key, queue));
    }

    /// Removes a queue that is in it under this key.
    pub fn remove(&mut self, key: Tick, queue: QueueId) {
        let equals = self.entries.partition_point(|&(other, _)| other < key);
        let behind = self.entries.iter().skip(equals).position(|&(_, other)| other == queue);
        let place = equals + behind.expect("a queue knows the tree it is in");
        self.entries.remove(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_keep_insertion_order() {
        let mut tree = ServiceTree::new(0);
        for (key, queue) in [(5, 0), (5, 1), (-80, 2), (5, 3)] {
            tree.insert(key, QueueId(queue));
        }
        tree.remove(5, QueueId(1));
        let order: Vec<u32> = tree.entries.iter().map(|&(_, queue)| queue.0).collect();
        assert_eq!(order, [2, 0, 3]);
        assert_eq!(tree.first(), Some((-80, QueueId(2))));
        assert_eq!(tree.last(), Some((5, QueueId(3))));
    }
}
