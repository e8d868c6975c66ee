//! The intent log (ZIL): changes that somebody cannot wait for until their group is written.
//!
//! A commit takes every change of names and the writes of the files that were asked for. Small
//! writes are copied into the log, large ones go to their final place and are named there. Log
//! blocks come from the pool, or lie on a log device, one behind the other.
//!
//! Source: `zil.c` and `zfs_log.c` of `OpenZFS` (described, not copied).

use std::collections::BTreeSet;

use iolab_model::Sector;

use super::driver::Zfs;
use super::group::{Change, Entry, Group, InLog};
use super::options::BLOCK;
use crate::api::block::{BlockRun, DeviceId, FileRun, NodeId};
use crate::api::context::Tid;
use crate::api::file_system::{FsJob, JobId, Step, SyncNeed, WriteFlags};

/// Longest log block, and the sizes below it. (`zil_block_buckets`)
const LOG_BLOCK: u64 = 128 << 10;
const SIZES: [u64; 3] = [4 << 10, 12 << 10, 36 << 10];
/// Bytes of a record in the log: of a name, and in front of written data. [assume]
const NAME_BYTES: u64 = 128;
const WRITE_BYTES: u64 = 192;
/// Header and trailer of a log block. [assume]
const CHAIN_BYTES: u64 = 192;

/// A commit on its way.
#[derive(Clone, Copy, Debug)]
struct Going {
    job: JobId,
    tid: Tid,
}

/// State of the log.
#[derive(Clone, Debug, Default)]
pub struct IntentLog {
    /// Commits that were asked for: number, and the file, or all.
    requests: Vec<(Tid, Option<u32>)>,
    going: Option<Going>,
    durable: Tid,
    /// Next byte of a log device.
    head: u64,
    commits: u64,
    bytes: u64,
}

impl IntentLog {
    /// An empty log after a power cut.
    pub fn at(durable: Tid, old: &Self) -> Self {
        Self { durable, commits: old.commits, bytes: old.bytes, ..Self::default() }
    }

    /// The last commit that has ended.
    pub const fn durable(&self) -> Tid {
        self.durable
    }

    /// Commits, and bytes of log blocks.
    pub const fn counts(&self) -> (u64, u64) {
        (self.commits, self.bytes)
    }
}

/// Steps and sizes of a commit.
#[derive(Default)]
struct Commit {
    /// Data that go to their place.
    data: Vec<FileRun>,
    /// Data that are copied.
    copied: Vec<FileRun>,
    bytes: u64,
}

impl Zfs {
    /// Commit that a promise about a file needs, if there are changes to be committed.
    pub(super) fn need_of(&mut self, node: NodeId) -> SyncNeed {
        let is_open =
            |entry: &Entry| entry.change.is_logged() && !matches!(entry.log, InLog::Done(_));
        let has_changes = self.groups_mut().into_iter().any(|group| {
            group.note_logged();
            group.unlogged().iter().any(is_open)
        });
        if !has_changes {
            return SyncNeed::Nothing;
        }
        self.last = Tid(self.last.0 + 1);
        self.log.requests.push((self.last, Some(node.0)));
        SyncNeed::Commit(self.last)
    }

    /// The groups that are not durable, the oldest first.
    fn groups_mut(&mut self) -> Vec<&mut Group> {
        let syncing = self.syncing.as_mut().map(|syncing| &mut syncing.group);
        [syncing, self.closed.as_mut(), Some(&mut self.open)].into_iter().flatten().collect()
    }

    /// The next commit, if somebody waits for one and none is on its way.
    pub(super) fn log_job(&mut self) -> Option<FsJob> {
        if self.log.going.is_some() || self.log.requests.is_empty() {
            return None;
        }
        let requests = core::mem::take(&mut self.log.requests);
        let tid = requests.iter().map(|(tid, _)| *tid).max()?;
        let files: Option<BTreeSet<u32>> = requests.iter().map(|(_, file)| *file).collect();
        let job = self.job(Vec::new(), true);
        let commit = self.collect(job.id, files.as_ref());
        let steps = self.log_steps(commit);
        self.log.going = Some(Going { job: job.id, tid });
        self.log.commits += 1;
        Some(FsJob { steps, ..job })
    }

