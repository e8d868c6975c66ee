//! The settings of a queue, under the names of sysfs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sched::SchedulerKind;

/// The settings of a queue; what is absent takes the kernel's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueParameters {
    /// The scheduler.
    pub scheduler: SchedulerKind,
    /// Its tunables that differ from the defaults.
    pub tunables: BTreeMap<String, u64>,
    /// Request slots; absent: 128 per sync and async pool (legacy), twice the smaller of device
    /// depth and 128 (blk-mq with a scheduler), the device's depth (none).
    pub nr_requests: Option<u32>,
    /// Commands given to the device at once; absent: what it takes.
    pub queue_depth: Option<u32>,
    /// Requests pulled beyond the device's depth: 1 as most real stacks do, 0 as SCSI does.
    pub look_ahead: u32,
    /// 0: all merges, 1: the one-hit cache only, 2: none.
    pub nomerges: u8,
    /// Longest request.
    pub max_sectors_kb: Option<u32>,
    /// Most 4 KiB segments per request.
    pub max_segments: Option<u32>,
    /// Clock ticks per second.
    pub hz: u32,
    /// CPUs that submit.
    pub cpus: u16,
    /// Overrides what the device says of itself.
    pub rotational: Option<bool>,
    /// The device refuses every so manieth request once it has work (`QUEUE FULL` of a SCSI target);
    /// it is put back and offered again after the next completion. 0: never.
    pub refuse_every: u32,
}

impl Default for QueueParameters {
    fn default() -> Self {
        Self {
            scheduler: SchedulerKind::None,
            tunables: BTreeMap::new(),
            nr_requests: None,
            queue_depth: None,
            look_ahead: 1,
            nomerges: 0,
            max_sectors_kb: None,
            max_segments: None,
            hz: 1000,
            cpus: 1,
            rotational: None,
            refuse_every: 0,
        }
    }
}
