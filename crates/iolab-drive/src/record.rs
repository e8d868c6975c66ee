//! Record of a phase, as it is stored: what the workers counted, and what the machine did
//! meanwhile.

use std::collections::BTreeMap;

use iolab_model::op::Access;
use iolab_model::readings::HostReading;
use iolab_workload::operation::{Nature, OperationKind};
use iolab_workload::spec::Phase;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::coordinate::{PhaseOutcome, TenantOutcome};

/// A typed caveat: `code` is stable, `message` says what was seen, `hint` what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Warning {
    /// `snake_case` and stable.
    pub code: String,
    /// Observation, in words.
    pub message: String,
    /// Advice: the next thing to do.
    pub hint: String,
}

impl Warning {
    /// A warning.
    pub fn new(code: &str, message: impl Into<String>, hint: &str) -> Self {
        Self { code: code.into(), message: message.into(), hint: hint.into() }
    }
}

/// State of the page cache when the timed region began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheRecord {
    /// `cold`, `warm` or `as_is`.
    pub asked: String,
    /// Method by which residency was found out: `cachestat`, `mincore` or `none`.
    pub method: String,
    /// Resident share of the files' pages, after what was asked had been done.
    pub resident_before_share: f64,
}

/// CPU time of the harness and its workers during the timed region, and what it was taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuRecord {
    /// In user space.
    pub user_ns: u64,
    /// In the kernel, on behalf of the workers.
    pub system_ns: u64,
    /// Switches to another task, asked for or not.
    #[serde(default)]
    pub context_switches: u64,
    /// Page faults that waited for storage.
    #[serde(default)]
    pub major_faults: u64,
    /// Page faults that did not.
    #[serde(default)]
    pub minor_faults: u64,
}

/// Work of a block device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceRecord {
    /// Kernel name.
    pub name: String,
    /// Bytes read during the timed region.
    pub read_bytes: u64,
    /// Bytes written during the timed region.
    pub write_bytes: u64,
    /// Bytes written between its end and the end of the last flush.
    pub flushed_write_bytes: u64,
    /// Read requests completed during the timed region.
    pub reads: u64,
    /// Write requests completed during the timed region.
    pub writes: u64,
    /// Time with at least one request in the device (moves in jiffies).
    pub io_ticks_ns: u64,
    /// Merges and waits of its requests, if they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestCounters>,
    /// Its counters over the timed region, if they were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<CounterSeries>,
}

/// Merges and times of the requests of a block device during the timed region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestCounters {
    /// Reads that joined a request which was there.
    pub read_merges: u64,
    /// Writes that joined a request which was there.
    pub write_merges: u64,
    /// Sum over the reads of the time from their beginning to their end.
    pub read_ticks_ns: u64,
    /// Sum over the writes of the time from their beginning to their end.
    pub write_ticks_ns: u64,
    /// Sum over all requests of the time from their beginning to their end.
    pub in_queue_ns: u64,
}

/// Counters of a block device, read again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CounterSeries {
    /// Times of the readings, from the first on.
    pub at_ns: Vec<u64>,
    /// One reading each: what the kernel's `stat` file of the device has counted since the first,
    /// in its order; requests in flight as they were.
    pub counters: Vec<Vec<u64>>,
    /// Time of a simulated machine's processors beside each reading, if it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<HostReading>,
}

fn one() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(value: &u64) -> bool {
    *value == 1
}

