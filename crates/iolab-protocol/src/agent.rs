//! Requests and answers of the agent, version 1; unknown fields are refused.
//!
//! `docs/reference/agent-protocol.md` and Python's types are made of these types and their
//! comments. Left out: how a request is dispatched and what the agent says to its measuring child.

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use iolab_drive::record::{Mark, PhaseRecord, Warning};
use iolab_workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod live;
mod pairs;
mod programs;
mod testbed;
mod trace;

pub use live::{
    LIVE_RANGES, LiveAmount, LiveDepth, LiveLatency, LiveProcess, LiveSecond, WatchSpec,
};
pub use pairs::{
    ChosenBy, PairsCell, PairsImage, PairsImageRecord, PairsRecord, PairsSlices, PairsSpec,
    PairsTenant, PairsTreatment, PairsUnit, SessionOfSlices,
};
pub use programs::{FileBirth, FileMark, FileRules, Replaceable, RunAs, WaitFor, Waits};
pub use testbed::{
    DeviceSpec, DirectorySpec, LoopSpec, PlaceSpec, PlacesSpec, Precondition, TestbedSpec,
};
pub use trace::{
    Backend, EventSet, KernelLayer, OutputFile, RecordSpec, RecordingResult, RecordingSoFar,
    TraceOfTrial, TraceRecorded, TrialTrace,
};

/// Version of the protocol.
pub const PROTOCOL: u32 = 1;

/// One line from the front end.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Repeated in the answer.
    pub id: u64,
    /// Method to call: a name of the table of methods.
    pub method: String,
    /// Its parameters: an object of the type that the table names.
    pub params: Value,
}

/// Parameters of `hello`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Version the front end speaks.
    pub protocol: u32,
    /// Name of the run.
    pub run: String,
    /// True to change nothing.
    pub is_dry_run: bool,
    /// Directory of journals, instead of the usual place.
    pub state_dir: Option<PathBuf>,
}

/// Parameters of `doctor`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Doctor {
    /// Directories to look at.
    pub paths: Vec<PathBuf>,
}

/// Parameters of `restore`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreParams {
    /// Only this run.
    pub run: Option<String>,
}

/// No parameters, or an answer without a value: `{}`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// File system and device arrangement of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// `ext4`, `xfs`, ...
    pub fs: String,
    /// Appended to ours.
    pub mkfs_options: Vec<String>,
    /// Appended to ours.
    pub mount_options: Vec<String>,
    /// True if the journal lies on the second device.
    pub has_external_journal: bool,
}

/// Content of the page cache before a reading phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// Nothing of the files; verified.
    Cold,
    /// The files; verified.
    Warm,
    /// Any content.
    AsIs,
}

/// Parameters of `run_trial`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<KnobChange>,
    /// Tenants whose workers, which are processes, get a weight or limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io_groups: Vec<IoGroup>,
    /// State of the page cache.
    pub cache: Cache,
    /// Memory of the workers, cache included.
    pub memory_limit_bytes: Option<u64>,
    /// Free space that must stay on a user's file system.
    pub reserve_bytes: u64,
    /// Wall-clock limit of the workload.
    pub time_limit_ns: u64,
    /// Condition that is awaited before each phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// Interim results that are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interim: Option<Interim>,
    /// User that measures, where that is not the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as: Option<RunAs>,
    /// Permissions for the user's files, where it works in a directory of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FileRules>,
    /// Block events of the testbed's devices are recorded while it is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TrialTrace>,
    /// Alternating slices, in place of running the workload once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<PairsSpec>,
    /// Workload to run; with alternating slices the work of the first treatment.
    pub workload: Workload,
}

/// Interim results of the phases, as `so_far` of the event `progress`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interim {
    /// Time between two of them.
    pub every_ns: u64,
    /// True if they have latencies and rates over time, and not only counts.
    pub has_times: bool,
}

/// Knobs that change while the workload runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnobChange {
    /// After the release of the workload's (only) phase.
    pub at_ns: u64,
    /// Knobs by name; the others stay.
    pub knobs: BTreeMap<String, String>,
}

/// Weight and limits of the workers of some tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoGroup {
    /// The tenants, who share what the group is given.
    pub tenants: Vec<String>,
    /// Share of the device relative to others; the kernel's default is 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Bytes that may be read per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_read_bytes_per_s: Option<u64>,
    /// Bytes that may be written per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_write_bytes_per_s: Option<u64>,
    /// Reads per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_read_ops_per_s: Option<u64>,
    /// Writes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_write_ops_per_s: Option<u64>,
}

/// One thing that was done, or would be in a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Privilege class: `A`, `A+`, `B` or `C`.
    pub class: String,
    /// Kind of the action.
    pub kind: ActionKind,
    /// On what.
    pub target: String,
    /// From what to what.
    pub detail: String,
}

/// Kinds of actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    Set,
    Simulate,
}

/// Answer to `open_testbed`.
#[derive(Debug, Serialize, JsonSchema)]
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
    /// Facts that were found.
    pub facts: BTreeMap<String, String>,
    /// Warnings for the reader.
    pub warnings: Vec<Warning>,
    /// Work that was done.
    pub actions: Vec<Action>,
}

