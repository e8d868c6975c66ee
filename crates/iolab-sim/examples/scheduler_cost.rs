//! Cost of a scheduler's own hooks per request, and of the whole block queue around it.
//!
//! ```text
//! cargo run --release -p iolab-sim --example scheduler_cost
//! ```
//!
//! A fixed number of requests at random sectors, a third of them writes, is kept in the queue; each
//! one that the device takes is completed at once and replaced. Best of many short
//! rounds, so that other programs disturb little.

use std::hint::black_box;
use std::time::Instant;

use iolab_model::seed::Stream;
use iolab_model::{Ns, Sector, Seed};
use iolab_sim::device::fixed::Fixed;
use iolab_sim::queue::{BlockQueue, QueueParameters};
use iolab_sim::sched::SchedulerKind;
use iolab_sim::{
    Bio, BioId, Ended, Flags, Hz, Layer, Operation, Request, Requests, SchedulerContext, Submitter,
};

const REQUESTS: u32 = 5_000;
const ROUNDS: usize = 400;

fn bio(id: u32, random: &mut Stream) -> Bio {
    let is_write = random.below(3) == 0;
    Bio {
        id: BioId(id),
        operation: if is_write { Operation::Write } else { Operation::Read },
        sector: Sector(random.below(1 << 27) * 8),
        sectors: 8,
        flags: Flags::SYNC,
        submitter: Submitter::default(),
        segments: 0,
    }
}

/// Nanoseconds per request of the hooks alone, with `queued` requests in the scheduler.
fn hooks(kind: SchedulerKind, queued: u32) -> f64 {
    let context = SchedulerContext {
        is_rotational: true,
        hz: Hz(1_000),
        slots: queued,
        depth: 1,
        cpus: 1,
        attached: Ns(0),
    };
    let mut scheduler = kind.attach(&context);
    let mut random = Seed(1).stream("scheduler cost", 0);
    let mut requests = Requests::default();
    let mut now = Ns(0);
    for id in 0..queued {
        let id = requests.add(Request::of(&bio(id, &mut random), now));
        scheduler.insert(now, &requests, id);
    }
    best(|| {
        now += Ns(1_000);
        if scheduler.next_timer() <= now {
            scheduler.timer(now, &requests);
        }
        let Some(id) = scheduler.dispatch(now, &requests) else { return };
        requests[id].issued = now;
        scheduler.activate(now, &requests, id);
        scheduler.complete(now, &requests, id);
        requests[id] = Request::of(&bio(0, &mut random), now);
        scheduler.insert(now, &requests, id);
        black_box(scheduler.has_requests());
    })
}

/// Nanoseconds per request through queue, scheduler and a device of fixed latency.
fn stack(kind: SchedulerKind, queued: u32) -> f64 {
    let parameters = QueueParameters {
        scheduler: kind,
        nr_requests: Some(queued),
        ..QueueParameters::default()
    };
    let device = Box::new(Fixed::new(Ns(10_000), 32, false));
    let mut queue = BlockQueue::new(Ns(0), &parameters, device).expect("the parameters are valid");
    let mut random = Seed(1).stream("scheduler cost", 0);
    let mut done = Vec::new();
    for id in 0..queued {
        queue.submit(Ns(0), &bio(id, &mut random));
    }
    best(|| {
        while done.is_empty() {
            let now = queue.next_event();
            queue.advance(now, &mut done);
        }
        let now = queue.next_event();
        let Ended { id, .. } = done.pop().expect("the loop above filled it");
        queue.submit(now, &bio(id.0, &mut random));
    })
}

#[expect(clippy::disallowed_methods, reason = "this program measures the real machine")]
fn clock() -> Instant {
    Instant::now()
}

/// Nanoseconds per call in the fastest round.
fn best(mut serve_one: impl FnMut()) -> f64 {
    let round = |_| {
        let began = clock();
        (0..REQUESTS).for_each(|_| serve_one());
        began.elapsed().as_nanos() as f64 / f64::from(REQUESTS)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

fn main() {
    println!("nanoseconds per request        hooks, 32  hooks, 256  whole queue, 256");
    for &kind in SchedulerKind::ALL {
        let (few, many) = (hooks(kind, 32), hooks(kind, 256));
        let all = stack(kind, 256);
        println!("{:<30} {few:>10.0} {many:>11.0} {all:>17.0}", kind.name());
    }
}
