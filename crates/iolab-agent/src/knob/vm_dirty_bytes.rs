//! Dirty bytes at which a writer must write back itself; excludes the ratio.
//!
//! The kernel wants two pages at least (mm/page-writeback.c: `dirty_bytes_min`).

use super::common::VmSetting;

/// The row.
pub const KNOB: VmSetting =
    VmSetting { file: "dirty_bytes", min: 8192, max: i64::MAX, twin: Some("vm.dirty_ratio") };
