//! Share of available memory, in percent, at which a writer must write back itself.

use super::common::VmSetting;

/// The row.
pub const KNOB: VmSetting =
    VmSetting { file: "dirty_ratio", min: 0, max: 100, twin: Some("vm.dirty_bytes") };
