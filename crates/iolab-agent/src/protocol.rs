//! The words on the wire, version 1: `docs/design/0002-agent-protocol.md` as types.
//!
//! Unknown fields are refused on both sides. Left out: the workload and what was measured, which
//! pass through as JSON; their types belong to `iolab-workload` and `iolab-drive`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use iolab_drive::record::Warning;

use crate::error::{Error, Result};
use crate::trace::{EventSet, OutputFile, RecordSpec, Recorded};

mod pairs;
mod programs;

pub use pairs::{
    ChosenBy, PairsCell, PairsRecord, PairsSlices, PairsSpec, PairsTenant, PairsTreatment,
    PairsUnit,
};
pub use programs::{FileBirth, FileMark, FileRules, Replaceable, RunAs, WaitFor, Waits};

/// Version of the protocol.
pub const PROTOCOL: u32 = 1;

/// One line from the front end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Repeated in the answer.
    pub id: u64,
    /// What to do.
    pub method: String,
    /// How.
    pub params: Value,
}

/// What the front end wants, with its parameters.
#[derive(Debug)]
pub enum Call {
    /// Agree on the protocol and name the run.
    Hello(Hello),
    /// Say what is possible.
    Doctor(Doctor),
    /// Prepare a testbed; the spec belongs to its kind.
    OpenTestbed(Value),
    /// Run one trial.
    RunTrial(Box<TrialSpec>),
    /// Record block events, outside of any testbed.
    RecordTrace(RecordSpec),
    /// Take the testbed apart and restore.
    CloseTestbed,
    /// Undo what earlier runs left.
    Restore(RestoreParams),
    /// End the running request early.
    Interrupt,
    /// The trial that waits for it may begin its next phase.
    Proceed,
    /// Restore and exit.
    Shutdown,
}

/// Parameters of `hello`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Version the front end speaks.
    pub protocol: u32,
    /// Name of the run.
    pub run: String,
    /// Whether to change nothing.
    pub is_dry_run: bool,
    /// Where journals go, instead of the usual place.
    pub state_dir: Option<PathBuf>,
}

/// Parameters of `doctor`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Doctor {
    /// Directories to look at.
    pub paths: Vec<PathBuf>,
}

/// Parameters of `restore`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreParams {
    /// Only this run.
    pub run: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// File system and device arrangement of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// `ext4`, `xfs`, ...
    pub fs: String,
    /// Appended to ours.
    pub mkfs_options: Vec<String>,
    /// Appended to ours.
    pub mount_options: Vec<String>,
    /// Whether the journal lies on the second device.
    pub has_external_journal: bool,
}

/// What the page cache holds before a reading phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// Nothing of the files; verified.
    Cold,
    /// The files; verified.
    Warm,
    /// Whatever it holds.
    AsIs,
}

/// Parameters of `run_trial`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialSpec {
    /// Name of the trial.
    pub trial: String,
    /// Null for a directory.
    pub stack: Option<Stack>,
    /// Make the file system anew even if the stack is the same.
    pub is_fresh_fs: bool,
    /// Knobs by name; those not named have their original value.
    pub knobs: BTreeMap<String, String>,
    /// Knobs that change while it runs, in the order of time.
    #[serde(default)]
    pub changes: Vec<KnobChange>,
    /// Tenants whose workers, which are processes, get a weight or limits.
    #[serde(default)]
    pub io_groups: Vec<IoGroup>,
    /// State of the page cache.
    pub cache: Cache,
    /// Memory of the workers, cache included.
    pub memory_limit_bytes: Option<u64>,
    /// Free space that must stay on a user's file system.
    pub reserve_bytes: u64,
    /// Wall-clock limit of the workload.
    pub time_limit_ns: u64,
    /// What is waited for before each phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// Who measures, where that is not the agent's own user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as: Option<RunAs>,
    /// What may become of files that the user has, where it works in a directory of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FileRules>,
    /// Block events of the testbed's devices are recorded while it is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TrialTrace>,
    /// Alternating slices, in place of running the workload once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<PairsSpec>,
    /// Passed to the measuring child as it is; with alternating slices that of the first treatment.
    pub workload: Value,
}

/// A recording beside a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialTrace {
    /// Where it is written.
    pub output: OutputFile,
    /// Which events.
    #[serde(default)]
    pub events: EventSet,
}

/// Knobs that change while the workload runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnobChange {
    /// After the release of the workload's (only) phase.
    pub at_ns: u64,
    /// Knobs by name; the others stay.
    pub knobs: BTreeMap<String, String>,
}

/// What was changed while the workload ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// When it was to happen, after the release.
    pub asked_ns: u64,
    /// When it began.
    pub began_ns: u64,
    /// When it was done and read back.
    pub done_ns: u64,
    /// Name of the knob.
    pub knob: String,
    /// Value before.
    pub from: Option<String>,
    /// Value as read back.
    pub to: Option<String>,
}

