//! jbd and jbd2: whole blocks of metadata in transactions, written to a log, later in place.
//!
//! One transaction runs, at most one commits. A commit writes ordered data first, then descriptors
//! and copies of the changed blocks, then a commit block. The blocks become dirty in the device's
//! cache then, and their part of the log is free once they were written in place.
//!
//! Left out: revoke records, fast commits, checksummed tails beyond their room.
//! Source: Linux fs/jbd2/{transaction,commit,checkpoint,journal}.c, 6.12.117.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use iolab_model::Ns;

use super::log::CircularLog;
use crate::api::block::{BlockRun, DeviceId, FileRun};
use crate::api::context::Tid;
use crate::api::file_system::{FsJob, JobId, RunsAs, Step, WriteFlags};

/// Rules of a journal.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
pub struct JournalRules {
    /// Size of a block.
    pub block_bytes: u32,
    /// Bytes of a tag in a descriptor: 16 with checksums, 12 with 64 bits, 8 without.
    pub tag_bytes: u32,
    /// Blocks end in a checksum.
    pub has_checksums: bool,
    /// Share of the log that a transaction may fill: a quarter, a third from 6.10 on.
    pub share: u64,
    /// Time between commits.
    pub interval: Ns,
    /// Commits flush the device's cache.
    pub has_barriers: bool,
    /// The commit block does not wait for the others.
    pub is_async: bool,
}

impl JournalRules {
    /// Tags of a descriptor block: after the header, with one identifier and perhaps a checksum.
    pub const fn tags(&self) -> u64 {
        let tail = if self.has_checksums { 4 } else { 0 };
        ((self.block_bytes - 12 - 16 - tail) / self.tag_bytes) as u64
    }
}

#[derive(Clone, Debug)]
struct Transaction {
    tid: Tid,
    started: Ns,
    /// Metadata blocks.
    blocks: BTreeSet<u64>,
    /// Some of them, by the last bits of their numbers: what was changed a moment ago.
    recent: [Option<u64>; 8],
    /// Ordered data that are written before the commit, by file and first block.
    ordered: BTreeMap<(u32, u64), u64>,
    /// Data that are in the journal themselves.
    journalled: BTreeMap<(u32, u64), u64>,
}

impl Transaction {
    fn change(&mut self, block: u64) {
        let recent = &mut self.recent[(block % 8) as usize];
        if *recent != Some(block) {
            *recent = Some(block);
            self.blocks.insert(block);
        }
    }

    fn forget(&mut self, block: u64) {
        self.recent[(block % 8) as usize].take_if(|recent| *recent == block);
        self.blocks.remove(&block);
    }

    fn journalled_blocks(&self) -> u64 {
        self.journalled.values().sum()
    }
}

/// A committed transaction whose blocks are not all in place yet.
#[derive(Clone, Debug)]
struct Checkpoint {
    log_blocks: u64,
    blocks: BTreeSet<u64>,
    data: Vec<FileRun>,
}

/// Counts for the record, named as in /proc/fs/jbd2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalCounts {
    /// Transactions committed.
    pub transactions: u64,
    /// Blocks written to the log, commit blocks included.
    pub log_blocks: u64,
    /// Checkpoints that were forced for lack of space.
    pub forced_checkpoints: u64,
}

/// Work that the journal has given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Commit(JobId),
    Checkpoint(JobId),
}

/// State of a journal after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    /// None so far.
    Right,
    /// A block could not be written in place: the next job ends the journal.
    Marked,
    /// Nothing becomes durable any more.
    Aborted,
}

/// A journal of blocks.
#[derive(Clone, Debug)]
pub struct BlockJournal {
    rules: JournalRules,
    log: CircularLog,
    running: Option<Transaction>,
    committing: Option<(Transaction, u64)>,
    checkpoints: VecDeque<Checkpoint>,
    /// Number of the checkpoint that holds a block: the newest that changed it.
    held: BTreeMap<u64, u64>,
    /// Number of the oldest checkpoint.
    oldest: u64,
    /// Runs of data that checkpoints hold, all together.
    held_data: usize,
    requested: Tid,
    durable: Tid,
    next_job: u64,
    pending: [Option<Pending>; 2],
    is_superblock_old: bool,
    /// The running transaction is due, and the log has no room for it.
    lacks_room: bool,
    health: Health,
    counts: JournalCounts,
}

