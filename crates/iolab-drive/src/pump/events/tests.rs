//! A device of fixed latency in virtual time: closed forms for throughput and depth.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use iolab_model::op::Token;
use iolab_model::{
    Accepted, Bytes, Completion, Error, Lane, Ns, Op, Seed, Submission, VirtualTime,
};
use iolab_workload::group::CellGroup;
use iolab_workload::spec::{Limit, Tenant};
use iolab_workload::{GroupState, Step, StreamReport, StreamWorker, Worker, Workload};

use super::{Actor, run_events};
use crate::coordinate::WorkerOutcome;
use crate::recorder::Recorder;

const LATENCY: Ns = Ns::from_us(100);

/// Every transfer takes `LATENCY`, any number at once; everything else takes no time.
#[derive(Default)]
struct Fixed {
    now: Cell<u64>,
    sequence: Cell<u64>,
    /// (due, sequence) to (lane, completion): time first, then order of submission.
    due: RefCell<BTreeMap<(u64, u64), (usize, Completion)>>,
    ended: RefCell<Vec<(usize, Completion)>>,
}

impl VirtualTime for Fixed {
    fn now(&self) -> Ns {
        Ns(self.now.get())
    }
    fn next_event(&self) -> Option<Ns> {
        self.due.borrow().first_key_value().map(|(key, _)| Ns(key.0))
    }
    fn advance_to(&self, instant: Ns) {
        self.now.set(instant.0);
        let mut due = self.due.borrow_mut();
        while let Some(entry) = due.first_entry().filter(|entry| entry.key().0 <= instant.0) {
            self.ended.borrow_mut().push(entry.remove());
        }
    }
}

struct FixedLane<'a> {
    index: usize,
    device: &'a Fixed,
    in_flight: u32,
}

impl Lane for FixedLane<'_> {
    fn now(&self) -> Ns {
        self.device.now()
    }
    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        let mut accepted = Accepted::default();
        for submission in batch {
            let Token(slot) = submission.token;
            let (Op::Read(t) | Op::Write(t)) = submission.op else {
                let outcome = Ok(Bytes(0));
                let token = submission.token;
                done.push(Completion { token, submitted: now, completed: now, outcome });
                accepted.done += 1;
                continue;
            };
            let completed = now + LATENCY;
            let completion =
                Completion { token: Token(slot), submitted: now, completed, outcome: Ok(t.length) };
            let sequence = self.device.sequence.replace(self.device.sequence.get() + 1);
            self.device.due.borrow_mut().insert((completed.0, sequence), (self.index, completion));
            self.in_flight += 1;
            accepted.queued += 1;
        }
        accepted
    }
    fn kick(&mut self) -> Result<(), Error> {
        Ok(())
    }
    fn reap(&mut self, _: u32, _: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        self.device.ended.borrow_mut().retain(|(lane, completion)| {
            let is_mine = *lane == self.index;
            if is_mine {
                done.push(*completion);
                self.in_flight -= 1;
            }
            !is_mine
        });
        Ok(())
    }
    fn in_flight(&self) -> u32 {
        self.in_flight
    }
    fn sleep_until(&mut self, _: Ns) {
        unreachable!("the pump lets virtual time pass, not the lane");
    }
}

fn tenant(change: impl FnOnce(&mut Tenant)) -> Tenant {
    let text = r#"{"version":1,"name":"x","engine":"sim","seed":7,"phases":[{"name":"read",
        "tenants":[{"name":"main","workers":1,"file":"data","file_bytes":4096000,
        "io_size_bytes":4096,"pattern":{"kind":"uniform"},"direction":{"kind":"read"},
        "opening":"existing"}]}]}"#;
    let workload: Workload = serde_json::from_str(text).unwrap();
    let mut tenant = workload.phases[0].tenants[0].clone();
    change(&mut tenant);
    tenant
}

/// Elapsed virtual time and total depth reached of one tenant on the fixed-latency device.
fn run(tenant: &Tenant) -> (Ns, f64, Vec<Recorder>) {
    let ended = run_workers(tenant);
    let elapsed = ended.iter().map(|(report, _)| report.elapsed_ns).max().unwrap();
    let busy: f64 = ended.iter().map(|(_, recorder)| recorder.service.sum_ns()).sum();
    let recorders = ended.into_iter().map(|(_, recorder)| recorder).collect();
    (Ns(elapsed), busy / elapsed as f64, recorders)
}

