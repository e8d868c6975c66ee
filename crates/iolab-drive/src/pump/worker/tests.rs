//! Runs beside op by op: the same transfers, counts, times, series and sentences.

use std::cell::Cell;

use iolab_model::op::{Op, Position, Token, Transfer};
use iolab_model::target::{Run, RunEnd};
use iolab_model::{Accepted, Bytes, Completion, Error, Lane, Ns, Seed, Submission, error::Errno};
use iolab_workload::spec::{Direction, Limit, Pattern, Tenant};
use iolab_workload::{Gate, GroupState, StreamReport, StreamWorker, Workload};
use proptest::prelude::*;

use super::drive;
use crate::recorder::Recorder;

const RECORD: Bytes = Bytes(4096);
const CLOSE: Ns = Ns(31);

/// Event that befalls the n-th transfer.
#[derive(Clone, Copy, Debug)]
enum Mishap {
    None,
    Error(usize),
    Short(usize),
    /// A stonewall falls while it is under way.
    Stop(usize),
}

/// Gates are open, or so when it is asked for the second time; the stop flag is the lane's.
struct Group<'a> {
    is_stopped: &'a Cell<bool>,
    is_closed: Cell<bool>,
}

impl GroupState for Group<'_> {
    fn arrive(&self, _: Gate) {}
    fn is_open(&self, _: Gate) -> bool {
        !self.is_closed.replace(false)
    }
    fn stop(&self) {
        self.is_stopped.set(true);
    }
    fn is_stopped(&self) -> bool {
        self.is_stopped.get()
    }
}

/// A synchronous lane in a time of its own: transfers take different times, a close takes
/// [`CLOSE`], all else none.
struct Synthetic<'a, const HAS_RUNS: bool> {
    now: Ns,
    mishap: Mishap,
    is_stopped: &'a Cell<bool>,
    /// Offsets and direction, in order.
    made: Vec<(u64, bool)>,
    /// Timed transfers that were submitted one by one.
    single: usize,
    /// Transfers of nothing.
    rehearsed: usize,
}

impl<const HAS_RUNS: bool> Synthetic<'_, HAS_RUNS> {
    fn transfer(&mut self, transfer: &Transfer, writes: bool) -> Result<Bytes, Errno> {
        let Position::At(at) = transfer.at else { unreachable!("streams say where") };
        if transfer.length == Bytes(0) {
            self.rehearsed += 1;
            return Ok(Bytes(0));
        }
        let number = self.made.len();
        self.made.push((at.0, writes));
        self.now += Ns(100 + (number as u64 * 7919) % 5000);
        match self.mishap {
            Mishap::Error(which) if which == number => Err(Errno::EIO),
            Mishap::Short(which) if which == number => Ok(Bytes(transfer.length.0 / 2)),
            Mishap::Stop(which) => {
                self.is_stopped.set(self.is_stopped.get() || which == number);
                Ok(transfer.length)
            }
            _ => Ok(transfer.length),
        }
    }
}

impl<const HAS_RUNS: bool> Lane for Synthetic<'_, HAS_RUNS> {
    const HAS_RUNS: bool = HAS_RUNS;

    fn run<R: Run>(&mut self, now: Ns, run: &mut R) -> RunEnd {
        let mut submitted = now;
        while let Some(transfer) = run.next(submitted) {
            let outcome = self.transfer(&transfer, R::WRITES);
            let completed = self.now;
            if outcome != Ok(transfer.length) {
                let token = Token(0);
                let completion = Completion { token, submitted, completed, outcome };
                return RunEnd::FellShort(transfer, completion);
            }
            run.ended(submitted, completed, transfer.length);
            submitted = completed;
        }
        RunEnd::Over(submitted)
    }
    fn now(&self) -> Ns {
        self.now
    }
    fn submit_batch(
        &mut self,
        mut submitted: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        for &Submission { token, op, is_timed, .. } in batch {
            self.single += usize::from(is_timed && matches!(op, Op::Read(_) | Op::Write(_)));
            let outcome = match op {
                Op::Read(transfer) => self.transfer(&transfer, false),
                Op::Write(transfer) => self.transfer(&transfer, true),
                Op::Close { .. } => {
                    self.now += CLOSE;
                    Ok(Bytes(0))
                }
                _ => Ok(Bytes(0)),
            };
            done.push(Completion { token, submitted, completed: self.now, outcome });
            submitted = self.now;
        }
        Accepted { done: batch.len(), queued: 0 }
    }
    fn kick(&mut self) -> Result<(), Error> {
        Ok(())
    }
    fn reap(&mut self, _: u32, _: Ns, _: &mut Vec<Completion>) -> Result<(), Error> {
        Ok(())
    }
    fn in_flight(&self) -> u32 {
        0
    }
    fn sleep_until(&mut self, instant: Ns) {
        self.now = instant;
    }
}

