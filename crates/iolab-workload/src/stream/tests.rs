//! The short way of a worker that nothing hinders beside the way of all others: the same ops,
//! counts and times at any depth, in whatever order they end.

use std::cell::Cell;

use iolab_model::error::Errno;
use iolab_model::op::{Op, Position, Submission};
use iolab_model::{Bytes, Completion, Ns, Seed};
use proptest::prelude::*;

use super::StreamWorker;
use crate::group::{Gate, GroupState};
use crate::spec::{Burst, Direction, Limit, LockPolicy, Pattern, Tenant, Workload};
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

#[test]
fn cached_pages_are_dropped_between_passes_only() {
    let case = Case {
        direction: Direction::Read,
        pattern: Pattern::Sequential,
        limit: Limit::Ops { ops: 300, within_ns: None },
        depth: 3,
        is_stonewalled: false,
        stopped_after: u32::MAX,
        ends: vec![0],
        mishaps: (usize::MAX, usize::MAX),
    };
    for is_first in [false, true] {
        let drops = drops_of(&case, is_first);
        assert_eq!(drops, if is_first { vec![0, 100, 200] } else { vec![100, 200] });
    }
}

/// Places of the timed reads and of the timed writes, one op after the other.
fn places(direction: Direction, pattern: Pattern, limit: Limit) -> (Vec<u64>, Vec<u64>) {
    let case = Case {
        direction,
        pattern,
        limit,
        depth: 1,
        is_stonewalled: false,
        stopped_after: u32::MAX,
        ends: vec![0],
        mishaps: (usize::MAX, usize::MAX),
    };
    let is_unhindered = !matches!(direction, Direction::Reread { .. });
    let group = Group { questions_left: Cell::new(u32::MAX) };
    let mut worker = StreamWorker::new(&tenant(&case, is_unhindered), 0, false, Seed(3), group);
    let (mut now, mut reads, mut writes) = (Ns(1000), Vec::new(), Vec::new());
    loop {
        now += Ns(10);
        let submission = match worker.next(now) {
            Step::Submit(submission) => submission,
            Step::Finished => return (reads, writes),
            _ => continue,
        };
        let outcome = match submission.op {
            Op::Read(transfer) | Op::Write(transfer) => {
                let Position::At(at) = transfer.at else { panic!("{transfer:?}") };
                let is_read = matches!(submission.op, Op::Read(_));
                if is_read { &mut reads } else { &mut writes }.push(at.0 / 4096);
                Ok(transfer.length)
            }
            _ => Ok(Bytes(0)),
        };
        let token = submission.token;
        worker.complete(&Completion { token, submitted: now, completed: now, outcome });
    }
}

#[test]
fn reads_and_writes_in_order_have_a_position_each() {
    let direction = Direction::Mixed { read_share: 0.7 };
    let (reads, writes) = places(direction, Pattern::Sequential, Limit::Once);
    assert_eq!(reads.len() + writes.len(), 100);
    assert!(reads.len() > writes.len() && !writes.is_empty());
    assert!(reads.iter().copied().eq(0..reads.len() as u64), "{reads:?}");
    assert!(writes.iter().copied().eq(0..writes.len() as u64), "{writes:?}");
    let (reads, writes) = places(direction, Pattern::Shuffled, Limit::Once);
    let mut all: Vec<u64> = reads.into_iter().chain(writes).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..100), "each record once, read or written");
}

#[test]
fn rereading_reads_what_a_mixed_tenant_writes_in_its_order() {
    for pattern in [Pattern::Sequential, Pattern::Shuffled, Pattern::Uniform] {
        for limit in [Limit::Once, Limit::Ops { ops: 250, within_ns: None }] {
            for read_share in [0.0, 0.5, 0.97, 1.0] {
                let (_, written) = places(Direction::Mixed { read_share }, pattern, limit);
                let again = places(Direction::Reread { read_share }, pattern, limit);
                assert_eq!(again, (written, Vec::new()), "{pattern:?} {limit:?} {read_share}");
            }
        }
    }
}

