//! Interval of the flusher, in hundredths of a second; 0 turns it off.

use super::common::{INT_MAX, VmSetting};

/// The row.
pub const KNOB: VmSetting =
    VmSetting { file: "dirty_writeback_centisecs", min: 0, max: INT_MAX, twin: None };
