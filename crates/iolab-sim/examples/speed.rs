//! Number of requests per second of CPU time that go through simulated stacks, single core, no
//! probes.
//!
//! `cargo run --release -p iolab-sim --example speed [REQUESTS]` prints one JSON object per stack.
//! A closed loop of 32 random 4 KiB requests from four processes, one in four a write.

use std::collections::BTreeMap;
use std::time::Duration;

use iolab_model::{Ns, Sector, Seed};
use iolab_sim::queue::{BlockQueue, QueueParameters};
use iolab_sim::sched::SchedulerKind;
use iolab_sim::{Bio, BioId, Ended, Flags, Layer, Operation, ProcessId, Submitter, device};

const IN_FLIGHT: u32 = 32;

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
    for (scheduler, profile) in stacks {
        let share = if profile == fixed { 1 } else { 4 };
        let (elapsed, virtual_time) = run(scheduler, profile, requests / share);
        println!(
            "{{\"scheduler\":\"{scheduler}\",\"profile\":\"{profile}\",\"requests\":{},\
             \"requests_per_s\":{:.0},\"virtual_s\":{:.3}}}",
            requests / share,
            f64::from(requests / share) / elapsed.as_secs_f64(),
            virtual_time.as_seconds()
        );
    }
}

fn run(scheduler: SchedulerKind, profile: &str, requests: u32) -> (Duration, Ns) {
    let profile = device::profile(profile, &BTreeMap::new()).unwrap();
    let below = device::build(&profile, Seed(7), "speed").unwrap();
    let sectors = (below.info().capacity.0 - 8).min(1 << 28);
    let parameters = QueueParameters { scheduler, ..QueueParameters::default() };
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
            submitter: Submitter { process: ProcessId(id.0 % 4), ..Submitter::default() },
        }
    };
    let started = cpu();
    for id in 0..IN_FLIGHT {
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
