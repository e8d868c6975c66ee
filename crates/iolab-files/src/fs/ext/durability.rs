//! Durability: what fsync waits for, and the jobs of the journal.
//!
//! Source: Linux fs/ext4/fsync.c, fs/ext4/inode.c (`ext4_jbd2_inode_add_write`), fs/jbd2.

use std::mem::take;

use iolab_model::Ns;

use super::driver::{DurableLog, ExtFs};
use crate::api::block::{BlockRun, DeviceId, FileRun, NodeId};
use crate::api::context::{Context, Tid};
use crate::api::file_system::{FsJob, JobId, Promise, Stoppage, SyncNeed};

impl ExtFs {
    pub(super) fn order(&mut self, cx: &mut Context, run: FileRun) {
        if let DurableLog::Journal(journal) = &mut self.log {
            journal.order(cx.now, run);
        }
    }

    pub(super) fn journal_data(&mut self, cx: &mut Context, run: FileRun) {
        if let DurableLog::Journal(journal) = &mut self.log {
            journal.journal(cx.now, run);
        }
        self.change_inode(cx, run.node.0, true);
    }

    pub(super) fn drop_data(&mut self, node: NodeId, from: u64) {
        if let DurableLog::Journal(journal) = &mut self.log {
            journal.drop_data(node.0, from);
        }
    }

    /// The caller waits if the running transaction is as large as it may be.
    pub(super) fn wait_if_full(&mut self, cx: &mut Context) {
        if let DurableLog::Journal(journal) = &mut self.log
            && let Some(tid) = journal.congestion()
        {
            cx.effects.wait = cx.effects.wait.max(Some(tid));
        }
    }

    pub(super) fn sync_node(&mut self, node: NodeId, promise: Promise) -> SyncNeed {
        let Some(state) = self.node(node) else { return SyncNeed::Nothing };
        let tid = match promise {
            Promise::Full => state.sync_tid,
            Promise::Data => state.data_tid,
        };
        let flush = self.flush();
        let inode = self.geometry.inode_block(node.0);
        match &mut self.log {
            DurableLog::Journal(journal) => {
                if journal.request(tid) {
                    SyncNeed::Commit(tid)
                } else {
                    flush
                }
            }
            DurableLog::Plain(plain) if tid > plain.durable() => {
                let state = self.nodes.get_mut(&node.0);
                let maps = state.map(|state| take(&mut state.unsynced)).unwrap_or_default();
                let blocks = [inode].into_iter().chain(maps);
                SyncNeed::Commit(plain.request(blocks.map(|block| BlockRun::new(block, 1))))
            }
            DurableLog::Plain(_) => flush,
        }
    }

    pub(super) fn sync_everything(&mut self) -> SyncNeed {
        let flush = self.flush();
        match &mut self.log {
            DurableLog::Journal(journal) => {
                let last = journal.running();
                match last {
                    Some(tid) if journal.request(tid) => SyncNeed::Commit(tid),
                    _ => flush,
                }
            }
            DurableLog::Plain(plain) => SyncNeed::Commit(plain.request([])),
        }
    }

    const fn flush(&self) -> SyncNeed {
        if self.mode.has_barriers { SyncNeed::Flush(DeviceId::MAIN) } else { SyncNeed::Nothing }
    }

    pub(super) const fn last_durable(&self) -> Tid {
        match &self.log {
            DurableLog::Journal(journal) => journal.durable(),
            DurableLog::Plain(plain) => plain.durable(),
        }
    }

    pub(super) fn timer(&self) -> Ns {
        match &self.log {
            DurableLog::Journal(journal) => journal.timer(),
            DurableLog::Plain(_) => Ns::MAX,
        }
    }

    pub(super) fn next_job(&mut self, cx: &mut Context) -> Option<FsJob> {
        match &mut self.log {
            DurableLog::Journal(journal) => journal.poll(cx.now),
            DurableLog::Plain(plain) => plain.poll(self.mode.has_barriers),
        }
    }

    pub(super) fn end_job(&mut self, cx: &mut Context, job: JobId) {
        match &mut self.log {
            DurableLog::Journal(journal) => {
                if let Some(committed) = journal.done(job) {
                    committed.dirtied.into_iter().for_each(|run| cx.dirties(run));
                }
            }
            DurableLog::Plain(plain) => plain.done(job),
        }
        let durable = self.last_durable();
        self.settle(durable);
    }

    pub(super) fn end_failed_job(&mut self, job: JobId) -> Option<Tid> {
        match &mut self.log {
            DurableLog::Journal(journal) => {
                journal.abort();
                None
            }
            DurableLog::Plain(plain) => plain.failed(job),
        }
    }

    pub(super) fn metadata_lost(&mut self, run: BlockRun) {
        match &mut self.log {
            DurableLog::Journal(journal) => journal.mark(run),
            DurableLog::Plain(plain) => plain.lost(run),
        }
    }

    /// End of a journal. Without one a failure is told, and the file system goes on.
    pub(super) const fn ended(&self) -> Option<Stoppage> {
        match &self.log {
            DurableLog::Journal(journal) if journal.is_aborted() => Some(Stoppage::READ_ONLY),
            DurableLog::Journal(_) | DurableLog::Plain(_) => None,
        }
    }

    pub(super) fn crash_and_mount(&mut self) -> Tid {
        let durable = match &mut self.log {
            DurableLog::Journal(journal) => journal.crash(),
            DurableLog::Plain(plain) => plain.crash(),
        };
        self.go_back(durable);
        durable
    }

    pub(super) fn counted(&self) -> Vec<(String, f64)> {
        let mut counts = Vec::new();
        if let DurableLog::Journal(journal) = &self.log {
            let journal_counts = journal.counts();
            let bytes = journal_counts.log_blocks * self.block_bytes();
            counts.push(("journal_commits".to_owned(), journal_counts.transactions as f64));
            counts.push(("journal_bytes".to_owned(), bytes as f64));
            let forced = journal_counts.forced_checkpoints;
            counts.push(("journal_forced_checkpoints".to_owned(), forced as f64));
        }
        let extents: usize = self.nodes.values().map(|node| node.blocks.len()).sum();
        counts.push(("extents".to_owned(), extents as f64));
        counts.push(("window_blocks".to_owned(), self.allocator.window_blocks() as f64));
        counts
    }
}
