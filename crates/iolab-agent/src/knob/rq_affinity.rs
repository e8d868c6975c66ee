//! CPU on which a request completes: 0 anywhere, 1 in the submitter's CPU group, 2 on its very CPU.

use super::common::{Numbers, QueueFile};

/// The row.
pub const KNOB: QueueFile = QueueFile {
    file: "rq_affinity",
    help: "CPU that completes a request: 0, 1 or 2",
    numbers: Numbers { min: 0, max: 2, usual: 1, other: 2, are_codes: true },
    is_reset_by_scheduler: false,
};
