//! Refinements of how a tenant's workers touch their records; most workloads ask for none.
//!
//! Facts about which calls `IOzone` makes for them: its options -X, -Y, -K, -d, -m, -Q, -+A and
//! -+b, traced on version 3.489. Left out: anything that a pattern, a rate or a lock can say.

use std::path::{Component, Path, PathBuf};

use iolab_model::op::{Access, Advice, RangeSync, WriteLife};
use iolab_model::target::Content;
use iolab_model::{Bytes, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::TenantRules;
use super::{Direction, Limit, Tenant, is_default};
use crate::verify::VerifiedBlocks;

/// Manner in which the workers of a tenant work, beyond pattern, direction and rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manner {
    /// Ops with a place, a size and a pause of their own, in place of the records of the pattern;
    /// empty: the pattern's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replay: Vec<ReplayOp>,
    /// Small reads elsewhere, before every so many records; they take time and are not counted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub jumps_every: u64,
    /// Pauses between bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// From the beginning of one worker's timed region to that of the next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub begin_step_ns: Ns,
    /// Buffers that a worker's transfers use in turn; 0 or 1: the same one again and again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub buffers: u32,
    /// Most bytes of one system call, where a record is to be moved by several; 0: all in one. The
    /// record is one op: bonnie++ works "per character" so, and times 8192 calls together.
    #[serde(default, skip_serializing_if = "is_default")]
    pub call_bytes: u32,
    /// Advice to the kernel about a file or its mapping, right after it was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// Cached pages of the file are dropped when it has been opened through the page cache, also if
    /// it is only written. What is read follows the request's `cache`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub drops_cache_first: bool,
    /// Cached pages of the file are dropped before every so many ops but the first; 0: they are
    /// not. Dirty pages stay, and are written soon (`posix_fadvise(2)`, `POSIX_FADV_DONTNEED`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub drops_cache_every: u64,
    /// Parts of each flush with `sync_file_range`; absent: all of them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub range_sync: RangeSync,
    /// Way in which blocks are allocated before anything is written, if they are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preallocation: Preallocation,
    /// Content that its workers write, and that its files are made of; absent: the workload's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Lifetime that written data are said to have; absent: nothing is said.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_life: WriteLife,
    /// Of so many transfers one is done by a thread of the kernel; 0: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kernel_thread_every: u64,
    /// CPU of the kernel's thread that submits, of an engine that has one; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitter_cpu: Option<u32>,
    /// Nice value of its workers, -20 to 19: who shares a CPU with others of a higher one comes
    /// first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub nice: i8,
    /// Its files are removed when the last phase has ended, where others stay.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_unlinked: bool,
    /// Engine of its workers, before that of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// CPUs of its workers, before those of the workload.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cpus: Cpus,
    /// Directory of the logs of single ops, one file per worker; absent: none is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_log: Option<PathBuf>,
    /// The logs have one entry per window of so long and direction; 0: one per op.
    #[serde(default, skip_serializing_if = "is_default")]
    pub op_log_window_ns: Ns,
    /// So long each worker warms up: what it does by then is a segment of its own, in place of the
    /// cuts of the phase.
    #[serde(default, skip_serializing_if = "is_default")]
    pub warm_up_ns: Ns,
    /// An earlier run of the same seed wrote all that is read: where it is verified, nothing may be
    /// empty.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expects_written: bool,
    /// Once all slots were taken nothing begins before at most so many ops are in flight; absent:
    /// the next one begins as soon as one has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refill_at: Option<u32>,
    /// At most so many ops are handed over by one call, each begins with the call that does it, and
    /// the time of that call is kept apart from the rest; 0: what is due is handed over together.
    #[serde(default, skip_serializing_if = "is_default")]
    pub submission_group: u32,
    /// Rules that follow from measurements.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rules: TenantRules,
    /// Blocks in which its files are verified, if they are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub verified: VerifiedBlocks,
    /// Data of a tenant that writes are read back while it works; absent: they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_back: Option<ReadingBack>,
}

/// CPUs that workers run on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cpus {
    /// Their numbers; empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<u32>,
    /// Each worker has one of them, in turn; otherwise each runs on any of them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_split: bool,
}

/// Way in which room is made in a new file before anything is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preallocation {
    /// Blocks, and the length that they reach (fallocate(2)).
    #[default]
    Extended,
    /// Blocks; the file stays empty (fallocate(2), `KEEP_SIZE`).
    Reserved,
    /// The length alone (ftruncate(2)).
    Length,
}

/// Reading back what a writer has written, oldest first. In its end the rest is read, unless its
/// time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadingBack {
    /// Writes that have not been read back, after which it reads.
    pub after_ops: u64,
    /// Reads that follow them. If there are more of them than writes to be read, each further
    /// write is read at once.
    pub batch_ops: u64,
}

/// One op of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct ReplayOp {
    /// Begin of the range.
    pub at: Bytes,
    /// Number of bytes.
    pub length: Bytes,
    /// Pause before it.
    pub pause_ns: Ns,
}

impl From<(u64, u64, u64)> for ReplayOp {
    fn from((at, length, pause): (u64, u64, u64)) -> Self {
        Self { at: Bytes(at), length: Bytes(length), pause_ns: Ns(pause) }
    }
}

impl From<ReplayOp> for (u64, u64, u64) {
    fn from(op: ReplayOp) -> Self {
        (op.at.0, op.length.0, op.pause_ns.0)
    }
}

/// Pauses after so much work, or after so much time; whichever comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Bytes between two pauses; 0: any number.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bytes: Bytes,
    /// Reads and writes between two pauses; 0: any number.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ops: u64,
    /// Time between two pauses; 0: any.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lasting_ns: Ns,
    /// Length of a pause; it begins when the last op of a burst has ended.
    pub pause_ns: Ns,
    /// First part of a pause, in which the CPU is burnt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub burning_ns: Ns,
    /// Under a rate a pause makes what follows later, and is not made up for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub delays_schedule: bool,
}

