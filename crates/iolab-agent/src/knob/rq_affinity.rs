//! Where a request completes: 0 anywhere, 1 in the submitter's CPU group, 2 on its very CPU.

use super::common::QueueFile;

/// The row.
pub const KNOB: QueueFile =
    QueueFile { file: "rq_affinity", min: 0, max: 2, is_reset_by_scheduler: false };
