//! Merging of requests: 0 all attempts, 1 only simple ones, 2 none.

use super::common::QueueFile;

/// The row.
pub const KNOB: QueueFile =
    QueueFile { file: "nomerges", min: 0, max: 2, is_reset_by_scheduler: false };
