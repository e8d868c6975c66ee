//! Queues of processes, and the end of a queue.
//!
//! A queue lives as long as a process uses it, a request belongs to it, it counts in a service
//! tree, is in service, or may be merged into later. Queues for async writes are shared by all
//! processes of one class and level, and stay.

use super::entity::{Class, Entity, weight_of_level};
use super::expire::Reason;
use super::marks::Mark;
use super::queue::Queue;
use super::state::Bfq;
use crate::api::bio::{Priority, PriorityClass, ProcessId, Submitter};

/// Level of a process that never asked for one (nice 0).
const NORMAL_LEVEL: u8 = 4;

/// Class and level of a priority as bfq sees it.
fn class_and_level(priority: Priority) -> (Class, u8) {
    let level = match priority.class {
        PriorityClass::None => NORMAL_LEVEL,
        PriorityClass::Idle => 7,
        PriorityClass::RealTime | PriorityClass::BestEffort => priority.level.min(7),
    };
    (Class::of(priority.class), level)
}

impl Bfq {
    /// The process of a request, with its present priority.
    pub(super) fn process_of(&mut self, submitter: Submitter) -> u32 {
        let process = self.processes.find_or_add(submitter.process, submitter.priority);
        if self.processes.get(process).priority != submitter.priority {
            self.processes.get_mut(process).priority = submitter.priority;
            self.follow_priority(process);
        }
        process
    }

    fn follow_priority(&mut self, process: u32) {
        let (class, level) = class_and_level(self.processes.get(process).priority);
        if let Some(old) = self.processes.get_mut(process).unsync.take() {
            let new = self.queue_for(process, false, false);
            self.processes.get_mut(process).unsync = Some(new);
            self.release_user(old);
        }
        if let Some(id) = self.processes.get(process).sync {
            self.queue_mut(id).level = level;
            let entity = self.entity_mut(id);
            entity.new_class = class;
            entity.new_weight = weight_of_level(level);
            entity.must_reweigh = true;
        }
    }

    /// A queue for a process that has none of this kind; the process becomes a user of it.
    pub(super) fn queue_for(&mut self, process: u32, is_sync: bool, is_split: bool) -> u32 {
        let (class, level) = class_and_level(self.processes.get(process).priority);
        let row = if class == Class::Idle { 0 } else { usize::from(level) };
        if !is_sync && let Some(id) = self.unsync[class.index()][row] {
            self.queue_mut(id).users += 1;
            return id;
        }
        let id = self.add_queue(is_sync, class, level);
        self.queue_mut(id).users += 1;
        if is_sync {
            return if is_split { id } else { self.merge_if_created_together(id, process) };
        }
        self.unsync[class.index()][row] = Some(id);
        self.queue_mut(id).users += 1;
        id
    }

    fn add_queue(&mut self, is_sync: bool, class: Class, level: u8) -> u32 {
        let mut queue = Queue::new(is_sync, level, self.now, self.ticks);
        queue.max_budget = 2 * self.budget_ceiling() / 3;
        queue.marks.set(Mark::ShortThink, is_sync && class != Class::Idle);
        let entity = Entity::new(class, weight_of_level(level));
        if let Some(id) = self.free_queues.pop() {
            self.queues[id as usize] = queue;
            self.agenda.entities[id as usize] = entity;
            return id;
        }
        self.queues.push(queue);
        self.agenda.entities.push(entity);
        self.queues.len() as u32 - 1
    }

    /// Lets a process use another queue (or none) for its synchronous requests.
    pub(super) fn set_sync_queue(&mut self, process: u32, queue: Option<u32>) {
        if let Some(old) = self.processes.get(process).sync
            && self.queue(old).owner == Some(process)
        {
            self.queue_mut(old).owner = None;
        }
        self.processes.get_mut(process).sync = queue;
        if queue.is_some() && self.processes.get(process).suited == queue {
            self.withdraw_suit(process);
        }
    }

    /// A planned stable merge is done or dropped.
    pub(super) fn withdraw_suit(&mut self, process: u32) {
        if let Some(id) = self.processes.get_mut(process).suited.take() {
            self.queue_mut(id).suitors -= 1;
            self.free_if_unused(id);
        }
    }

    /// One process less uses the queue.
    pub(super) fn release_user(&mut self, id: u32) {
        let queue = self.queue(id);
        if queue.is_busy() && queue.backlog.is_empty() && self.in_service != Some(id) {
            self.leave_busy(id, false);
        }
        if self.reference_queue == Some(id) {
            self.reference_queue = None;
        }
        let queue = self.queue_mut(id);
        queue.users = queue.users.saturating_sub(1);
        self.free_if_unused(id);
    }

    /// Processes that were to be moved on from a queue are so no more.
    pub(super) fn release_successors(&mut self, id: u32) {
        let mut next = self.queue(id).successor;
        while let Some(id) = next {
            next = self.queue(id).successor;
            let queue = self.queue_mut(id);
            queue.users = queue.users.saturating_sub(1);
            self.free_if_unused(id);
        }
    }

    /// Frees a queue that nothing refers to.
    pub(super) fn free_if_unused(&mut self, id: u32) {
        let queue = self.queue(id);
        let is_used = queue.users > 0
            || queue.allocated > 0
            || queue.suitors > 0
            || self.entity(id).is_weighed
            || self.in_service == Some(id);
        if is_used || !queue.has(Mark::Live) {
            return;
        }
        if queue.has(Mark::InBurstList) {
            let is_own = queue.owner.is_some();
            self.leave_burst(id);
            self.burst.size -= u32::from(is_own && self.burst.size > 0);
        }
        self.forget_waker(id);
        self.remove_position(id);
        self.agenda.uncount(id);
        self.set_mark(id, Mark::Live, false);
        self.free_queues.push(id);
    }

    /// Frees the queues that the service trees have let go of.
    pub(super) fn free_forgotten(&mut self) {
        while let Some(id) = self.agenda.forgotten.pop() {
            self.free_if_unused(id);
        }
    }

    /// A process has ended.
    pub(super) fn end_process(&mut self, id: ProcessId) {
        let Some(process) = self.processes.find(id) else {
            return;
        };
        self.withdraw_suit(process);
        if let Some(queue) = self.processes.get(process).sync {
            self.set_sync_queue(process, None);
            self.leave_queue(queue);
        }
        if let Some(queue) = self.processes.get_mut(process).unsync.take() {
            self.leave_queue(queue);
        }
        self.processes.end(process);
    }

    fn leave_queue(&mut self, id: u32) {
        if self.in_service == Some(id) {
            self.end_slot(id, Reason::Timeout);
        }
        self.release_successors(id);
        self.release_user(id);
    }
}
