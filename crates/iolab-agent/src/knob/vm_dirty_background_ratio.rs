//! Share of available memory, in percent, at which the kernel starts to write back.

use super::common::VmSetting;

/// The row.
pub const KNOB: VmSetting = VmSetting {
    file: "dirty_background_ratio",
    min: 0,
    max: 100,
    twin: Some("vm.dirty_background_bytes"),
};
