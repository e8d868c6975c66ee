//! Polling for completions of requests that ask for it: 0 interrupts, 1 polling.
//!
//! Since Linux 5.16 the kernel takes a write and ignores it, because polling is the driver's to
//! offer (`nvme.poll_queues`): the value that is read back tells, as `knob_changed`.

use super::common::{Numbers, QueueFile};

/// The row.
pub const KNOB: QueueFile = QueueFile {
    file: "io_poll",
    help: "polling for completions: 0 off, 1 on",
    numbers: Numbers { min: 0, max: 1, usual: 0, other: 1, are_codes: true },
    is_reset_by_scheduler: false,
};
