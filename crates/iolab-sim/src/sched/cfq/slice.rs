//! Slices: how long, when they begin and end, and where a queue goes afterwards.
//!
//! Source: Linux 4.1 block/cfq-iosched.c.

use super::clock::Tick;
use super::group::Saved;
use super::queue::{Marks, QueueId, Slice};
use super::scheduler::Cfq;
use super::settings::Settings;
use super::tree::Class;

/// Level of a queue without wishes; a level more or less is a fifth of the base slice.
const MIDDLE_LEVEL: Tick = 4;

impl Settings {
    /// Slice of a level, before it is scaled.
    pub fn base_slice(&self, is_sync: bool, level: u8) -> Tick {
        let base = self.slice[usize::from(is_sync)];
        base + base / 5 * (MIDDLE_LEVEL - Tick::from(level))
    }

    /// A base slice, shortened when `busy` queues would need more than the group's share of
    /// `target_latency`; but not below twice `slice_idle`, in proportion.
    pub fn scaled_slice(&self, base: Tick, busy: u32, share: Tick) -> Tick {
        let sync = self.slice[1];
        let expected = sync.saturating_mul(busy.into());
        if !self.is_low_latency || expected <= share {
            return base;
        }
        let least = base.min((2 * self.slice_idle).saturating_mul(base) / sync);
        least.max(base.saturating_mul(share) / expected)
    }

    /// Requests that an asynchronous queue may dispatch in a slice while others wait.
    pub fn async_allowance(&self, level: u8) -> u64 {
        2 * u64::from(self.slice_async_requests) * (8 - u64::from(level))
    }
}

impl Cfq {
    fn slice_length(&mut self, id: QueueId) -> Tick {
        let queue = &self.queues[id];
        let base = self.settings.base_slice(queue.is_sync, queue.level);
        if !self.settings.is_low_latency {
            return base;
        }
        // The average of best effort is also asked for a queue of the idle class.
        let class =
            if queue.class == Class::RealTime { Class::RealTime } else { Class::BestEffort };
        let busy = self.group.average_busy(class);
        let share = self.group.part_of(self.settings.target_latency);
        self.settings.scaled_slice(base, busy, share)
    }

    /// The first completion: the slice's clock starts.
    pub(super) fn start_slice(&mut self, id: QueueId) {
        let length = self.slice_length(id);
        let now = self.clock.now;
        let queue = &mut self.queues[id];
        queue.slice.started = Some(now);
        queue.slice.end = now + length;
        queue.slice.length = length;
        queue.marks.clear(Marks::FRESH);
    }

    /// Gives a queue the device.
    pub(super) fn set_active(&mut self, id: Option<QueueId>) {
        self.active = id;
        let Some(id) = id else { return };
        let queue = &mut self.queues[id];
        queue.slice = Slice { selected: self.clock.now, ..Slice::default() };
        let old = Marks::AWAITED.with(Marks::MUST_DISPATCH);
        queue.marks.clear(old.with(Marks::GRANTED).with(Marks::FIFO_CHECKED));
        queue.marks.set(Marks::FRESH);
        self.stop_timer();
    }

    /// Takes the device from the active queue, if there is one, and puts it back into its tree (or
    /// out of it). `keeps_residual`: what was left of the slice counts the next time.
    pub(super) fn expire(&mut self, keeps_residual: bool) {
        let Some(id) = self.active else { return };
        let now = self.clock.now;
        if self.queues[id].marks.has(Marks::AWAITED) {
            self.stop_timer();
        }
        if keeps_residual {
            let left = if self.queues[id].marks.has(Marks::FRESH) {
                self.slice_length(id)
            } else {
                self.queues[id].slice.end - now
            };
            self.queues[id].residual = left;
        }
        self.charge_group(id);
        let queue = &mut self.queues[id];
        queue.marks.clear(Marks::AWAITED.with(Marks::WAITS_BUSY));
        if queue.marks.has(Marks::SHARED) && queue.seeks.is_seeky() {
            queue.marks.set(Marks::SPLIT);
        }
        let (is_busy, is_empty) = (queue.marks.has(Marks::BUSY), queue.is_empty());
        if is_busy && is_empty {
            self.make_idle(id);
        } else if is_busy {
            self.enqueue(id);
            self.moved(id);
        }
        self.active = None;
        if let Some(process) = self.active_process.take() {
            self.processes.release(process);
        }
    }

