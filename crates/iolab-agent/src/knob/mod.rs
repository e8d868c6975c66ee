//! The settings that may be changed, one file and one row each; nothing else is ever written.
//!
//! The order of the list is the order in which a trial writes them, and a restore too: the depth of
//! the driver goes through `none`, a scheduler resets what comes after it.

mod api;
mod common;
mod cpu_boost;
mod cpu_governor;
mod cpu_no_turbo;
mod driver_queue_depth;
mod io_poll;
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

pub use api::{About, Knob, Scope, Site, find};
pub use scheduler::offered as offered_schedulers;
pub use set::KnobSet;

api::knobs! {
    DriverQueueDepth = "driver_queue_depth" => driver_queue_depth::KNOB,
    Scheduler = "scheduler" => scheduler::KNOB,
    NrRequests = "nr_requests" => nr_requests::KNOB,
    SchedulerTunable = "SCHEDULER.TUNABLE" => scheduler_tunable::KNOB,
    WbtLatUsec = "wbt_lat_usec" => wbt_lat_usec::KNOB,
    ReadAheadKb = "read_ahead_kb" => read_ahead_kb::KNOB,
    MaxSectorsKb = "max_sectors_kb" => max_sectors_kb::KNOB,
    Nomerges = "nomerges" => nomerges::KNOB,
    RqAffinity = "rq_affinity" => rq_affinity::KNOB,
    IoPoll = "io_poll" => io_poll::KNOB,
    VmDirtyRatio = "vm.dirty_ratio" => vm_dirty_ratio::KNOB,
    VmDirtyBytes = "vm.dirty_bytes" => vm_dirty_bytes::KNOB,
    VmDirtyBackgroundRatio = "vm.dirty_background_ratio" => vm_dirty_background_ratio::KNOB,
    VmDirtyBackgroundBytes = "vm.dirty_background_bytes" => vm_dirty_background_bytes::KNOB,
    VmDirtyExpire = "vm.dirty_expire_centisecs" => vm_dirty_expire_centisecs::KNOB,
    VmDirtyWriteback = "vm.dirty_writeback_centisecs" => vm_dirty_writeback_centisecs::KNOB,
    VmVfsCachePressure = "vm.vfs_cache_pressure" => vm_vfs_cache_pressure::KNOB,
    CpuGovernor = "cpu.governor" => cpu_governor::KNOB,
    CpuNoTurbo = "cpu.no_turbo" => cpu_no_turbo::KNOB,
    CpuBoost = "cpu.boost" => cpu_boost::KNOB,
}
