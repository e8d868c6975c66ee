//! A request's way through cfq: in, out to the device, back as completed; and a process's end.
//!
//! Source: Linux 4.1 block/cfq-iosched.c.

use super::choice::is_urgent;
use super::idle::Load;
use super::process::ProcessSlot;
use super::queue::{Marks, QueueId};
use super::scheduler::Cfq;
use super::tree::{Class, TreeId};
use crate::api::bio::{Bio, Priority, PriorityClass, ProcessId};
use crate::api::request::{Request, RequestId, Requests};
use crate::sched::common::Place;

/// Sectors of a page: a longer request need not be waited for to grow.
const PAGE_SECTORS: u32 = 8;

/// Place of a request; kept until it is completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    pub queue: QueueId,
    pub process: ProcessSlot,
    pub place: Place,
}

impl Default for Ticket {
    fn default() -> Self {
        Self { queue: QueueId(u32::MAX), process: ProcessSlot::default(), place: Place::default() }
    }
}

impl Cfq {
    /// The queue that this bio's process uses now, if it has one.
    pub(super) fn queue_of(&self, bio: &Bio) -> Option<QueueId> {
        let process = self.processes.find(bio.submitter.process)?;
        self.processes.get(process).queues[usize::from(bio.is_sync())]
    }

    /// A new request.
    pub(super) fn take_in(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let submitter = request.submitter;
        let now = self.clock.now;
        let process = self.processes.find_or_add(submitter.process, submitter.priority, now);
        self.note_priority(process, submitter.priority);
        let queue_id = self.queue_for(submitter.process, process, request.is_sync());
        self.processes.hold(process);
        let age = self.settings.fifo_expire[usize::from(request.is_sync())];
        let deadline = self.clock.instant(now.saturating_add(age));
        let queue = &mut self.queues[queue_id];
        queue.requests += 1;
        queue.urgent += u32::from(is_urgent(request));
        let place = queue.pending.insert(request.sector, id, deadline);
        self.tickets.set(id, Ticket { queue: queue_id, process, place });
        if !queue.marks.has(Marks::BUSY) {
            self.make_busy(queue_id);
        }
        self.consider(requests, queue_id, id);
        self.queued += 1;
        self.update_statistics(request, queue_id, process);
        self.update_idle_window(requests, queue_id, process);
        self.react(request, queue_id);
    }

    /// A request is in the tree (again): is it the best to serve next?
    pub(super) fn consider(&mut self, requests: &Requests, id: QueueId, request: RequestId) {
        let queue = &mut self.queues[id];
        let candidates = (queue.next, Some(request));
        queue.next = self.settings.back_seek().better(requests, candidates, self.last_position);
        self.moved(id);
    }

    fn update_statistics(&mut self, request: &Request, id: QueueId, process: ProcessSlot) {
        let now = self.clock.now;
        let queue = &mut self.queues[id];
        queue.seeks.note(request, self.is_rotational);
        if queue.is_sync {
            let waiting = self.settings.slice_idle;
            self.processes.get_mut(process).think.sample(now, waiting);
            if let Some((tree, _)) = queue.place {
                self.group.tree_mut(tree).think.sample(now, waiting);
            }
        }
        self.group.think.sample(now, self.settings.group_idle);
    }

    /// Changes of a new request for the active queue.
    fn react(&mut self, request: &Request, id: QueueId) {
        if self.active != Some(id) {
            if self.preempts(id, request) {
                self.preempt(id);
            }
            return;
        }
        let queue = &mut self.queues[id];
        if !queue.marks.has(Marks::AWAITED) {
            return;
        }
        queue.marks.set(Marks::GRANTED);
        if request.sectors > PAGE_SECTORS || self.busy_queues > 1 {
            queue.marks.clear(Marks::AWAITED);
            self.stop_timer();
        } else {
            queue.marks.set(Marks::MUST_DISPATCH);
        }
    }

