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
use crate::api::file_system::{FsJob, JobId, RunsAs, Step, WriteFlags};

/// Age at which dirty pages of the device are written, with the flusher's period on top: 30 s and
/// 5 s in Linux, and in Solaris (`autoup`, `tune_t_fsflushr`).
const AGE: Ns = Ns::from_ms(35_000);

/// An epoch that is being written.
#[derive(Clone, Debug)]
struct Going {
    job: JobId,
    epoch: Tid,
    blocks: Vec<BlockRun>,
}

/// Epochs of a file system without a journal.
#[derive(Clone, Debug, Default)]
pub struct PlainLog {
    durable: Tid,
    started: Tid,
    asked: Vec<BlockRun>,
    is_asked: bool,
    since: Ns,
    going: Option<Going>,
    /// Blocks that could not be written, or not be flushed: they go with the next epoch.
    lost: Vec<BlockRun>,
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
        let is_still = self.going.is_none() && !self.is_asked && self.lost.is_empty();
        if now.0.saturating_sub(self.since.0) >= AGE.0 && is_still {
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
        // They are clean in memory.
        let lost = core::mem::take(&mut self.lost);
        let again = lost.iter().map(|&block| Step::Write(block, WriteFlags::default()));
        for step in again.chain(blocks.iter().map(|&block| Step::Dirtied(block))) {
            steps.push(step);
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
        blocks.extend(lost);
        self.going = Some(Going { job: id, epoch: self.started, blocks });
        Some(FsJob { id, runs_as: RunsAs::Caller, is_sync: true, steps })
    }

    /// A job has ended.
    pub fn done(&mut self, job: JobId) {
        if let Some(Going { epoch, .. }) = self.going.take_if(|going| going.job == job) {
            self.durable = epoch;
        }
    }

    /// A job has failed: whoever waits for its epoch is told, and its blocks are written again with
    /// the next one. (The kernel marks their buffers and forgets that they were changed.)
    pub fn failed(&mut self, job: JobId) -> Option<Tid> {
        let Going { epoch, blocks, .. } = self.going.take_if(|going| going.job == job)?;
        for block in blocks {
            self.lost(block);
        }
        Some(epoch)
    }

    /// A block could not be written by its age.
    pub fn lost(&mut self, block: BlockRun) {
        if !self.lost.contains(&block) {
            self.lost.push(block);
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
