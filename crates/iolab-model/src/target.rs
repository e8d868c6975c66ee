//! `Target`: anything ops can be sent to; `Lane`: one worker's private way in.
//!
//! A pump is generic over the lane, so there is no dynamic dispatch per op, except where the target
//! is [`crate::Erased`]. A lane answers every op
//! of a batch with one of three outcomes: *done* (its completion is already in `done`), *queued*
//! (it will come out of [`Lane::reap`]) or *busy* (not taken; submit it again after reaping).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::completion::Completion;
use crate::error::Error;
use crate::op::{Access, Submission, Token, Transfer, TransferFlags};
use crate::priority::Priority;
use crate::seed::Seed;
use crate::units::{Bytes, Ns};

/// Reason why a target cannot do something, in words, and what to do instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "TargetLimit")]
pub struct Limit {
    /// `snake_case` and stable: what is missing.
    pub code: &'static str,
    /// Half a sentence.
    pub reason: &'static str,
    /// Advice: a workload to use instead.
    pub hint: &'static str,
}

/// Abilities of a target, as data: the core asks "can you?" and never "who are you?".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "a table of independent abilities")]
pub struct Capabilities {
    /// More than one op can be in flight per lane.
    pub is_asynchronous: bool,
    /// Largest useful queue depth of a lane.
    pub depth_max: u32,
    /// True if data can be read back and compared.
    pub can_verify: bool,
    /// Files can be created, opened, listed, removed.
    pub has_namespace: bool,
    /// Access of a tenant that asks for nothing special: `Mapped` of an engine that maps files,
    /// `Stdio` of one made for streams. `has_plain` is another matter: such engines have it, too,
    /// because files are laid out plainly.
    pub default_access: Access,
    /// Handles can be opened with [`crate::op::Access::Plain`].
    pub has_plain: bool,
    /// Handles can be opened with [`crate::op::Access::Direct`].
    pub has_direct: bool,
    /// Handles can be opened with [`crate::op::Access::Append`].
    pub has_append: bool,
    /// Handles can be mapped and touched.
    pub has_mapping: bool,
    /// Handles can be stdio streams.
    pub has_stream: bool,
    /// Byte-range locks work.
    pub has_lock: bool,
    /// Vectored transfers work.
    pub has_vectors: bool,
    /// Transfers may carry [`crate::op::TransferFlags`].
    pub has_flags: bool,
    /// Those of them that mean something.
    pub flags: TransferFlags,
    /// A transfer may be made by several calls ([`crate::op::Transfer::call_bytes`]).
    pub has_small_calls: bool,
    /// Transfers may be done by threads of the kernel
    /// ([`crate::op::Transfer::is_of_kernel_thread`]).
    pub has_kernel_threads: bool,
    /// Blocks can be allocated without writing.
    pub has_allocate: bool,
    /// Ranges of files give their blocks back ([`crate::op::Op::Deallocate`]).
    pub has_deallocate: bool,
    /// Ranges of files are cleared without writing ([`crate::op::Deallocation::Zero`]), unless the
    /// file system at hand cannot do so.
    pub has_zeroing: bool,
    /// Transfers may go to the end of a file ([`crate::op::Position::End`]).
    pub has_end: bool,
    /// Files have second names and are copied ([`crate::op::Op::Link`], [`crate::op::Op::Copy`]).
    pub has_links: bool,
    /// Key-value requests work.
    pub has_key_value: bool,
    /// Clients find a store of records here ([`crate::kv`]): a simulated one, in its files.
    pub has_store: bool,
    /// Every op succeeds and nothing is kept, neither data nor names.
    pub keeps_nothing: bool,
    /// Time is simulated.
    pub is_simulated: bool,
}

impl Capabilities {
    /// A target that can transfer data and nothing else, one op at a time.
    pub const MINIMAL: Self = Self {
        is_asynchronous: false,
        depth_max: 1,
        can_verify: false,
        has_namespace: false,
        default_access: Access::Plain,
        has_plain: true,
        has_direct: false,
        has_append: false,
        has_mapping: false,
        has_stream: false,
        has_lock: false,
        has_vectors: false,
        has_flags: false,
        flags: TransferFlags::ALL,
        has_small_calls: false,
        has_kernel_threads: false,
        has_allocate: false,
        has_deallocate: false,
        has_zeroing: false,
        has_end: false,
        has_links: false,
        has_key_value: false,
        has_store: false,
        keeps_nothing: false,
        is_simulated: false,
    };
}

/// Content of buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Random bytes, and every 4 KiB page of every write differs: neither compression nor
    /// de-duplication can shrink it.
    #[default]
    Incompressible,
    /// Zero bytes: compressing or zero-detecting storage will report fantasy numbers.
    Zero,
    /// Bytes that the lane's owner puts into the buffers; the lane changes nothing of it.
    Prepared,
    /// The same few bytes again and again, from the beginning of each write on.
    Pattern(BytePattern),
    /// Data of which a share can be de-duplicated or compressed; who opens lanes makes them, and
    /// then asks for [`Content::Prepared`].
    Blend(Blend),
}

