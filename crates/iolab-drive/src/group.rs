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

/// The group as workers see it whose coordinator sleeps: the last one to arrive wakes it.
pub struct Waking<'a> {
    group: &'a SharedGroup,
    workers: u32,
    wake: &'a (dyn Fn() + Sync),
}

impl<'a> Waking<'a> {
    /// For so many workers; `wake` may be called once too often, and must not wait.
    pub const fn new(group: &'a SharedGroup, workers: usize, wake: &'a (dyn Fn() + Sync)) -> Self {
        Self { group, workers: workers as u32, wake }
    }
}

impl GroupState for Waking<'_> {
    fn arrive(&self, gate: Gate) {
        self.group.arrive(gate);
        if self.group.arrived(gate) >= self.workers {
            (self.wake)();
        }
    }

    fn is_open(&self, gate: Gate) -> bool {
        self.group.is_open(gate)
    }

    fn stop(&self) {
        self.group.stop();
    }

    #[inline]
    fn is_stopped(&self) -> bool {
        self.group.is_stopped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_to_arrive_wakes() {
        let (group, woken) = (SharedGroup::default(), AtomicU32::new(0));
        let wake = || {
            woken.fetch_add(1, Ordering::Relaxed);
        };
        let waking = Waking::new(&group, 3, &wake);
        for expected in [0, 0, 1] {
            waking.arrive(Gate::Start);
            assert_eq!(woken.load(Ordering::Relaxed), expected);
        }
        assert!(!waking.is_open(Gate::Start));
        waking.stop();
        assert!(group.is_stopped());
    }
}
