//! Share of available memory, in percent, at which the kernel starts to write back.

use super::common::{Numbers, VmSetting};

/// The row.
pub const KNOB: VmSetting = VmSetting {
    file: "dirty_background_ratio",
    help: "share of memory at which write-back starts, %",
    numbers: Numbers { min: 0, max: 100, usual: 10, other: 1, are_codes: false },
    twin: Some("vm.dirty_background_bytes"),
};
