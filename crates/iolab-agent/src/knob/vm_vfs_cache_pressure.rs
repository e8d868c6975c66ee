//! Tendency to reclaim inodes and dentries compared with pages; 100 is fair.

use super::common::{INT_MAX, VmSetting};

/// The row.
pub const KNOB: VmSetting =
    VmSetting { file: "vfs_cache_pressure", min: 0, max: INT_MAX, twin: None };
