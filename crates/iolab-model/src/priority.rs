//! I/O priority, as `ioprio_set(2)` knows it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// I/O priority class, `ioprio_set(2)`. The order is the urgency.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum PriorityClass {
    /// Real time.
    #[serde(rename = "rt")]
    RealTime,
    /// Never set; schedulers derive one from the nice value or treat it as best effort.
    None,
    /// Best effort: everybody's default.
    #[default]
    #[serde(rename = "be")]
    BestEffort,
    /// Only when nobody else wants the device.
    Idle,
}

/// I/O priority: class and level.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Priority {
    /// Class.
    #[serde(default)]
    pub class: PriorityClass,
    /// 0 (most urgent) to 7.
    #[serde(default = "middle")]
    pub level: u8,
}

fn middle() -> u8 {
    4
}

impl Default for Priority {
    /// Best effort, level 4: what a process of nice 0 has.
    fn default() -> Self {
        Self { class: PriorityClass::BestEffort, level: middle() }
    }
}

impl Priority {
    /// As the kernel packs it (include/uapi/linux/ioprio.h): class in the upper three bits.
    pub const fn packed(self) -> u16 {
        let class: u16 = match self.class {
            PriorityClass::None => 0,
            PriorityClass::RealTime => 1,
            PriorityClass::BestEffort => 2,
            PriorityClass::Idle => 3,
        };
        (class << 13) | self.level as u16
    }
}
