//! `XfsLog`: changes collected in memory, written as checkpoints (delayed logging).
//!
//! A checkpoint is a transaction number of the interface. An object that is changed many times
//! in one checkpoint is written once. Sources: Linux `fs/xfs/xfs_log_cil.c`, `xfs_log.c`,
//! `xfs_log_priv.h`, Documentation/filesystems/xfs/xfs-delayed-logging-design.rst.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use iolab_model::{Ns, Sector};

use crate::api::block::{BlockRun, DeviceId, NodeId};
use crate::api::context::Tid;
use crate::api::file_system::{FsJob, JobId, RunsAs, Step, WriteFlags};

use super::geometry::{BLOCK_BYTES, Geometry};

/// Log buffers.
const BUFFERS: u64 = 8;
const SECTOR_BYTES: u64 = 512;
const BLOCK_SECTORS: u64 = BLOCK_BYTES / SECTOR_BYTES;
/// Heads, formats and regions of a checkpoint that are there whatever it holds.
const CHECKPOINT_BYTES: u64 = 512 + 100;
/// An inode: its format (56), core (176), one extent (16) and three region heads (12 each).
const INODE_BYTES: u64 = 56 + 176 + 16 + 3 * 12;
/// A buffer: its format (24 to 40) and two region heads, beside the pieces that changed.
const BUFFER_BYTES: u64 = 40 + 2 * 12;
/// Pieces of a buffer that are logged whole (`XFS_BLF_CHUNK`).
const PIECE_BYTES: u64 = 128;
/// Interval of the log worker (`fs.xfs.xfssyncd_centisecs`, 3000).
pub const WORKER_INTERVAL: Ns = Ns(30_000_000_000);

/// Something that a checkpoint holds once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// An inode, with the block where it lies.
    Inode(NodeId, u64),
    /// A block of metadata.
    Block(u64),
}

/// Part of a block of metadata that a change touches. What was logged of a block is logged again
/// with each further change, until the block is written in place ("relogging").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A record that is changed where it is.
    Record,
    /// Bytes that follow those of the change before.
    More(u64),
    /// All bytes up to this one: of what is kept in order.
    UpTo(u64),
}

impl Item {
    const fn block(self) -> u64 {
        match self {
            Self::Inode(_, block) | Self::Block(block) => block,
        }
    }
}

/// State of the log after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    /// None that matters now.
    Right,
    /// Blocks could not be written in place: the log worker tries it again.
    BlocksFailed,
    /// The log could not be written.
    ShutDown,
}

/// A checkpoint that is being written.
#[derive(Clone, Debug)]
struct Written {
    tid: Tid,
    job: JobId,
    is_done: bool,
}

/// The log.
#[derive(Clone, Debug)]
pub struct XfsLog {
    geometry: Geometry,
    buffer_bytes: u64,
    /// Number of the checkpoint that collects changes.
    current: Tid,
    /// Changes that it holds, and the bytes of each.
    items: BTreeMap<Item, u64>,
    bytes: u64,
    /// Bytes of blocks that were logged since they were last written in place.
    logged: BTreeMap<u64, u64>,
    /// The checkpoint must be written.
    is_wanted: bool,
    /// A caller waits for it.
    has_waiter: bool,
    in_flight: VecDeque<Written>,
    durable: Tid,
    next_job: u64,
    /// Sector of the log that is written next.
    head: u64,
    /// Bytes that the log holds for blocks not yet written in place.
    held: u64,
    /// Blocks changed since they were last written in place.
    dirty: BTreeSet<u64>,
    /// Jobs that write blocks in place: bytes of the log that these hold, and the blocks.
    in_place: BTreeMap<JobId, (u64, Vec<BlockRun>)>,
    pushes_blocks: bool,
    health: Health,
    next_worker: Ns,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
}

impl XfsLog {
    /// An empty log with buffers of so many bytes (`logbsize`).
    pub fn new(geometry: Geometry, buffer_bytes: u64) -> Self {
        Self {
            geometry,
            buffer_bytes,
            current: Tid(1),
            items: BTreeMap::new(),
            bytes: 0,
            logged: BTreeMap::new(),
            is_wanted: false,
            has_waiter: false,
            in_flight: VecDeque::new(),
            durable: Tid(0),
            next_job: 1,
            head: 0,
            held: 0,
            dirty: BTreeSet::new(),
            in_place: BTreeMap::new(),
            pushes_blocks: false,
            health: Health::Right,
            next_worker: WORKER_INTERVAL,
            checkpoints: 0,
            log_bytes: 0,
        }
    }