/// Counts of each worker of a tenant on the fixed-latency device.
fn run_workers(tenant: &Tenant) -> Vec<(StreamReport, Recorder)> {
    let device = Fixed::default();
    let group = CellGroup::new(tenant.workers);
    let mut actors: Vec<_> = (0..tenant.workers)
        .map(|index| Actor {
            lane: FixedLane { index: index as usize, device: &device, in_flight: 0 },
            worker: StreamWorker::new(tenant, index, false, Seed(7), &group),
            recorder: Recorder::new(
                tenant.depth,
                Ns::from_ms(1),
                tenant.period_ns().map(|ns| Ns(ns as u64)),
            ),
        })
        .collect();
    run_events(&mut actors, &device, &group).unwrap();
    actors.into_iter().map(|a| (a.worker.report(), a.recorder)).collect()
}

#[test]
fn operations_end_a_worker_or_are_cut_off() {
    let ops = |ops, within| Limit::Ops { ops, within_ns: Some(Ns::from_ms(within)) };
    let done = run_workers(&tenant(|t| t.limit = ops(30, 5)));
    assert_eq!((done[0].0.ops, done[0].0.elapsed_ns), (30, 30 * LATENCY.0));
    let cut_off = run_workers(&tenant(|t| t.limit = ops(80, 5)));
    assert_eq!((cut_off[0].0.ops, cut_off[0].0.elapsed_ns), (50, 50 * LATENCY.0));
}

#[test]
fn the_longest_gap_holds_thinking_and_waiting_for_the_first() {
    let plain = run_workers(&tenant(|t| t.limit = Limit::Ops { ops: 30, within_ns: None }));
    assert_eq!(plain[0].0.gap_ns_max, LATENCY.0);
    let thinking = run_workers(&tenant(|t| t.think_ns = Ns::from_us(70)));
    assert_eq!(thinking[0].0.gap_ns_max, LATENCY.0 + 70_000);
}

#[test]
fn time_of_calls_is_when_any_is_under_way() {
    let limit = Limit::Ops { ops: 40, within_ns: None };
    let deep = run_workers(&tenant(|t| (t.depth, t.limit) = (4, limit)));
    assert_eq!((deep[0].0.elapsed_ns, deep[0].0.call_ns), (10 * LATENCY.0, 10 * LATENCY.0));
    let thinking = run_workers(&tenant(|t| (t.think_ns, t.limit) = (Ns::from_us(70), limit)));
    assert_eq!(thinking[0].0.call_ns, 40 * LATENCY.0);
    assert!(thinking[0].0.elapsed_ns >= thinking[0].0.call_ns + 39 * 70_000);
}

#[test]
fn an_op_is_late_that_ends_a_period_after_its_intended_start() {
    let on_time = run_workers(&tenant(|t| t.rate_ops_per_s = Some(1000.0)));
    assert_eq!(on_time[0].1.late_ops, 0);
    // One every 50 us, which takes 100 us: all are late.
    let late = run_workers(&tenant(|t| t.rate_ops_per_s = Some(20_000.0)));
    assert_eq!(late[0].1.late_ops, 1000);
}

#[test]
fn what_was_due_and_never_begun_is_missed() {
    let limit = Limit::Time { duration_ns: Ns::from_ms(10) };
    // One every 50 us, which takes 100 us: half of 200 are begun.
    let mut found = run_workers(&tenant(|t| {
        (t.rate_ops_per_s, t.limit) = (Some(20_000.0), limit);
    }));
    let (report, recorder) = found.remove(0);
    assert_eq!((report.ops, report.missed_ops), (100, Some(100)));
    let outcome = WorkerOutcome::new(0, report, recorder);
    let response = outcome.response.unwrap().read.unwrap();
    assert_eq!(response.count(), 200);
    // The 100 missed ones were due from 5 ms on; the oldest waited a period less than 5 ms or more.
    assert!(response.quantile(0.9).unwrap() > 3_900_000);
    let kept = run_workers(&tenant(|t| (t.rate_ops_per_s, t.limit) = (Some(1000.0), limit)));
    assert_eq!((kept[0].0.ops, kept[0].0.missed_ops), (10, Some(0)));
}

#[test]
fn who_is_out_of_time_had_all_of_it() {
    let limit = Limit::Time { duration_ns: Ns::from_ms(10) };
    let slow = run_workers(&tenant(|t| (t.rate_ops_per_s, t.limit) = (Some(250.0), limit)));
    // At 0, 4 and 8 ms; silence to the end counts, as time and as a gap.
    assert_eq!((slow[0].0.ops, slow[0].0.elapsed_ns), (3, 10_000_000));
    assert_eq!(slow[0].0.gap_ns_max, 4_000_000);
    let thinking = run_workers(&tenant(|t| (t.think_ns, t.limit) = (Ns::from_ms(6), limit)));
    assert_eq!((thinking[0].0.ops, thinking[0].0.elapsed_ns), (2, 10_000_000));
}

