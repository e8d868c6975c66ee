//! Age, in hundredths of a second, at which dirty data is written back.

use super::common::{INT_MAX, VmSetting};

/// The row.
pub const KNOB: VmSetting =
    VmSetting { file: "dirty_expire_centisecs", min: 0, max: INT_MAX, twin: None };
