//! Messages between the agent and its measuring child, one JSON object per line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use iolab_drive::record::{PhaseRecord, Warning};
use iolab_protocol::agent::{
    Cache, FileMark, FileRules, Interim, PairsRecord, PairsSpec, Progress, RunAs, Status, Waits,
};
use iolab_workload::Workload;
use serde::{Deserialize, Serialize};

/// Group of the workers of a tenant.
#[derive(Clone, Debug, Serialize)]
pub struct GroupSeat {
    /// The tenant.
    pub tenant: String,
    /// File that takes the ids of processes.
    pub procs: PathBuf,
}

/// One line to the measuring child.
#[derive(Debug, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct MeasureOrder<'a> {
    /// Name of the trial.
    pub trial: &'a str,
    /// Directory of the files.
    pub directory: PathBuf,
    /// Directories on the twins of its device, for alternating slices.
    pub twins: &'a [PathBuf],
    /// Content of its token file, if others can reach the directory.
    pub token: Option<&'a str>,
    /// True for files of iolab's own: files have plain names.
    pub is_ours: bool,
    /// The device whose slices stand for files, if there is no file system.
    pub device: Option<&'a RawDevice>,
    /// Devices to count.
    pub counters: Vec<Counter>,
    /// Control groups of the tenants that have some.
    pub groups: Vec<GroupSeat>,
    /// State of the page cache.
    pub cache: Cache,
    /// True if the system-wide drop is allowed.
    pub may_drop_caches: bool,
    /// Free space that must stay.
    pub reserve_bytes: u64,
    /// The same of the other places, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub place_reserves: BTreeMap<&'a str, u64>,
    /// Wall-clock limit.
    pub time_limit_ns: u64,
    /// Condition that is awaited before each phase.
    pub waits: Option<&'a Waits>,
    /// Interim results that are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interim: Option<Interim>,
    /// User that the process becomes.
    pub run_as: Option<&'a RunAs>,
    /// True if that is done before the directory is entered.
    pub enters_as_user: bool,
    /// Favour of the process when memory is short: others are killed first; not told to the child.
    #[serde(skip)]
    pub is_favoured: bool,
    /// Descriptors of recorded streams, which it inherits; the workload names them.
    #[serde(skip)]
    pub descriptors: Vec<std::os::fd::RawFd>,
    /// The directory is the user's: what may become of files in it.
    pub files: Option<FileRules>,
    /// Alternating slices, in place of running the workload once.
    pub pairs: Option<&'a PairsSpec>,
    /// Workload to run.
    pub workload: &'a Workload,
}

/// A device without a file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawDevice {
    /// Its node, below the directory.
    pub node: String,
    /// First byte that may be written.
    pub start_bytes: u64,
    /// First byte that may not be written any more.
    pub end_bytes: u64,
    /// Unit of direct I/O.
    pub unit_bytes: u64,
}

/// A device whose statistics belong to the trial.
#[derive(Debug, Serialize)]
pub struct Counter {
    /// Kernel name.
    pub name: String,
    /// Its `stat` file.
    pub stat_path: PathBuf,
}

/// One line from the measuring child.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasureLine {
    /// Forwarded to the front end.
    Progress(Progress),
    /// The timed region has begun, at this time of the monotonic clock.
    Released {
        /// Name of the phase.
        phase: String,
        /// Time, in ns.
        at_ns: u64,
    },
    /// The knobs of other treatments are wanted before their slices; it waits for them.
    Switch {
        /// Index of the treatment that each of the devices made alike shall have next; of one
        /// device: of whose slice is next.
        treatments: Vec<usize>,
    },
    /// The last line.
    Result(Box<MeasureResult>),
}

/// Findings of the measuring child.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureResult {
    /// End of the phase.
    pub status: Status,
    /// Reason of the failure.
    pub error: Option<String>,
    /// Phase records.
    pub phases: Vec<PhaseRecord>,
    /// Record of alternating slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<PairsRecord>,
    /// Warnings for the reader.
    pub warnings: Vec<Warning>,
    /// Files of the user's directory that were made and stay.
    #[serde(default)]
    pub made: BTreeMap<String, FileMark>,
}