/// Remainder of a finished commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The transaction.
    pub tid: Tid,
    /// Metadata that are dirty in the device's cache now.
    pub dirtied: Vec<BlockRun>,
    /// Journalled data that may go to their places now.
    pub data: Vec<FileRun>,
}

impl BlockJournal {
    /// An empty journal in these runs of the device.
    pub fn new(rules: JournalRules, runs: Vec<(u64, u64)>) -> Self {
        Self {
            rules,
            log: CircularLog::new(runs),
            running: None,
            committing: None,
            checkpoints: VecDeque::new(),
            held: BTreeMap::new(),
            oldest: 0,
            held_data: 0,
            requested: Tid(0),
            durable: Tid(0),
            next_job: 1,
            pending: [None; 2],
            is_superblock_old: true,
            lacks_room: false,
            health: Health::Right,
            counts: JournalCounts::default(),
        }
    }

    /// Rules.
    pub const fn rules(&self) -> &JournalRules {
        &self.rules
    }

    /// Counts so far.
    pub const fn counts(&self) -> JournalCounts {
        self.counts
    }

    /// Last durable transaction.
    pub const fn durable(&self) -> Tid {
        self.durable
    }

    /// Blocks that one transaction may hold.
    pub const fn transaction_blocks_max(&self) -> u64 {
        (self.log.blocks() + 1) / self.rules.share
    }

    /// The running transaction, started now if there is none.
    pub fn begin(&mut self, now: Ns) -> Tid {
        if let Some(running) = &self.running {
            return running.tid;
        }
        let before =
            self.committing.as_ref().map_or(self.durable, |(committing, _)| committing.tid);
        let tid = Tid(before.0 + 1);
        self.running = Some(Transaction {
            tid,
            started: now,
            blocks: BTreeSet::new(),
            recent: [None; 8],
            ordered: BTreeMap::new(),
            journalled: BTreeMap::new(),
        });
        tid
    }

    /// Number of the running transaction, if any.
    pub fn running(&self) -> Option<Tid> {
        self.running.as_ref().map(|running| running.tid)
    }

    /// Notes a changed block of metadata in the running transaction.
    pub fn change(&mut self, now: Ns, block: u64) -> Tid {
        let tid = self.begin(now);
        if let Some(running) = &mut self.running {
            running.change(block);
        }
        tid
    }

    /// Takes a block out of the running transaction: it was freed before anything was written.
    pub fn forget(&mut self, block: u64) {
        if let Some(running) = &mut self.running {
            running.forget(block);
        }
        if let Some(number) = self.held.remove(&block) {
            self.checkpoint(number).blocks.remove(&block);
        }
    }

    fn checkpoint(&mut self, number: u64) -> &mut Checkpoint {
        &mut self.checkpoints[(number - self.oldest) as usize]
    }

    /// Data that must be written before the running transaction commits.
    pub fn order(&mut self, now: Ns, run: FileRun) {
        self.begin(now);
        if let Some(running) = &mut self.running {
            add(&mut running.ordered, run);
        }
    }

    /// Data that are part of the running transaction.
    pub fn journal(&mut self, now: Ns, run: FileRun) {
        self.begin(now);
        if let Some(running) = &mut self.running {
            add(&mut running.journalled, run);
        }
    }

    /// Data of a file from a block on are gone.
    pub fn drop_data(&mut self, node: u32, from: u64) {
        if let Some(running) = &mut self.running {
            for runs in [&mut running.ordered, &mut running.journalled] {
                cut(runs, node, from);
            }
        }
        self.keep_data(|run| run.node.0 != node || run.first < from);
    }

    /// Forgets the data of checkpoints that a rule does not keep.
    fn keep_data(&mut self, keeps: impl Fn(&FileRun) -> bool) {
        if self.held_data == 0 {
            return;
        }
        for checkpoint in &mut self.checkpoints {
            checkpoint.data.retain(&keeps);
        }
        self.held_data = self.checkpoints.iter().map(|checkpoint| checkpoint.data.len()).sum();
    }

