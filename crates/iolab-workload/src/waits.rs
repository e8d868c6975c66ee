//! Waiting before each phase, outside its time: for other copies of a program, or for somebody.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Condition that is awaited before each phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Waits {
    /// For whom.
    pub kind: WaitFor,
    /// Number of each phase, by its name: that of its semaphore.
    pub numbers: BTreeMap<String, u16>,
}

/// For whom a phase waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// For the other copies, by bonnie++'s set of semaphores.
    Semaphores,
    /// For the front end, which says `proceed` when it was told to.
    FrontEnd,
}
