//! Orders to the reading child, and its answers: one JSON line each.

use iolab_trace::source::Facts;
use serde::{Deserialize, Serialize};

use super::device::Traced;
use crate::protocol::{EventSet, RecordingResult, RecordingSoFar};

/// One recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Name of the instance, which is there.
    pub instance: String,
    /// Devices to record.
    pub devices: Vec<Traced>,
    /// Events to record.
    pub events: EventSet,
    /// Kernel memory of each CPU.
    pub buffer_bytes: u64,
    /// The file's bytes at most; null: as many as fit.
    pub bytes_max: Option<u64>,
    /// Facts of the file's head.
    pub facts: Facts,
}

/// One line of the child.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Events are recorded from now on.
    Ready,
    /// Progress of the recording.
    Progress(RecordingSoFar),
    /// The last line.
    Recorded(RecordingResult),
    /// The last line, if there is no recording.
    Failed {
        /// Action that failed.
        what: String,
        /// Advice: the next thing to do.
        hint: String,
    },
}
