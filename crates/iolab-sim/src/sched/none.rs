//! none: no scheduler at all (blk-mq).
//!
//! Requests are issued as soon as they have a device tag; what waits are bios, in arrival order,
//! and a waiting bio cannot be merged into. The queue in front does that waiting: for this
//! scheduler its request slots *are* the device's tags, so the list here is never long.
//!
//! Source: Linux 6.18 block/blk-mq.c (behaviour).

use std::collections::VecDeque;

use iolab_model::Ns;

use crate::api::request::{RequestId, Requests};
use crate::api::scheduler::{Attach, Framework, Replayable, Scheduler, SchedulerContext};
use crate::tunable::{Tunable, Tuned};

/// No scheduler.
#[derive(Clone, Debug, Default)]
pub struct None {
    queue: VecDeque<RequestId>,
}

impl Tuned for None {
    const TUNABLES: &'static [Tunable<Self>] = &[];
}

impl Attach for None {
    const FRAMEWORK: Framework = Framework::MultiQueue;
    const FINDS_OWN_MERGES: bool = true;
    const IS_ELEVATOR: bool = false;

    fn attach(_: &SchedulerContext) -> Self {
        Self::default()
    }

    fn attach_replayable(context: &SchedulerContext) -> Option<Box<dyn Replayable>> {
        Some(Box::new(Self::attach(context)))
    }
}

impl Scheduler for None {
    fn insert(&mut self, _: Ns, _: &Requests, id: RequestId) {
        self.queue.push_back(id);
    }

    fn dispatch(&mut self, _: Ns, _: &Requests) -> Option<RequestId> {
        self.queue.pop_front()
    }

    fn requeue(&mut self, _: Ns, _: &Requests, id: RequestId) {
        self.queue.push_front(id);
    }

    fn has_requests(&self) -> bool {
        !self.queue.is_empty()
    }

    fn joined(&mut self, _: Ns, _: &Requests, _: RequestId, _: RequestId) {
        unreachable!("nothing is merged, so nothing is joined");
    }
}

impl Replayable for None {
    fn predict(&self, _: Ns, _: &Requests) -> Option<RequestId> {
        self.queue.front().copied()
    }

    fn force(&mut self, _: Ns, _: &Requests, id: RequestId) {
        self.queue.retain(|&queued| queued != id);
    }
}