    /// Tell whether the journal holds a block that is not in place yet.
    pub fn holds(&self, block: u64) -> bool {
        let has = |transaction: &Transaction| transaction.blocks.contains(&block);
        self.running.as_ref().is_some_and(has)
            || self.committing.as_ref().is_some_and(|(committing, _)| has(committing))
            || self.held.contains_key(&block)
    }

    /// Asks for the commit of a transaction; `true` if it is not durable yet.
    pub fn request(&mut self, tid: Tid) -> bool {
        if tid > self.durable {
            self.requested = self.requested.max(tid);
        }
        tid > self.durable
    }

    /// Transaction to wait for before more is changed: the running one is full, or the log is.
    pub fn congestion(&mut self) -> Option<Tid> {
        let running = self.running.as_ref()?;
        let blocks = running.blocks.len() as u64 + running.journalled_blocks();
        let tid = running.tid;
        if blocks < self.transaction_blocks_max() {
            return None;
        }
        self.request(tid);
        Some(tid)
    }

    /// Time at which the running transaction is too old: its start and the interval, rounded up to
    /// a full second, since the kernel's timer is (`round_jiffies_up`). Never while it waits for
    /// the commit before it, or for room in the log: then the end of that is what happens next.
    pub fn timer(&self) -> Ns {
        if self.committing.is_some() || self.lacks_room { Ns::MAX } else { self.expiry() }
    }

    fn expiry(&self) -> Ns {
        let Some(running) = &self.running else { return Ns::MAX };
        let second = Ns::from_ms(1000).0;
        Ns((running.started.0 + self.rules.interval.0).next_multiple_of(second))
    }

    /// The next job, if one can start now.
    pub fn poll(&mut self, now: Ns) -> Option<FsJob> {
        if let Some(job) = self.forced_checkpoint() {
            return Some(job);
        }
        let running = self.running.as_ref().filter(|_| self.committing.is_none())?;
        let is_due = running.tid <= self.requested || now >= self.expiry();
        let needed = self.needed(running);
        self.lacks_room = is_due && needed > self.log.free();
        if self.lacks_room {
            return self.forced_checkpoint();
        }
        if !is_due {
            return None;
        }
        let is_sync = running.tid <= self.requested;
        let transaction = self.running.take()?;
        let steps = self.commit_steps(&transaction, needed);
        let id = self.job(Pending::Commit);
        self.committing = Some((transaction, needed));
        Some(FsJob { id, runs_as: RunsAs::Thread(0), is_sync, steps })
    }

    /// A job has ended; a commit tells what it leaves.
    pub fn done(&mut self, job: JobId) -> Option<Committed> {
        self.lacks_room = false;
        let slot = self.pending.iter().position(|pending| {
            matches!(pending, Some(Pending::Commit(id) | Pending::Checkpoint(id)) if *id == job)
        })?;
        if self.health != Health::Right {
            self.abort();
            return None;
        }
        match self.pending[slot].take()? {
            Pending::Checkpoint(_) => {
                if self.let_go() {
                    self.is_superblock_old = true;
                }
                None
            }
            Pending::Commit(_) => self.committed(),
        }
    }

    /// Ends the journal: nothing becomes durable any more.
    ///
    /// Source: Linux fs/jbd2/journal.c (`jbd2_journal_abort`).
    pub const fn abort(&mut self) {
        self.health = Health::Aborted;
    }

    /// Tell whether it has ended.
    pub const fn is_aborted(&self) -> bool {
        matches!(self.health, Health::Aborted)
    }

    /// A block could not be written in place. Its part of the log must not be overwritten, so the
    /// journal ends as soon as it would go on.
    ///
    /// Source: Linux fs/jbd2/checkpoint.c (`JBD2_CHECKPOINT_IO_ERROR`).
    pub fn mark(&mut self, run: BlockRun) {
        let is_held = self.held.range(run.range()).next().is_some();
        if is_held && self.health == Health::Right {
            self.health = Health::Marked;
        }
    }

    /// Blocks were written in place: the log may be shorter now.
    pub fn written(&mut self, run: BlockRun) {
        self.lacks_room = false;
        while let Some((&block, &number)) = self.held.range(run.range()).next() {
            self.held.remove(&block);
            self.checkpoint(number).blocks.remove(&block);
        }
        self.shorten();
    }

