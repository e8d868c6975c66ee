//! Failures below: what becomes of those who wait, and of a file system that cannot go on.

use iolab_model::Ns;
use iolab_model::error::Errno;

use super::engine::Machine;
use super::task::{TaskIndex, Work};
use crate::api::block::BlockRun;
use crate::api::context::Tid;
use crate::api::file_system::JobId;
use crate::api::make::Kernel;

/// The first kernel that tells every open file; before, whoever flushes first is told alone.
const TELLS_ALL: Kernel = Kernel::new(4, 13);

/// Failures of write-back of a file: each open file is told once of those since it last asked.
///
/// Source: Linux lib/errseq.c, Documentation/core-api/errseq.rst.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Failures {
    last: Option<Errno>,
    /// Ordinal of the last one; those that nobody was told of yet count once.
    count: u64,
    is_told: bool,
}

impl Failures {
    /// Notes a failure.
    pub fn note(&mut self, errno: Errno) {
        self.count += u64::from(self.is_told || self.count == 0);
        (self.last, self.is_told) = (Some(errno), false);
    }

    /// Ordinal that a new open file has seen: a failure that nobody was told of is left for it.
    pub const fn seen_at_open(&self) -> u64 {
        if self.is_told { self.count } else { 0 }
    }

    /// The failure that somebody is to be told of who has seen those up to an ordinal.
    const fn tell(&mut self, seen: &mut u64) -> Option<Errno> {
        if *seen == self.count {
            return None;
        }
        *seen = self.count;
        self.is_told = true;
        self.last
    }
}

impl Machine {
    /// Failure of write-back that a handle is told of now; without a handle, as if the file was
    /// opened just now.
    pub(super) fn failure_of(&mut self, owner: u32, by: Option<(u32, u32)>) -> Option<Errno> {
        let failures = &mut self.tree.node_mut(owner).failures;
        let mut seen = failures.seen_at_open();
        let handles = by.map(|(lane, slot)| (&mut self.lanes[lane as usize].handles, slot));
        let info = handles.and_then(|(handles, slot)| handles.get_mut(slot as usize)?.as_mut());
        let tells_all = self.settings.kernel >= TELLS_ALL;
        match info.filter(|info| info.owner == owner && tells_all) {
            Some(info) => failures.tell(&mut info.seen),
            None => failures.tell(&mut seen),
        }
    }

    /// Refuses a call that changes something, if the file system has been stopped.
    pub(super) fn may_change(&self) -> Result<(), Errno> {
        self.stop.map_or(Ok(()), |stop| Err(stop.changes))
    }

    /// The same of one that only looks.
    pub(super) fn may_read(&self) -> Result<(), Errno> {
        self.stop.and_then(|stop| stop.reads).map_or(Ok(()), Err)
    }

    /// Time of the next thing that the file system does by itself; never once it is stopped.
    pub(super) fn file_system_timer(&self) -> Ns {
        if self.stop.is_some() { Ns::MAX } else { self.fs.next_timer() }
    }

    /// A task has failed: what it still had to do is left. An open(2) that fails opens nothing.
    pub(super) fn give_up(&mut self, index: TaskIndex, errno: Errno) {
        for work in core::mem::take(&mut self.task(index).works) {
            match work {
                Work::Job(job) => self.job_failed(job.id(), errno),
                Work::Name(name) => {
                    if let Some(slot) = name.opened() {
                        self.forget_handle(slot);
                    }
                }
                Work::Direct(direct) => self.undo_direct(&direct),
                _ => {}
            }
        }
    }

    fn forget_handle(&mut self, (lane, slot): (u32, u32)) {
        let handle = self.lanes[lane as usize].handles.get_mut(slot as usize);
        if let Some(info) = handle.and_then(Option::take) {
            let node = self.tree.node_mut(info.owner);
            node.handles -= 1;
            node.writers -= u32::from(info.how.is_writable);
        }
    }

    fn job_failed(&mut self, job: JobId, errno: Errno) {
        if self.stop.is_none() {
            if let Some(tid) = self.fs.job_failed(job) {
                self.let_go(tid, Some(errno));
            }
            self.look_for_stop();
        }
        self.ask_for_room_again();
    }

    /// Pages of the device could not be written.
    pub(super) fn metadata_failed(&mut self, run: BlockRun) {
        if self.stop.is_none() {
            self.fs.metadata_failed(run);
            self.look_for_stop();
        }
    }

    /// Lets everybody who waits for a file system go on that was stopped just now.
    pub(super) fn look_for_stop(&mut self) {
        self.stop = self.fs.stop();
        if let Some(stop) = self.stop {
            self.let_go(Tid(u64::MAX), Some(stop.waiting));
            self.ask_for_room_again();
        }
    }

    /// Those who wait for transactions up to this one go on; with a failure they fail.
    pub(super) fn let_go(&mut self, until: Tid, failure: Option<Errno>) {
        let mut free = Vec::new();
        self.waits.retain(|&(tid, task)| {
            let stays = tid > until;
            if !stays {
                free.push(task);
            }
            stays
        });
        let cost = self.settings.cost.complete_ns;
        for task in free {
            if let Some(errno) = failure {
                self.task(task).fail(errno);
            }
            self.wake(task, cost);
        }
    }
}