/// Ops before each time that cached pages are dropped: every 100, and before the first one.
fn drops_of(case: &Case, is_first: bool) -> Vec<u64> {
    let mut tenant = tenant(case, false);
    tenant.manner.drops_cache_every = 100;
    tenant.manner.drops_cache_first = is_first;
    let group = Group { questions_left: Cell::new(u32::MAX) };
    let mut worker = StreamWorker::new(&tenant, 0, false, Seed(3), group);
    let (mut begun, mut drops, mut in_flight) = (0, Vec::new(), Vec::new());
    loop {
        match worker.next(Ns(1000 + begun)) {
            Step::Submit(submission) => {
                match submission.op {
                    Op::Read(_) => begun += 1,
                    Op::Advise { .. } => drops.push(begun),
                    _ => {}
                }
                in_flight.push(submission);
                continue;
            }
            Step::Finished => break,
            _ => {}
        }
        let Submission { token, op, .. } = in_flight.remove(0);
        let length = if let Op::Read(transfer) = op { transfer.length } else { Bytes(0) };
        let (submitted, completed) = (Ns(1000), Ns(2000));
        worker.complete(&Completion { token, submitted, completed, outcome: Ok(length) });
    }
    assert_eq!((worker.report().ops, worker.report().bytes), (300, 300 * 4096));
    drops
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

/// Begins and kinds of the timed ops of a worker whose ops take 100 ns each.
fn begun(change: impl Fn(&mut Tenant)) -> Vec<(u64, &'static str)> {
    let case = Case {
        direction: Direction::Write,
        pattern: Pattern::Sequential,
        limit: Limit::Ops { ops: 8, within_ns: None },
        depth: 1,
        is_stonewalled: false,
        stopped_after: u32::MAX,
        ends: vec![0],
        mishaps: (usize::MAX, usize::MAX),
    };
    let mut tenant = tenant(&case, true);
    change(&mut tenant);
    let group = Group { questions_left: Cell::new(u32::MAX) };
    let mut worker = StreamWorker::new(&tenant, 0, false, Seed(3), group);
    let (mut now, mut begun) = (Ns(0), Vec::new());
    loop {
        match worker.next(now) {
            Step::Submit(submission) => {
                let (token, submitted) = (submission.token, now);
                let (name, length) = match submission.op {
                    Op::Write(transfer) if transfer.is_of_kernel_thread => {
                        ("thread", transfer.length)
                    }
                    Op::Write(transfer) => ("write", transfer.length),
                    Op::Burn { duration } => {
                        now += Ns(duration.0.saturating_sub(100));
                        ("burn", Bytes(0))
                    }
                    Op::Lock { .. } => ("lock", Bytes(0)),
                    _ => ("", Bytes(0)),
                };
                now += Ns(if submission.is_timed { 100 } else { 0 });
                if submission.is_timed {
                    begun.push((submitted.0, name));
                }
                let outcome = Ok(length);
                worker.complete(&Completion { token, submitted, completed: now, outcome });
            }
            Step::SleepUntil(instant) => now = instant,
            Step::Finished => return begun,
            Step::Await => unreachable!("nothing is in flight"),
        }
    }
}

#[test]
fn a_burst_ends_with_its_bytes_or_its_time_whichever_comes_first() {
    let starts = |burst: Burst| {
        let begun = begun(|tenant| tenant.manner.burst = Some(burst));
        begun.into_iter().map(|(at, _)| at).collect::<Vec<_>>()
    };
    let pause = Burst { pause_ns: Ns(1000), ..Burst::default() };
    let timed = starts(Burst { lasting_ns: Ns(250), ..pause });
    assert_eq!(timed, [0, 100, 200, 1300, 1400, 1500, 2600, 2700]);
    let counted = starts(Burst { bytes: Bytes(2 * 4096), lasting_ns: Ns(250), ..pause });
    assert_eq!(counted, [0, 100, 1200, 1300, 2400, 2500, 3600, 3700]);
}

#[test]
fn a_pause_burns_the_cpu_first_and_may_delay_what_is_due() {
    let of = |burst: Burst, rate: Option<f64>| {
        begun(|tenant| {
            tenant.manner.burst = Some(burst);
            tenant.rate_ops_per_s = rate;
        })
    };
    let bytes = Bytes(4 * 4096);
    let pause = Burst { bytes, pause_ns: Ns(1000), ..Burst::default() };
    let burnt = of(Burst { burning_ns: Ns(300), ..pause }, None);
    assert_eq!(burnt[3..6], [(300, "write"), (400, "burn"), (1400, "write")]);
    // One in 200 ns: what was due in a pause is made up for, or everything is due later.
    let starts = |burst| of(burst, Some(5e6)).into_iter().map(|(at, _)| at).collect::<Vec<_>>();
    assert_eq!(starts(pause), [0, 200, 400, 600, 1700, 1800, 1900, 2000]);
    let delayed = starts(Burst { delays_schedule: true, ..pause });
    assert_eq!(delayed, [0, 200, 400, 600, 1800, 2000, 2200, 2400]);
}

#[test]
fn one_transfer_of_so_many_is_of_a_thread_and_each_may_be_locked() {
    let names = |change: &dyn Fn(&mut Tenant)| {
        begun(change).into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    };
    let third = names(&|tenant| tenant.manner.kernel_thread_every = 3);
    assert_eq!(third[..6], ["write", "write", "thread", "write", "write", "thread"]);
    let all = names(&|tenant| tenant.manner.kernel_thread_every = 1);
    assert_eq!(all, ["thread"; 8]);
    for lock in [LockPolicy::Exclusive, LockPolicy::ReadWrite] {
        let locked = names(&|tenant| tenant.lock = lock);
        assert_eq!(locked[..4], ["lock", "write", "lock", "lock"]);
        assert_eq!(locked.len(), 24);
    }
}
