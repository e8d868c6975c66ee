//! A workload as data: typed, versioned, the only form in which work crosses to the agent.
//!
//! A workload is a list of phases that run one after the other on the same files; a phase is a list
//! of tenants that run at once; a tenant is a number of equal workers. Unknown fields are refused.

use iolab_model::error::Error;
use iolab_model::op::{Access, Durability, TransferFlags};
use iolab_model::target::Content;
use iolab_model::{Bytes, Ns, Priority, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::draws::Draws;
use crate::file_set::{FileAction, FileSetWork};
use crate::program::{self, FileSet, KeySpace, Program};
use crate::verify::{self, Verify};

mod manner;

pub use manner::{Burst, Manner, ReplayOp};

/// The version of this description that this program understands.
pub const VERSION: u32 = 1;

/// Sectors are the smallest unit of direct I/O; file systems may ask for more and then say so.
const DIRECT_UNIT: Bytes = Bytes(512);

/// What stands for the file of a tenant that runs a program; no file has the name.
pub const PROGRAM_FILE: &str = "program";

/// Phases on shared files, with one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Always [`VERSION`].
    pub version: u32,
    /// For messages and records.
    pub name: String,
    /// Engine name; the target's side knows which exist.
    pub engine: String,
    /// Threads of one process, or processes.
    #[serde(default)]
    pub workers_as: WorkersAs,
    /// Root of all randomness.
    pub seed: Seed,
    /// What is written.
    #[serde(default)]
    pub content: Content,
    /// Whether reads are compared with what was written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub verify: Verify,
    /// CPUs that workers are pinned to in turn; empty = not pinned.
    #[serde(default)]
    pub pin_cpus: Vec<u32>,
    /// Width of a slice of the time series; doubled when a run is long.
    #[serde(default = "default_interval")]
    pub interval_ns: Ns,
    /// Measure the harness's own cost per op before each phase.
    #[serde(default)]
    pub is_calibrated: bool,
    /// Files that programs work on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_sets: Vec<FileSet>,
    /// Keys that programs work on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_spaces: Vec<KeySpace>,
    /// Run in this order.
    pub phases: Vec<Phase>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn default_interval() -> Ns {
    Ns::from_ms(100)
}

/// How workers share the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkersAs {
    /// Threads of one process.
    #[default]
    Threads,
    /// Forked processes.
    Processes,
}

/// Tenants that run at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Name of the operation it measures.
    pub name: String,
    /// The first worker to finish stops the others (`IOzone`'s throughput mode).
    #[serde(default)]
    pub is_stonewalled: bool,
    /// Files stay for the next phase.
    #[serde(default)]
    pub keeps_files: bool,
    /// Engine of this phase, where it is not the workload's (`IOzone`'s pwrite is pwrite(2)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// What was asked for and this operation cannot do (a stream has no direct I/O): said with its
    /// results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignores: Vec<String>,
    /// Records of the file that one operation moves at most (`IOzone`'s tests 11 and 12: groups).
    #[serde(default = "one_record", skip_serializing_if = "is_one_record")]
    pub records_per_op: u64,
    /// Instants, from its beginning on, that cut the phase into segments with histograms of their
    /// own: where somebody changes a setting meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts_ns: Vec<Ns>,
    /// So long nothing happens after it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pause_after_ns: Ns,
    /// Who runs.
    pub tenants: Vec<Tenant>,
}

