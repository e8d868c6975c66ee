//! Merging of requests: 0 all attempts, 1 only simple ones, 2 none.

use super::common::{Numbers, QueueFile};

/// The row.
pub const KNOB: QueueFile = QueueFile {
    file: "nomerges",
    help: "0 all merges, 1 simple ones, 2 none",
    numbers: Numbers { min: 0, max: 2, usual: 0, other: 2, are_codes: true },
    is_reset_by_scheduler: false,
};
