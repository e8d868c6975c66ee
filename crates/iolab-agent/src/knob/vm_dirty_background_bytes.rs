//! Dirty bytes at which the kernel starts to write back; excludes the ratio.

use super::common::{Numbers, VmSetting};

/// The row.
pub const KNOB: VmSetting = VmSetting {
    file: "dirty_background_bytes",
    help: "the same as vm.dirty_background_ratio in bytes",
    numbers: Numbers { min: 1, max: i64::MAX, usual: 0, other: 65_536, are_codes: false },
    twin: Some("vm.dirty_background_ratio"),
};
