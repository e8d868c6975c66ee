//! Interval of the flusher, in hundredths of a second; 0 turns it off.

use super::common::{INT_MAX, Numbers, VmSetting};

/// The row.
pub const KNOB: VmSetting = VmSetting {
    file: "dirty_writeback_centisecs",
    help: "interval of the flusher, 10 ms",
    numbers: Numbers { min: 0, max: INT_MAX, usual: 500, other: 0, are_codes: false },
    twin: None,
};
