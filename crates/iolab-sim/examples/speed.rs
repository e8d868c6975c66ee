//! Number of requests per second of CPU time that go through simulated stacks, single core, no
//! probes.
//!
//! `cargo run --release -p iolab-sim --example speed [REQUESTS]` prints one JSON object per stack.
//! A closed loop of 32 random 4 KiB requests from four processes, one in four a write; then, of the
//! multi-queue schedulers, 1024 requests, and 1000 and 10,000 processes with one request each.

use std::collections::BTreeMap;
use std::time::Duration;

use iolab_model::{Ns, Sector, Seed};
use iolab_sim::queue::{BlockQueue, QueueParameters};
use iolab_sim::sched::SchedulerKind;
use iolab_sim::{Bio, BioId, Ended, Flags, Layer, Operation, ProcessId, Submitter, device};

/// Requests in flight and processes that share them.
#[derive(Clone, Copy)]
struct Load {
    in_flight: u32,
    processes: u32,
}

const USUAL: Load = Load { in_flight: 32, processes: 4 };
/// Loads with which a scheduler's cost must not grow.
const LARGE: [Load; 3] = [
    Load { in_flight: 1_024, processes: 4 },
    Load { in_flight: 1_000, processes: 1_000 },
    Load { in_flight: 10_000, processes: 10_000 },
];

fn main() {
    let requests = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().unwrap());
    let fixed = "fixed-100us";
    let mut stacks: Vec<(SchedulerKind, &str)> =
        SchedulerKind::ALL.iter().map(|&scheduler| (scheduler, fixed)).collect();
    let real: Vec<&str> = ["sata7200-4tb", "sata-860pro-256", "nvme-pc601-256"]
        .into_iter()
        .filter(|name| iolab_sim::Profile::names().any(|known| known == *name))
        .collect();
    for profile in real {
        stacks.extend(SchedulerKind::ALL.iter().map(|&scheduler| (scheduler, profile)));
    }
    let mut loads: Vec<_> = stacks.into_iter().map(|(s, profile)| (s, profile, USUAL)).collect();
    for kind in [SchedulerKind::MqDeadline, SchedulerKind::Kyber, SchedulerKind::Bfq] {
        loads.extend(LARGE.map(|load| (kind, fixed, load)));
    }
    for (scheduler, profile, load) in loads {
        let share = if profile == fixed { 1 } else { 4 };
        let (elapsed, virtual_time) = run(scheduler, profile, load, requests / share);
        println!(
            "{{\"scheduler\":\"{scheduler}\",\"profile\":\"{profile}\",\"in_flight\":{},\
             \"processes\":{},\"requests\":{},\"requests_per_s\":{:.0},\"virtual_s\":{:.3}}}",
            load.in_flight,
            load.processes,
            requests / share,
            f64::from(requests / share) / elapsed.as_secs_f64(),
            virtual_time.as_seconds()
        );
    }
}

fn run(scheduler: SchedulerKind, profile: &str, load: Load, requests: u32) -> (Duration, Ns) {
    let profile = device::profile(profile, &BTreeMap::new()).unwrap();
    let below = device::build(&profile, Seed(7), "speed").unwrap();
    let sectors = (below.info().capacity.0 - 8).min(1 << 28);
    // As many slots as requests, so that all of them are the scheduler's.
    let nr_requests = (load.in_flight > USUAL.in_flight).then_some(load.in_flight);
    let parameters = QueueParameters { scheduler, nr_requests, ..QueueParameters::default() };
    let epoch = Ns::from_seconds(1_000);
    let mut queue = BlockQueue::new(Ns(0), &parameters, below).unwrap();
    let mut random = Seed(1).stream("speed", 0);
    let mut bio = move |id: BioId| {
        let draw = random.next_u64();
        Bio {
            id,
            operation: if draw.is_multiple_of(4) { Operation::Write } else { Operation::Read },
            sector: Sector((draw >> 8) % (sectors / 8) * 8),
            sectors: 8,
            flags: Flags::SYNC,
            submitter: Submitter {
                process: ProcessId(id.0 % load.processes),
                ..Submitter::default()
            },
            segments: 0,
        }
    };
    let started = cpu();
    for id in 0..load.in_flight {
        queue.submit(epoch, &bio(BioId(id)));
    }
    let (mut done, mut ended, mut now) = (Vec::new(), 0, epoch);
    while ended < requests {
        now = now.max(queue.next_event());
        queue.advance(now, &mut done);
        for Ended { id, .. } in done.drain(..) {
            ended += 1;
            queue.submit(now, &bio(id));
        }
    }
    (cpu().saturating_sub(started), now.since(epoch))
}

/// CPU time of this (only) thread, first field of proc(5) `schedstat`.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux has schedstat");
    let ns = text.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(ns.expect("the first field is nanoseconds"))
}
