//! Orders to the reading child, and its answers: one JSON line each. After its order it takes the
//! number of a process on a line of its own, if it awaits one.

use iolab_trace::source::Facts;
use serde::{Deserialize, Serialize};

use super::device::Traced;
use super::layers;
use crate::protocol::{
    Backend, EventSet, KernelLayer, LiveSecond, RecordingResult, RecordingSoFar,
};

/// Kernel memory of each CPU, unless it is said.
pub const BUFFER_BYTES: u64 = 8 << 20;

/// One recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Name of the instance, which is there.
    pub instance: String,
    /// Name of the instance for what processes do, if there is one.
    pub process_instance: Option<String>,
    /// Devices to record.
    pub devices: Vec<Traced>,
    /// Events to record.
    pub events: EventSet,
    /// Layers beside the devices.
    pub layers: Vec<KernelLayer>,
    /// Processes whose events of these are recorded; empty: all.
    pub pids: Vec<u32>,
    /// True if the process is named later, when it has been started: until then nothing of
    /// processes is recorded.
    pub awaits_process: bool,
    /// The user that root works for, if processes must be that user's.
    pub bound_uid: Option<u32>,
    /// Major and minor numbers of file systems on the devices.
    pub file_systems: Vec<(u32, u32)>,
    /// Backend that brings the events; if tracefs, from the instances.
    pub backend: Backend,
    /// Kernel memory of each CPU.
    pub buffer_bytes: u64,
    /// The file's bytes at most; null: as many as fit.
    pub bytes_max: Option<u64>,
    /// True if devices are watched: seconds are told, and no file is written.
    pub is_live: bool,
    /// Facts of the file's head.
    pub facts: Facts,
}

impl Order {
    /// The same for block events alone.
    pub fn of_devices(devices: Vec<Traced>, events: EventSet, facts: Facts) -> Self {
        Self {
            instance: String::new(),
            process_instance: None,
            devices,
            events,
            layers: Vec::new(),
            pids: Vec::new(),
            awaits_process: false,
            bound_uid: None,
            file_systems: Vec::new(),
            backend: Backend::Auto,
            buffer_bytes: BUFFER_BYTES,
            bytes_max: None,
            is_live: false,
            facts,
        }
    }

    /// The kernel's filter of block events: those of the devices alone.
    pub fn block_filter(&self) -> String {
        let numbers = self.devices.iter().map(|it| format!("dev == {}", it.kernel_number()));
        numbers.collect::<Vec<_>>().join(" || ")
    }

    /// True if the calls of single processes are recorded, and not those of all.
    pub fn has_processes(&self) -> bool {
        self.awaits_process || !self.pids.is_empty()
    }

    /// True if names of files are looked up behind the calls of processes.
    pub fn has_file_calls(&self) -> bool {
        self.layers.contains(&KernelLayer::FileCalls)
    }

    /// True if some layer is recorded of these processes alone.
    pub fn wants_processes(&self) -> bool {
        let is_bounded = self.bound_uid.is_some();
        let is_any = self.layers.iter().any(|it| layers::is_of_processes(*it, is_bounded));
        is_any && self.has_processes()
    }
}

/// One line of the child.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Events are recorded from now on.
    Ready,
    /// The process that was named is recorded from now on.
    Follows,
    /// Progress of the recording.
    Progress(RecordingSoFar),
    /// An interval of devices that are watched.
    Second(LiveSecond),
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