/// End of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Debug, Serialize, JsonSchema)]
pub struct Record {
    /// Name of the trial.
    pub trial: String,
    /// End of the trial.
    pub status: Status,
    /// Reason of the failure.
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
    /// State of the machine.
    pub facts: BTreeMap<String, String>,
    /// Warnings for the reader of the numbers.
    pub warnings: Vec<Warning>,
    /// Work that was done.
    pub actions: Vec<Action>,
    /// Measured phases; empty with alternating slices.
    pub phases: Vec<PhaseRecord>,
    /// Record of alternating slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<PairsRecord>,
    /// File systems of alternating treatments that have their own, by device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<PairsImageRecord>,
    /// Files in a directory of the user's that were made, or written as allowed, and stay.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<String, FileMark>,
    /// The block trace that was recorded, if that was asked for and possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceOfTrial>,
    /// Of simulated trials only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<Simulation>,
    /// Of whole devices only; the front end adds it before it stores the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_writes: Option<HostWrites>,
    /// The session of slices that it was cut from; the front end adds it before it stores the
    /// record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionOfSlices>,
}

/// Facts of a trial that only a simulation knows.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Simulation {
    /// 16 hexadecimal digits; equal runs have equal hashes.
    pub event_hash: String,
    /// Counters of the layers, layout of the files included.
    pub counters: BTreeMap<String, f64>,
}

/// Bytes that the kernel counted as written to the whole device.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HostWrites {
    /// Between the trial before and this one.
    pub before_bytes: u64,
    /// During the trial.
    pub trial_bytes: u64,
}

/// One check of the doctor.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Check {
    /// Name of the thing that was looked at.
    pub name: String,
    /// Verdict.
    pub status: CheckStatus,
    /// Finding, in words.
    pub message: String,
    /// The command that would give more.
    pub hint: String,
}

/// Verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OpenJournal {
    /// Its run.
    pub run: String,
    /// Changes not undone.
    pub entries: usize,
}

/// Code of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request is wrong.
    Usage,
    /// A rule of safety forbids it.
    Refused,
    /// Failure; another request may succeed.
    Failed,
    /// Something could not be put back.
    RestoreIncomplete,
    /// Ended on request.
    Interrupted,
}

/// Reason why a request failed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorBody {
    /// Class of the error, which tells its treatment.
    pub code: ErrorCode,
    /// Action that failed, and its object.
    pub message: String,
    /// Advice: the next thing to do.
    pub hint: String,
}

/// Answer to `hello`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Greeted {
    /// Version of the protocol.
    pub protocol: u32,
    /// Version of the agent.
    pub version: String,
    /// True if it may do what needs root.
    pub is_root: bool,
    /// User it runs as.
    pub uid: u32,
    /// Changes at each start of the machine.
    pub boot_id: String,
    /// Journals that earlier runs left behind.
    pub open_journals: Vec<OpenJournal>,
    /// For whom root works; null: for itself.
    pub boundary: Option<BoundaryOf>,
}

/// User and policy of an agent that another user started through sudo.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BoundaryOf {
    /// The user.
    pub uid: u32,
    /// Path of the policy, or `default`.
    pub policy: String,
    /// Privilege classes that it allows.
    pub classes: Vec<String>,
}

/// Answer to `doctor`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Checks {
    /// One per thing that was looked at.
    pub checks: Vec<Check>,
}

/// Answer to `close_testbed`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Closed {
    /// True if everything was put back.
    pub is_restored: bool,
    /// Changes that were not put back.
    pub problems: Vec<String>,
    /// Work that was done.
    pub actions: Vec<Action>,
}

/// Answer to `restore`.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Restored {
    /// Put back and verified.
    pub restored: Vec<String>,
    /// Gone by itself.
    pub obsolete: Vec<String>,
    /// Not put back.
    pub problems: Vec<String>,
    /// Runs that are under way: nothing of theirs was undone.
    pub alive: Vec<String>,
}

impl Restored {
    /// Adds what another restore did.
    pub fn add(&mut self, other: Self) {
        self.restored.extend(other.restored);
        self.obsolete.extend(other.obsolete);
        self.problems.extend(other.problems);
        self.alive.extend(other.alive);
    }
}

/// Answer to `shutdown`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ShutDown {
    /// Changes that were not put back.
    pub problems: Vec<String>,
}

/// Progress of a long request: `params` of the event `progress`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Name of the trial; absent: none runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<String>,
    /// Name of the phase, or `prepare`, `image`, `precondition`, `slices`, `record`,
    /// `watch`.
    pub phase: String,
    /// For people; `waiting` while a phase waits for `proceed`.
    pub message: String,
    /// Done so far, from 0 to 1; absent: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Number of the phase that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u16>,
    /// While block events are recorded: what was recorded so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<RecordingSoFar>,
    /// While devices are watched: the interval that has just ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Box<LiveSecond>>,
    /// Line about the progress that the command line wants to see, without the time of day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Files of the user's directory that were made meanwhile, by name: known even if the agent is
    /// killed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub begun: BTreeMap<String, FileBirth>,
    /// Results of the phase so far, or, with the message `ended`, its results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub so_far: Option<Box<PhaseRecord>>,
}

/// Answer to a request.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "each names its type")]
pub enum Answer {
    Greeted(Greeted),
    Checks(Checks),
    Opened(OpenedTestbed),
    Record(Box<Record>),
    TraceRecorded(TraceRecorded),
    Closed(Closed),
    Restored(Restored),
    ShutDown(ShutDown),
    Nothing(Nothing),
}

/// One line to the front end.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Message {
    /// Any number, any time.
    Event {
        /// Always `progress`.
        event: &'static str,
        /// Progress of the request.
        params: Progress,
    },
    /// Success.
    Result {
        /// Of the request.
        id: u64,
        /// Answer.
        result: Answer,
    },
    /// Failure.
    Error {
        /// Of the request; 0 if the line was no request.
        id: u64,
        /// Reason of the failure.
        error: ErrorBody,
    },
}
