//! Report of a worker.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::verify::Mismatch;

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// Rate that was to become steady, as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyReport {
    /// True if the rate became steady, which ended the worker.
    pub is_attained: bool,
    /// Ops in each of the last seconds, oldest first.
    pub ops_per_s: Vec<u64>,
    /// Bytes in each of the same.
    pub bytes_per_s: Vec<u64>,
}

/// Failures that ended nothing, because the tenant goes on after them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tolerated {
    /// Number of them.
    pub errors: u64,
    /// Number of the first one; 0: there was none.
    pub first_errno: i32,
    /// The first one in words.
    pub first: String,
}

/// CPU time, switches and page faults of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadUse {
    /// CPU time in user space.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Switches to another task, asked for or not.
    pub context_switches: u64,
    /// Page faults that waited for storage.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
}

impl ThreadUse {
    /// Use since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            context_switches: self.context_switches.saturating_sub(earlier.context_switches),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
        }
    }

    /// CPU time in user space and in the kernel.
    pub fn cpu_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }
}

/// Counts of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamReport {
    /// Ordinal in its tenant.
    pub worker: u32,
    /// Transfers that ended inside the timed region.
    pub ops: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Of these read.
    pub read_bytes: u64,
    /// Of these written.
    pub write_bytes: u64,
    /// Length of its timed region.
    pub elapsed_ns: u64,
    /// Time at which its timed region began, on the target's clock.
    pub started_ns: u64,
    /// Longest time without an op that ended, from the beginning of its timed region on.
    #[serde(default)]
    pub gap_ns_max: u64,
    /// Time for which at least one of its calls in the timed region was under way, also of those
    /// that are not counted as ops (locks, flushes, a close, disturbing reads); without pauses, and
    /// without the making of data.
    #[serde(default)]
    pub call_ns: u64,
    /// Time for which its thread was ready to run and had no CPU, from before opening its file
    /// until after closing it; unknown where the kernel does not count it, and in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_delay_ns: Option<u64>,
    /// Use by its thread in its timed region; unknown in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<ThreadUse>,
    /// Ops that ended later than a period after their intended start; only under a rate limit.
    #[serde(default)]
    pub late_ops: Option<u64>,
    /// Ops that were due before its time was over and not begun; only under a rate limit.
    #[serde(default)]
    pub missed_ops: Option<u64>,
    /// Ops that failed; the first failure ends the worker.
    pub errors: u64,
    /// The first failure.
    pub first_error: Option<String>,
    /// Step that ended it before its time: it found nothing more to work on, or its condition held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// Rate that was seen; only of tenants that end when it is steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyReport>,
    /// Ops in flight that its search came to; only of tenants that search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth_found: Option<u32>,
    /// Failures after which it went on; only of tenants that do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerated: Option<Tolerated>,
    /// Blocks that were read and are not what was written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mismatch_count: u64,
    /// The first of them, described.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mismatches: Vec<Mismatch>,
}
