//! A workload as data: typed, versioned, the only form in which work crosses to the agent.
//!
//! A workload is a list of phases that run one after the other on the same files; a phase is a list
//! of tenants that run at once; a tenant is a number of equal workers. Unknown fields are refused.

use std::collections::BTreeSet;

use iolab_model::error::Error;
use iolab_model::target::Content;
use iolab_model::{Bytes, Ns, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::program::{self, FileSet, KeySpace};
use crate::verify::{self, Verify};

mod file_use;
mod manner;
pub mod rules;
mod tenant;

pub use file_use::{FileUse, NamedKind};
pub use manner::{Burst, Cpus, Manner, Preallocation, ReadingBack, ReplayOp};
pub use tenant::{PROGRAM_FILE, Tenant};

/// The version of this description that this program understands.
pub const VERSION: u32 = 1;

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
    /// Content that is written.
    #[serde(default)]
    pub content: Content,
    /// Comparison of reads with what was written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub verify: Verify,
    /// CPUs that workers are pinned to in turn, unless their tenant has CPUs; empty: not pinned.
    #[serde(default)]
    pub pin_cpus: Vec<u32>,
    /// Width of a slice of the time series; doubled when a run is long.
    #[serde(default = "default_interval")]
    pub interval_ns: Ns,
    /// Measure the harness's own cost per op before each phase.
    #[serde(default)]
    pub is_calibrated: bool,
    /// Phases begin also if one before them has failed; the first failure is told.
    #[serde(default, skip_serializing_if = "is_default")]
    pub goes_on_after_failure: bool,
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

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn default_interval() -> Ns {
    Ns::from_ms(100)
}

/// Way in which workers share the machine.
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
    /// Wishes that this operation cannot fulfil (a stream has no direct I/O): said with its
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
    /// Time after it in which nothing happens.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pause_after_ns: Ns,
    /// Tenants that run.
    pub tenants: Vec<Tenant>,
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
    /// Begin of the region of the first worker.
    pub from_bytes: Bytes,
    /// Its length.
    pub bytes: Bytes,
    /// From the beginning of one worker's region to that of the next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub step_bytes: Bytes,
}

impl Region {
    /// Begin of the region of worker `index`.
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
    /// Each op reads with this probability. Reads and writes in order (sequential, reverse, stride)
    /// have a position each; in a random order without repetition a record is read or written.
    Mixed {
        /// In 0..=1.
        read_share: f64,
    },
    /// Only reads: the records that a tenant of the same name, pattern and limit writes if it is
    /// `mixed` with this share, in the same order.
    Reread {
        /// In 0..=1: of that tenant.
        read_share: f64,
    },
    /// Each op reads its record and with this probability writes it back: one op, two calls.
    Update {
        /// In 0..=1: `bonnie++`'s rewrite has 1, its seeks 0.1.
        write_share: f64,
    },
}

/// Times at which data are flushed.
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
        /// The same after every so many transfers that others follow; 0: not.
        #[serde(default, skip_serializing_if = "is_default")]
        pass_ops: u64,
        /// Reads that follow the last of these writes are followed by a flush each, too.
        #[serde(default, skip_serializing_if = "is_default")]
        is_repeated: bool,
    },
    /// Inside the timed region, after every so many writes of a worker.
    Every {
        /// Writes between two.
        ops: u64,
    },
}

/// Way in which data are flushed between operations.
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

/// Part of a file that is locked with fcntl(2) while a worker operates.
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
    /// The file, around each transfer: nobody else transfers meanwhile.
    Exclusive,
    /// The file, around each transfer: readers transfer together, a writer alone.
    ReadWrite,
}

impl LockPolicy {
    /// Tell whether each transfer takes a lock.
    pub fn is_of_each(self) -> bool {
        matches!(self, Self::Record | Self::Exclusive | Self::ReadWrite)
    }
}

/// Preparation of the file before the timed region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// Make a new, empty file; one that is there is removed first.
    Create,
    /// Make a new, empty file; one that is there is somebody's, and the phase fails.
    New,
    /// File that must exist.
    Existing,
    /// Use it if it has the size; otherwise write it in full, untimed.
    LaidOut,
    /// Use it as it is, whatever its size; make an empty one if there is none.
    Keep,
}

/// Condition that ends a worker.
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

impl Workload {
    /// The sets of files that the programs of a phase use.
    pub fn sets_of<'a>(&'a self, phase: &'a Phase) -> impl Iterator<Item = &'a FileSet> {
        let programs = || phase.tenants.iter().filter_map(|tenant| tenant.program.as_ref());
        let is_used = move |set: &&FileSet| programs().any(|program| program.uses_set(&set.name));
        self.file_sets.iter().filter(is_used)
    }

    /// Uses of all its files, by name and kind, in the order in which they come first.
    pub fn file_uses(&self) -> Vec<FileUse> {
        FileUse::of_phases(&self.phases)
    }

    /// Content that a tenant writes, and that its files are made of.
    pub fn content_of(&self, tenant: &Tenant) -> Content {
        tenant.manner.content.unwrap_or(self.content)
    }

    /// Name of the engine that a phase uses, unless a tenant has its own.
    pub fn engine_of<'a>(&'a self, phase: &'a Phase) -> &'a str {
        phase.engine.as_deref().unwrap_or(&self.engine)
    }

    /// Name of the engine that a tenant of a phase uses.
    pub fn engine_of_tenant<'a>(&'a self, phase: &'a Phase, tenant: &'a Tenant) -> &'a str {
        tenant.manner.engine.as_deref().unwrap_or_else(|| self.engine_of(phase))
    }

    /// Names of the engines of a phase, its own and those of its tenants, each once.
    pub fn engines_of<'a>(&'a self, phase: &'a Phase) -> BTreeSet<&'a str> {
        let of_tenant = |tenant| self.engine_of_tenant(phase, tenant);
        phase.tenants.iter().map(of_tenant).chain([self.engine_of(phase)]).collect()
    }

    /// Verification of blocks: as the workload says, or a step that compares.
    pub fn verification(&self) -> Verify {
        let tenants = self.phases.iter().flat_map(|phase| &phase.tenants);
        let programs = tenants.filter_map(|tenant| tenant.program.as_ref());
        let mut said = programs.flat_map(|own| own.all_nodes().filter_map(|node| node.verify));
        let mut of_step = || said.find(|verify| verify.is_on()).unwrap_or_default();
        if self.verify.is_on() { self.verify } else { of_step() }
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
        let is_known = matches!(self.content, Content::Incompressible | Content::Pattern(_));
        if !is_known && self.verification().is_on() {
            return wrong(
                format!("verify of content {:?}", self.content),
                "leave out the content: verification writes its own, which is incompressible",
            );
        }
        let mut tenants = self.phases.iter().flat_map(|phase| &phase.tenants);
        let of_tenants = tenants.clone().filter_map(|tenant| tenant.manner.content.as_ref());
        let of_sets = self.file_sets.iter().filter_map(|set| set.content.as_ref());
        let mut own = of_tenants.chain(of_sets).peekable();
        if own.peek().is_some() && self.verification().is_on() {
            let problem = "verify of tenants with a content of their own".to_owned();
            return wrong(problem, "leave one of them out");
        }
        let mut contents = core::iter::once(&self.content).chain(own);
        if let Some((problem, remedy)) = contents.find_map(Content::problem) {
            return wrong(problem, remedy);
        }
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
