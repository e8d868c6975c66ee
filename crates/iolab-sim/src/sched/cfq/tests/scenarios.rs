//! Dispatch orders, worked out by hand from the rules.

use iolab_model::{Ns, Sector};

use super::driver::Driver;
use super::{cfq, read};
use crate::api::bio::{Bio, BioId, Operation, Priority, PriorityClass};
use crate::api::scheduler::Scheduler;
use crate::tunable::Tunables;

/// Names of requests, in order of dispatch, with microseconds.
type Order = [(&'static str, u64)];

/// A request to come: name, microseconds, what.
type Arrival = (&'static str, u64, Bio);

fn write(process: u32, sector: u64) -> Bio {
    Bio { operation: Operation::Write, ..read(process, sector, 8) }
}

fn real_time(mut bio: Bio) -> Bio {
    bio.submitter.priority = Priority { class: PriorityClass::RealTime, level: 4 };
    bio
}

fn check(tunables: &[(&str, u64)], state: &str, arrivals: &[Arrival], expected: &Order) {
    let mut cfq = cfq(true);
    for &(name, value) in tunables {
        cfq.tune(name, value).unwrap();
    }
    assert!(state.is_empty() || cfq.preset(state), "{state}");
    let mut driver = Driver::new(cfq, Ns::from_ms(5), 1);
    for (index, &(_, at, bio)) in arrivals.iter().enumerate() {
        driver.arrive(Ns::from_us(at), Bio { id: BioId(index as u32), ..bio });
    }
    driver.run();
    let name = |id: BioId| arrivals[id.0 as usize].0;
    let order: Vec<_> = driver.log.iter().map(|d| (name(d.bios[0]), d.at.0 / 1_000)).collect();
    assert_eq!(order, expected);
    assert!(!driver.cfq.has_requests());
}

#[test]
fn cfq_01_slices_per_process_with_idling() {
    let read = |process, sector| read(process, sector, 8);
    check(
        &[],
        "",
        &[
            ("a1", 0, read(1, 0)),
            ("a2", 0, read(1, 8)),
            ("a3", 0, read(1, 16)),
            ("b1", 0, read(2, 1_000_000)),
            ("b2", 0, read(2, 1_000_008)),
            ("b3", 0, read(2, 1_000_016)),
        ],
        &[("a1", 0), ("a2", 5_000), ("a3", 10_000), ("b1", 23_000), ("b2", 28_000), ("b3", 33_000)],
    );
}