/// Equal workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Tenant {
    /// For records and reports.
    pub name: String,
    /// How many.
    pub workers: u32,
    /// All workers use one file.
    #[serde(default)]
    pub is_file_shared: bool,
    /// Stem of the file name; worker i of an unshared file uses `<file>.N` with N =
    /// `file_first + i * file_step`.
    pub file: String,
    /// Number of the first worker's file.
    #[serde(default, skip_serializing_if = "is_default")]
    pub file_first: u32,
    /// From one worker's file to the next.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub file_step: u32,
    /// Names of the files one by one, where they follow no stem; empty: they do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Size of each file; its last, incomplete record is not used.
    pub file_bytes: Bytes,
    /// The part of the file that is worked on; absent: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
    /// Bytes per op.
    pub io_size_bytes: Bytes,
    /// Order of the records.
    pub pattern: Pattern,
    /// Reading, writing or both.
    pub direction: Direction,
    /// Ops in flight per worker.
    #[serde(default = "one")]
    pub depth: u32,
    /// Page cache or direct.
    #[serde(default)]
    pub access: Access,
    /// What a returning write promises.
    #[serde(default)]
    pub durability: Durability,
    /// When to flush.
    #[serde(default)]
    pub fsync: FsyncPolicy,
    /// Closing the file is inside the timed region (`IOzone`'s -c); not for a writer whose file a
    /// stonewall left incomplete.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_close_timed: bool,
    /// How the flushes between operations are made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flush: Flush,
    /// Parts of each transfer, for calls that take several buffers; 0 or 1 is a plain call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub vectors: u16,
    /// Flags of each transfer (preadv2(2), pwritev2(2)).
    #[serde(default, skip_serializing_if = "is_default")]
    pub flags: TransferFlags,
    /// What is locked while operating.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lock: LockPolicy,
    /// Blocks are allocated when a file is made, before anything is written.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_preallocated: bool,
    /// Buffer of a stdio stream; 0 leaves the library's own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stream_buffer_bytes: Bytes,
    /// What to do about the file before the timed region.
    pub opening: Opening,
    /// One untimed read of record 0 before the timed region (`IOzone`'s read tests).
    #[serde(default)]
    pub primes_first_record: bool,
    /// Ops per second of each worker, at fixed intended starts.
    #[serde(default)]
    pub rate_ops_per_s: Option<f64>,
    /// Pause between the end of an op and the next one.
    #[serde(default)]
    pub think_ns: Ns,
    /// Its timed region begins so long after that of the phase.
    #[serde(default, skip_serializing_if = "is_default")]
    pub begins_ns: Ns,
    /// I/O priority of its workers; absent: whatever they have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// What it was promised, relative to others (a cgroup's weight): for judging fairness only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// When to end.
    #[serde(default)]
    pub limit: Limit,
    /// It makes, reads or removes many small files instead of touching the records of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_set: Option<FileSetWork>,
    /// It runs a program on sets of files, in place of a stream on one; then only workers, depth,
    /// priority and share count of the rest ([`Tenant::of_program`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// Refinements that few tenants ask for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub manner: Manner,
    /// Its random numbers are those of another program, not of the workload's seed: the records of
    /// [`Pattern::Uniform`] and which of them are updated, or names and sizes of a set of files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draws: Option<Draws>,
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(value: &u32) -> bool {
    *value == 1
}

fn one_record() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one_record(value: &u64) -> bool {
    *value == 1
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Where that of the first worker begins.
    pub from_bytes: Bytes,
    /// Its length.
    pub bytes: Bytes,
    /// From the beginning of one worker's region to that of the next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub step_bytes: Bytes,
}

impl Region {
    /// Where the region of worker `index` begins.
    pub fn begins_at(&self, index: u32) -> Bytes {
        let step = self.step_bytes.0.saturating_mul(u64::from(index));
        Bytes(self.from_bytes.0.saturating_add(step))
    }
}

/// Order in which records are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Pattern {
    /// 0, 1, 2, ...
    Sequential,
    /// The last one first.
    Reverse,
    /// `IOzone`'s stride rule.
    Stride {
        /// Records skipped between two.
        #[serde(default = "default_stride")]
        stride: u64,
    },
    /// `IOzone`'s random order: each record once, the same in every run.
    Permutation,
    /// A random order: each record once before any comes again, then in the same order; it follows
    /// from the workload's seed, and workers differ.
    Shuffled,
    /// Independent uniform draws from the workload's seed.
    Uniform,
    /// Record 0 over and over.
    Same,
}