    /// The process may have been given another priority.
    fn note_priority(&mut self, slot: ProcessSlot, priority: Priority) {
        let process = self.processes.get_mut(slot);
        if process.priority == priority {
            return;
        }
        process.priority = priority;
        let [asynchronous, synchronous] = process.queues;
        process.queues[0] = asynchronous.and(self.async_queues[async_index(priority)]);
        if let Some(id) = synchronous {
            self.apply_priority(id, priority);
        }
    }

    /// Sets a queue's class and level. The idle class is never waited for; its level is 7.
    fn apply_priority(&mut self, id: QueueId, priority: Priority) {
        let (class, level) = class_and_level(priority);
        let queue = &mut self.queues[id];
        queue.class = class;
        queue.level = level;
        if class == Class::Idle {
            queue.marks.clear(Marks::IDLE_WINDOW);
        }
    }

    /// The queue for a request; resolves a pending split or merge of queues.
    fn queue_for(&mut self, name: ProcessId, slot: ProcessSlot, is_sync: bool) -> QueueId {
        let process = self.processes.get(slot);
        let priority = process.priority;
        if let Some(id) = process.queues[usize::from(is_sync)] {
            let marks = Marks::SHARED.with(Marks::SPLIT);
            let is_to_split = self.queues[id].marks.has(marks);
            let kept = if is_to_split { self.split(slot, id) } else { Some(id) };
            if let Some(id) = kept {
                return self.follow_merge(slot, id);
            }
        }
        let id = if is_sync {
            let id = self.add_queue(true, priority);
            self.apply_preset(name, id);
            id
        } else {
            self.async_queue(priority)
        };
        self.processes.get_mut(slot).queues[usize::from(is_sync)] = Some(id);
        id
    }

    /// The asynchronous queue of a priority; once made, it stays.
    fn async_queue(&mut self, priority: Priority) -> QueueId {
        let place = async_index(priority);
        if let Some(id) = self.async_queues[place] {
            return id;
        }
        let id = self.add_queue(false, priority);
        self.async_queues[place] = Some(id);
        id
    }

    fn add_queue(&mut self, is_sync: bool, priority: Priority) -> QueueId {
        let id = self.queues.add(is_sync);
        self.queues[id].processes = 1;
        self.apply_priority(id, priority);
        id
    }

    /// A request leaves for the device.
    pub(super) fn take_out(&mut self, requests: &Requests, id: RequestId) {
        let queue_id = self.tickets.get(id).queue;
        let is_sync = self.queues[queue_id].is_sync;
        self.queues[queue_id].next = self.next_after(requests, id);
        let place = self.tickets.get(id).place;
        self.queues[queue_id].pending.remove(place);
        self.no_longer_queued(requests, id);
        self.queues[queue_id].in_flight += 1;
        self.group.in_flight += 1;
        self.in_flight[usize::from(is_sync)] += 1;
    }

    /// Request to serve after another one of a queue: the better of its neighbours, the first of
    /// the queue following the last; seen from its start.
    pub(super) fn next_after(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        let ticket = self.tickets.get(id);
        if self.queues[ticket.queue].len() == 1 {
            return None;
        }
        let (sorted, key) = (&self.queues[ticket.queue].pending.sorted, ticket.place.sorted);
        let above = sorted.latter(key).or_else(|| sorted.first().filter(|&f| f != id));
        let below = sorted.former(key);
        self.settings.back_seek().better(requests, (above, below), requests[id].sector)
    }

    /// A request has left the containers of its queue and is not `next` any more.
    pub(super) fn no_longer_queued(&mut self, requests: &Requests, id: RequestId) {
        let queue_id = self.tickets.get(id).queue;
        let queue = &mut self.queues[queue_id];
        debug_assert!(queue.next != Some(id), "{id:?} is still to be served next");
        queue.urgent -= u32::from(is_urgent(&requests[id]));
        self.queued -= 1;
        self.moved(queue_id);
    }

