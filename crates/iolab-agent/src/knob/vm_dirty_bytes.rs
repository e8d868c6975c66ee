//! Dirty bytes at which a writer must write back itself; excludes the ratio.
//!
//! The kernel wants two pages at least (mm/page-writeback.c: `dirty_bytes_min`).

use super::common::{Numbers, VmSetting};

/// The row.
pub const KNOB: VmSetting = VmSetting {
    file: "dirty_bytes",
    help: "the same as vm.dirty_ratio in bytes",
    numbers: Numbers { min: 8192, max: i64::MAX, usual: 0, other: 1_048_576, are_codes: false },
    twin: Some("vm.dirty_ratio"),
};
