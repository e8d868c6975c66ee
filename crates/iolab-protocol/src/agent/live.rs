//! Devices that are watched while they work: what is asked, and what is told each second.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::trace::Backend;

/// Ranges of a [`LiveLatency`]: the first is below 1 us, each further one ends at twice the end of
/// the one before, and the last has no end.
pub const LIVE_RANGES: usize = 26;

/// Parameters of `watch_trace`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchSpec {
    /// Names or paths of devices.
    pub devices: Vec<String>,
    /// Way of events to the recorder.
    #[serde(default)]
    pub backend: Backend,
    /// Kernel memory of each CPU; null: 8 MiB.
    #[serde(default)]
    pub buffer_bytes: Option<u64>,
    /// Time after which it ends by itself; null: when it is interrupted.
    #[serde(default)]
    pub time_limit_ns: Option<u64>,
}

/// Amount of one operation in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LiveAmount {
    /// Completions.
    pub count: u64,
    /// Bytes of these.
    pub bytes: u64,
}

/// Times that ended in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LiveLatency {
    /// Number of them.
    pub count: u64,
    /// Half of all are at most this long; percentiles are at most 1/128 too long. 0 without any.
    pub p50_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Times in each of 26 ranges: below 1 us, from 1 to 2 us, from 2 to 4 us, and so on; the last
    /// has no end.
    pub ranges: Vec<u64>,
}

/// Number of requests at once in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LiveDepth {
    /// Mean over the time of the interval.
    pub mean: f64,
    /// Largest.
    pub max: u64,
}

/// Bytes that a process asked devices for in an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LiveProcess {
    /// Number of the task.
    pub pid: u32,
    /// Its name, as the kernel has it.
    pub name: String,
    /// Bytes of its reads.
    pub read_bytes: u64,
    /// Bytes of its writes; those that were written back later are a worker's of the kernel.
    pub write_bytes: u64,
}

/// One interval of devices that are watched: a second, the last one may be shorter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LiveSecond {
    /// Number of the interval, from 1 on.
    pub number: u64,
    /// Its length.
    pub interval_ns: u64,
    /// Reads.
    pub reads: LiveAmount,
    /// Writes.
    pub writes: LiveAmount,
    /// Discards.
    pub discards: LiveAmount,
    /// Flushes of the device's cache that were asked for.
    pub flushes: u64,
    /// Completions with an error.
    pub errors: u64,
    /// From the issue to the driver to the completion (D2C).
    pub device: LiveLatency,
    /// From the queue to the completion (Q2C).
    pub whole: LiveLatency,
    /// Requests in the driver and the device.
    pub in_device: LiveDepth,
    /// Bios between queue and completion.
    pub in_queue: LiveDepth,
    /// Processes with the most bytes, at most 16.
    pub processes: Vec<LiveProcess>,
    /// Bytes of all other processes.
    pub other_bytes: u64,
    /// Events that were read.
    pub events: u64,
    /// Events that the kernel lost since the interval before.
    pub lost: u64,
    /// Requests that were given up, because too many were waited for.
    pub forgotten: u64,
}
