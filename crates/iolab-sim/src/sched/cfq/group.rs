//! The group: the service trees of a control group, what it has used, what it is to resume.
//!
//! There is one group here, the root. Its fraction of the device is therefore always the whole;
//! with several groups it is the product, over the levels, of own weight by active weights.
//!
//! Source: Linux 4.1 block/cfq-iosched.c.

use super::clock::Tick;
use super::queue::QueueId;
use super::think::ThinkTime;
use super::tree::{Class, Kind, ServiceTree, TreeId};

/// Fixed point of fractions and of virtual time: 4096 = 1 (`CFQ_SERVICE_SHIFT` 12).
const SHIFT: u32 = 12;

/// A workload that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Saved {
    /// Time that was left.
    pub left: Tick,
    pub class: Class,
    pub kind: Kind,
}

/// A control group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    trees: [ServiceTree; TreeId::COUNT],
    /// Busy queues.
    pub queues: u32,
    /// Smoothed number of busy queues; indexed by class (the idle class has none).
    pub busy_average: [u32; 3],
    /// State to resume.
    pub saved: Option<Saved>,
    /// Requests dispatched and not completed.
    pub in_flight: u32,
    /// Pauses between any completion and the next request.
    pub think: ThinkTime,
    /// Part of the device's time that it is entitled to, 4096 = all.
    pub fraction: u64,
    /// Time used, divided by the fraction; 4096 = one tick.
    pub virtual_time: u64,
}

impl Group {
    /// A group that owns the device, created at `now`.
    pub fn new(now: Tick) -> Self {
        Self {
            trees: core::array::from_fn(|_| ServiceTree::new(now)),
            queues: 0,
            busy_average: [0; 3],
            saved: None,
            in_flight: 0,
            think: ThinkTime::new(now),
            fraction: 1 << SHIFT,
            virtual_time: 0,
        }
    }

    /// A service tree.
    pub fn tree(&self, id: TreeId) -> &ServiceTree {
        &self.trees[id.index()]
    }

    /// A service tree, to change.
    pub fn tree_mut(&mut self, id: TreeId) -> &mut ServiceTree {
        &mut self.trees[id.index()]
    }

    /// Busy queues of a class.
    pub fn busy(&self, class: Class) -> u32 {
        let kinds = if class == Class::Idle { &Kind::ALL[..1] } else { &Kind::ALL[..] };
        kinds.iter().map(|&kind| self.tree(TreeId::of(class, kind)).len() as u32).sum()
    }

    /// Busy asynchronous queues outside the idle class.
    pub fn busy_async(&self) -> u32 {
        let count = |class| self.tree(TreeId::of(class, Kind::Async)).len() as u32;
        count(Class::RealTime) + count(Class::BestEffort)
    }

    /// Busy synchronous queues outside the idle class.
    pub fn busy_sync(&self) -> u32 {
        self.queues - self.busy_async() - self.busy(Class::Idle)
    }

    /// Its part of a time.
    pub fn part_of(&self, time: Tick) -> Tick {
        time.saturating_mul(self.fraction as Tick) >> SHIFT
    }

    /// Updates the smoothed number of busy queues of a class, and answers with it.
    pub fn average_busy(&mut self, class: Class) -> u32 {
        let busy = self.busy(class);
        let average = &mut self.busy_average[class as usize];
        *average = smoothed(*average, busy);
        *average
    }

    /// The kind of workload to serve next: that with the earliest first queue.
    pub fn earliest_kind(&self, class: Class) -> Kind {
        let first = |kind| self.tree(TreeId::of(class, kind)).first().map(|(key, _)| (key, kind));
        let earliest = Kind::ALL.into_iter().filter_map(first).min_by_key(|&(key, _)| key);
        earliest.map_or(Kind::SyncNoIdle, |(_, kind)| kind)
    }

    /// Charges a slice.
    pub fn charge(&mut self, time: Tick) {
        let scaled = (u128::from(time as u64) << (2 * SHIFT)) / u128::from(self.fraction);
        self.virtual_time = self.virtual_time.saturating_add(scaled as u64);
    }

    /// First queue of a workload.
    pub fn first(&self, class: Class, kind: Kind) -> Option<QueueId> {
        self.tree(TreeId::of(class, kind)).first().map(|(_, queue)| queue)
    }
}

/// The average follows an increase quickly and a decrease slowly.
fn smoothed(average: u32, now: u32) -> u32 {
    (3 * average.max(now) + average.min(now) + 2) / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_average() {
        // formula_checks: cfq_busy_average.
        let rows = [(0, 1, 1), (0, 2, 2), (2, 10, 8), (8, 1, 6)];
        for (previous, now, average) in rows {
            assert_eq!(smoothed(previous, now), average, "from {previous}, now {now}");
        }
    }

    #[test]
    fn half_the_device_pays_twice() {
        let mut group = Group::new(0);
        group.charge(10);
        assert_eq!(group.virtual_time, 10 << 12);
        group.fraction = 2048;
        group.charge(10);
        assert_eq!(group.virtual_time, 30 << 12);
        assert_eq!(group.part_of(300), 150);
    }

    #[test]
    fn ties_between_workloads_go_to_asynchronous_queues() {
        let mut group = Group::new(0);
        assert_eq!(group.earliest_kind(Class::BestEffort), Kind::SyncNoIdle);
        for kind in [Kind::Sync, Kind::SyncNoIdle, Kind::Async] {
            group.tree_mut(TreeId::of(Class::BestEffort, kind)).insert(7, QueueId(0));
            assert_eq!(group.earliest_kind(Class::BestEffort), kind);
        }
        group.tree_mut(TreeId::of(Class::BestEffort, Kind::Sync)).insert(6, QueueId(1));
        assert_eq!(group.earliest_kind(Class::BestEffort), Kind::Sync);
        assert_eq!(group.busy(Class::BestEffort), 4);
        assert_eq!(group.busy_async(), 1);
    }
}
