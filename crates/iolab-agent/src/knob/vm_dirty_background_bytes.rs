//! Dirty bytes at which the kernel starts to write back; excludes the ratio.

use super::common::VmSetting;

/// The row.
pub const KNOB: VmSetting = VmSetting {
    file: "dirty_background_bytes",
    min: 1,
    max: i64::MAX,
    twin: Some("vm.dirty_background_ratio"),
};
