//! CPU time, switches and page faults of the calling thread in its timed region.
//!
//! Source: getrusage(2), `RUSAGE_THREAD`; `clock_gettime(2)`, `CLOCK_THREAD_CPUTIME_ID`.

use std::cell::Cell;

use iolab_workload::group::{Gate, GroupState};
use iolab_workload::report::ThreadUse;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};

/// Use by the calling thread since it began.
fn so_far() -> Option<ThreadUse> {
    // Whoever asks for this clock has the kernel count up to now: without it the times of a thread
    // that runs are as old as the last tick.
    let _ = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    let ns = |time: nix::sys::time::TimeVal| time.num_nanoseconds().unsigned_abs();
    let count = |number: i64| number.unsigned_abs();
    Some(ThreadUse {
        user_ns: ns(usage.user_time()),
        system_ns: ns(usage.system_time()),
        context_switches: count(usage.voluntary_context_switches())
            + count(usage.involuntary_context_switches()),
        major_faults: count(usage.major_page_faults()),
        minor_faults: count(usage.minor_page_faults()),
    })
}

/// State of a group, as one of its workers sees it, that notes what this thread uses between its
/// two gates.
pub(crate) struct Noting<G> {
    group: G,
    at_gates: [Cell<Option<ThreadUse>>; Gate::ALL.len()],
}

impl<G> Noting<G> {
    /// `group`, for the worker on the calling thread.
    pub(crate) fn new(group: G) -> Self {
        Self { group, at_gates: Default::default() }
    }

    /// Use between the gates, if both were passed.
    pub(crate) fn noted(&self) -> Option<ThreadUse> {
        let [start, end] = [Gate::Start, Gate::End].map(|gate| self.at_gates[gate as usize].get());
        Some(end?.since(start?))
    }
}

impl<G: GroupState> GroupState for Noting<G> {
    fn arrive(&self, gate: Gate) {
        self.at_gates[gate as usize].set(so_far());
        self.group.arrive(gate);
    }

    #[inline]
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
    use iolab_workload::group::CellGroup;

    #[test]
    fn work_between_the_gates_is_told_and_no_other() {
        let group = CellGroup::new(1);
        let noting = Noting::new(&group);
        assert_eq!(noting.noted(), None);
        let burn = |ns: u64| {
            let began = so_far().unwrap();
            while so_far().unwrap().since(began).cpu_ns() < ns {}
        };
        burn(20_000_000);
        noting.arrive(Gate::Start);
        burn(5_000_000);
        noting.arrive(Gate::End);
        burn(20_000_000);
        let noted = noting.noted().unwrap();
        assert!((4_900_000..20_000_000).contains(&noted.cpu_ns()), "{noted:?}");
        assert!(group.is_open(Gate::End));
    }
}
