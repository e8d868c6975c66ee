//! Share of available memory, in percent, at which a writer must write back itself.

use super::common::{Numbers, VmSetting};

/// The row.
pub const KNOB: VmSetting = VmSetting {
    file: "dirty_ratio",
    help: "share of memory at which writers must write back, %",
    numbers: Numbers { min: 0, max: 100, usual: 20, other: 5, are_codes: false },
    twin: Some("vm.dirty_bytes"),
};