impl Content {
    /// Contradiction in it, and advice.
    pub fn problem(&self) -> Option<(String, &'static str)> {
        match self {
            Self::Blend(blend) => {
                let remedy = "let shares add up to 100 % at most, of granules of sectors";
                blend.problem().map(|problem| (problem, remedy))
            }
            Self::Pattern(pattern) => {
                pattern.problem().map(|problem| (problem, "use 1 to 32 bytes"))
            }
            _ => None,
        }
    }
}

/// Bytes that are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BytePattern {
    /// Number of the `bytes` that belong to it: at least one.
    pub length: u8,
    /// The bytes, and zeros behind them.
    pub bytes: [u8; Self::BYTES_MAX],
}

impl BytePattern {
    /// Longest pattern.
    pub const BYTES_MAX: usize = 32;

    /// A pattern of these bytes; absent: none, or too many.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let is_fit = (1..=Self::BYTES_MAX).contains(&bytes.len());
        is_fit.then(|| {
            let mut all = [0; Self::BYTES_MAX];
            all[..bytes.len()].copy_from_slice(bytes);
            Self { length: bytes.len() as u8, bytes: all }
        })
    }

    /// Repeats it in all of `buffer`.
    pub fn fill(&self, buffer: &mut [u8]) {
        let length = usize::from(self.length).clamp(1, Self::BYTES_MAX);
        for part in buffer.chunks_mut(length) {
            part.copy_from_slice(&self.bytes[..part.len()]);
        }
    }

    /// Fault of the pattern, if any.
    pub fn problem(&self) -> Option<String> {
        let is_fit = (1..=Self::BYTES_MAX).contains(&usize::from(self.length));
        (!is_fit).then(|| format!("a pattern of {} bytes", self.length))
    }
}

/// Shares of each granule of a file that storage may find equal or empty, in percent of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Blend {
    /// Size of a granule.
    pub granule_bytes: Bytes,
    /// Equal to what other files have at the same place, and to nothing else.
    pub across_percent: u8,
    /// Equal in every granule of every file.
    pub everywhere_percent: u8,
    /// Equal in every granule of one file; files differ.
    pub within_percent: u8,
    /// Zeros.
    pub zero_percent: u8,
    /// Pieces of the rest, each of which can be compressed; 0: none can.
    #[serde(default)]
    pub chunk_bytes: Bytes,
    /// Zeros at the beginning of each of these pieces, in percent of it.
    #[serde(default)]
    pub chunk_zero_percent: u8,
    /// Root of what is equal.
    pub seed: Seed,
    /// Makes files of the same name differ where they shall differ: on several machines.
    pub skew: u32,
}

impl Blend {
    /// Nothing is equal to anything else.
    pub const UNIQUE: Self = Self {
        granule_bytes: Bytes::PAGE,
        across_percent: 0,
        everywhere_percent: 0,
        within_percent: 0,
        zero_percent: 0,
        chunk_bytes: Bytes(0),
        chunk_zero_percent: 0,
        seed: Seed(0),
        skew: 0,
    };

    /// Fault of the pattern, if any.
    pub fn problem(&self) -> Option<String> {
        let shares =
            [self.across_percent, self.everywhere_percent, self.within_percent, self.zero_percent];
        let sum: u32 = shares.iter().map(|share| u32::from(*share)).sum();
        if sum > 100 {
            return Some(format!("shares of {sum} % of each granule"));
        }
        if self.chunk_zero_percent > 100 {
            return Some(format!("zeros of {} % of a chunk", self.chunk_zero_percent));
        }
        let granule = self.granule_bytes.0;
        let is_odd = granule == 0 || !granule.is_multiple_of(512);
        is_odd.then(|| format!("a granule of {granule} bytes, which is no multiple of 512"))
    }
}

/// Needs of a worker of its lane.
#[derive(Clone, Debug)]
pub struct LaneRequest {
    /// Ordinal of the worker in its phase.
    pub worker: u32,
    /// Number of queue slots, each with a buffer.
    pub depth: u32,
    /// Size of each buffer: the largest transfer.
    pub buffer_bytes: Bytes,
    /// Content of the buffers.
    pub content: Content,
    /// Root of the buffer's random content.
    pub seed: Seed,
    /// The worker's I/O priority; absent: whatever it has.
    pub priority: Option<Priority>,
    /// CPU of a thread of the kernel that submits for it, if its engine has one; absent: any.
    pub submitter_cpu: Option<u32>,
    /// The paths that [`crate::op::PathId`] refers to.
    pub paths: Arc<[PathBuf]>,
}