impl Burst {
    /// True if nothing ends a burst.
    fn is_endless(self) -> bool {
        self.bytes.0 == 0 && self.ops == 0 && self.lasting_ns.0 == 0
    }
}

/// Contradiction, and advice.
pub(super) type Problem = (String, &'static str);

impl Manner {
    /// Part of the manner that cannot be done together with the rest of `tenant`.
    pub(super) fn problem(&self, tenant: &Tenant) -> Option<Problem> {
        let is_one_by_one = tenant.depth == 1;
        if self.jumps_every > 0 && (!is_one_by_one || tenant.lock.is_of_each()) {
            let problem = "jumps between records with a depth or a lock of each record".to_owned();
            return Some((problem, "use depth 1 and no such lock"));
        }
        if self.buffers > 1 && !is_one_by_one {
            let problem = format!("{} buffers in turn at depth {}", self.buffers, tenant.depth);
            return Some((problem, "use depth 1: each op in flight has a buffer of its own"));
        }
        if self.call_bytes > 0 {
            let is_odd = tenant.access == Access::Direct;
            let is_no_call = matches!(tenant.access, Access::Mapped | Access::Stdio);
            if is_odd || is_no_call || tenant.vectors > 1 || !tenant.flags.is_empty() {
                let problem = format!("calls of {} bytes", self.call_bytes);
                let remedy = "use them through the page cache, without vectors and flags";
                return Some((problem, remedy));
            }
        }
        if self.drops_cache_every > 0 && tenant.access != Access::Plain {
            let problem = "dropping cached pages of what goes another way".to_owned();
            return Some((problem, "leave it out, or go through the page cache"));
        }
        if self.refill_at.is_some_and(|count| count >= tenant.depth)
            || (self.refill_at.is_some() && self.rules.depth_search.is_some())
        {
            let problem = format!("slots that are filled again at {:?}", self.refill_at);
            return Some((problem, "use a number below the depth, and no search for a depth"));
        }
        if self.burst.is_some_and(Burst::is_endless) {
            let problem = "bursts of 0 bytes, 0 ops and no time".to_owned();
            return Some((problem, "leave bursts out, or give them a size or a length"));
        }
        if !(-20..=19).contains(&self.nice) {
            return Some((format!("a nice value of {}", self.nice), "use -20 to 19"));
        }
        if self.advice.is_some() && tenant.access != Access::Mapped {
            // An engine that maps says so later; a direct file or a stream never is.
            let is_never = matches!(tenant.access, Access::Direct | Access::Stdio);
            if is_never {
                return Some(("advice about a file that is not mapped".into(), "leave it out"));
            }
        }
        if let Some(problem) = self.rules.problem(tenant) {
            return Some(problem);
        }
        self.read_back_problem(tenant).or_else(|| self.replay_problem(tenant))
    }

    fn read_back_problem(&self, tenant: &Tenant) -> Option<Problem> {
        let read_back = self.read_back?;
        if read_back.after_ops == 0 || read_back.batch_ops == 0 {
            return Some(("reading back nothing".into(), "read back at least 1 write"));
        }
        let is_odd = matches!(tenant.access, Access::Append | Access::Stdio)
            || tenant.lock.is_of_each()
            || !self.replay.is_empty();
        let is_writer = matches!(tenant.direction, Direction::Write | Direction::Mixed { .. });
        if !is_writer || is_odd {
            let problem = "reading back of what is no plain writer".to_owned();
            return Some((problem, "use writes, without locks of records"));
        }
        None
    }

    fn replay_problem(&self, tenant: &Tenant) -> Option<Problem> {
        if self.replay.is_empty() {
            return None;
        }
        if tenant.depth > 1 || tenant.vectors > 1 || tenant.limit != Limit::Once {
            let problem = "a replay with a depth, vectors or a limit".to_owned();
            return Some((problem, "replay one op after the other, once"));
        }
        for (index, op) in self.replay.iter().enumerate() {
            let number = index + 1;
            let end = op.at.0.checked_add(op.length.0);
            if op.length.0 == 0 || end.is_none_or(|end| end > tenant.file_bytes.0) {
                let problem = format!(
                    "op {number} of the replay, {} bytes at {}, is not inside the file of {}",
                    op.length.0, op.at.0, tenant.file_bytes
                );
                return Some((problem, "give the file the size that its ops need"));
            }
            if op.length > tenant.io_size_bytes {
                let problem = format!("op {number} of the replay is larger than the buffer");
                return Some((problem, "make the record size that of the largest op"));
            }
            let unit = super::tenant::DIRECT_UNIT.0;
            let is_odd = op.at.0 % unit != 0 || op.length.0 % unit != 0;
            if tenant.access == Access::Direct && is_odd {
                let problem = format!(
                    "op {number} of the replay, {} bytes at {}, with direct I/O",
                    op.length.0, op.at.0
                );
                return Some((problem, "use multiples of 512 bytes, or go through the page cache"));
            }
        }
        None
    }
}

/// Tell whether a name means a file in the directory of the workload, or a whole path (which is
/// taken only where the user's own directory is worked in).
pub(super) fn is_file_name(name: &str) -> bool {
    let is_visible = |name: &str| !(name.is_empty() || name.starts_with('.'));
    let path = Path::new(name);
    if path.is_absolute() {
        let is_straight =
            path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let last = path.file_name().and_then(|name| name.to_str());
        return is_straight && last.is_some_and(is_visible) && !name.ends_with('/');
    }
    is_visible(name) && !name.contains('/')
}