/// `IOzone`'s default stride (-j).
fn default_stride() -> u64 {
    17
}

/// Reading, writing or both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Direction {
    /// Only reads.
    Read,
    /// Only writes.
    Write,
    /// Each op reads with this probability.
    Mixed {
        /// In 0..=1.
        read_share: f64,
    },
    /// Each op reads its record and with this probability writes it back: one op, two calls.
    Update {
        /// In 0..=1: `bonnie++`'s rewrite has 1, its seeks 0.1.
        write_share: f64,
    },
}

/// When data are flushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FsyncPolicy {
    /// Never.
    #[default]
    None,
    /// Once, after the timed region.
    After,
    /// Once, inside the timed region.
    Timed,
    /// Inside the timed region, after every so many writes of a worker, but not after its last op.
    Between {
        /// Writes between two; 0: none between.
        ops: u64,
        /// Once more at its end, inside the time and not counted.
        is_ended: bool,
    },
    /// Inside the timed region, after every so many writes of a worker.
    Every {
        /// Writes between two.
        ops: u64,
    },
}

/// How data are flushed between operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Flush {
    /// fsync(2).
    #[default]
    Fsync,
    /// fdatasync(2).
    Fdatasync,
    /// `sync_file_range(2)` of what was written since the last one, waiting for it.
    SyncFileRange,
    /// msync(2) of what was written since the last one, waiting for it.
    Msync,
    /// msync(2) without waiting.
    MsyncAsync,
}

/// What is locked with fcntl(2) while a worker operates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LockPolicy {
    /// Nothing.
    #[default]
    None,
    /// The file: taken before the timed region, given back inside it (`IOzone`'s -W).
    WholeFile,
    /// Each record, around its transfer, inside the timed region (`IOzone`'s -+l).
    Record,
}

/// What to do about the file before the timed region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// Make a new, empty file; one that is there is removed first.
    Create,
    /// Make a new, empty file; one that is there is somebody's, and the phase fails.
    New,
    /// It must exist.
    Existing,
    /// Use it if it has the size; otherwise write it in full, untimed.
    LaidOut,
    /// Use it as it is, whatever its size; make an empty one if there is none.
    Keep,
}

/// When a worker ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Limit {
    /// After as many ops as the file has records.
    #[default]
    Once,
    /// After this many ops.
    Ops {
        /// Ops of each worker.
        ops: u64,
        /// Cut off after this long, if they are not done by then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within_ns: Option<Ns>,
    },
    /// After this long.
    Time {
        /// Length of the timed region.
        duration_ns: Ns,
    },
}

impl Tenant {
    /// A tenant that runs `program`; what is said of streams is neutral.
    pub fn of_program(name: &str, workers: u32, program: Program) -> Self {
        let io_size_bytes = program.buffer_bytes();
        Self {
            name: name.to_owned(),
            workers,
            is_file_shared: false,
            file: PROGRAM_FILE.to_owned(),
            file_first: 0,
            file_step: 1,
            files: Vec::new(),
            file_bytes: io_size_bytes,
            region: None,
            io_size_bytes,
            pattern: Pattern::Sequential,
            direction: Direction::Read,
            depth: 1,
            access: Access::Plain,
            durability: Durability::None,
            fsync: FsyncPolicy::None,
            is_close_timed: false,
            flush: Flush::Fsync,
            vectors: 0,
            flags: TransferFlags::NONE,
            lock: LockPolicy::None,
            is_preallocated: false,
            stream_buffer_bytes: Bytes(0),
            opening: Opening::Existing,
            primes_first_record: false,
            rate_ops_per_s: None,
            think_ns: Ns(0),
            begins_ns: Ns(0),
            priority: None,
            share: None,
            limit: Limit::Once,
            file_set: None,
            program: Some(program),
            manner: Manner::default(),
            draws: None,
        }
    }

