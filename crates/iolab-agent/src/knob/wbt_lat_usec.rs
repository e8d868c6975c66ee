//! Target latency of write-back throttling in µs: 0 turns it off, -1 is the kernel's default.
//!
//! bfq turns it off while it is active, which biases comparisons of buffered writes: the record
//! tells.

use super::common::{INT_MAX, Numbers, QueueFile};

/// The row.
pub const KNOB: QueueFile = QueueFile {
    file: "wbt_lat_usec",
    help: "target of write-back throttling, us; 0 off, -1 default",
    numbers: Numbers { min: -1, max: INT_MAX, usual: 2000, other: 0, are_codes: false },
    is_reset_by_scheduler: true,
};
