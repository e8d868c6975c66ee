//! One queue: the requests of a process (synchronous) or of a priority level (asynchronous).

use core::ops::{Index, IndexMut};

use iolab_model::Sector;

use super::clock::Tick;
use super::seek::Seeks;
use super::tree::{Class, Kind, TreeId};
use crate::api::request::RequestId;
use crate::sched::common::SortedFifo;

/// Index into [`Queues`]; reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueId(pub u32);

/// Marks of a queue at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u16);

impl Marks {
    /// In a service tree: it has requests, or is waited for.
    pub const BUSY: Self = Self(1);
    /// The idle timer runs for it.
    pub const AWAITED: Self = Self(1 << 1);
    /// A request came that the idle timer must not throw out.
    pub const MUST_DISPATCH: Self = Self(1 << 2);
    /// The one request beyond the limit of slots was granted in this slice.
    pub const GRANTED: Self = Self(1 << 3);
    /// The FIFO was looked at in this slice.
    pub const FIFO_CHECKED: Self = Self(1 << 4);
    /// Worth waiting for.
    pub const IDLE_WINDOW: Self = Self(1 << 5);
    /// Nothing was completed yet in this slice, so its clock stands.
    pub const FRESH: Self = Self(1 << 6);
    /// Used by more than one process.
    pub const SHARED: Self = Self(1 << 7);
    /// Shared and seeky: to be split.
    pub const SPLIT: Self = Self(1 << 8);
    /// Had four requests or more queued at once.
    pub const DEEP: Self = Self(1 << 9);
    /// Its slice was extended for the sake of the group.
    pub const WAITS_BUSY: Self = Self(1 << 10);
    /// Its place in the position trees is not up to date.
    pub const MOVED: Self = Self(1 << 11);

    /// Tell whether all of them hold.
    pub fn has(self, marks: Self) -> bool {
        self.0 & marks.0 == marks.0
    }

    /// Makes them true.
    pub fn set(&mut self, marks: Self) {
        self.0 |= marks.0;
    }

    /// Makes them false.
    pub fn clear(&mut self, marks: Self) {
        self.0 &= !marks.0;
    }

    /// Makes them true or false.
    pub fn put(&mut self, marks: Self, is_true: bool) {
        if is_true { self.set(marks) } else { self.clear(marks) }
    }

    /// All of either.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The time a queue has the device for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slice {
    /// Time at which the queue was chosen.
    pub selected: Tick,
    /// Time at which its first request completed: the clock's start.
    pub started: Option<Tick>,
    /// End of the slice; means nothing while the queue is [`Marks::FRESH`].
    pub end: Tick,
    /// Length without extensions.
    pub length: Tick,
    /// Requests dispatched in it.
    pub dispatched: u32,
}

/// One queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    pub is_sync: bool,
    pub class: Class,
    pub level: u8,
    pub marks: Marks,
    /// Requests by sector and by age.
    pub pending: SortedFifo,
    /// The best to serve next.
    pub next: Option<RequestId>,
    /// The service tree it is in, with its key there.
    pub place: Option<(TreeId, Tick)>,
    /// The position tree it is in, with its sector there.
    pub position: Option<(u8, Sector)>,
    pub slice: Slice,
    /// Time that was left of its last slice; negative if it overran.
    pub residual: Tick,
    /// Dispatched and not completed.
    pub in_flight: u32,
    /// Queued or dispatched.
    pub requests: u32,
    /// Processes that use it, including those that are to be redirected to it.
    pub processes: u32,
    /// Queued requests that are boosted.
    pub urgent: u32,
    /// Queue to which its processes are to be redirected.
    pub merge_into: Option<QueueId>,
    pub seeks: Seeks,
}

impl Queue {
    /// Workload that it belongs to.
    pub fn kind(&self) -> Kind {
        match (self.is_sync, self.marks.has(Marks::IDLE_WINDOW)) {
            (false, _) => Kind::Async,
            (true, false) => Kind::SyncNoIdle,
            (true, true) => Kind::Sync,
        }
    }

    /// The service tree that it belongs to now (it may still be in another one).
    pub fn tree(&self) -> TreeId {
        TreeId::of(self.class, self.kind())
    }

    /// Nothing queued (requests may be at the device).
    pub fn is_empty(&self) -> bool {
        self.pending.sorted.is_empty()
    }

    /// Number of requests queued.
    pub fn len(&self) -> usize {
        self.pending.sorted.len()
    }

    /// Tell whether its slice is over.
    pub fn is_slice_used(&self, now: Tick) -> bool {
        !self.marks.has(Marks::FRESH) && now >= self.slice.end
    }

    /// Time to charge for the slice so far: from the first completion, not more than was given;
    /// without one, from the choice, at least a tick.
    pub fn slice_usage(&self, now: Tick) -> Tick {
        match self.slice.started {
            Some(started) if started != now => (now - started).min(self.slice.length),
            _ => (now - self.slice.selected).max(1),
        }
    }
}

/// All queues, in slots that are reused.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    slots: Vec<Queue>,
    free: Vec<QueueId>,
}

impl Queues {
    /// A fresh queue; a synchronous one is worth waiting for until something speaks against it.
    pub fn add(&mut self, is_sync: bool) -> QueueId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Queue::default());
            QueueId(self.slots.len() as u32 - 1)
        });
        let slot = &mut self[id];
        *slot = Queue { is_sync, ..Queue::default() };
        slot.marks.put(Marks::IDLE_WINDOW, is_sync);
        id
    }

    /// Frees the slot of a queue that has neither requests nor processes.
    pub fn remove(&mut self, id: QueueId) {
        debug_assert!(self[id].is_empty() && !self[id].marks.has(Marks::BUSY));
        self.free.push(id);
    }

    /// Number of slots, used or free.
    #[cfg(test)]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Number of queues that exist.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl Index<QueueId> for Queues {
    type Output = Queue;
    fn index(&self, id: QueueId) -> &Queue {
        &self.slots[id.0 as usize]
    }
}

impl IndexMut<QueueId> for Queues {
    fn index_mut(&mut self, id: QueueId) -> &mut Queue {
        &mut self.slots[id.0 as usize]
    }
}
