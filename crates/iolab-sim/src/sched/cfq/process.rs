//! Processes (I/O contexts): which queues they use, how long they think.

use std::collections::BTreeMap;

use super::clock::Tick;
use super::queue::QueueId;
use super::think::ThinkTime;
use crate::api::bio::{Priority, ProcessId};

/// Index into [`Processes`]; reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessSlot(u32);

/// State of a process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    /// Its queues; indexed by "is synchronous".
    pub queues: [Option<QueueId>; 2],
    pub priority: Priority,
    pub think: ThinkTime,
    /// True if it has ended; requests of it may still be under way.
    pub is_gone: bool,
    /// Requests under way, and one more while the active queue waits for it.
    holders: u32,
}

/// All processes that have not ended or whose requests are under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Processes {
    slots: Vec<Process>,
    free: Vec<ProcessSlot>,
    by_name: BTreeMap<ProcessId, ProcessSlot>,
}

impl Processes {
    /// A process that was seen before.
    pub fn find(&self, name: ProcessId) -> Option<ProcessSlot> {
        self.by_name.get(&name).copied()
    }

    /// A process; created if it was not seen before.
    pub fn find_or_add(&mut self, name: ProcessId, priority: Priority, now: Tick) -> ProcessSlot {
        if let Some(slot) = self.find(name) {
            return slot;
        }
        let process = Process {
            queues: [None; 2],
            priority,
            think: ThinkTime::new(now),
            is_gone: false,
            holders: 0,
        };
        let slot = if let Some(slot) = self.free.pop() {
            *self.get_mut(slot) = process;
            slot
        } else {
            self.slots.push(process);
            ProcessSlot(self.slots.len() as u32 - 1)
        };
        self.by_name.insert(name, slot);
        slot
    }

    /// State of a process.
    pub fn get(&self, slot: ProcessSlot) -> &Process {
        &self.slots[slot.0 as usize]
    }

    /// State of a process, to change.
    pub fn get_mut(&mut self, slot: ProcessSlot) -> &mut Process {
        &mut self.slots[slot.0 as usize]
    }

    /// Keeps a slot from being reused.
    pub fn hold(&mut self, slot: ProcessSlot) {
        self.get_mut(slot).holders += 1;
    }

    /// Undoes one [`Self::hold`].
    pub fn release(&mut self, slot: ProcessSlot) {
        let process = self.get_mut(slot);
        process.holders -= 1;
        if process.holders == 0 && process.is_gone {
            self.free.push(slot);
        }
    }

    /// The process has ended: its name may come again and means another one.
    pub fn end(&mut self, name: ProcessId) {
        let Some(slot) = self.by_name.remove(&name) else { return };
        let process = self.get_mut(slot);
        process.is_gone = true;
        process.queues = [None; 2];
        if process.holders == 0 {
            self.free.push(slot);
        }
    }
}
