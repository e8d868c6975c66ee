//! What the reading child is told, and what it says: one JSON line each.

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
    /// What is recorded.
    pub devices: Vec<Traced>,
    /// Which events.
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
    /// How far it is.
    Progress(RecordingSoFar),
    /// The last line.
    Recorded(RecordingResult),
    /// The last line, if there is no recording.
    Failed {
        /// What failed.
        what: String,
        /// What to do.
        hint: String,
    },
}