    /// Whole records in a file.
    pub fn records(&self) -> u64 {
        self.region.map_or(self.file_bytes, |region| region.bytes).0 / self.io_size_bytes.0
    }

    /// Ops of each worker, if that is what ends it.
    pub fn asked_ops(&self) -> Option<u64> {
        match self.limit {
            Limit::Ops { ops, .. } => Some(ops),
            Limit::Once | Limit::Time { .. } => None,
        }
    }

    /// Nanoseconds between intended starts, under a rate limit.
    pub fn period_ns(&self) -> Option<f64> {
        self.rate_ops_per_s.map(|rate| 1e9 / rate)
    }

    /// Whether it does the same as `other`; who has which priority or share is another matter.
    pub fn is_like(&self, other: &Self) -> bool {
        let plain = |tenant: &Self| Self {
            name: String::new(),
            file: String::new(),
            files: Vec::new(),
            workers: 0,
            priority: None,
            share: None,
            ..tenant.clone()
        };
        plain(self) == plain(other)
    }

    /// Whether it ever reads.
    pub fn reads(&self) -> bool {
        if let Some(program) = &self.program {
            return program.moves(false);
        }
        match self.direction {
            Direction::Read | Direction::Update { .. } => true,
            Direction::Write => false,
            Direction::Mixed { read_share } => read_share > 0.0,
        }
    }

    /// Whether it ever writes.
    pub fn writes(&self) -> bool {
        if let Some(program) = &self.program {
            return program.moves(true);
        }
        match self.direction {
            Direction::Read => false,
            Direction::Write => true,
            Direction::Mixed { read_share } => read_share < 1.0,
            Direction::Update { write_share } => write_share > 0.0,
        }
    }

    /// Whether each op reads, and may write what it has read.
    fn reads_always(&self) -> bool {
        matches!(self.direction, Direction::Update { .. })
    }

    /// Whether its name is that of a directory of many files.
    pub fn is_folder(&self) -> bool {
        self.file_set.as_ref().is_some_and(|work| work.action != FileAction::Extend)
    }

    /// Name of the file of worker `index`.
    pub fn file_name(&self, index: u32) -> String {
        if let Some(name) = self.files.get(index as usize) {
            name.clone()
        } else if self.is_file_shared {
            self.file.clone()
        } else {
            format!("{}.{}", self.file, self.file_first + index * self.file_step)
        }
    }

    /// Names of all its files.
    pub fn file_names(&self) -> impl Iterator<Item = String> {
        let count = match &self.program {
            Some(_) => self.files.len() as u32,
            None if self.is_file_shared => 1,
            None => self.workers,
        };
        (0..count).map(|index| self.file_name(index))
    }

    /// Ops of a worker that ends after one pass.
    pub fn ops_of_a_pass(&self) -> u64 {
        if self.manner.replay.is_empty() { self.records() } else { self.manner.replay.len() as u64 }
    }

    /// Size of a file that holds every record.
    pub fn used_bytes(&self) -> Bytes {
        if !self.manner.replay.is_empty() || self.region.is_some() {
            return self.file_bytes;
        }
        Bytes(self.records() * self.io_size_bytes.0)
    }

