//! The file half beside the block half: a machine, and what passes between them.

use iolab_files::machine::{Machine, MachineEnded, Outgoing};
use iolab_model::Priority;

/// A mounted file system, with room for what it hands over.
pub(super) struct Files {
    pub machine: Machine,
    pub requests: Vec<Outgoing>,
    pub ended: Vec<MachineEnded>,
    /// Priorities of the lanes' processes.
    pub priorities: Vec<Priority>,
    /// Lane of the process that prepares and cleans up.
    pub lane_beside: Option<u32>,
}

impl Files {
    pub const fn new(machine: Machine) -> Self {
        Self {
            machine,
            requests: Vec::new(),
            ended: Vec::new(),
            priorities: Vec::new(),
            lane_beside: None,
        }
    }
}