/// Number of ops of a batch that were taken, from its front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Ended already; their completions were appended to `done`.
    pub done: usize,
    /// In flight.
    pub queued: usize,
}

impl Accepted {
    /// Done or queued; the rest of the batch is busy.
    pub const fn total(self) -> usize {
        self.done + self.queued
    }
}

/// Transfers of one file that follow each other with nothing between them, at depth 1.
///
/// What a synchronous lane can do without going back to its pump for each: on cached data that way
/// costs as much as the system call itself does beyond the copying.
pub trait Run {
    /// True if they write; they all do, or none does.
    const WRITES: bool;

    /// The next transfer, at `now`, the end of the one before; `None`: no more.
    fn next(&mut self, now: Ns) -> Option<Transfer>;

    /// The transfer has ended with all its bytes.
    fn ended(&mut self, submitted: Ns, completed: Ns, length: Bytes);
}

/// End of a run, with its time.
#[derive(Clone, Copy, Debug)]
pub enum RunEnd {
    /// No more transfers.
    Over(Ns),
    /// A transfer failed or was short; the run does not know of its end.
    FellShort(Transfer, Completion),
}

/// One worker's private way into a target.
pub trait Lane {
    /// True if the lanes of this type have a [`Lane::run`].
    const HAS_RUNS: bool = false;

    /// True if a lane of another type is called through a table.
    const IS_ERASED: bool = false;

    /// Tell whether [`Lane::run`] may be called.
    #[inline]
    fn takes_runs(&self) -> bool {
        Self::HAS_RUNS
    }

    /// Makes the transfers of a run with the buffer of slot 0; `now` is as in
    /// [`Lane::submit_batch`].
    fn run<R: Run>(&mut self, now: Ns, run: &mut R) -> RunEnd {
        let _ = run;
        RunEnd::Over(now)
    }

    /// The target's clock.
    fn now(&self) -> Ns;

    /// Takes ops from the front of `batch`; `now` is the caller's last reading of [`Lane::now`].
    ///
    /// A synchronous lane reads the clock once per op: the end of one is the start of the next.
    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted;

    /// Makes sure that everything queued has reached the target, with one system call.
    fn kick(&mut self) -> Result<(), Error>;

    /// Collects completions: waits for at least `min` (fewer if fewer are in flight), but not
    /// beyond `until`.
    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error>;

    /// Ops queued and not yet reaped.
    fn in_flight(&self) -> u32;

    /// The data buffer of a free slot, for targets that really move data.
    ///
    /// A write sends what is in it (with one stamp per page, see [`Content::Incompressible`]);
    /// after a read it holds what was read.
    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        let _ = token;
        None
    }

    /// Sleeps (or jumps) until `instant` on the target's clock.
    fn sleep_until(&mut self, instant: Ns);

    /// Hands over at most `group` ops per call from now on, and keeps how long that takes
    /// ([`Lane::submission_ns`]), where it can be told apart from their ends: an op then begins
    /// with the call that hands it over.
    fn time_submissions(&mut self, group: u32) {
        let _ = group;
    }

    /// From the submission of the op that ended last in a slot to the return of the call that
    /// handed it over; 0 where it is not kept.
    #[inline]
    fn submission_ns(&self, token: Token) -> Ns {
        let _ = token;
        Ns(0)
    }
}

/// Anything ops can be sent to: the running kernel, a simulated stack, memory, nothing.
pub trait Target {
    /// A worker's way in.
    type Lane: Lane;

    /// Short name, as in `--engine`.
    fn name(&self) -> &'static str;

    /// Abilities of the target.
    fn capabilities(&self) -> Capabilities;

    /// Tell whether a process that used it can be forked, and its children use it as well.
    fn survives_forks(&self) -> bool {
        true
    }

    /// Tell whether its lanes have a [`Lane::run`].
    fn takes_runs(&self) -> bool {
        Self::Lane::HAS_RUNS
    }

    /// Facts about it: flat names and values, stored with every result.
    fn facts(&self) -> Vec<(String, String)>;

    /// Preferred size of transfers to files in `directory` (`st_blksize` of stat(2)); absent: any
    /// size is as good.
    fn preferred_bytes(&self, directory: &Path) -> Option<Bytes> {
        let _ = directory;
        None
    }

    /// A new lane.
    fn open(&self, request: &LaneRequest) -> Result<Self::Lane, Error>;
}

/// The clock of a simulated target, shared by its lanes.
pub trait VirtualTime {
    /// Current virtual time.
    fn now(&self) -> Ns;

    /// Time at which the simulation will next do something by itself; `None` if never.
    fn next_event(&self) -> Option<Ns>;

    /// Lets time pass up to `instant`, processing what happens on the way.
    fn advance_to(&self, instant: Ns);
}
