//! The scheduler's hooks.

use iolab_model::Ns;

use super::state::{Bfq, EPOCH};
use crate::api::bio::{Bio, ProcessId};
use crate::api::request::{RequestId, Requests};
use crate::api::scheduler::{Merge, MergeEnd, Scheduler};

impl Bfq {
    /// The queue that a bio of this process would go to.
    pub(super) fn queue_of(&self, bio: &Bio) -> Option<(u32, u32)> {
        let process = self.processes.find(bio.submitter.process)?;
        let row = self.processes.get(process);
        let queue = if bio.is_sync() { row.sync } else { row.unsync };
        queue.map(|id| (process, id))
    }
}

impl Scheduler for Bfq {
    fn insert(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        self.set_clock(now);
        self.take(requests, id);
    }

    /// Goes past the queues, but counts for its own.
    fn insert_at_head(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        self.set_clock(now);
        self.assign(requests, id);
        self.returned.push_front(id);
    }

    fn dispatch(&mut self, now: Ns, requests: &Requests) -> Option<RequestId> {
        self.set_clock(now);
        self.choose(requests)
    }

    fn complete(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        self.set_clock(now);
        self.finish(requests, id);
    }

    /// Not while it waits for the queue in service, nor with requests in the device.
    // Linux block/bfq-iosched.c: bfq_completed_request.
    fn wants_run(&self) -> bool {
        self.device.in_flight == 0 && !self.in_service.is_some_and(|id| self.must_idle(id))
    }

    fn requeue(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        self.set_clock(now);
        self.finish(requests, id);
        self.assign(requests, id);
        self.returned.push_front(id);
    }

    fn next_timer(&self) -> Ns {
        match self.slot.timer {
            u64::MAX => Ns::MAX,
            timer => Ns(timer - EPOCH),
        }
    }

    fn timer(&mut self, now: Ns, requests: &Requests) {
        self.set_clock(now);
        self.end_idling(requests);
    }

    fn has_requests(&self) -> bool {
        self.queued > 0 || !self.returned.is_empty()
    }

    fn limit_depth(&self, bio: &Bio, slots: u32) -> u32 {
        self.depth_for(bio, slots)
    }

    fn exit(&mut self, now: Ns, process: ProcessId) {
        self.set_clock(now);
        self.end_process(process);
        self.free_forgotten();
    }

    fn front(&mut self, now: Ns, _: &Requests, bio: &Bio) -> Option<RequestId> {
        self.set_clock(now);
        let (_, id) = self.queue_of(bio)?;
        self.queue(id).backlog.starting_at(bio.end())
    }

    fn allows_merge(&mut self, now: Ns, requests: &Requests, into: RequestId, bio: &Bio) -> bool {
        self.set_clock(now);
        if bio.is_sync() && !requests[into].is_sync() {
            return false;
        }
        let Some((process, mut id)) = self.queue_of(bio) else {
            return false;
        };
        if let Some(found) = self.find_cooperator(id, bio.sector, process) {
            self.move_process(process, id, found);
            id = found;
        }
        self.items.get(into).queue == id
    }

    fn former(&self, _: &Requests, id: RequestId) -> Option<RequestId> {
        self.queue(self.items.get(id).queue).backlog.former(&self.items, id)
    }

    fn latter(&self, _: &Requests, id: RequestId) -> Option<RequestId> {
        self.queue(self.items.get(id).queue).backlog.latter(&self.items, id)
    }

    fn allows_join(&self, _: &Requests, first: RequestId, second: RequestId) -> bool {
        self.items.get(first).queue == self.items.get(second).queue
    }

    fn merged(&mut self, now: Ns, requests: &Requests, merge: Merge) {
        self.set_clock(now);
        if merge.end == MergeEnd::Back {
            return;
        }
        let id = self.items.get(merge.into).queue;
        let sector = requests[merge.into].sector;
        let former = self.queue(id).backlog.former(&self.items, merge.into);
        let has_overtaken = former.is_some_and(|former| sector < requests[former].sector);
        let Self { queues, items, .. } = self;
        queues[id as usize].backlog.move_to(items, merge.into, sector);
        if self.queue(id).next == Some(merge.into) {
            self.update_position(requests, id);
        } else if has_overtaken && self.consider_next(requests, merge.into, id) {
            self.follow_next(requests, id);
        }
    }

    fn joined(&mut self, now: Ns, requests: &Requests, survivor: RequestId, absorbed: RequestId) {
        self.set_clock(now);
        let (id, process) = {
            let item = self.items.get(absorbed);
            (item.queue, item.process)
        };
        let is_older = self.items.get(absorbed).deadline < self.items.get(survivor).deadline;
        if self.items.get(survivor).queue == id && is_older {
            let Self { queues, items, .. } = self;
            queues[id as usize].backlog.swap_ages(items, survivor, absorbed);
        }
        if self.queue(id).next == Some(absorbed) && self.items.get(survivor).queue == id {
            self.queue_mut(id).next = Some(survivor);
        }
        self.remove(requests, absorbed, id);
        self.release_request(id, process);
    }

    fn describe(&self, now: Ns, requests: &Requests) -> Vec<String> {
        let mut bfq = self.clone();
        bfq.set_clock(now);
        bfq.lines(requests)
    }

    fn preset(&mut self, state: &str) -> bool {
        if state == "per-plug clock" {
            self.settings.has_plug_clock = true;
            return true;
        }
        false
    }
}
