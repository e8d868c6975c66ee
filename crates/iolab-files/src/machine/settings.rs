//! Settings of the machine: memory, cost of software, limits of the queue below.

use iolab_model::Ns;

use crate::api::make::Kernel;
use crate::api::write_back::VmSettings;
use crate::readahead::{ReadAheadEra, Walk};

/// Cost of software on the processor of a worker.
///
/// Defaults are assumptions, to be calibrated: 1 us per system call, 0.35 us per page of the cache
/// that is touched, 5 GB/s of copying; 2 us to submit a request, 3 us for its end and the wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineCost {
    /// One system call.
    pub call_ns: u64,
    /// A page of the cache that is touched.
    pub page_ns: u64,
    /// Copying of 1 KiB.
    pub copy_ns_per_kib: u64,
    /// Submission of a request.
    pub submit_ns: u64,
    /// End of a request, and the wake-up.
    pub complete_ns: u64,
}

impl Default for MachineCost {
    fn default() -> Self {
        Self {
            call_ns: 1_000,
            page_ns: 350,
            copy_ns_per_kib: 205,
            submit_ns: 2_000,
            complete_ns: 3_000,
        }
    }
}

impl MachineCost {
    /// Copying of some bytes in some pages.
    pub const fn copy(&self, bytes: u64, pages: u64) -> u64 {
        pages * self.page_ns + bytes * self.copy_ns_per_kib / 1024
    }
}

/// Usual slice of time of a process: a tick of 250 per second looks whether the kernel's 1.4 ms are
/// over (Linux 6.18 kernel/sched/fair.c, `sysctl_sched_base_slice`; kernel/Kconfig.hz).
pub const SLICE: Ns = Ns::from_ms(4);

/// Settings of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineSettings {
    /// Memory for pages of files.
    pub memory_bytes: u64,
    /// Processors.
    pub cpus: u16,
    /// Processors that workers share; 0: each has one of its own.
    pub processors: u16,
    /// Time for which a process keeps a processor that others wait for.
    pub slice: Ns,
    /// Version of the kernel.
    pub kernel: Kernel,
    /// Cost of software.
    pub cost: MachineCost,
    /// Settings of write-back.
    pub vm: VmSettings,
    /// `read_ahead_kb` of the device.
    pub read_ahead_kb: u64,
    /// `max_sectors_kb` of the device, which no request exceeds.
    pub max_sectors_kb: u64,
    /// Requests of the flusher that are on their way at once (`nr_requests`): it waits for one to
    /// end before it sends more.
    pub requests_max: u32,
    /// Era of read-ahead; absent: that of the kernel.
    pub read_ahead_era: Option<ReadAheadEra>,
    /// Search for absent pages beside large folios.
    pub walk: Walk,
}

impl Default for MachineSettings {
    fn default() -> Self {
        Self {
            memory_bytes: 8 << 30,
            cpus: 1,
            processors: 0,
            slice: SLICE,
            kernel: Kernel::DEFAULT,
            cost: MachineCost::default(),
            vm: VmSettings::default(),
            // Linux include/linux/pagemap.h: VM_READAHEAD_PAGES, 128 KiB.
            read_ahead_kb: 128,
            max_sectors_kb: 1280,
            // Linux include/linux/blkdev.h: BLKDEV_DEFAULT_RQ, 128 before blk-mq, twice that since.
            requests_max: 256,
            read_ahead_era: None,
            walk: Walk::Exact,
        }
    }
}
