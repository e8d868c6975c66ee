//! Ways to durability: writes in order, or a log of changes.

use iolab_model::{Ns, Sector};

use super::geometry::Geometry;
use super::options::UfsRules;
use crate::api::block::{BlockRun, DeviceId};
use crate::api::context::Tid;
use crate::api::file_system::{FsJob, JobId, RunsAs, Step, WriteFlags};
use crate::fs::journal::PlainLog;

/// Share of the log that may be in use before its oldest changes are written in place. [assume]
const ROLL_SHARE: u64 = 2;

/// The way that a mount has chosen.
#[derive(Clone, Debug)]
pub enum Durability {
    /// Without a log: changes of names are written at once, one after the other.
    Ordered(PlainLog),
    /// With a log (`-o logging`).
    Logged(DeltaLog),
}

/// A log of changes, in sectors. Data are not logged.
#[derive(Clone, Debug)]
pub struct DeltaLog {
    /// First sector and sectors.
    area: (u64, u64),
    /// Sector of the log that is next, and sectors in use.
    head: u64,
    used: u64,
    running: Tid,
    /// Bytes of changes of the running transaction, and when it began.
    bytes: u64,
    since: Option<Ns>,
    homes: Vec<BlockRun>,
    /// Blocks whose changes are in the log and perhaps not yet in place.
    logged: Vec<BlockRun>,
    requested: Tid,
    durable: Tid,
    going: Option<(JobId, Tid, Vec<BlockRun>)>,
    next_job: u64,
    commits: u64,
    written: u64,
}

impl DeltaLog {
    fn new((first, fragments): (u64, u64)) -> Self {
        let per_fragment = Geometry::FRAGMENT / 512;
        Self {
            area: (first * per_fragment, fragments * per_fragment),
            head: 0,
            used: 0,
            running: Tid(1),
            bytes: 0,
            since: None,
            homes: Vec::new(),
            logged: Vec::new(),
            requested: Tid(0),
            durable: Tid(0),
            going: None,
            next_job: 0,
            commits: 0,
            written: 0,
        }
    }

    fn begin(&mut self, now: Ns) -> Tid {
        self.since.get_or_insert(now);
        self.running
    }

    fn change(&mut self, block: BlockRun, bytes: u64) {
        self.bytes += bytes;
        if self.homes.last() != Some(&block) {
            self.homes.push(block);
        }
    }

    fn expiry(&self) -> Ns {
        match self.since {
            Some(since) if self.going.is_none() => since + UfsRules::COMMIT,
            _ => Ns::MAX,
        }
    }

    fn poll(&mut self, now: Ns) -> Option<FsJob> {
        self.since?;
        let is_due = self.requested >= self.running || now >= self.expiry();
        if self.going.is_some() || !is_due {
            return None;
        }
        // One sector of its own for the end of the transaction.
        let sectors = (self.bytes.div_ceil(512) + 1).min(self.area.1 / ROLL_SHARE);
        let mut steps = Vec::new();
        if self.used + sectors > self.area.1 / ROLL_SHARE {
            self.logged.sort_unstable();
            self.logged.dedup();
            steps.extend(self.logged.drain(..).map(Step::Dirtied));
            steps.push(Step::Wait);
            self.used = 0;
        }
        let mut left = sectors;
        while left > 0 {
            let now = left.min(self.area.1 - self.head);
            let first = Sector(self.area.0 + self.head);
            steps.push(Step::WriteSectors(
                DeviceId::MAIN,
                first,
                now as u32,
                WriteFlags::default(),
            ));
            self.head = (self.head + now) % self.area.1;
            left -= now;
        }
        steps.push(Step::Wait);
        self.used += sectors;
        self.written += sectors * 512;
        self.commits += 1;
        self.next_job += 1;
        let id = JobId(self.next_job);
        self.going = Some((id, self.running, core::mem::take(&mut self.homes)));
        self.running = Tid(self.running.0 + 1);
        (self.bytes, self.since) = (0, None);
        Some(FsJob { id, runs_as: RunsAs::Thread(0), is_sync: true, steps })
    }

    /// The end of a job: blocks that are dirty in memory now.
    fn done(&mut self, job: JobId) -> Vec<BlockRun> {
        let Some((_, tid, homes)) = self.going.take_if(|(id, ..)| *id == job) else {
            return Vec::new();
        };
        self.durable = tid;
        self.logged.extend(&homes);
        homes
    }

    fn crash(&mut self) -> Tid {
        let area = (self.area.0 / 2, self.area.1 / 2);
        let (durable, next_job) = (self.durable, self.next_job);
        // Mounting rolls the whole log.
        *self = Self { durable, next_job, running: Tid(self.running.0 + 1), ..Self::new(area) };
        durable
    }
}

impl Durability {
    /// The way of a fresh mount.
    pub fn new(geometry: &Geometry) -> Self {
        geometry.log.map_or_else(
            || Self::Ordered(PlainLog::ordered()),
            |area| Self::Logged(DeltaLog::new(area)),
        )
    }

    /// The transaction that changes belong to now.
    pub fn begin(&mut self, now: Ns) -> Tid {
        match self {
            Self::Ordered(ordered) => ordered.epoch(now),
            Self::Logged(log) => log.begin(now),
        }
    }

    /// Notes a changed block; tells whether it is dirty in memory at once.
    pub fn change(&mut self, block: BlockRun, bytes: u64) -> bool {
        match self {
            Self::Ordered(_) => true,
            Self::Logged(log) => {
                log.change(block, bytes);
                false
            }
        }
    }

    /// Asks for a transaction to become durable: without a log, for these blocks to be written. The
    /// transaction to wait for.
    pub fn request(&mut self, tid: Tid, blocks: Vec<BlockRun>) -> Tid {
        match self {
            Self::Ordered(ordered) => ordered.request(blocks),
            Self::Logged(log) => {
                log.requested = log.requested.max(tid);
                tid
            }
        }
    }

    /// The last transaction that would survive a crash.
    pub const fn durable(&self) -> Tid {
        match self {
            Self::Ordered(ordered) => ordered.durable(),
            Self::Logged(log) => log.durable,
        }
    }

    /// Time of the next commit.
    pub fn timer(&self) -> Ns {
        match self {
            Self::Ordered(_) => Ns::MAX,
            Self::Logged(log) => log.expiry(),
        }
    }

    /// The next job.
    pub fn poll(&mut self, now: Ns) -> Option<FsJob> {
        match self {
            Self::Ordered(ordered) => ordered.poll(false),
            Self::Logged(log) => log.poll(now),
        }
    }

    /// A job has ended; blocks that are dirty in memory now.
    pub fn done(&mut self, job: JobId) -> Vec<BlockRun> {
        match self {
            Self::Ordered(ordered) => {
                ordered.done(job);
                Vec::new()
            }
            Self::Logged(log) => log.done(job),
        }
    }

    /// A power cut.
    pub fn crash(&mut self) -> Tid {
        match self {
            Self::Ordered(ordered) => ordered.crash(),
            Self::Logged(log) => log.crash(),
        }
    }

    /// Commits and bytes of the log; none without one.
    pub const fn log_counts(&self) -> Option<(u64, u64)> {
        match self {
            Self::Ordered(_) => None,
            Self::Logged(log) => Some((log.commits, log.written)),
        }
    }
}
