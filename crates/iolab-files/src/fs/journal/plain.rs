//! Durability without a journal: fsync writes what belongs to the file, in no order, or one block
//! after the other.
//!
//! Everything between two such writes is one epoch, which stands for a transaction. A crash leaves
//! the state of the last epoch that was written: the state that a checker would repair to
//! when nothing of the later epochs had reached the device.
//! Source: Linux fs/ext2/file.c, fs/buffer.c (`generic_buffers_fsync`).

use iolab_model::Ns;

use crate::api::block::{BlockRun, DeviceId};
use crate::api::context::Tid;
use crate::api::file_system::{FsJob, JobId, RunsAs, Step};

/// Age at which dirty pages of the device are written, with the flusher's period on top: 30 s and
/// 5 s in Linux, and in Solaris (`autoup`, `tune_t_fsflushr`).
const AGE: Ns = Ns::from_ms(35_000);

/// Epochs of a file system without a journal.
#[derive(Clone, Debug, Default)]
pub struct PlainLog {
    durable: Tid,
    started: Tid,
    asked: Vec<BlockRun>,
    is_asked: bool,
    since: Ns,
    going: Option<(JobId, Tid)>,
    next_job: u64,
    /// Each block is on the device before the next one is sent.
    is_ordered: bool,
}

impl PlainLog {
    /// A log whose blocks are written one after the other, as they were asked for.
    pub fn ordered() -> Self {
        Self { is_ordered: true, ..Self::default() }
    }

    /// The epoch that changes belong to.
    pub fn running(&self) -> Tid {
        Tid(self.started.0.max(self.durable.0) + 1)
    }

    /// The epoch that changes belong to now. After the time in which everything is written by its
    /// age an epoch counts as written.
    pub fn epoch(&mut self, now: Ns) -> Tid {
        if now.0.saturating_sub(self.since.0) >= AGE.0 && self.going.is_none() && !self.is_asked {
            self.durable = self.running();
            self.started = self.durable;
            self.since = now;
        }
        self.running()
    }

    /// The last epoch on the device.
    pub const fn durable(&self) -> Tid {
        self.durable
    }

    /// Asks for these blocks to be written; the epoch to wait for.
    pub fn request(&mut self, blocks: impl IntoIterator<Item = BlockRun>) -> Tid {
        self.asked.extend(blocks);
        self.is_asked = true;
        self.running()
    }

    /// The next job.
    pub fn poll(&mut self, has_barriers: bool) -> Option<FsJob> {
        if !self.is_asked || self.going.is_some() {
            return None;
        }
        self.is_asked = false;
        let mut blocks = core::mem::take(&mut self.asked);
        if !self.is_ordered {
            blocks.sort_unstable();
        }
        blocks.dedup();
        let mut steps = Vec::new();
        for block in blocks {
            steps.push(Step::Dirtied(block));
            if self.is_ordered {
                steps.push(Step::Wait);
            }
        }
        if !self.is_ordered {
            steps.push(Step::Wait);
        }
        if has_barriers {
            steps.push(Step::Flush(DeviceId::MAIN));
            steps.push(Step::Wait);
        }
        self.next_job += 1;
        let id = JobId(self.next_job);
        self.started = self.running();
        self.going = Some((id, self.started));
        Some(FsJob { id, runs_as: RunsAs::Caller, is_sync: true, steps })
    }

    /// A job has ended.
    pub fn done(&mut self, job: JobId) {
        if let Some((_, epoch)) = self.going.take_if(|(id, _)| *id == job) {
            self.durable = epoch;
        }
    }

    /// A power cut.
    pub fn crash(&mut self) -> Tid {
        let durable = self.durable;
        let (next_job, is_ordered) = (self.next_job, self.is_ordered);
        *self = Self { durable, started: durable, next_job, is_ordered, ..Self::default() };
        durable
    }
}
