//! noop: first in, first out.
//!
//! Arrival order is dispatch order; sector, direction and priority are ignored. Merging is what the
//! elevator core does by itself: the one-hit cache (both ends) and the hash of end sectors (back
//! merges); there is no sorted tree, hence no other front merge. It has no tunables.
//!
//! Source: Linux 4.20 block/noop-iosched.c (behaviour).

use std::collections::BTreeMap;

use iolab_model::Ns;

use super::common::PerRequest;
use crate::api::request::{RequestId, Requests};
use crate::api::scheduler::{Attach, Framework, Replayable, Scheduler, SchedulerContext};
use crate::tunable::{Tunable, Tuned};

/// First in, first out.
#[derive(Clone, Debug, Default)]
pub struct Noop {
    queue: BTreeMap<i64, RequestId>,
    places: PerRequest<i64>,
    next: i64,
}

impl Tuned for Noop {
    const TUNABLES: &'static [Tunable<Self>] = &[];
}

impl Attach for Noop {
    const FRAMEWORK: Framework = Framework::Legacy;

    fn attach(_: &SchedulerContext) -> Self {
        Self::default()
    }

    fn attach_replayable(context: &SchedulerContext) -> Option<Box<dyn Replayable>> {
        Some(Box::new(Self::attach(context)))
    }
}

impl Scheduler for Noop {
    fn insert(&mut self, _: Ns, _: &Requests, id: RequestId) {
        self.queue.insert(self.next, id);
        self.places.set(id, self.next);
        self.next += 1;
    }

    fn dispatch(&mut self, _: Ns, _: &Requests) -> Option<RequestId> {
        self.queue.pop_first().map(|(_, id)| id)
    }

    fn requeue(&mut self, _: Ns, _: &Requests, id: RequestId) {
        let place = self.queue.first_key_value().map_or(self.next, |(&place, _)| place) - 1;
        self.queue.insert(place, id);
        self.places.set(id, place);
    }

    fn has_requests(&self) -> bool {
        !self.queue.is_empty()
    }

    fn former(&self, _: &Requests, id: RequestId) -> Option<RequestId> {
        self.queue.range(..self.places.get(id)).next_back().map(|(_, &id)| id)
    }

    fn latter(&self, _: &Requests, id: RequestId) -> Option<RequestId> {
        self.queue.range(self.places.get(id) + 1..).next().map(|(_, &id)| id)
    }

    fn joined(&mut self, _: Ns, _: &Requests, _: RequestId, absorbed: RequestId) {
        self.queue.remove(self.places.get(absorbed));
    }
}

impl Replayable for Noop {
    fn predict(&self, _: Ns, _: &Requests) -> Option<RequestId> {
        self.queue.first_key_value().map(|(_, &id)| id)
    }

    fn force(&mut self, _: Ns, _: &Requests, id: RequestId) {
        self.queue.remove(self.places.get(id));
    }
}