    /// Checkpoint that collects changes.
    pub const fn current(&self) -> Tid {
        self.current
    }

    /// The last checkpoint that would survive a crash.
    pub const fn durable(&self) -> Tid {
        self.durable
    }

    /// Bytes that start the writing of a checkpoint: an eighth of the log, at most 32 MiB.
    fn limit(&self) -> u64 {
        (self.geometry.log_bytes() / 8).min(32 << 20)
    }

    /// Notes a change of an inode, which lies in a block, in the collecting checkpoint.
    pub fn note_inode(&mut self, node: NodeId, block: u64) -> Tid {
        self.note(Item::Inode(node, block), INODE_BYTES)
    }

    /// Notes a change of a block in the collecting checkpoint.
    pub fn note_block(&mut self, block: u64, part: Part) -> Tid {
        let logged = self.logged.entry(block).or_insert(0);
        *logged = match part {
            Part::Record => (*logged).max(PIECE_BYTES),
            Part::More(bytes) => (*logged).max(PIECE_BYTES) + bytes,
            Part::UpTo(bytes) => (*logged).max(bytes),
        }
        .min(BLOCK_BYTES);
        let bytes = BUFFER_BYTES + logged.next_multiple_of(PIECE_BYTES);
        self.note(Item::Block(block), bytes)
    }

    fn note(&mut self, item: Item, bytes: u64) -> Tid {
        let held = self.items.entry(item).or_insert(0);
        self.bytes += bytes.saturating_sub(*held);
        *held = bytes.max(*held);
        self.is_wanted |= self.bytes >= self.limit();
        self.current
    }

    /// Tell whether writers have to wait: twice the limit is collected.
    pub fn is_full(&self) -> bool {
        self.bytes >= 2 * self.limit()
    }

    /// Everything up to a checkpoint shall become durable.
    pub fn force(&mut self, tid: Tid) {
        self.has_waiter = true;
        if tid >= self.current && !self.items.is_empty() {
            self.is_wanted = true;
        }
    }

    /// The last checkpoint with changes.
    pub fn last_changed(&self) -> Tid {
        if self.items.is_empty() { Tid(self.current.0 - 1) } else { self.current }
    }

    /// Time of the log worker.
    pub fn next_timer(&self) -> Ns {
        let has_work = !self.items.is_empty() || !self.dirty.is_empty();
        if has_work { self.next_worker } else { Ns::MAX }
    }

    /// The log worker: every 30 s everything collected is written, and then the blocks in place.
    pub fn tick(&mut self, now: Ns) {
        if now < self.next_worker {
            return;
        }
        self.next_worker = Ns((now.0 / WORKER_INTERVAL.0 + 1) * WORKER_INTERVAL.0);
        self.is_wanted |= !self.items.is_empty();
        self.pushes_blocks = true;
        if self.health == Health::BlocksFailed {
            self.health = Health::Right;
        }
    }

    fn new_job(&mut self) -> JobId {
        self.next_job += 1;
        JobId(self.next_job - 1)
    }

    /// The next job; `true` with it if a checkpoint was closed for it.
    pub fn poll(&mut self) -> Option<(FsJob, bool)> {
        if self.is_wanted && (self.in_flight.len() as u64) < BUFFERS / 2 {
            return Some((self.write_checkpoint(), true));
        }
        // A quarter of the log stays free: blocks are written in place before.
        if self.held > self.geometry.log_bytes() / 4 * 3 {
            self.pushes_blocks = true;
        }
        let may_push = self.health == Health::Right && self.in_place.is_empty();
        if self.pushes_blocks && self.in_flight.is_empty() && may_push {
            self.pushes_blocks = false;
            return self.write_in_place().map(|job| (job, false));
        }
        None
    }