    /// Marks the changes of a commit.
    fn collect(&mut self, job: JobId, files: Option<&BTreeSet<u32>>) -> Commit {
        let (rules, per_record) = (self.rules.clone(), self.record_blocks());
        let mut commit = Commit::default();
        for group in self.groups_mut() {
            for entry in group.unlogged() {
                if entry.log != InLog::No || !entry.change.is_logged() {
                    continue;
                }
                let Change::Write(run, calls, _) = entry.change else {
                    commit.bytes += NAME_BYTES;
                    entry.log = InLog::Going(job, false);
                    continue;
                };
                if files.is_some_and(|files| !files.contains(&run.node.0)) {
                    continue;
                }
                let is_named = rules.names_data(calls.bytes);
                commit.bytes += WRITE_BYTES * calls.count;
                entry.log = InLog::Going(job, is_named);
                if is_named {
                    let first = run.first / per_record * per_record;
                    let count = run.end().next_multiple_of(per_record) - first;
                    commit.data.push(FileRun { first, count, ..run });
                } else {
                    commit.bytes += calls.bytes.next_multiple_of(8) * calls.count;
                    commit.copied.push(run);
                }
            }
        }
        commit
    }

    fn log_steps(&mut self, commit: Commit) -> Vec<Step> {
        if commit.bytes == 0 {
            return Vec::new();
        }
        let is_on_pool = self.rules.log_bytes.is_none();
        let names_data = !commit.data.is_empty();
        let mut steps: Vec<Step> = commit.data.into_iter().map(Step::Data).collect();
        let nowhere = BlockRun::new(self.geometry.first, 0);
        steps.extend(commit.copied.into_iter().map(|run| Step::Copy(run, nowhere)));
        for bytes in log_blocks(commit.bytes) {
            self.log.bytes += bytes;
            match self.rules.log_bytes {
                Some(size) => steps.push(self.on_log_device(bytes, size)),
                None => steps.extend(self.on_pool(bytes)),
            }
        }
        steps.push(Step::Wait);
        if self.rules.flushes {
            if is_on_pool || names_data {
                steps.push(Step::Flush(DeviceId::MAIN));
            }
            if !is_on_pool {
                steps.push(Step::Flush(DeviceId(1)));
            }
            steps.push(Step::Wait);
        }
        steps
    }

    fn on_log_device(&mut self, bytes: u64, size: u64) -> Step {
        if self.log.head + bytes > size {
            self.log.head = 0;
        }
        let first = Sector(self.log.head / 512);
        self.log.head += bytes;
        Step::WriteSectors(DeviceId(1), first, (bytes / 512) as u32, WriteFlags::default())
    }

    /// A log block of the pool, which is free again when the open group is durable.
    fn on_pool(&mut self, bytes: u64) -> Option<Step> {
        let count = bytes / BLOCK;
        let first = self.slabs.take(count)?;
        self.open.freed.push((first, count));
        Some(Step::Write(BlockRun::new(first, count), WriteFlags::default()))
    }

    /// A commit has ended; false: the job was none.
    pub(super) fn end_log_job(&mut self, job: JobId) -> bool {
        let Some(going) = self.log.going.take_if(|going| going.job == job) else { return false };
        self.log.durable = self.log.durable.max(going.tid);
        let mut named = Vec::new();
        for group in self.groups_mut() {
            for entry in group.unlogged() {
                let InLog::Going(of, is_named) = entry.log else { continue };
                if of != job {
                    continue;
                }
                entry.log = InLog::Done(Vec::new());
                if let (true, Change::Write(run, ..)) = (is_named, &entry.change) {
                    named.push((entry.tid, *run));
                }
            }
        }
        for (tid, run) in named {
            let places = self.places_within(run);
            let mut entries = self.groups_mut().into_iter().flat_map(Group::unlogged);
            if let Some(entry) = entries.find(|entry| entry.tid == tid && is_write(&entry.change)) {
                entry.log = InLog::Done(places);
            }
        }
        true
    }
}

const fn is_write(change: &Change) -> bool {
    matches!(change, Change::Write(..))
}

/// Sizes of the log blocks for so many bytes of records.
pub fn log_blocks(bytes: u64) -> Vec<u64> {
    let most = LOG_BLOCK - CHAIN_BYTES;
    let whole = vec![LOG_BLOCK; (bytes / most) as usize];
    let rest = bytes % most;
    let last = (rest > 0).then(|| {
        let fits = SIZES.into_iter().find(|&size| rest + CHAIN_BYTES <= size);
        fits.unwrap_or(LOG_BLOCK)
    });
    whole.into_iter().chain(last).collect()
}
