//! The short way of a worker that nothing hinders beside the way of all others: the same ops,
//! counts and times at any depth, in whatever order they end.

use std::cell::Cell;

use iolab_model::error::Errno;
use iolab_model::op::{Op, Submission};
use iolab_model::{Bytes, Completion, Ns, Seed};
use proptest::prelude::*;

use super::StreamWorker;
use crate::group::{Gate, GroupState};
use crate::spec::{Direction, Limit, Pattern, Tenant, Workload};
use crate::worker::{Step, Worker as _};

/// Gates are open; somebody stops the group after so many questions.
struct Group {
    questions_left: Cell<u32>,
}

impl GroupState for Group {
    fn arrive(&self, _: Gate) {}
    fn is_open(&self, _: Gate) -> bool {
        true
    }
    fn stop(&self) {
        self.questions_left.set(0);
    }
    fn is_stopped(&self) -> bool {
        let left = self.questions_left.get();
        self.questions_left.set(left.saturating_sub(1));
        left == 0
    }
}

/// Circumstances of a worker.
#[derive(Clone, Debug)]
struct Case {
    direction: Direction,
    pattern: Pattern,
    limit: Limit,
    depth: u32,
    is_stonewalled: bool,
    stopped_after: u32,
    /// The op in flight that ends next, as a number modulo those in flight.
    ends: Vec<u16>,
    /// The timed transfer that fails, and the one that is short.
    mishaps: (usize, usize),
}

fn tenant(case: &Case, is_unhindered: bool) -> Tenant {
    let text = r#"{"version":1,"name":"x","engine":"null","seed":7,"phases":[{"name":"p",
        "tenants":[{"name":"main","workers":1,"file":"data","file_bytes":409600,
        "io_size_bytes":4096,"pattern":{"kind":"uniform"},"direction":{"kind":"read"},
        "opening":"existing"}]}]}"#;
    let workload: Workload = serde_json::from_str(text).unwrap();
    let &Case { direction, pattern, limit, depth, .. } = case;
    let mut tenant =
        Tenant { pattern, direction, depth, limit, ..workload.phases[0].tenants[0].clone() };
    if !is_unhindered {
        // Nothing that the worker heeds, but it is no usual manner.
        tenant.manner.op_log_window_ns = Ns(1);
    }
    tenant
}

/// All that can be seen: what was asked for and when, which ends counted, and the report.
fn seen(case: &Case, is_unhindered: bool) -> Vec<String> {
    let group = Group { questions_left: Cell::new(case.stopped_after) };
    let tenant = tenant(case, is_unhindered);
    let mut worker = StreamWorker::new(&tenant, 0, case.is_stonewalled, Seed(3), group);
    assert_eq!(worker.is_unhindered, is_unhindered);
    let (mut now, mut seen, mut in_flight) = (Ns(1000), Vec::new(), Vec::new());
    let (mut transfers, mut ends) = (0, case.ends.iter().cycle());
    loop {
        match worker.next(now) {
            Step::Submit(submission) => {
                seen.push(format!("{now:?} {submission:?}"));
                in_flight.push((submission, now));
                continue;
            }
            Step::SleepUntil(instant) => now = instant,
            Step::Finished => break,
            Step::Await => assert!(!in_flight.is_empty(), "it waits for nothing"),
        }
        if in_flight.is_empty() {
            continue;
        }
        let which = usize::from(*ends.next().unwrap());
        let (Submission { token, op, is_timed, .. }, submitted) =
            in_flight.remove(which % in_flight.len());
        now += Ns(100 + u64::try_from(which % 700).unwrap());
        let length = match op {
            Op::Read(transfer) | Op::Write(transfer) => transfer.length,
            _ => Bytes(0),
        };
        transfers += usize::from(is_timed);
        let outcome = match transfers {
            nth if is_timed && nth == case.mishaps.0 => Err(Errno::EIO),
            nth if is_timed && nth == case.mishaps.1 => Ok(Bytes(length.0 / 2)),
            _ => Ok(length),
        };
        let completion = Completion { token, submitted, completed: now, outcome };
        let counts = worker.complete(&completion);
        seen.push(format!("{now:?} {token:?} {outcome:?} {counts}"));
    }
    seen.push(format!("{:?}", worker.report()));
    seen
}

fn cases() -> impl Strategy<Value = Case> {
    let directions = prop_oneof![
        Just(Direction::Read),
        Just(Direction::Write),
        (0.0..=1.0).prop_map(|read_share| Direction::Mixed { read_share }),
    ];
    let patterns = prop_oneof![Just(Pattern::Uniform), Just(Pattern::Sequential)];
    let limits = prop_oneof![
        Just(Limit::Once),
        (1..300_u64).prop_map(|ops| Limit::Ops { ops, within_ns: None }),
        (1..60_000_u64).prop_map(|ns| Limit::Time { duration_ns: Ns(ns) }),
    ];
    let stops = prop_oneof![3 => Just(u32::MAX), 1 => 0..400_u32];
    let mishaps = prop_oneof![3 => Just(usize::MAX), 1 => 1..150_usize];
    (
        (directions, patterns, limits, 1..40_u32),
        (any::<bool>(), stops, prop::collection::vec(any::<u16>(), 1..40)),
        (mishaps.clone(), mishaps),
    )
        .prop_map(
            |((direction, pattern, limit, depth), (is_stonewalled, stop, ends), mishaps)| {
                let stopped_after = stop;
                Case {
                    direction,
                    pattern,
                    limit,
                    depth,
                    is_stonewalled,
                    stopped_after,
                    ends,
                    mishaps,
                }
            },
        )
}

proptest! {
    #[test]
    fn nothing_is_lost_on_the_short_way(case in cases()) {
        prop_assert_eq!(seen(&case, true), seen(&case, false));
    }
}