    fn check(&self, phase: &str) -> Result<(), Error> {
        let wrong = |problem: String, remedy: &str| {
            Err(Error::BadWorkload {
                problem: format!("phase {phase}, tenant {}: {problem}", self.name),
                remedy: remedy.to_owned(),
            })
        };
        let (io, file) = (self.io_size_bytes, self.file_bytes);
        if io.0 == 0 || self.workers == 0 || self.depth == 0 {
            return wrong("zero record size, workers or depth".into(), "use at least 1");
        }
        if io > file {
            return wrong(
                format!("record size {io} is larger than the file ({file})"),
                "use a larger file or a smaller record",
            );
        }
        if self.access == Access::Direct && io.0 % DIRECT_UNIT.0 != 0 {
            return wrong(
                format!("direct I/O with records of {io} bytes"),
                "use a multiple of 512 bytes, or go through the page cache",
            );
        }
        if let Some((problem, remedy)) = self.region_problem() {
            return wrong(problem, remedy);
        }
        let mut names = self.files.iter().chain([&self.file]);
        if let Some(name) = names.find(|name| !manner::is_file_name(name)) {
            return wrong(format!("file name {name:?}"), "use a plain name, or a whole path");
        }
        if let Some((problem, remedy)) = self.manner.problem(self) {
            return wrong(problem, remedy);
        }
        let is_listed = !self.files.is_empty() && self.program.is_none();
        if is_listed && (self.files.len() != self.workers as usize || self.is_file_shared) {
            let problem = format!("{} file names, {} workers", self.files.len(), self.workers);
            return wrong(problem, "name one file per worker, or give a stem");
        }
        if let Direction::Mixed { read_share: share } | Direction::Update { write_share: share } =
            self.direction
            && !(0.0..=1.0).contains(&share)
        {
            let what = if self.reads_always() { "write" } else { "read" };
            return wrong(format!("{what} share {share}"), "use a number from 0 to 1");
        }
        if let Some((problem, remedy)) = self.file_set.as_ref().and_then(FileSetWork::problem) {
            return wrong(problem, remedy);
        }
        if let Some((problem, remedy)) = self.draws.as_ref().and_then(Draws::problem) {
            return wrong(problem, remedy);
        }
        if let Some(priority) = self.priority.filter(|priority| priority.level > 7) {
            return wrong(
                format!("I/O priority level {}", priority.level),
                "use 0 (first) to 7 (last)",
            );
        }
        if self.rate_ops_per_s.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            return wrong("rate is not a positive number".into(), "leave it out for no limit");
        }
        if self.share.is_some_and(|share| !share.is_finite() || share <= 0.0) {
            return wrong("share is not a positive number".into(), "leave it out for equals");
        }
        if matches!(self.fsync, FsyncPolicy::Every { ops: 0 }) {
            return wrong("fsync after every 0 writes".into(), "use at least 1, or no fsync");
        }
        self.check_calls().map_or(Ok(()), |(problem, remedy)| wrong(problem, remedy))
    }

    /// What is wrong with the part of the file that it works on.
    fn region_problem(&self) -> Option<(String, &'static str)> {
        let region = self.region?;
        let last = region.begins_at(self.workers.saturating_sub(1)).0.checked_add(region.bytes.0);
        if last.is_none_or(|last| last > self.file_bytes.0) {
            let problem = format!("a region that ends outside the file of {}", self.file_bytes);
            return Some((problem, "use a larger file or a smaller region"));
        }
        if region.bytes < self.io_size_bytes {
            let problem =
                format!("a region of {} for records of {}", region.bytes, self.io_size_bytes);
            return Some((problem, "use a larger region or a smaller record"));
        }
        if self.file_set.is_some() || !self.manner.replay.is_empty() || self.primes_first_record {
            return Some(("a region of what is no single stream".into(), "leave it out"));
        }
        let unit = DIRECT_UNIT.0;
        let is_odd = region.from_bytes.0 % unit != 0 || region.step_bytes.0 % unit != 0;
        if self.access == Access::Direct && is_odd {
            let problem = format!("direct I/O on a region from byte {}", region.from_bytes.0);
            return Some((problem, "use multiples of 512 bytes"));
        }
        None
    }

    /// What is wrong with how its calls are made, and what to do about it.
    fn check_calls(&self) -> Option<(String, &'static str)> {
        let (io, parts) = (self.io_size_bytes.0, u64::from(self.vectors.max(1)));
        let is_memory = matches!(self.access, Access::Mapped | Access::Stdio);
        let is_msync = matches!(self.flush, Flush::Msync | Flush::MsyncAsync);
        if io % parts != 0 || (self.access == Access::Direct && (io / parts) % DIRECT_UNIT.0 != 0) {
            let problem = format!("records of {io} bytes in {parts} parts");
            return Some((problem, "use a number of parts that divides the record"));
        }
        if parts > 1 && is_memory {
            let problem = format!("{parts} parts per call on a mapped file or a stream");
            return Some((problem, "leave out the parts, or use an engine with vectored calls"));
        }
        let is_chained = self.lock == LockPolicy::Record || self.reads_always();
        if self.depth > 1 && (is_memory || is_chained) {
            let problem =
                format!("depth {} with mapped files, streams, locks or updates", self.depth);
            return Some((problem, "use depth 1 and more workers"));
        }
        if self.reads_always() && self.lock == LockPolicy::Record {
            return Some(("a lock around each update".into(), "lock the whole file"));
        }
        if is_msync && matches!(self.access, Access::Direct | Access::Stdio) {
            return Some(("msync of a file that is not mapped".into(), "use the engine mmap"));
        }
        if self.is_close_timed && self.access == Access::Mapped {
            return Some(("the close of a mapped file in the time".into(), "leave it out"));
        }
        if self.flush == Flush::SyncFileRange && is_memory {
            let problem = "sync_file_range of a mapped file or a stream".to_owned();
            return Some((problem, "use msync, or fsync"));
        }
        None
    }
}