/// Everything stored about one phase.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseRecord {
    /// Name of the operation.
    pub name: String,
    /// Release, on the monotonic clock.
    pub started_ns: u64,
    /// From the release to the end of the last timed region.
    pub elapsed_ns: u64,
    /// From the release until the last worker has ended, flushed, closed and gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_ns: Option<u64>,
    /// Kind of all its tenants together.
    pub kind: OperationKind,
    /// Bytes per operation; absent: operations of several sizes, or of none.
    pub io_size_bytes: Option<u64>,
    /// The way to the data, as performed; absent: several ways, or none.
    pub access: Option<Access>,
    /// Records of the file that one operation moves at most.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub records_per_op: u64,
    /// State of the page cache.
    pub cache: CacheRecord,
    /// CPU time.
    pub cpu: CpuRecord,
    /// Cost of the harness itself per op, measured on the null target just before.
    pub harness_ns_per_op: Option<f64>,
    /// Work of the devices, for any process.
    pub devices: Vec<DeviceRecord>,
    /// Bytes that were read from storage on behalf of the workers alone; unknown for processes.
    #[serde(default)]
    pub own_read_bytes: Option<u64>,
    /// Places of its files on the device, if the file system tells them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<PlacedFiles>,
    /// Tenants that ran.
    pub tenants: Vec<TenantOutcome>,
    /// Warnings for the reader of the numbers.
    pub warnings: Vec<Warning>,
    /// Knobs that were changed while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// Summary of its block trace; the front end adds it before it stores the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<PhaseTrace>,
}

/// Files of a phase that have a place on the device, at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacedFiles {
    /// Files that were looked at.
    pub files: u64,
    /// Runs of neighbouring blocks that their data lie in.
    pub extents: u64,
}

impl PlacedFiles {
    /// Most files that are looked at: their first ones tell what the others are like.
    pub const FILES_MAX: usize = 1000;

    /// Sum over files; `None` if one has data without a place, or if there is none.
    pub fn of(extents: impl IntoIterator<Item = Option<u64>>) -> Option<Self> {
        let mut sum = Self::default();
        for count in extents.into_iter().take(Self::FILES_MAX) {
            sum.files += 1;
            sum.extents += count?;
        }
        (sum.files > 0).then_some(sum)
    }
}

/// Summary of the block trace of a trial for one phase.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseTrace {
    /// Times of stages, by the stage's name: `Q2D`, `D2C`, `Q2C` ...
    pub stages: BTreeMap<String, StageTimes>,
    /// Work of each device, as `iolab trace` gives it.
    pub devices: Vec<Value>,
}

/// Times of one stage of the requests in a block trace; percentiles are at most 1/128 too long.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageTimes {
    /// The stage.
    pub stage: String,
    /// Requests.
    pub count: u64,
    /// Shortest.
    pub min_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Half of all are at most this long.
    pub p50_ns: u64,
    /// Nine of ten.
    pub p90_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// 999 of 1000.
    pub p999_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Sum.
    pub sum_ns: u64,
}

/// A knob that was changed while a phase ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Time at which it was to happen, after the release.
    pub asked_ns: u64,
    /// Time at which it began.
    pub began_ns: u64,
    /// Time at which it was done and read back.
    pub done_ns: u64,
    /// Name of the knob.
    pub knob: String,
    /// Value before.
    pub from: Option<String>,
    /// Value as read back.
    pub to: Option<String>,
}

impl PhaseRecord {
    /// The record of an outcome of `phase`, with nothing known yet of the machine.
    /// `default_access` is what the engine's files are unless the workload asks otherwise.
    pub fn new(mut outcome: PhaseOutcome, phase: &Phase, default_access: Access) -> Self {
        for (told, tenant) in outcome.tenants.iter_mut().zip(&phase.tenants) {
            told.access = Nature::of_tenant(tenant).performed(default_access).access;
        }
        let nature = Nature::of_phase(phase).performed(default_access);
        Self {
            name: outcome.name,
            started_ns: outcome.started_ns,
            elapsed_ns: outcome.elapsed_ns,
            parent_ns: outcome.parent_ns,
            kind: nature.kind,
            io_size_bytes: nature.io_size_bytes,
            access: nature.access,
            records_per_op: phase.records_per_op,
            cache: CacheRecord::default(),
            cpu: CpuRecord::default(),
            harness_ns_per_op: None,
            devices: Vec::new(),
            own_read_bytes: None,
            placed: None,
            tenants: outcome.tenants,
            warnings: Vec::new(),
            marks: Vec::new(),
            trace: None,
        }
    }

    /// The first failure of any worker.
    pub fn first_error(&self) -> Option<&str> {
        let workers = self.tenants.iter().flat_map(|tenant| &tenant.workers);
        workers.into_iter().find_map(|worker| worker.first_error.as_deref())
    }
}
