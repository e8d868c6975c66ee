//! Equal workers: what each of them does, and what is wrong with that.

use iolab_model::error::Error;
use iolab_model::op::{Access, Durability, TransferFlags};
use iolab_model::{Bytes, Ns, Priority};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::manner::{self, Manner};
use super::{
    Direction, Flush, FsyncPolicy, Limit, LockPolicy, Opening, Pattern, Region, is_default,
    is_false,
};
use crate::draws::Draws;
use crate::file_set::{FileAction, FileSetWork};
use crate::kv::KvWork;
use crate::program::{Pace, Program};

/// Sectors are the smallest unit of direct I/O; file systems may ask for more and then say so.
pub(super) const DIRECT_UNIT: Bytes = Bytes(512);

/// Stand-in for the file of a tenant that runs a program; no file has the name.
pub const PROGRAM_FILE: &str = "program";

/// Equal workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Tenant {
    /// For records and reports.
    pub name: String,
    /// Number of workers.
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
    /// Promise of a write that returned.
    #[serde(default)]
    pub durability: Durability,
    /// Times at which to flush.
    #[serde(default)]
    pub fsync: FsyncPolicy,
    /// Closing the file is inside the timed region (`IOzone`'s -c); not for a writer whose file a
    /// stonewall left incomplete.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_close_timed: bool,
    /// Way in which the flushes between operations are made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flush: Flush,
    /// Parts of each transfer, for calls that take several buffers; 0 or 1 is a plain call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub vectors: u16,
    /// Flags of each transfer (preadv2(2), pwritev2(2)).
    #[serde(default, skip_serializing_if = "is_default")]
    pub flags: TransferFlags,
    /// Part of the file that is locked while operating.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lock: LockPolicy,
    /// Blocks are allocated when a file is made, before anything is written.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_preallocated: bool,
    /// Buffer of a stdio stream; 0 leaves the library's own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stream_buffer_bytes: Bytes,
    /// Preparation of the file before the timed region.
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
    /// Promised share, relative to others (a cgroup's weight): for judging fairness only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Condition of its end.
    #[serde(default)]
    pub limit: Limit,
    /// Work on many small files, made, read or removed, instead of the records of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_set: Option<FileSetWork>,
    /// Program on sets of files, in place of a stream on one; then only workers, depth, priority
    /// and share count of the rest ([`Tenant::of_program`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// Clients of a key-value store, in place of a stream: then only workers count of the rest, and
    /// the file, which is the store's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv: Option<KvWork>,
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
            kv: None,
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

    /// Tell whether it does the same as `other`; who has which priority or share is another matter.
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

    /// Tell whether all that it reads and writes goes past the page cache.
    pub fn is_direct(&self) -> bool {
        match &self.program {
            Some(program) => program.is_direct(),
            None => self.access == Access::Direct,
        }
    }

    /// Tell whether something else than the storage says when its workers' ops begin.
    pub fn is_paced(&self) -> bool {
        let is_paced = |program: &Program| program.pace != Pace::Closed || program.flow.is_some();
        self.rate_ops_per_s.is_some()
            || self.has_pauses()
            || self.program.as_ref().is_some_and(is_paced)
    }

    /// Tell whether it ever reads.
    pub fn reads(&self) -> bool {
        if let Some(program) = &self.program {
            return program.moves(false);
        }
        if let Some(work) = &self.kv {
            return work.reads();
        }
        match self.direction {
            Direction::Read | Direction::Update { .. } => true,
            Direction::Reread { read_share } => read_share < 1.0,
            Direction::Write => false,
            Direction::Mixed { read_share } => read_share > 0.0,
        }
    }

    /// Tell whether it ever writes.
    pub fn writes(&self) -> bool {
        if let Some(program) = &self.program {
            return program.moves(true);
        }
        if let Some(work) = &self.kv {
            return work.writes();
        }
        match self.direction {
            Direction::Read | Direction::Reread { .. } => false,
            Direction::Write => true,
            Direction::Mixed { read_share } => read_share < 1.0,
            Direction::Update { write_share } => write_share > 0.0,
        }
    }

    /// Tell whether its reads and its writes go through the file in order, each from a position of
    /// its own.
    pub fn has_two_positions(&self) -> bool {
        let is_in_order =
            matches!(self.pattern, Pattern::Sequential | Pattern::Reverse | Pattern::Stride { .. });
        is_in_order && matches!(self.direction, Direction::Mixed { .. } | Direction::Reread { .. })
    }

    /// Tell whether its files may become others than they were: it opens them so, writes them,
    /// or changes them without a transfer (discard, truncate, unlink).
    pub fn changes_files(&self) -> bool {
        let is_changing = self.program.as_ref().is_some_and(Program::changes_files);
        self.opening != Opening::Existing || self.writes() || is_changing
    }

    /// Tell whether each op reads, and may write what it has read.
    fn reads_always(&self) -> bool {
        matches!(self.direction, Direction::Update { .. })
    }

    /// Tell whether its name is that of a directory of many files.
    pub fn is_folder(&self) -> bool {
        let is_of_many = |work: &FileSetWork| work.action != FileAction::Extend;
        self.kv.is_some() || self.file_set.as_ref().is_some_and(is_of_many)
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

    pub(super) fn check(&self, phase: &str) -> Result<(), Error> {
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
        let of_clients = self.kv.as_ref().and_then(KvWork::problem);
        if let Some((problem, remedy)) = of_clients.or_else(|| self.region_problem()) {
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
        if let Direction::Mixed { read_share: share }
        | Direction::Reread { read_share: share }
        | Direction::Update { write_share: share } = self.direction
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

    /// Fault of the part of the file that it works on.
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

    /// Fault of the way in which its calls are made, and advice.
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
        let is_chained = self.lock.is_of_each() || self.reads_always();
        if self.depth > 1 && (is_memory || is_chained) {
            let problem =
                format!("depth {} with mapped files, streams, locks or updates", self.depth);
            return Some((problem, "use depth 1 and more workers"));
        }
        if self.reads_always() && self.lock.is_of_each() {
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
