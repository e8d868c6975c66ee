//! Age, in hundredths of a second, at which dirty data is written back.

use super::common::{INT_MAX, Numbers, VmSetting};

/// The row.
pub const KNOB: VmSetting = VmSetting {
    file: "dirty_expire_centisecs",
    help: "age at which dirty data is written, 10 ms",
    numbers: Numbers { min: 0, max: INT_MAX, usual: 3000, other: 100, are_codes: false },
    twin: None,
};
