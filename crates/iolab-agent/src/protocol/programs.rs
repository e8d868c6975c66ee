//! What other programs do around their measuring, and a trial can do for their command lines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What is waited for before each phase, outside the timed region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waits {
    /// For whom.
    pub kind: WaitFor,
    /// Number of each phase, by its name: that of its semaphore.
    pub numbers: BTreeMap<String, u16>,
}

/// For whom a phase waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// For the other copies, by bonnie++'s set of semaphores.
    Semaphores,
    /// For the front end, which says `proceed`.
    FrontEnd,
}

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
