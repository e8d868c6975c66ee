//! Workers that make their calls one after the other, all at the same time.

use std::path::PathBuf;
use std::sync::Arc;

use iolab_model::op::{Access, Handle, OpenHow, PathId, Token};
use iolab_model::target::Content;
use iolab_model::{Bytes, Lane, LaneRequest, Ns, Op, Seed, Submission, Target, VirtualTime};
use iolab_sim::stack::{QueueOverrides, Stack};
use iolab_sim::target::{SimLane, SimTarget};

/// A stack from its text.
pub fn stack(text: &str) -> SimTarget {
    let stack = Stack::parse("x.toml", text).unwrap();
    let simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
    SimTarget::new(simulation, stack.facts().unwrap())
}

fn lane(target: &SimTarget, number: usize, depth: u32) -> SimLane {
    let request = LaneRequest {
        worker: number as u32,
        depth,
        buffer_bytes: Bytes(1 << 20),
        content: Content::Zero,
        seed: Seed(7),
        priority: None,
        submitter_cpu: None,
        paths: Arc::from([PathBuf::from(format!("/simulated/{number}"))]),
    };
    target.open(&request).unwrap()
}

/// A file that grows by so many writes of so many bytes, each followed by an fsync.
#[allow(dead_code, reason = "each test uses a part")]
pub fn flushed_writes(count: u64, bytes: u64) -> Vec<Op> {
    let (path, handle) = (PathId(0), Handle(0));
    let how = OpenHow {
        access: Access::Plain,
        is_readable: true,
        is_writable: true,
        ..OpenHow::default()
    };
    let mut calls = vec![Op::Create { path, handle, how }];
    for index in 0..count {
        calls.push(Op::write(handle, Bytes(index * bytes), Bytes(bytes)));
        calls.push(Op::Fsync { handle });
    }
    calls
}

/// Each worker makes its calls one after the other; the instants of their ends, worker by worker.
pub fn race(target: &SimTarget, workers: usize, calls: &[Op]) -> Vec<Vec<Ns>> {
    race_at_depth(target, (workers, 1), calls)
}

/// The same with several calls of each worker under way.
pub fn race_at_depth(
    target: &SimTarget,
    (workers, depth): (usize, u32),
    calls: &[Op],
) -> Vec<Vec<Ns>> {
    let begun = target.now();
    let mut lanes: Vec<SimLane> = (0..workers).map(|number| lane(target, number, depth)).collect();
    let (mut ends, mut made) = (vec![Vec::new(); workers], vec![0; workers]);
    let ask = |lane: &mut SimLane, made: &mut usize| {
        if let Some(&op) = calls.get(*made) {
            let now = lane.now();
            let submission = Submission { token: Token(0), op, intended: now, is_timed: true };
            lane.submit_batch(now, &[submission], &mut Vec::new());
            *made += 1;
        }
    };
    for (lane, made) in lanes.iter_mut().zip(&mut made) {
        (0..depth).for_each(|_| ask(lane, made));
    }
    let (mut instant, mut rounds) = (Ns(0), 0);
    while ends.iter().any(|made| made.len() < calls.len()) {
        let next = target.next_event().expect("somebody has calls left");
        rounds = if next == instant { rounds + 1 } else { 0 };
        assert!(rounds < 1_000_000, "time stands still at {next}");
        instant = next;
        target.advance_to(next);
        for ((lane, ends), made) in lanes.iter_mut().zip(&mut ends).zip(&mut made) {
            let mut done = Vec::new();
            lane.reap(0, Ns(0), &mut done).unwrap();
            for end in done {
                assert!(end.outcome.is_ok(), "{end:?}");
                ends.push(Ns(end.completed.0 - begun.0));
                ask(lane, made);
            }
        }
    }
    ends
}
