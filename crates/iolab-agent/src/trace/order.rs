//! What the reading child is told, and what it says: one JSON line each.

use std::collections::BTreeMap;

use iolab_trace::source::Facts;
use serde::{Deserialize, Serialize};

use super::device::Traced;

/// Which block events are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventSet {
    /// All that name a device.
    #[default]
    Full,
    /// What devices were given, and when they were done.
    IssueComplete,
}

/// One recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Name of the instance, which is there.
    pub instance: String,
    /// What is recorded.
    pub devices: Vec<Traced>,
    /// Which events.
    pub events: EventSet,
    /// Kernel memory of each CPU.
    pub buffer_bytes: u64,
    /// Facts of the file's head.
    pub facts: Facts,
}

/// Result of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
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
    /// Why the file ends early, if it does: it could not be written any more.
    pub problem: Option<String>,
}

/// One line of the child.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Events are recorded from now on.
    Ready,
    /// How far it is.
    Progress {
        /// Events so far.
        events: u64,
        /// Bytes so far.
        bytes: u64,
        /// Lost so far.
        lost: u64,
    },
    /// The last line.
    Recorded(Recorded),
    /// The last line, if there is no recording.
    Failed {
        /// What failed.
        what: String,
        /// What to do.
        hint: String,
    },
}