    fn charge_group(&mut self, id: QueueId) {
        let now = self.clock.now;
        let queue = &self.queues[id];
        let counts_requests = self.settings.slice_idle == 0 && self.queueing.is_likely();
        let charge = if counts_requests {
            queue.slice.dispatched.into()
        } else if !queue.is_sync && self.group.busy_sync() == 0 {
            queue.slice.length
        } else {
            queue.slice_usage(now)
        };
        self.group.charge(charge);
        let left = self.serving.end - now;
        let (class, kind) = (self.serving.class, self.serving.kind);
        self.group.saved = (left > 0).then_some(Saved { left, class, kind });
    }

    /// The queue has requests again: into a tree.
    pub(super) fn make_busy(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        queue.marks.set(Marks::BUSY);
        self.busy_queues += 1;
        self.busy_sync_queues += u32::from(queue.is_sync);
        self.enqueue(id);
    }

    /// The queue has no requests, and nobody waits for it: out of its trees.
    pub(super) fn make_idle(&mut self, id: QueueId) {
        self.moved(id);
        let queue = &mut self.queues[id];
        queue.marks.clear(Marks::BUSY);
        if let Some((tree, key)) = queue.place.take() {
            self.group.tree_mut(tree).remove(key, id);
        }
        self.busy_queues -= 1;
        self.busy_sync_queues -= u32::from(queue.is_sync);
        self.group.queues -= 1;
        if self.group.queues == 0 {
            self.group.saved = None;
        }
    }

    /// Puts a queue where it is due. The more queues there are and the shorter its slice is, the
    /// later: that is how a long slice is also served sooner.
    fn enqueue(&mut self, id: QueueId) {
        let now = self.clock.now;
        let queue = &mut self.queues[id];
        let key = if queue.class == Class::Idle {
            let last = self.group.tree(queue.tree()).last();
            let from = last.filter(|&(_, other)| other != id).map_or(now, |(key, _)| key);
            // Linux 4.1 block/cfq-iosched.c: CFQ_IDLE_DELAY, a fifth of a second.
            from + self.clock.second() / 5
        } else {
            let longest = self.settings.base_slice(true, 0);
            let own = self.settings.base_slice(queue.is_sync, queue.level);
            let others = Tick::from(self.group.queues) - 1;
            now + others.saturating_mul(longest - own) - core::mem::take(&mut queue.residual)
        };
        self.place(id, key);
    }

    /// Puts a queue before all others of its tree.
    pub(super) fn enqueue_in_front(&mut self, id: QueueId) {
        let first = self.group.tree(self.queues[id].tree()).first();
        let key = first.map_or(self.clock.now, |(key, _)| key) - self.clock.second();
        self.place(id, key);
    }

    fn place(&mut self, id: QueueId, key: Tick) {
        let queue = &mut self.queues[id];
        let tree = queue.tree();
        match queue.place.replace((tree, key)) {
            Some(same) if same == (tree, key) => return,
            Some((old_tree, old_key)) => self.group.tree_mut(old_tree).remove(old_key, id),
            None => self.group.queues += 1,
        }
        self.group.tree_mut(tree).insert(key, id);
    }
}

#[cfg(test)]
mod tests {
    use crate::sched::cfq::tests::cfq;

    #[test]
    fn slices_per_level() {
        // formula_checks: cfq_slice_ms.
        let settings = cfq(true).settings;
        let slices = |is_sync| [0, 1, 2, 3, 4, 5, 6, 7].map(|l| settings.base_slice(is_sync, l));
        assert_eq!(slices(true), [180, 160, 140, 120, 100, 80, 60, 40]);
        assert_eq!(slices(false), [72, 64, 56, 48, 40, 32, 24, 16]);
    }

    #[test]
    fn slices_under_low_latency() {
        // formula_checks: cfq_low_latency_slice_ms.
        let settings = cfq(true).settings;
        let rows = [(1, 100), (3, 100), (4, 75), (6, 50), (10, 30), (18, 16), (30, 16)];
        for (busy, slice) in rows {
            assert_eq!(settings.scaled_slice(100, busy, 300), slice, "{busy} busy queues");
        }
    }

    #[test]
    fn asynchronous_requests_per_slice() {
        // formula_checks: cfq_async_requests_per_slice.
        let settings = cfq(true).settings;
        assert_eq!([0, 4, 7].map(|level| settings.async_allowance(level)), [32, 16, 4]);
    }
}
