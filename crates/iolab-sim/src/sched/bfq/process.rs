//! Processes: which queues they use and what their own queue was like before a merge.

use std::collections::BTreeMap;

use super::marks::Marks;
use super::queue::Habits;
use crate::api::bio::{Priority, ProcessId};

/// State of a process's queue at the time of a merge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    pub(super) habits: Habits,
    pub(super) raise: u32,
    pub(super) weight: u32,
    pub(super) marks: Marks,
}

/// A process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) id: ProcessId,
    pub(super) priority: Priority,
    /// Its queue for synchronous requests.
    pub(super) sync: Option<u32>,
    /// The queue that its async writes go to.
    pub(super) unsync: Option<u32>,
    /// Its requests, queued or in flight.
    pub(super) requests: u32,
    pub(super) saved: Option<Saved>,
    /// Queue to merge with later, if it turns out to pay.
    pub(super) suited: Option<u32>,
    /// Merged because it was created together with others.
    pub(super) is_stably_merged: bool,
    pub(super) has_ended: bool,
}

/// All processes.
#[derive(Clone, Debug, Default)]
pub(super) struct Processes {
    rows: Vec<Process>,
    free: Vec<u32>,
    index: BTreeMap<ProcessId, u32>,
}

impl Processes {
    /// Index of a process that is known.
    pub(super) fn find(&self, id: ProcessId) -> Option<u32> {
        self.index.get(&id).copied()
    }

    /// Index of a process, known or new.
    pub(super) fn find_or_add(&mut self, id: ProcessId, priority: Priority) -> u32 {
        if let Some(index) = self.find(id) {
            return index;
        }
        let process = Process {
            id,
            priority,
            sync: None,
            unsync: None,
            requests: 0,
            saved: None,
            suited: None,
            is_stably_merged: false,
            has_ended: false,
        };
        let index = self.free.pop().unwrap_or(self.rows.len() as u32);
        if index as usize == self.rows.len() {
            self.rows.push(process);
        } else {
            self.rows[index as usize] = process;
        }
        self.index.insert(id, index);
        index
    }

    pub(super) fn get(&self, index: u32) -> &Process {
        &self.rows[index as usize]
    }

    pub(super) fn get_mut(&mut self, index: u32) -> &mut Process {
        &mut self.rows[index as usize]
    }

    /// The process has ended: its number may be used again.
    pub(super) fn end(&mut self, index: u32) {
        let process = &mut self.rows[index as usize];
        process.has_ended = true;
        let id = process.id;
        self.index.remove(&id);
        self.reclaim(index);
    }

    /// Reuses the row of a process that has ended once its last request is done.
    pub(super) fn reclaim(&mut self, index: u32) {
        let process = &self.rows[index as usize];
        if process.has_ended && process.requests == 0 {
            self.free.push(index);
        }
    }
}