    /// The device has finished a request.
    pub(super) fn completed(&mut self, requests: &Requests, id: RequestId) {
        let ticket = *self.tickets.get(id);
        let request = &requests[id];
        self.note_load();
        self.in_driver -= 1;
        self.group.in_flight -= 1;
        let queue = &mut self.queues[ticket.queue];
        queue.in_flight -= 1;
        self.in_flight[usize::from(queue.is_sync)] -= 1;
        self.note_completion(&ticket, request);
        if self.active == Some(ticket.queue) {
            self.completed_active(ticket.queue, request.is_sync());
        }
        self.release_request(&ticket);
    }

    fn note_load(&mut self) {
        let awaited = self.active.and_then(|id| {
            let queue = &self.queues[id];
            let requests = queue.in_flight + queue.len() as u32;
            queue.marks.has(Marks::IDLE_WINDOW).then_some(requests)
        });
        self.queueing.note(Load { queued: self.queued, in_driver: self.in_driver, awaited });
    }

    /// Times of last completion, and whether a synchronous request was late.
    fn note_completion(&mut self, ticket: &Ticket, request: &Request) {
        let now = self.clock.now;
        self.group.think.last_end = now;
        if !request.is_sync() {
            return;
        }
        self.processes.get_mut(ticket.process).think.last_end = now;
        let queue = &self.queues[ticket.queue];
        let tree: TreeId = queue.place.map_or_else(|| queue.tree(), |(tree, _)| tree);
        self.group.tree_mut(tree).think.last_end = now;
        if self.clock.has_passed(request.allocated, self.settings.fifo_expire[1]) {
            self.last_delayed_sync = now;
        }
    }

    fn completed_active(&mut self, id: QueueId, is_sync: bool) {
        let now = self.clock.now;
        if self.queues[id].marks.has(Marks::FRESH) {
            self.start_slice(id);
        }
        if self.should_extend(id) {
            let (slice_idle, group_idle) = (self.settings.slice_idle, self.settings.group_idle);
            let queue = &mut self.queues[id];
            queue.slice.end = now + if slice_idle > 0 { slice_idle } else { group_idle };
            queue.marks.set(Marks::WAITS_BUSY);
        }
        let queue = &self.queues[id];
        if queue.is_slice_used(now) || queue.class == Class::Idle {
            self.expire(true);
        } else if is_sync && queue.is_empty() && self.close_cooperator(id).is_none() {
            self.start_waiting(id);
        }
    }

    /// A request is gone: so may be its queue and its process.
    pub(super) fn release_request(&mut self, ticket: &Ticket) {
        self.queues[ticket.queue].requests -= 1;
        self.free_if_unused(ticket.queue);
        self.processes.release(ticket.process);
    }

    /// A process has ended. What it has queued is still served, but not waited for.
    pub(super) fn process_ended(&mut self, name: ProcessId) {
        let Some(slot) = self.processes.find(name) else { return };
        let [asynchronous, synchronous] = self.processes.get(slot).queues;
        for id in [asynchronous, synchronous].into_iter().flatten() {
            if self.active == Some(id) {
                self.expire(false);
            }
        }
        self.processes.end(name);
        if let Some(id) = synchronous {
            self.leave(id);
        }
    }
}

/// Class and level of a queue; without a priority, that of a process of nice 0.
fn class_and_level(priority: Priority) -> (Class, u8) {
    match priority.class {
        PriorityClass::RealTime => (Class::RealTime, priority.level.min(7)),
        PriorityClass::BestEffort => (Class::BestEffort, priority.level.min(7)),
        PriorityClass::None => (Class::BestEffort, Priority::default().level),
        PriorityClass::Idle => (Class::Idle, 7),
    }
}

/// Index of the asynchronous queue that a priority shares.
fn async_index(priority: Priority) -> usize {
    match class_and_level(priority) {
        (Class::RealTime, level) => usize::from(level),
        (Class::BestEffort, level) => 8 + usize::from(level),
        (Class::Idle, _) => 16,
    }
}
