//! What other programs do around their measuring, and a trial can do for their command lines.

pub use iolab_workload::waits::{WaitFor, Waits};
use serde::{Deserialize, Serialize};

/// The user that the measuring child becomes before it opens any file; only root can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunAs {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}
