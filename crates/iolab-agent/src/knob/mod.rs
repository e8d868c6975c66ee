//! The settings that may be changed, one file and one row each; nothing else is ever written.
//!
//! The order of the list is the order in which a trial writes them, and a restore too: the depth of
//! the driver goes through `none`, a scheduler resets what comes after it.

mod api;
mod common;
mod driver_queue_depth;
mod max_sectors_kb;
mod nomerges;
mod nr_requests;
mod read_ahead_kb;
mod rq_affinity;
mod scheduler;
mod scheduler_tunable;
mod set;
mod vm_dirty_background_bytes;
mod vm_dirty_background_ratio;
mod vm_dirty_bytes;
mod vm_dirty_expire_centisecs;
mod vm_dirty_ratio;
mod vm_dirty_writeback_centisecs;
mod vm_vfs_cache_pressure;
mod wbt_lat_usec;

#[cfg(test)]
mod tests;

pub use api::{Scope, Site, find};
pub use scheduler::offered as offered_schedulers;
pub use set::KnobSet;

api::knobs! {
    /// How many requests the driver takes at once, below any scheduler.
    DriverQueueDepth = "driver_queue_depth" => driver_queue_depth::KNOB,
    /// The I/O scheduler.
    Scheduler = "scheduler" => scheduler::KNOB,
    /// How many requests a scheduler may hold.
    NrRequests = "nr_requests" => nr_requests::KNOB,
    /// A scheduler's own settings, such as `bfq.slice_idle`.
    SchedulerTunable = "SCHEDULER.TUNABLE" => scheduler_tunable::KNOB,
    /// Target latency of write-back throttling.
    WbtLatUsec = "wbt_lat_usec" => wbt_lat_usec::KNOB,
    /// Read-ahead.
    ReadAheadKb = "read_ahead_kb" => read_ahead_kb::KNOB,
    /// Largest request.
    MaxSectorsKb = "max_sectors_kb" => max_sectors_kb::KNOB,
    /// How much effort goes into merging.
    Nomerges = "nomerges" => nomerges::KNOB,
    /// On which CPU a request completes.
    RqAffinity = "rq_affinity" => rq_affinity::KNOB,
    /// Share of memory at which writers must write back.
    VmDirtyRatio = "vm.dirty_ratio" => vm_dirty_ratio::KNOB,
    /// The same in bytes.
    VmDirtyBytes = "vm.dirty_bytes" => vm_dirty_bytes::KNOB,
    /// Share of memory at which write-back starts.
    VmDirtyBackgroundRatio = "vm.dirty_background_ratio" => vm_dirty_background_ratio::KNOB,
    /// The same in bytes.
    VmDirtyBackgroundBytes = "vm.dirty_background_bytes" => vm_dirty_background_bytes::KNOB,
    /// Age at which dirty data is written.
    VmDirtyExpire = "vm.dirty_expire_centisecs" => vm_dirty_expire_centisecs::KNOB,
    /// Interval of the flusher.
    VmDirtyWriteback = "vm.dirty_writeback_centisecs" => vm_dirty_writeback_centisecs::KNOB,
    /// Tendency to reclaim inodes and dentries.
    VmVfsCachePressure = "vm.vfs_cache_pressure" => vm_vfs_cache_pressure::KNOB,
}
