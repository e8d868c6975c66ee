//! Recordings of block events on the wire: what is asked, and what they leave.

use std::collections::BTreeMap;
use std::path::PathBuf;

use iolab_drive::record::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

iolab_model::registry! {
    /// Set of block events to record.
    #[derive(Default)]
    pub enum EventSet as "set of block events" {
        /// All that name a device.
        #[default]
        Full = "full",
        /// Requests given to devices, and their ends.
        IssueComplete = "issue_complete",
    }
}

impl EventSet {
    /// Name that users type.
    pub fn typed(self) -> String {
        self.name().replace('_', "-")
    }

    /// Content in a few words.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Full => "all that name a device",
            Self::IssueComplete => "what devices were given, and when they were done",
        }
    }
}

impl KernelLayer {
    /// Name that users type.
    pub fn typed(self) -> String {
        self.name().replace('_', "-")
    }

    /// Content in a few words.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Syscalls => "calls that read, write or flush: their beginning and end",
            Self::FileCalls => {
                "calls that open, move in and close files, with names: for `iolab pattern`"
            }
            Self::Writeback => "pages that become dirty, and those that the flusher writes",
            Self::Ext4 => "the file system ext4",
            Self::Jbd2 => "the journal of ext4",
            Self::PageCache => "pages that enter and leave the page cache",
            Self::ReadAhead => "reading ahead (Linux 6.16)",
        }
    }
}

iolab_model::registry! {
    /// A layer of the kernel whose events are recorded beside those of block devices.
    pub enum KernelLayer as "layer of the kernel" {
        /// Beginning and end of system calls that read, write or flush.
        Syscalls = "syscalls",
        /// System calls of files, with names: for `iolab pattern`.
        FileCalls = "file_calls",
        /// Pages that become dirty, and those that the flusher writes.
        Writeback = "writeback",
        /// The file system ext4.
        Ext4 = "ext4",
        /// The journal of ext4.
        Jbd2 = "jbd2",
        /// Pages that enter and leave the page cache.
        PageCache = "page_cache",
        /// Reading ahead.
        ReadAhead = "read_ahead",
    }
}

iolab_model::registry! {
    /// Way of events to the recorder.
    #[derive(Default)]
    pub enum Backend as "way of recording" {
        /// By tracefs; where that cannot be written, by perf events.
        #[default]
        Auto = "auto",
        /// By an instance of tracefs.
        Tracefs = "tracefs",
        /// By `perf_event_open`.
        Perf = "perf",
    }
}

/// An empty file that is to be filled: made by the front end, with the rights of its user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputFile {
    /// Its whole path.
    pub path: PathBuf,
    /// Device number, as the front end saw it.
    pub device: u64,
    /// Inode, as the front end saw it.
    pub inode: u64,
}

/// Parameters of `record_trace`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordSpec {
    /// Names or paths of devices; none if only the calls of processes are recorded.
    pub devices: Vec<String>,
    /// File that it is written to.
    pub output: OutputFile,
    /// Events to record.
    #[serde(default)]
    pub events: EventSet,
    /// Other layers.
    #[serde(default)]
    pub layers: Vec<KernelLayer>,
    /// Processes whose events of other layers are recorded, with what they start; empty: all.
    #[serde(default)]
    pub pids: Vec<u32>,
    /// Way of events to the recorder.
    #[serde(default)]
    pub backend: Backend,
    /// Kernel memory of each CPU; null: 8 MiB.
    #[serde(default)]
    pub buffer_bytes: Option<u64>,
    /// Time after which it ends by itself; null: when it is interrupted.
    #[serde(default)]
    pub time_limit_ns: Option<u64>,
    /// The command that is recorded, for the file's facts.
    #[serde(default)]
    pub command: Option<String>,
}

/// A recording beside a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialTrace {
    /// File that it is written to.
    pub output: OutputFile,
    /// Events to record.
    pub events: EventSet,
    /// Other layers, of the processes of the trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<KernelLayer>,
}

/// Amount recorded so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordingSoFar {
    /// Events in the file.
    pub events: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Events that the kernel lost.
    pub lost: u64,
}

/// Result of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingResult {
    /// Events in the file, notes included.
    pub events: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// From the switch on to the switch off.
    pub elapsed_ns: u64,
    /// CPU time of the recorder, user and system.
    pub cpu_ns: u64,
    /// Events that the kernel lost, by CPU; only CPUs that lost some.
    pub lost: BTreeMap<u32, u64>,
    /// Devices that went away meanwhile.
    pub vanished: Vec<String>,
    /// Reason why the file ends early, if it does: it could not be written any more.
    pub problem: Option<String>,
}

/// Answer to `record_trace`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TraceRecorded {
    /// Amount in the file.
    pub recorded: RecordingResult,
    /// Kernel names of the devices.
    pub devices: Vec<String>,
    /// Warnings for the reader.
    pub warnings: Vec<Warning>,
}

/// The block trace of a trial.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TraceOfTrial {
    /// Amount in the file.
    #[serde(flatten)]
    pub recorded: RecordingResult,
    /// The file in the results directory; the front end adds it before it stores the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Digest of the file, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}
