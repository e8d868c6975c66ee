//! Number of requests that the active scheduler may hold; the kernel makes less than 4 into 4.
//!
//! Under `none` this file is the depth of the *driver*, which survives the next switch of the
//! scheduler although the file shows a default again. Asked for under `none` it is therefore
//! treated as `driver_queue_depth`. Source: Linux block/blk-mq.c (`blk_mq_update_nr_requests`) and
//! block/elevator.c (`elevator_switch`), tried on Linux 6.18.

use super::common::{Numbers, QueueFile};

/// The row.
pub const KNOB: QueueFile =
    // include/linux/blkdev.h: BLKDEV_MIN_RQ, 4. The upper limit depends on the device.
    QueueFile {
        file: "nr_requests",
        help: "requests the scheduler may hold",
        numbers: Numbers { min: 4, max: 65_536, usual: 128, other: 32, are_codes: false },
        is_reset_by_scheduler: true,
    };