fn tenant(direction: Direction, pattern: Pattern, limit: Limit) -> Tenant {
    let text = r#"{"version":1,"name":"x","engine":"sync","seed":7,"phases":[{"name":"p",
        "tenants":[{"name":"main","workers":1,"file":"data","file_bytes":409600,
        "io_size_bytes":4096,"pattern":{"kind":"uniform"},"direction":{"kind":"read"},
        "opening":"existing"}]}]}"#;
    let workload: Workload = serde_json::from_str(text).unwrap();
    let tenant = workload.phases[0].tenants[0].clone();
    Tenant { direction, pattern, limit, io_size_bytes: RECORD, ..tenant }
}

/// All that can be seen from outside.
type Seen = (Vec<(u64, bool)>, StreamReport, String, Ns);

fn driven<const HAS_RUNS: bool>(
    tenant: &Tenant,
    mishap: Mishap,
    (is_stonewalled, is_gated): (bool, bool),
) -> (Seen, usize) {
    let is_stopped = Cell::new(false);
    let (made, is_stopped, now) = (Vec::new(), &is_stopped, Ns(1000));
    let mut lane = Synthetic::<HAS_RUNS> { now, mishap, is_stopped, made, single: 0, rehearsed: 0 };
    let group = Group { is_stopped, is_closed: Cell::new(is_gated) };
    let mut worker = StreamWorker::new(tenant, 0, is_stonewalled, Seed(3), group);
    let mut recorder = Recorder::new(1, Ns::from_us(10), None).cut_at((&[Ns::from_us(60)], Ns(0)));
    drive(&mut lane, &mut worker, &mut recorder, 1).unwrap();
    let is_rehearsed = HAS_RUNS && is_gated && tenant.think_ns.0 == 0;
    assert_eq!(lane.rehearsed > 0, is_rehearsed, "transfers of nothing, before the gate opens");
    let kept = serde_json::to_string(&(&recorder.service, &recorder.series)).unwrap();
    let parts = serde_json::to_string(&recorder.segments.into_parts()).unwrap();
    ((lane.made, worker.report(), kept + &parts, lane.now), lane.single)
}

fn mishaps() -> impl Strategy<Value = Mishap> {
    prop_oneof![
        Just(Mishap::None),
        (0..150_usize).prop_map(Mishap::Error),
        (0..150_usize).prop_map(Mishap::Short),
        (0..150_usize).prop_map(Mishap::Stop),
    ]
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Once),
        (1..300_u64).prop_map(|ops| Limit::Ops { ops, within_ns: None }),
        (1..400_000_u64).prop_map(|ns| Limit::Time { duration_ns: Ns(ns) }),
    ]
}

proptest! {
    #[test]
    fn a_run_is_the_same_as_op_by_op(
        writes in any::<bool>(),
        is_random in any::<bool>(),
        limit in limits(),
        mishap in mishaps(),
        how in any::<(bool, bool)>(),
    ) {
        let direction = if writes { Direction::Write } else { Direction::Read };
        let pattern = if is_random { Pattern::Uniform } else { Pattern::Sequential };
        let tenant = tenant(direction, pattern, limit);
        let (one_by_one, _) = driven::<false>(&tenant, mishap, how);
        let (in_runs, left) = driven::<true>(&tenant, mishap, how);
        let alone = usize::from(!how.1);
        prop_assert!((alone..=alone + 1).contains(&left), "by itself before a run: {left}");
        prop_assert_eq!(in_runs, one_by_one);
    }
}

#[test]
fn time_of_calls_holds_a_timed_close_and_no_pauses() {
    let limit = Limit::Ops { ops: 10, within_ns: None };
    for (think_ns, is_close_timed) in [(0, false), (0, true), (700, false), (700, true)] {
        let tenant = Tenant {
            think_ns: Ns(think_ns),
            is_close_timed,
            ..tenant(Direction::Read, Pattern::Sequential, limit)
        };
        let ((.., report, _, _), _) = driven::<true>(&tenant, Mishap::None, (false, false));
        let transfers: u64 = (0..10).map(|number| 100 + number * 7919 % 5000).sum();
        let close = if is_close_timed { CLOSE.0 } else { 0 };
        assert_eq!(report.call_ns, transfers + close, "{think_ns} {is_close_timed}");
        assert!(report.elapsed_ns >= report.call_ns + 9 * think_ns, "{think_ns} {is_close_timed}");
    }
}
