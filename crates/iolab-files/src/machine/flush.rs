//! Flushes: fsync, fdatasync, `sync_file_range`, msync, sync, `O_SYNC`.

use iolab_model::error::Errno;
use iolab_model::op::RangeSync;

use super::engine::Machine;
use super::task::{Flow, TaskIndex};
use super::tree::DEVICE;
use super::write_out::{Extent, Manner};
use crate::api::file_system::{Promise, SyncNeed};

/// Scope of a flush.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope {
    /// Pages of one file, and what the promise needs.
    Pages(Extent, Promise),
    /// Data of pages of one file, with the waits that `sync_file_range` was asked for.
    Range(Extent, RangeSync),
    /// Everything.
    All,
}

/// A flush, step by step.
#[derive(Debug)]
pub(super) struct FlushWork {
    scope: Scope,
    phase: u8,
    /// Lane and handle that it came by: who is told of failures.
    by: Option<(u32, u32)>,
}

impl FlushWork {
    pub const fn new(scope: Scope) -> Self {
        Self { scope, phase: 0, by: None }
    }

    /// The flush, asked for by a handle of a lane.
    pub const fn by(mut self, by: Option<(u32, u32)>) -> Self {
        self.by = by;
        self
    }

    /// A flush of a whole file.
    pub const fn file(owner: u32, promise: Promise) -> Self {
        Self::new(Scope::Pages(Extent { owner, from: 0, end: u64::MAX }, promise))
    }
}

impl Machine {
    pub(super) fn step_flush(&mut self, index: TaskIndex, work: &mut FlushWork) -> Flow {
        match (work.phase, work.scope) {
            (0, Scope::Pages(extent, _)) => {
                if !self.flush_pages(index, extent) {
                    work.phase = 1;
                }
                Flow::More
            }
            (0, Scope::All) => {
                // In the order in which they became dirty, as the kernel's list has them.
                let mut owners: Vec<u32> = self.tree.indices().collect();
                owners.sort_by_key(|&owner| (self.tree.node(owner).dirtied_at, owner));
                let mut is_again = false;
                for owner in owners {
                    is_again |= self.flush_pages(index, Extent { owner, from: 0, end: u64::MAX });
                }
                work.phase = u8::from(!is_again);
                Flow::More
            }
            (0..=2, Scope::Range(extent, how)) => {
                self.step_range(index, (work.phase, extent), how);
                work.phase += 1;
                Flow::More
            }
            (_, Scope::Range(_, how)) if !how.waits_before && !how.waits_after => Flow::Done,
            (_, Scope::Range(extent, _)) => match self.failure_of(extent.owner, work.by) {
                Some(errno) => Flow::Failed(errno),
                None => Flow::Done,
            },
            (1, scope) => self.ask_for_rest(index, work, scope),
            (2, Scope::All) => {
                self.flush_pages(index, Extent { owner: DEVICE, from: 0, end: u64::MAX });
                work.phase = 3;
                Flow::More
            }
            _ => Flow::Done,
        }
    }

    /// A part of a `sync_file_range`. Only all of them together write for durability (Linux
    /// fs/sync.c, `sync_file_range`: `WB_SYNC_ALL`).
    fn step_range(&mut self, index: TaskIndex, (phase, extent): (u8, Extent), how: RangeSync) {
        let waits = if phase == 0 { how.waits_before } else { how.waits_after };
        match phase {
            _ if self.own_cache().is_some() => {}
            1 if how.writes => {
                let manner = Manner {
                    runner: self.task(index).runner,
                    is_sync: how == RangeSync::default(),
                    is_background: false,
                    pages_max: u64::MAX,
                    is_limited: false,
                };
                self.write_out(extent, manner);
            }
            0 | 2 if waits => self.await_writes(index, extent.owner),
            _ => {}
        }
    }

    /// Sends dirty pages and waits for all that are on their way; tells whether to do it again,
    /// because pages were changed while they were being written.
    fn flush_pages(&mut self, index: TaskIndex, extent: Extent) -> bool {
        if self.own_cache().is_some() {
            return false;
        }
        let manner = Manner {
            runner: self.task(index).runner,
            is_sync: true,
            is_background: false,
            pages_max: u64::MAX,
            is_limited: false,
        };
        let sent = self.write_out(extent, manner);
        self.await_writes(index, extent.owner);
        sent.was_busy
    }

    fn ask_for_rest(&mut self, index: TaskIndex, work: &mut FlushWork, scope: Scope) -> Flow {
        let runner = self.task(index).runner;
        let mut cx = self.context(runner);
        let need = match scope {
            Scope::All | Scope::Range(..) => self.fs.sync_all(&mut cx),
            Scope::Pages(extent, promise) => {
                if let Some(errno) = self.failure_of(extent.owner, work.by) {
                    return Flow::Failed(errno);
                }
                if let Err(errno) = self.may_change() {
                    return Flow::Failed(errno);
                }
                let id = self.tree.node(extent.owner).id;
                self.fs.sync(&mut cx, id, promise)
            }
        };
        self.apply(index, cx);
        match need {
            SyncNeed::Nothing => {}
            SyncNeed::Flush(device) => self.send_flush(index, device),
            SyncNeed::Commit(tid) => {
                let task = self.task(index);
                task.wait_tid = task.wait_tid.max(Some(tid));
            }
        }
        work.phase = 2;
        Flow::More
    }

    /// Refuses a flush of something that does not exist.
    pub(super) fn flushable(&self, owner: u32) -> Result<u32, Errno> {
        if self.tree.node(owner).children.is_some() { Err(Errno::EINVAL) } else { Ok(owner) }
    }
}
