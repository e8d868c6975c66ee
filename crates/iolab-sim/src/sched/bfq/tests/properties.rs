//! Invariants for any processes: every request is served exactly once, and the same every time.

use iolab_model::{Ns, Seed};
use proptest::prelude::*;

use super::driver::{Driver, START, Shape, bio};
use crate::api::bio::{Operation, PriorityClass, ProcessId};
use crate::api::scheduler::Scheduler;
use crate::sched::bfq::entity::Place;
use crate::tunable::Tunables;

/// Setup of a random run.
#[derive(Clone, Copy, Debug)]
struct Setup {
    seed: u64,
    processes: u32,
    requests: u32,
    depth: usize,
    is_rotational: bool,
    merges: bool,
    refuses_every: usize,
    low_latency: u64,
    slice_idle: u64,
    has_plug_clock: bool,
}

fn setups() -> impl Strategy<Value = Setup> {
    (
        (any::<u64>(), 1_u32..12, 20_u32..260, 1_usize..9),
        (any::<bool>(), any::<bool>(), prop_oneof![Just(0_usize), 2..9_usize]),
        (0_u64..2, prop_oneof![Just(0_u64), Just(8)], any::<bool>()),
    )
        .prop_map(|(a, b, c)| Setup {
            seed: a.0,
            processes: a.1,
            requests: a.2,
            depth: a.3,
            is_rotational: b.0,
            merges: b.1,
            refuses_every: b.2,
            low_latency: c.0,
            slice_idle: c.1,
            has_plug_clock: c.2,
        })
}

/// A random bio: each process prefers a class, a level and a way to choose sectors.
fn random_shape(setup: Setup, index: u32, place: &mut [u64]) -> Shape {
    let seed = Seed(setup.seed);
    let mut rng = seed.stream("arrival", u64::from(index));
    let process = rng.below(u64::from(setup.processes)) as u32;
    let class = match process % 6 {
        4 => PriorityClass::RealTime,
        5 => PriorityClass::Idle,
        _ => PriorityClass::BestEffort,
    };
    // Now and then a process changes its level.
    let level = if rng.below(40) == 0 { 2 } else { 4 };
    let is_sequential = process.is_multiple_of(2);
    let sectors = 8 << rng.below(5);
    let sector = if is_sequential { place[process as usize] } else { 8 * rng.below(2_000_000) };
    place[process as usize] = sector + u64::from(sectors);
    let is_write = process % 3 == 1;
    let operation = if is_write { Operation::Write } else { Operation::Read };
    let is_sync = rng.below(2) == 0;
    Shape { operation, is_sync, process, class, level, sector, sectors }
}

/// Arrivals in bunches with pauses up to `1 << 26` ns; some processes end in between.
fn run(setup: Setup) -> Driver {
    let mut driver = Driver::new(setup.is_rotational);
    driver.depth = setup.depth;
    driver.merges = setup.merges;
    driver.refuses_every = setup.refuses_every;
    driver.bfq.tune("low_latency", setup.low_latency).unwrap();
    driver.bfq.tune("slice_idle", setup.slice_idle).unwrap();
    if setup.has_plug_clock {
        assert!(driver.bfq.preset("per-plug clock"));
    }
    let mut rng = Seed(setup.seed).stream("pauses", 0);
    let mut place = vec![0; setup.processes as usize];
    let mut now = START;
    let mut index = 0;
    while index < setup.requests {
        let pause = 1 << rng.below(27);
        let arrival = now + Ns(rng.below(pause));
        while driver.next_event() < arrival {
            driver.step(driver.next_event(), &[]);
        }
        now = arrival;
        let bunch = 1 + rng.below(6) as u32;
        let bios: Vec<_> = (index..index + bunch)
            .map(|index| bio(random_shape(setup, index, &mut place)))
            .collect();
        driver.step(now, &bios);
        index += bunch;
        if rng.below(20) == 0 {
            let process = rng.below(u64::from(setup.processes)) as u32;
            driver.bfq.exit(now, ProcessId(process));
            driver.step(now, &[]);
        }
    }
    driver.drain();
    driver
}

proptest! {
    #[test]
    fn every_request_is_dispatched_exactly_once(setup in setups()) {
        // The driver asserts it, and recounts the scheduler's books after every step.
        let driver = run(setup);
        prop_assert_eq!(driver.sectors_in, driver.sectors_out);
    }

    #[test]
    fn the_same_input_gives_the_same_order(setup in setups()) {
        prop_assert_eq!(run(setup).log, run(setup).log);
    }

    #[test]
    fn queues_of_ended_processes_are_let_go(setup in setups()) {
        let mut driver = run(setup);
        let now = START + Ns::from_seconds(10_000);
        for process in 0..setup.processes {
            driver.bfq.exit(now, ProcessId(process));
        }
        let bfq = &driver.bfq;
        let pinned: Vec<u32> = bfq.unsync.iter().flatten().flatten().copied().collect();
        for id in 0..bfq.queues.len() as u32 {
            let queue = bfq.queue(id);
            let is_remembered = bfq.entity(id).place == Place::Idle;
            let is_let_go = queue.users == 0 && queue.allocated == 0 && queue.suitors == 0;
            prop_assert!(is_let_go || pinned.contains(&id), "{id} has users");
            let is_free = bfq.free_queues.contains(&id);
            prop_assert_eq!(is_free, !is_remembered && !pinned.contains(&id), "{}", id);
        }
    }
}