    /// Data of a file were written in place.
    pub fn data_written(&mut self, run: FileRun) {
        self.keep_data(|data| {
            data.node != run.node || data.first < run.first || data.end() > run.end()
        });
        self.shorten();
    }

    /// A power cut: what is durable stays, the log is replayed and empty.
    pub fn crash(&mut self) -> Tid {
        self.running = None;
        self.committing = None;
        self.checkpoints.clear();
        self.held.clear();
        self.held_data = 0;
        self.requested = Tid(0);
        self.pending = [None; 2];
        self.health = Health::Right;
        self.log.clear();
        self.is_superblock_old = true;
        self.durable
    }

    fn job(&mut self, kind: fn(JobId) -> Pending) -> JobId {
        let id = JobId(self.next_job);
        self.next_job += 1;
        let slot = usize::from(matches!(kind(id), Pending::Checkpoint(_)));
        self.pending[slot] = Some(kind(id));
        id
    }

    /// Blocks of the log for a transaction: its blocks, descriptors and the commit block.
    fn needed(&self, transaction: &Transaction) -> u64 {
        let blocks = transaction.blocks.len() as u64 + transaction.journalled_blocks();
        blocks + blocks.div_ceil(self.rules.tags()) + 1
    }

    fn commit_steps(&mut self, transaction: &Transaction, needed: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        if core::mem::take(&mut self.is_superblock_old) {
            steps.push(Step::Write(self.log.superblock(), WriteFlags::default()));
        }
        let mut files = BTreeSet::new();
        for (&(node, first), &count) in &transaction.ordered {
            steps.push(Step::Data(FileRun { node: node_id(node), first, count }));
            files.insert(node);
        }
        let plain = needed - 1;
        let mut places = self.log.take(plain);
        let commit = self.log.take(1)[0];
        copies(transaction, &mut places, &mut steps);
        steps.extend(places.into_iter().map(|run| Step::Write(run, WriteFlags::default())));
        let end = WriteFlags {
            is_preflush: self.rules.has_barriers && !self.rules.is_async,
            is_fua: self.rules.has_barriers && !self.rules.is_async,
        };
        if !self.rules.is_async {
            steps.extend(files.iter().map(|&node| Step::WaitData(node_id(node))));
            steps.push(Step::Wait);
        }
        steps.push(Step::Write(commit, end));
        steps.push(Step::Wait);
        if self.rules.is_async && self.rules.has_barriers {
            steps.push(Step::Flush(DeviceId::MAIN));
            steps.push(Step::Wait);
        }
        self.counts.log_blocks += needed;
        steps
    }

    fn committed(&mut self) -> Option<Committed> {
        let (transaction, log_blocks) = self.committing.take()?;
        self.durable = transaction.tid;
        self.counts.transactions += 1;
        // A block that is changed again already goes with the next transaction.
        let newer = self.running.as_ref();
        let is_older = |block: &u64| newer.is_none_or(|running| !running.blocks.contains(block));
        let dirtied = joined(transaction.blocks.iter().copied().filter(is_older));
        // An older checkpoint of the same block waits for the same write.
        let number = self.oldest + self.checkpoints.len() as u64;
        for &block in &transaction.blocks {
            if let Some(older) = self.held.insert(block, number) {
                self.checkpoint(older).blocks.remove(&block);
            }
        }
        let data: Vec<FileRun> = transaction
            .journalled
            .iter()
            .map(|(&(node, first), &count)| FileRun { node: node_id(node), first, count })
            .collect();
        self.held_data += data.len();
        self.checkpoints.push_back(Checkpoint {
            log_blocks,
            blocks: transaction.blocks,
            data: data.clone(),
        });
        self.shorten();
        Some(Committed { tid: transaction.tid, dirtied, data })
    }

    /// Frees the log of the oldest transactions that are in place.
    fn shorten(&mut self) {
        if matches!(self.pending[1], Some(Pending::Checkpoint(_))) {
            return;
        }
        while self
            .checkpoints
            .front()
            .is_some_and(|old| old.blocks.is_empty() && old.data.is_empty())
        {
            self.let_go();
        }
    }

