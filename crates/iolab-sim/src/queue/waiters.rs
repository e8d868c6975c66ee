//! Bios that sleep in front of the queue, in order; who has some is known without a search.

use std::collections::{BTreeMap, VecDeque};

use crate::api::bio::{Bio, ProcessId};
use crate::queue::chain::Owner;

/// A bio that sleeps: in front of the throttle, for a slot, or behind one of its process that does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) bio: Bio,
    pub(super) owner: Owner,
    /// Nothing but a slot is missing: it found nothing to merge with and passed the throttle.
    pub(super) needs_only_slot: bool,
}

/// Those that sleep, in order.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    list: VecDeque<Waiter>,
    by_process: BTreeMap<ProcessId, u32>,
}

impl Waiters {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Tell whether a process has some.
    pub(super) fn has(&self, process: ProcessId) -> bool {
        self.by_process.contains_key(&process)
    }

    /// Number of processes that have some.
    pub(super) fn processes(&self) -> usize {
        self.by_process.len()
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut Waiter {
        &mut self.list[index]
    }

    pub(super) fn push(&mut self, waiter: Waiter) {
        self.insert(self.list.len(), waiter);
    }

    /// Puts one before the first of its process, or last.
    pub(super) fn push_before_own(&mut self, waiter: Waiter) {
        let is_own = |w: &Waiter| w.bio.submitter.process == waiter.bio.submitter.process;
        let place = self.list.iter().position(is_own).unwrap_or(self.list.len());
        self.insert(place, waiter);
    }

    fn insert(&mut self, place: usize, waiter: Waiter) {
        *self.by_process.entry(waiter.bio.submitter.process).or_default() += 1;
        self.list.insert(place, waiter);
    }

    pub(super) fn remove(&mut self, index: usize) {
        let Some(waiter) = self.list.remove(index) else { return };
        let process = waiter.bio.submitter.process;
        if let Some(count) = self.by_process.get_mut(&process) {
            *count -= 1;
            if *count == 0 {
                self.by_process.remove(&process);
            }
        }
    }
}

/// Processes that were passed over, sorted.
#[derive(Debug, Default)]
pub(super) struct Passed(Vec<ProcessId>);

impl Passed {
    pub(super) fn contains(&self, process: ProcessId) -> bool {
        self.0.binary_search(&process).is_ok()
    }

    pub(super) fn add(&mut self, process: ProcessId) {
        if let Err(place) = self.0.binary_search(&process) {
            self.0.insert(place, process);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
