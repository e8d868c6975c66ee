//! Ways to durability of Solaris' file systems: writes of metadata without a log, or a log of
//! changes in sectors, in front of the data or on a device of its own.

use iolab_model::{Ns, Sector};

use super::plain::PlainLog;
use crate::api::block::{BlockRun, DeviceId, FileRun};
use crate::api::context::Tid;
use crate::api::file_system::{FsJob, JobId, RunsAs, Step, Stoppage, WriteFlags};

/// Share of the log that may be in use before its oldest changes are written in place. [assume]
const ROLL_SHARE: u64 = 2;

/// The way that a mount has chosen.
#[derive(Clone, Debug)]
pub enum Persistence {
    /// Without a log.
    Plain(PlainLog),
    /// With a log.
    Logged(DeltaLog),
}

/// Place of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogArea {
    /// Device that holds it.
    pub device: DeviceId,
    /// First sector.
    pub first: u64,
    /// Length, in sectors.
    pub sectors: u64,
}

/// A transaction on its way to the log.
#[derive(Clone, Debug)]
struct Going {
    job: JobId,
    tid: Tid,
    homes: Vec<BlockRun>,
}

/// A log of changes, in sectors. Data are not logged.
#[derive(Clone, Debug)]
pub struct DeltaLog {
    area: LogArea,
    /// Time from the first change of a transaction to its commit.
    period: Ns,
    /// Sector of the log that is next, and sectors in use.
    head: u64,
    used: u64,
    running: Tid,
    /// Bytes of changes of the running transaction, and when it began.
    bytes: u64,
    since: Option<Ns>,
    homes: Vec<BlockRun>,
    /// Writes that go before the record of the running transaction: of data, and of zeros.
    data: Vec<FileRun>,
    cleared: Vec<BlockRun>,
    /// Blocks whose changes are in the log and perhaps not yet in place.
    logged: Vec<BlockRun>,
    requested: Tid,
    durable: Tid,
    going: Option<Going>,
    next_job: u64,
    /// A failure has ended it.
    has_failed: bool,
    commits: u64,
    written: u64,
}