/// Weight and limits of the workers of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IoGroup {
    /// The tenant.
    pub tenant: String,
    /// Share of the device relative to others; the kernel's default is 100.
    #[serde(default)]
    pub weight: Option<u32>,
    /// Bytes that may be read per second.
    #[serde(default)]
    pub max_read_bytes_per_s: Option<u64>,
    /// Bytes that may be written per second.
    #[serde(default)]
    pub max_write_bytes_per_s: Option<u64>,
    /// Reads per second.
    #[serde(default)]
    pub max_read_ops_per_s: Option<u64>,
    /// Writes per second.
    #[serde(default)]
    pub max_write_ops_per_s: Option<u64>,
}

/// Where the workers of a tenant go.
#[derive(Clone, Debug, Serialize)]
pub struct GroupSeat {
    /// The tenant.
    pub tenant: String,
    /// File that takes the ids of processes.
    pub procs: PathBuf,
}

/// One thing that was done, or would be in a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Privilege class: `A`, `A+`, `B` or `C`.
    pub class: String,
    /// What kind of thing.
    pub kind: ActionKind,
    /// On what.
    pub target: String,
    /// From what to what.
    pub detail: String,
}

/// Kinds of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the contract's")]
pub enum ActionKind {
    WriteKnob,
    Mkfs,
    Mount,
    Umount,
    CreateFile,
    RemoveFile,
    AddLoop,
    AttachLoop,
    DetachLoop,
    RemoveLoop,
    DropCaches,
    CreateDirectory,
    RemoveDirectory,
    CreateCgroup,
    RemoveCgroup,
    CreateTraceInstance,
    RemoveTraceInstance,
    ClaimDevice,
    WriteDevice,
    WriteMarker,
    Exec,
}

/// Answer to `open_testbed`.
#[derive(Debug, Serialize)]
pub struct OpenedTestbed {
    /// Privilege class.
    pub class: String,
    /// The directory that is ours.
    pub directory: PathBuf,
    /// Block devices below it.
    pub devices: Vec<String>,
    /// Those whose knobs may change.
    pub knob_devices: Vec<String>,
    /// Schedulers that all of these offer.
    pub schedulers: Vec<String>,
    /// Space for files.
    pub free_bytes: u64,
    /// What was found.
    pub facts: BTreeMap<String, String>,
    /// What to know.
    pub warnings: Vec<Warning>,
    /// What was done.
    pub actions: Vec<Action>,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Everything was measured.
    Ok,
    /// Something failed; see the error.
    Failed,
    /// Ended early on request.
    Interrupted,
    /// Nothing was done.
    DryRun,
}

/// The stack as it really was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StackRecord {
    /// As asked for.
    #[serde(flatten)]
    pub asked: Stack,
    /// As the kernel says.
    pub effective_mount_options: String,
    /// Of the file system, as its program read them back when it was made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<String>,
}

/// Everything a trial left behind.
#[derive(Debug, Serialize)]
pub struct Record {
    /// Name of the trial.
    pub trial: String,
    /// How it ended.
    pub status: Status,
    /// Why it failed.
    pub error: Option<String>,
    /// Wall clock at the beginning.
    pub started_at_unix_ns: u64,
    /// Preparing and measuring together.
    pub elapsed_ns: u64,
    /// Engine the workload names.
    pub engine: String,
    /// Knobs as read back.
    pub knobs: BTreeMap<String, String>,
    /// File system as mounted.
    pub stack: Option<StackRecord>,
    /// What the machine was like.
    pub facts: BTreeMap<String, String>,
    /// What to know when reading the numbers.
    pub warnings: Vec<Warning>,
    /// What was done.
    pub actions: Vec<Action>,
    /// What was measured, as the child wrote it.
    pub phases: Vec<Value>,
    /// What alternating slices measured, as the child wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Value>,
    /// Files in a directory of the user's that were made, or written as allowed, and stay.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<String, FileMark>,
    /// What was recorded, if that was asked for and possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Recorded>,
}

/// One line to the measuring child.
#[derive(Debug, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct MeasureOrder<'a> {
    /// Name of the trial.
    pub trial: &'a str,
    /// Where the files go.
    pub directory: PathBuf,
    /// What its token file must hold, if others can reach the directory.
    pub token: Option<&'a str>,
    /// It is ours: files have plain names.
    pub is_ours: bool,
    /// The device whose slices stand for files, if there is no file system.
    pub device: Option<&'a RawDevice>,
    /// Devices to count.
    pub counters: Vec<Counter>,
    /// Control groups of the tenants that have some.
    pub groups: Vec<GroupSeat>,
    /// State of the page cache.
    pub cache: Cache,
    /// Whether the system-wide drop is allowed.
    pub may_drop_caches: bool,
    /// Free space that must stay.
    pub reserve_bytes: u64,
    /// Wall-clock limit.
    pub time_limit_ns: u64,
    /// What is waited for before each phase.
    pub waits: Option<&'a Waits>,
    /// Whom to become.
    pub run_as: Option<&'a RunAs>,
    /// Whether that is done before the directory is entered.
    pub enters_as_user: bool,
    /// When memory is short, others are killed first; not told to the child.
    #[serde(skip)]
    pub is_favoured: bool,
    /// The directory is the user's: what may become of files in it.
    pub files: Option<FileRules>,
    /// Alternating slices, in place of running the workload once.
    pub pairs: Option<&'a PairsSpec>,
    /// What to do.
    pub workload: &'a Value,
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
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum MeasureLine {
    /// Forwarded to the front end.
    Progress {
        /// `progress`, `released` when the timed region has begun, or `switch` when other knobs
        /// are wanted.
        event: String,
        /// As in the contract.
        params: Value,
    },
    /// The last line.
    Result {
        /// What was measured.
        result: MeasureResult,
    },
}

