//! deadline: batches in one direction, upwards by sector, with deadlines (legacy kernels).
//!
//! Reads and writes each have an order by sector and an order by age. A batch goes upwards; the
//! request that follows is fixed when one is dispatched, so what arrives in between does not join
//! the sweep before it. A new batch takes the direction that [`Starvation`] names and starts at the
//! oldest request of it if that has expired or if nothing lies above the last one. Requests that
//! the device refused go first. I/O priorities are ignored.
//!
//! Left out: negative `writes_starved`; forced draining.
//!
//! Source: Linux 4.20 block/deadline-iosched.c (behaviour and constants).

use iolab_model::Ns;

use super::common::{PerRequest, Place, SortedFifo};
use super::deadlines::{HasSettings, Rows, Settings, Starvation};
use crate::api::bio::Bio;
use crate::api::request::{Direction, RequestId, Requests};
use crate::api::scheduler::{Attach, Framework, Merge, MergeEnd, Scheduler, SchedulerContext};
use crate::tunable::{Tunable, Tuned};

/// The deadline scheduler.
#[derive(Clone, Debug)]
pub struct Deadline {
    settings: Settings,
    queues: [SortedFifo; 2],
    places: PerRequest<Place>,
    /// Request that continues the batch; at most one of the two is set.
    next: [Option<RequestId>; 2],
    /// Refused by the device; the last one goes first.
    refused: Vec<RequestId>,
    batching: u64,
    starvation: Starvation,
}

impl Deadline {
    /// The first request of a new batch.
    fn first_of_batch(&mut self, now: Ns) -> Option<(Direction, RequestId)> {
        let [reads, writes] = &self.queues;
        let (has_reads, has_writes) = (!reads.fifo.is_empty(), !writes.fifo.is_empty());
        let limit = self.settings.writes_starved;
        let direction = self.starvation.choose(limit, has_reads, has_writes)?;
        let (oldest, deadline) = self.queues[direction.index()].fifo.head()?;
        self.batching = 0;
        if now >= deadline {
            return Some((direction, oldest));
        }
        Some((direction, self.next[direction.index()].unwrap_or(oldest)))
    }

    /// Request that continues the present batch.
    fn continuation(&self) -> Option<(Direction, RequestId)> {
        if self.batching >= self.settings.fifo_batch {
            return None;
        }
        let of = |direction: Direction| Some((direction, self.next[direction.index()]?));
        of(Direction::Write).or_else(|| of(Direction::Read))
    }
}

impl Attach for Deadline {
    const FRAMEWORK: Framework = Framework::Legacy;

    fn attach(context: &SchedulerContext) -> Self {
        Self {
            settings: Settings::new(context.hz),
            queues: Default::default(),
            places: PerRequest::default(),
            next: [None; 2],
            refused: Vec::new(),
            batching: 0,
            starvation: Starvation::default(),
        }
    }
}

impl Scheduler for Deadline {
    fn insert(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let direction = request.direction();
        let deadline = self.settings.deadline(now, direction);
        let place = self.queues[direction.index()].insert(request.sector, id, deadline);
        self.places.set(id, place);
    }

    fn dispatch(&mut self, now: Ns, _: &Requests) -> Option<RequestId> {
        if let Some(id) = self.refused.pop() {
            return Some(id);
        }
        let (direction, id) = self.continuation().or_else(|| self.first_of_batch(now))?;
        self.batching += 1;
        let place = *self.places.get(id);
        let queue = &mut self.queues[direction.index()];
        self.next = [None; 2];
        self.next[direction.index()] = queue.sorted.latter(place.sorted);
        queue.remove(place);
        Some(id)
    }

    fn requeue(&mut self, _: Ns, _: &Requests, id: RequestId) {
        self.refused.push(id);
    }

    fn has_requests(&self) -> bool {
        !self.refused.is_empty() || self.queues.iter().any(|queue| !queue.fifo.is_empty())
    }

    fn front(&mut self, _: Ns, _: &Requests, bio: &Bio) -> Option<RequestId> {
        if !self.settings.has_front_merges {
            return None;
        }
        let direction = if bio.operation.is_write() { Direction::Write } else { Direction::Read };
        self.queues[direction.index()].sorted.starting_at(bio.end())
    }

    fn former(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        let queue = &self.queues[requests[id].direction().index()];
        queue.sorted.former(self.places.get(id).sorted)
    }

    fn latter(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        let queue = &self.queues[requests[id].direction().index()];
        queue.sorted.latter(self.places.get(id).sorted)
    }

    fn merged(&mut self, _: Ns, requests: &Requests, merge: Merge) {
        if merge.end == MergeEnd::Front {
            let request = &requests[merge.into];
            let place = *self.places.get(merge.into);
            let place = self.queues[request.direction().index()].moved(place, request.sector);
            self.places.set(merge.into, place);
        }
    }

    fn joined(&mut self, _: Ns, requests: &Requests, survivor: RequestId, absorbed: RequestId) {
        let request = &requests[survivor];
        let direction = request.direction().index();
        let queue = &mut self.queues[direction];
        let (kept, lost) = (*self.places.get(survivor), *self.places.get(absorbed));
        if self.next[direction] == Some(absorbed) {
            self.next[direction] = queue.sorted.latter(lost.sorted);
        }
        let place = queue.joined(kept, lost, request.sector);
        self.places.set(survivor, place);
    }
}

impl HasSettings for Deadline {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }
}

impl Tuned for Deadline {
    const TUNABLES: &'static [Tunable<Self>] = &[
        Rows::<Self>::READ_EXPIRE,
        Rows::<Self>::WRITE_EXPIRE,
        Rows::<Self>::WRITES_STARVED,
        Rows::<Self>::FRONT_MERGES,
        Rows::<Self>::FIFO_BATCH,
    ];
}