impl DeltaLog {
    /// An empty log, whose transactions are committed after `period` at the latest.
    pub const fn new(area: LogArea, period: Ns) -> Self {
        Self {
            area,
            period,
            head: 0,
            used: 0,
            running: Tid(1),
            bytes: 0,
            since: None,
            homes: Vec::new(),
            data: Vec::new(),
            cleared: Vec::new(),
            logged: Vec::new(),
            requested: Tid(0),
            durable: Tid(0),
            going: None,
            next_job: 0,
            has_failed: false,
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

    /// Lets data reach the device before the record of the running transaction.
    pub fn flush_first(&mut self, run: FileRun) {
        match self.data.last_mut() {
            Some(last) if last.node == run.node && last.end() == run.first => {
                last.count += run.count;
            }
            _ => self.data.push(run),
        }
    }

    /// Lets blocks be filled with zeros before the record of the running transaction, and before
    /// its data.
    pub fn clear_first(&mut self, run: BlockRun) {
        self.cleared.push(run);
    }

    fn expiry(&self) -> Ns {
        match self.since {
            Some(since) if self.going.is_none() => since + self.period,
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
        let most = (self.area.sectors / ROLL_SHARE).max(1);
        let sectors = (self.bytes.div_ceil(512) + 1).min(most);
        let flags = WriteFlags::default();
        let mut steps: Vec<Step> =
            self.cleared.drain(..).map(|run| Step::Write(run, flags)).collect();
        if !steps.is_empty() {
            steps.push(Step::Wait);
        }
        if !self.data.is_empty() {
            steps.extend(self.data.drain(..).map(Step::Data));
            steps.push(Step::Wait);
        }
        if self.used + sectors > most {
            self.logged.sort_unstable();
            self.logged.dedup();
            steps.extend(self.logged.drain(..).map(Step::Dirtied));
            steps.push(Step::Wait);
            self.used = 0;
        }
        let mut left = sectors;
        while left > 0 {
            let now = left.min(self.area.sectors - self.head);
            let first = Sector(self.area.first + self.head);
            steps.push(Step::WriteSectors(self.area.device, first, now as u32, flags));
            self.head = (self.head + now) % self.area.sectors;
            left -= now;
        }
        steps.push(Step::Wait);
        self.used += sectors;
        self.written += sectors * 512;
        self.commits += 1;
        self.next_job += 1;
        let id = JobId(self.next_job);
        let homes = core::mem::take(&mut self.homes);
        self.going = Some(Going { job: id, tid: self.running, homes });
        self.running = Tid(self.running.0 + 1);
        (self.bytes, self.since) = (0, None);
        Some(FsJob { id, runs_as: RunsAs::Thread(0), is_sync: true, steps })
    }

    /// The end of a job: blocks that are dirty in memory now.
    fn done(&mut self, job: JobId) -> Vec<BlockRun> {
        let Some(Going { tid, homes, .. }) = self.going.take_if(|going| going.job == job) else {
            return Vec::new();
        };
        self.durable = tid;
        self.logged.extend(&homes);
        homes
    }

    fn crash(&mut self) -> Tid {
        let (durable, next_job) = (self.durable, self.next_job);
        // Mounting rolls the whole log.
        let running = Tid(self.running.0 + 1);
        *self = Self { running, durable, next_job, ..Self::new(self.area, self.period) };
        durable
    }
}

impl Persistence {
    /// The transaction that changes belong to now.
    pub fn begin(&mut self, now: Ns) -> Tid {
        match self {
            Self::Plain(plain) => plain.epoch(now),
            Self::Logged(log) => log.begin(now),
        }
    }

    /// Notes a changed block; tells whether it is dirty in memory at once.
    pub fn change(&mut self, block: BlockRun, bytes: u64) -> bool {
        match self {
            Self::Plain(_) => true,
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
            Self::Plain(plain) => plain.request(blocks),
            Self::Logged(log) => {
                log.requested = log.requested.max(tid);
                tid
            }
        }
    }

    /// The last transaction that would survive a crash.
    pub const fn durable(&self) -> Tid {
        match self {
            Self::Plain(plain) => plain.durable(),
            Self::Logged(log) => log.durable,
        }
    }

    /// Time of the next commit.
    pub fn timer(&self) -> Ns {
        match self {
            Self::Plain(_) => Ns::MAX,
            Self::Logged(log) => log.expiry(),
        }
    }

    /// The next job.
    pub fn poll(&mut self, now: Ns) -> Option<FsJob> {
        match self {
            Self::Plain(plain) => plain.poll(false),
            Self::Logged(log) => log.poll(now),
        }
    }

    /// A job has ended; blocks that are dirty in memory now.
    pub fn done(&mut self, job: JobId) -> Vec<BlockRun> {
        match self {
            Self::Plain(plain) => {
                plain.done(job);
                Vec::new()
            }
            Self::Logged(log) => log.done(job),
        }
    }

    /// A job has failed: a log ends, without one those who wait for the job are told.
    pub fn failed(&mut self, job: JobId) -> Option<Tid> {
        match self {
            Self::Plain(plain) => plain.failed(job),
            Self::Logged(log) => {
                log.has_failed = true;
                None
            }
        }
    }

    /// Blocks could not be written in place: the log cannot give them back for ever, so it ends.
    pub fn lost(&mut self, block: BlockRun) {
        match self {
            Self::Plain(plain) => plain.lost(block),
            Self::Logged(log) => log.has_failed = true,
        }
    }

    /// End of the file system with its log.
    pub const fn stop(&self) -> Option<Stoppage> {
        match self {
            Self::Logged(log) if log.has_failed => Some(Stoppage::SHUT_DOWN),
            Self::Logged(_) | Self::Plain(_) => None,
        }
    }

    /// A power cut.
    pub fn crash(&mut self) -> Tid {
        match self {
            Self::Plain(plain) => plain.crash(),
            Self::Logged(log) => log.crash(),
        }
    }

    /// Commits and bytes of the log; none without one.
    pub const fn log_counts(&self) -> Option<(u64, u64)> {
        match self {
            Self::Plain(_) => None,
            Self::Logged(log) => Some((log.commits, log.written)),
        }
    }
}
