//! Tendency to reclaim inodes and dentries compared with pages; 100 is fair.

use super::common::{INT_MAX, Numbers, VmSetting};

/// The row.
pub const KNOB: VmSetting = VmSetting {
    file: "vfs_cache_pressure",
    help: "tendency to reclaim inodes and dentries",
    numbers: Numbers { min: 0, max: INT_MAX, usual: 100, other: 50, are_codes: false },
    twin: None,
};
