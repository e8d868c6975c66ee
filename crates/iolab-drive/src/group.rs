//! Group state as atomics: works between threads, and between processes when it lies in shared
//! memory.

use core::sync::atomic::{AtomicU32, Ordering};

use iolab_workload::{Gate, GroupState};

/// Gates and stop flag of one phase; opened by the coordinator, not by the last to arrive.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct SharedGroup {
    is_stopped: AtomicU32,
    is_open: [AtomicU32; Gate::ALL.len()],
    arrived: [AtomicU32; Gate::ALL.len()],
}

impl SharedGroup {
    /// Workers that have reached `gate`.
    pub fn arrived(&self, gate: Gate) -> u32 {
        self.arrived[gate as usize].load(Ordering::Acquire)
    }

    /// Lets everybody through `gate`.
    pub fn open(&self, gate: Gate) {
        self.is_open[gate as usize].store(1, Ordering::Release);
    }
}

impl GroupState for SharedGroup {
    fn arrive(&self, gate: Gate) {
        self.arrived[gate as usize].fetch_add(1, Ordering::AcqRel);
    }

    fn is_open(&self, gate: Gate) -> bool {
        self.is_open[gate as usize].load(Ordering::Acquire) != 0
    }

    fn stop(&self) {
        self.is_stopped.store(1, Ordering::Release);
    }

    #[inline]
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) != 0
    }
}