    /// Frees the log of the oldest checkpoint; tells whether there is one.
    fn let_go(&mut self) -> bool {
        let Some(Checkpoint { log_blocks, blocks, data }) = self.checkpoints.pop_front() else {
            return false;
        };
        for block in blocks {
            self.held.remove(&block);
        }
        self.held_data -= data.len();
        self.oldest += 1;
        self.log.free_oldest(log_blocks);
        true
    }

    /// Writes the oldest transaction in place when less than a transaction fits into the log.
    fn forced_checkpoint(&mut self) -> Option<FsJob> {
        let is_short = self.lacks_room || self.log.free() < self.transaction_blocks_max();
        let oldest = self.checkpoints.front().filter(|_| is_short && self.pending[1].is_none())?;
        let mut steps: Vec<Step> = oldest.data.iter().map(|&run| Step::Data(run)).collect();
        steps.extend(joined(oldest.blocks.iter().copied()).into_iter().map(Step::Dirtied));
        steps.push(Step::Wait);
        if self.rules.has_barriers {
            steps.push(Step::Flush(DeviceId::MAIN));
            steps.push(Step::Wait);
        }
        self.counts.forced_checkpoints += 1;
        let id = self.job(Pending::Checkpoint);
        Some(FsJob { id, runs_as: RunsAs::Caller, is_sync: true, steps })
    }
}

/// Copies of journalled data, at the end of the places; the others remain for metadata.
fn copies(of: &Transaction, places: &mut Vec<BlockRun>, steps: &mut Vec<Step>) {
    for (&(node, first), &count) in of.journalled.iter().rev() {
        let mut left = count;
        while left > 0 {
            let Some(last) = places.last_mut() else { return };
            let part = left.min(last.count);
            last.count -= part;
            let to = BlockRun::new(last.end(), part);
            left -= part;
            let from = FileRun { node: node_id(node), first: first + left, count: part };
            steps.push(Step::Copy(from, to));
            if last.count == 0 {
                places.pop();
            }
        }
    }
}

const fn node_id(node: u32) -> crate::api::block::NodeId {
    crate::api::block::NodeId(node)
}

/// Adds a run to disjoint runs; neighbours join.
fn add(runs: &mut BTreeMap<(u32, u64), u64>, run: FileRun) {
    let node = run.node.0;
    let (mut first, mut end) = (run.first, run.end());
    let before = runs.range((node, 0)..=(node, end)).next_back();
    let mut at = before.map(|(&key, &count)| (key, count));
    while let Some((key, count)) = at {
        if key.1 + count < first {
            break;
        }
        runs.remove(&key);
        first = first.min(key.1);
        end = end.max(key.1 + count);
        at = runs.range((node, 0)..=(node, end)).next_back().map(|(&key, &count)| (key, count));
    }
    runs.insert((node, first), end - first);
}

/// Cuts the runs of a file at a block.
fn cut(runs: &mut BTreeMap<(u32, u64), u64>, node: u32, from: u64) {
    while let Some((&key, &count)) = runs.range((node, 0)..=(node, u64::MAX)).next_back() {
        if key.1 + count <= from {
            return;
        }
        runs.remove(&key);
        if key.1 < from {
            runs.insert(key, from - key.1);
        }
    }
}

/// Runs of neighbouring blocks.
pub fn joined(blocks: impl Iterator<Item = u64>) -> Vec<BlockRun> {
    let mut runs: Vec<BlockRun> = Vec::new();
    for block in blocks {
        match runs.last_mut() {
            Some(last) if last.end() == block => last.count += 1,
            _ => runs.push(BlockRun::new(block, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x4_14_a_transaction_ends_at_its_share_of_the_log() {
        for (share, expected) in [(4, 4096), (3, 5461)] {
            let rules = JournalRules {
                block_bytes: 4096,
                tag_bytes: 16,
                has_checksums: true,
                share,
                interval: Ns::from_seconds(5),
                has_barriers: true,
                is_async: false,
            };
            let mut journal = BlockJournal::new(rules, vec![(1000, 16_384)]);
            let mut blocks = 0;
            while journal.congestion().is_none() {
                journal.change(Ns(0), 100_000 + blocks);
                blocks += 1;
            }
            assert_eq!(blocks, expected, "1/{share} of the log");
            assert!(journal.poll(Ns(0)).is_some(), "it is committed at once");
        }
    }
}