    fn write_checkpoint(&mut self) -> FsJob {
        let id = self.new_job();
        let bytes = self.bytes + CHECKPOINT_BYTES;
        let sectors = bytes.div_ceil(SECTOR_BYTES);
        let steps = self.records(sectors);
        self.dirty.extend(self.items.keys().map(|item| item.block()));
        self.items.clear();
        self.held += bytes;
        self.log_bytes += sectors * SECTOR_BYTES;
        self.bytes = 0;
        self.is_wanted = false;
        self.checkpoints += 1;
        self.in_flight.push_back(Written { tid: self.current, job: id, is_done: false });
        self.current.0 += 1;
        let is_sync = core::mem::take(&mut self.has_waiter);
        FsJob { id, runs_as: RunsAs::Thread(0), is_sync, steps }
    }

    /// Records of a checkpoint, one for each log buffer; the one that ends it waits for those
    /// before, flushes the device and is durable when done.
    fn records(&mut self, sectors: u64) -> Vec<Step> {
        let start = self.geometry.block(self.geometry.log_group, self.geometry.log_first);
        let (start, whole) =
            (start * BLOCK_SECTORS, u64::from(self.geometry.log_blocks) * BLOCK_SECTORS);
        let most = self.buffer_bytes / SECTOR_BYTES;
        let mut steps = Vec::new();
        let mut left = sectors;
        while left > 0 {
            let count = left.min(most).min(whole - self.head);
            let first = Sector(start + self.head);
            left -= count;
            self.head = (self.head + count) % whole;
            if left == 0 && !steps.is_empty() {
                steps.push(Step::Wait);
            }
            let flags = WriteFlags { is_preflush: left == 0, is_fua: left == 0 };
            steps.push(Step::WriteSectors(DeviceId::MAIN, first, count as u32, flags));
        }
        steps
    }

    fn write_in_place(&mut self) -> Option<FsJob> {
        let mut runs: Vec<BlockRun> = Vec::new();
        // A block that changed since is pinned by the collecting checkpoint, and stays.
        let pinned: BTreeSet<u64> = self.items.keys().map(|item| item.block()).collect();
        for block in core::mem::take(&mut self.dirty) {
            if pinned.contains(&block) {
                self.dirty.insert(block);
                continue;
            }
            self.logged.remove(&block);
            match runs.last_mut() {
                Some(run) if run.end() == block => run.count += 1,
                _ => runs.push(BlockRun::new(block, 1)),
            }
        }
        if runs.is_empty() {
            self.held = 0;
            return None;
        }
        let id = self.new_job();
        self.in_place.insert(id, (core::mem::take(&mut self.held), runs.clone()));
        let steps = runs.into_iter().map(|run| Step::Write(run, WriteFlags::default())).collect();
        Some(FsJob { id, runs_as: RunsAs::Thread(1), is_sync: false, steps })
    }

    /// A job has ended; checkpoints become durable in order.
    pub fn done(&mut self, job: JobId) -> Tid {
        if self.in_place.remove(&job).is_some() {
            return self.durable;
        }
        for written in &mut self.in_flight {
            written.is_done |= written.job == job;
        }
        while self.in_flight.front().is_some_and(|written| written.is_done) {
            if let Some(written) = self.in_flight.pop_front() {
                self.durable = written.tid;
            }
        }
        self.durable
    }

    /// A job has failed. Without its log the file system shuts down; blocks that could not be
    /// written in place are kept, and written again when the log worker runs next.
    ///
    /// Source: Linux `fs/xfs/xfs_log.c` (`xlog_ioend_work`), `fs/xfs/xfs_buf.c` (`max_retries`
    /// is endless by default).
    pub fn failed(&mut self, job: JobId) {
        let Some((held, runs)) = self.in_place.remove(&job) else {
            self.health = Health::ShutDown;
            return;
        };
        self.held += held;
        self.dirty.extend(runs.into_iter().flat_map(|run| run.range()));
        self.health = Health::BlocksFailed;
    }

    /// Tell whether the log could not be written.
    pub const fn is_shut_down(&self) -> bool {
        matches!(self.health, Health::ShutDown)
    }

    /// A power cut: what was collected and what is being written is lost.
    pub fn crash(&mut self) -> Tid {
        let geometry = self.geometry;
        let fresh = Self::new(geometry, self.buffer_bytes);
        let lost = core::mem::replace(self, fresh);
        self.durable = lost.durable;
        self.current = Tid(lost.current.0 + 1);
        self.head = lost.head;
        self.next_job = lost.next_job;
        self.next_worker = lost.next_worker;
        self.checkpoints = lost.checkpoints;
        self.log_bytes = lost.log_bytes;
        self.durable
    }
}