impl Workload {
    /// The sets of files that the programs of a phase use.
    pub fn sets_of<'a>(&'a self, phase: &'a Phase) -> impl Iterator<Item = &'a FileSet> {
        let programs = || phase.tenants.iter().filter_map(|tenant| tenant.program.as_ref());
        let is_used = move |set: &&FileSet| programs().any(|program| program.uses_set(&set.name));
        self.file_sets.iter().filter(is_used)
    }

    /// Name of the engine that a phase uses.
    pub fn engine_of<'a>(&'a self, phase: &'a Phase) -> &'a str {
        phase.engine.as_deref().unwrap_or(&self.engine)
    }

    /// Refuses a workload that contradicts itself; what only a target can know is not checked.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |problem: String, remedy: &str| {
            Err(Error::BadWorkload { problem, remedy: remedy.to_owned() })
        };
        if self.version != VERSION {
            return wrong(
                format!("version {} of the description", self.version),
                "use programs of one release on both sides",
            );
        }
        if self.phases.is_empty() || self.phases.iter().any(|phase| phase.tenants.is_empty()) {
            return wrong("no phase, or a phase without tenants".into(), "name at least one");
        }
        if self.content != Content::Incompressible && self.verify.is_on() {
            return wrong(
                format!("verify of content {:?}", self.content),
                "leave out the content: verification writes its own, which is incompressible",
            );
        }
        if let Content::Blend(blend) = &self.content
            && let Some(problem) = blend.problem()
        {
            return wrong(problem, "let shares add up to 100 % at most, of granules of sectors");
        }
        if let Content::Pattern(pattern) = &self.content
            && let Some(problem) = pattern.problem()
        {
            return wrong(problem, "use 1 to 32 bytes");
        }
        let mut tenants = self.phases.iter().flat_map(|phase| &phase.tenants);
        if self.verify.is_on() && tenants.any(|tenant| !tenant.manner.replay.is_empty()) {
            return wrong("verify of a replay".into(), "leave one of them out");
        }
        if self.interval_ns.0 == 0 {
            return wrong("interval of 0 ns".into(), "use for instance 100000000 (0.1 s)");
        }
        program::problem(self)?;
        for phase in &self.phases {
            for tenant in phase.tenants.iter().filter(|tenant| tenant.program.is_none()) {
                tenant.check(&phase.name)?;
                if tenant.file_set.is_some() && tenant.is_file_shared && tenant.workers > 1 {
                    let problem = format!(
                        "phase {}: one set of files of {} workers",
                        phase.name, tenant.workers
                    );
                    return wrong(problem, "give each its own directory: is_file_shared = false");
                }
                if self.verify.is_on() {
                    verify::check(self, phase, tenant)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