/// What the measuring child found.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureResult {
    /// How it ended.
    pub status: Status,
    /// Why it failed.
    pub error: Option<String>,
    /// Phase records.
    pub phases: Vec<Value>,
    /// What alternating slices measured.
    #[serde(default)]
    pub pairs: Option<Value>,
    /// What to know.
    pub warnings: Vec<Warning>,
    /// Files of the user's directory that were made and stay.
    #[serde(default)]
    pub made: BTreeMap<String, FileMark>,
}

/// One check of the doctor.
#[derive(Debug, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// Verdict.
    pub status: CheckStatus,
    /// What was found.
    pub message: String,
    /// The command that would give more.
    pub hint: String,
}

/// Verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// As it should be.
    Ok,
    /// Possible, but the numbers will be worse.
    Warn,
    /// Not possible.
    Fail,
}

/// A journal with changes that are not undone.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct OpenJournal {
    /// Its run.
    pub run: String,
    /// Changes not undone.
    pub entries: usize,
}

/// Code of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request is wrong.
    Usage,
    /// A rule of safety forbids it.
    Refused,
    /// It went wrong; another request may succeed.
    Failed,
    /// Something could not be put back.
    RestoreIncomplete,
    /// Ended on request.
    Interrupted,
}

/// One line to the front end.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Message {
    /// Any number, any time.
    Event {
        /// Always `progress`.
        event: &'static str,
        /// What goes on.
        params: Value,
    },
    /// Success.
    Result {
        /// Of the request.
        id: u64,
        /// Answer.
        result: Value,
    },
    /// Failure.
    Error {
        /// Of the request.
        id: u64,
        /// Why.
        error: ErrorBody,
    },
}

/// Why a request failed.
#[derive(Debug, Serialize)]
pub struct ErrorBody {
    /// What to do with it.
    pub code: ErrorCode,
    /// What failed, on what.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl Message {
    /// Answer to request `id`.
    pub fn answer(id: u64, result: Result<Value>) -> Self {
        match result {
            Ok(result) => Self::Result { id, result },
            Err(error) => {
                let (code, hint) = (error.code(), error.hint());
                Self::Error { id, error: ErrorBody { code, message: error.to_string(), hint } }
            }
        }
    }
}

impl Request {
    /// Understands one line.
    pub fn parse(line: &str) -> Result<Self> {
        serde_json::from_str(line)
            .map_err(|error| Error::protocol(format!("this line is not a request: {error}")))
    }

    /// Understands method and parameters.
    pub fn call(self) -> Result<Call> {
        let (method, params) = (self.method, self.params);
        match method.as_str() {
            "hello" => typed(&method, params).map(Call::Hello),
            "doctor" => typed(&method, params).map(Call::Doctor),
            "open_testbed" => Ok(Call::OpenTestbed(params)),
            "run_trial" => typed(&method, params).map(|spec| Call::RunTrial(Box::new(spec))),
            "record_trace" => typed(&method, params).map(Call::RecordTrace),
            "close_testbed" => typed(&method, params).map(|Nothing {}| Call::CloseTestbed),
            "restore" => typed(&method, params).map(Call::Restore),
            "interrupt" => typed(&method, params).map(|Nothing {}| Call::Interrupt),
            "proceed" => typed(&method, params).map(|Nothing {}| Call::Proceed),
            "shutdown" => typed(&method, params).map(|Nothing {}| Call::Shutdown),
            _ => Err(Error::unknown("method", &method, METHODS)),
        }
    }
}

const METHODS: &[&str] = &[
    "hello",
    "doctor",
    "open_testbed",
    "run_trial",
    "record_trace",
    "close_testbed",
    "restore",
    "interrupt",
    "shutdown",
];

/// Parameters of `what` as their type; the error names the field.
pub fn typed<T: DeserializeOwned>(what: &str, params: Value) -> Result<T> {
    serde_json::from_value(params)
        .map_err(|error| Error::protocol(format!("parameters of {what}: {error}")))
}

#[cfg(test)]
mod tests;