#[test]
fn who_does_the_same_is_alike_whatever_its_name_and_weight() {
    let one = tenant(|_| {});
    let other = tenant(|t| (t.name, t.file, t.share) = ("b".into(), "b".into(), Some(3.0)));
    assert!(one.is_like(&other));
    assert!(!one.is_like(&tenant(|t| t.depth = 2)));
}

#[test]
fn depth_one_takes_latency_per_op() {
    let (elapsed, depth, _) = run(&tenant(|_| {}));
    assert_eq!(elapsed, Ns(1000 * LATENCY.0));
    assert!((depth - 1.0).abs() < 1e-9);
}

#[test]
fn depth_and_workers_multiply_throughput() {
    let (elapsed, depth, _) = run(&tenant(|t| (t.depth, t.workers) = (8, 3)));
    assert_eq!(
        elapsed,
        Ns(1000 / 8 * LATENCY.0),
        "each of 3 workers reads 1000 records 8 at a time"
    );
    assert!((depth - 24.0).abs() < 1e-9);
}

#[test]
fn a_rate_above_capacity_shows_in_response_time_only() {
    let (_, _, recorders) = run(&tenant(|t| t.rate_ops_per_s = Some(20_000.0)));
    let service = recorders[0].service.read.as_ref().unwrap();
    let response = recorders[0].response.as_ref().unwrap().read.as_ref().unwrap();
    assert_eq!(service.max(), Some(LATENCY.0));
    // 10 k ops/s are possible, 20 k/s are intended: op 999 is due at 49.95 ms and ends at 100 ms.
    assert_eq!(response.max(), Some(100_000_000 - 49_950_000));
}

#[test]
fn a_rate_below_capacity_is_kept() {
    let (elapsed, ..) = run(&tenant(|t| t.rate_ops_per_s = Some(1000.0)));
    assert_eq!(elapsed, Ns(999 * 1_000_000 + LATENCY.0));
}

#[test]
fn a_time_limit_ends_the_phase() {
    let limit = Limit::Time { duration_ns: Ns::from_ms(5) };
    let (elapsed, _, recorders) = run(&tenant(|t| t.limit = limit));
    assert_eq!(elapsed, Ns::from_ms(5));
    assert_eq!(recorders[0].service.read.as_ref().unwrap().count(), 50);
}

#[test]
fn think_time_comes_between_ops() {
    let (elapsed, ..) = run(&tenant(|t| t.think_ns = Ns::from_us(50)));
    assert_eq!(elapsed, Ns(1000 * LATENCY.0 + 999 * 50_000));
}

/// Time that has always something to do: at the same instant, or at later ones for ever.
struct Endless {
    now: Cell<u64>,
    step: u64,
}

impl VirtualTime for Endless {
    fn now(&self) -> Ns {
        Ns(self.now.get())
    }
    fn next_event(&self) -> Option<Ns> {
        Some(Ns(self.now.get() + self.step))
    }
    fn advance_to(&self, instant: Ns) {
        self.now.set(instant.0);
    }
}

/// A worker whose op never ends.
struct Waiting;

impl Worker for Waiting {
    fn next(&mut self, _: Ns) -> Step {
        Step::Await
    }
    fn complete(&mut self, _: &Completion) -> bool {
        false
    }
}

/// Error with which a run ends in which nobody moves, with a stop that was asked for, or without.
fn end_of_waiting(step: u64, is_stopped: bool) -> Error {
    let device = Fixed::default();
    let lane = FixedLane { index: 0, device: &device, in_flight: 1 };
    let actor = Actor { lane, worker: Waiting, recorder: Recorder::new(1, Ns::from_ms(1), None) };
    let group = CellGroup::new(1);
    if is_stopped {
        group.stop();
    }
    run_events(&mut [actor], &Endless { now: Cell::new(7), step }, &group).unwrap_err()
}

/// A model that is never done with an instant is told, and does not run for ever.
#[test]
fn time_that_stands_still_is_an_error() {
    let error = end_of_waiting(0, false);
    assert!(matches!(error, Error::Internal { .. }), "{error:?}");
    assert!(error.to_string().contains("simulated time stands still"), "{error}");
}

/// An op that never ends while time goes on can be stopped.
#[test]
fn a_stop_does_not_wait_for_ops_that_never_end() {
    assert!(matches!(end_of_waiting(1000, true), Error::Stopped));
}
