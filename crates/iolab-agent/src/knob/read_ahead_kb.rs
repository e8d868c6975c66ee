//! Read-ahead of the device in KiB, for files opened from now on; 0 turns it off.
//!
//! Defaults differ widely (128 is classic, loop devices have 2560): a study should set it. Rounded
//! down to pages. Left out: file systems with a `bdi` of their own (btrfs, FUSE, NFS).

use super::common::{Numbers, QueueFile};

/// The row.
pub const KNOB: QueueFile = QueueFile {
    file: "read_ahead_kb",
    help: "read-ahead, KiB",
    numbers: Numbers { min: 0, max: 4_194_304, usual: 128, other: 4096, are_codes: false },
    is_reset_by_scheduler: false,
};
