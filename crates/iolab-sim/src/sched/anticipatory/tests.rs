//! anticipatory against its specification.

use super::*;
use crate::api::bio::Operation;
use crate::api::request::Request;
use crate::sched::exercise::{CONTEXT, bio};
use crate::tunable::Tunables;

const EPOCH: u64 = 1_000_000;

/// A scheduler with its requests; times in ms after [`EPOCH`].
struct Desk {
    scheduler: Anticipatory,
    requests: Requests,
}

impl Desk {
    fn new() -> Self {
        Self { scheduler: Anticipatory::attach(&CONTEXT), requests: Requests::default() }
    }

    fn insert(&mut self, ms: u64, process: u32, (operation, sector): (Operation, u64)) -> u32 {
        let mut bio = bio(operation, sector);
        bio.submitter.process = ProcessId(process);
        let id = self.requests.add(Request::of(&bio, at(ms)));
        self.scheduler.insert(at(ms), &self.requests, id);
        id.0
    }

    fn read(&mut self, ms: u64, process: u32, sector: u64) -> u32 {
        self.insert(ms, process, (Operation::Read, sector))
    }

    fn write(&mut self, ms: u64, process: u32, sector: u64) -> u32 {
        self.insert(ms, process, (Operation::Write, sector))
    }

    fn dispatch(&mut self, ms: u64) -> Option<u32> {
        let id = self.scheduler.dispatch(at(ms), &self.requests)?;
        self.scheduler.activate(at(ms), &self.requests, id);
        Some(id.0)
    }

    fn complete(&mut self, ms: u64, id: u32) {
        self.scheduler.complete(at(ms), &self.requests, RequestId(id));
        self.requests.remove(RequestId(id));
    }

    fn timer(&mut self, ms: u64) {
        assert_eq!(self.scheduler.next_timer(), at(ms));
        self.scheduler.timer(at(ms), &self.requests);
    }
}

fn at(ms: u64) -> Ns {
    Ns::from_ms(EPOCH + ms)
}

#[test]
fn defaults_depend_on_the_tick() {
    // formula_checks: as_defaults_ms_at_hz_1000; below 150 Hz the wait is one tick.
    let names = ["read_expire", "write_expire", "read_batch_expire", "write_batch_expire"];
    for (hz, expected, wait, writes) in [
        (1_000, [125, 250, 500, 125], 6, 12),
        (250, [124, 248, 500, 124], 4, 3),
        (100, [120, 250, 500, 120], 10, 2),
    ] {
        let scheduler = Anticipatory::attach(&SchedulerContext { hz: Hz(hz), ..CONTEXT });
        assert_eq!(names.map(|name| scheduler.tunable(name).unwrap()), expected, "{hz}");
        assert_eq!(scheduler.tunable("antic_expire").unwrap(), wait, "{hz}");
        assert_eq!(scheduler.batch.writes, writes, "{hz}");
    }
}

#[test]
fn the_awaited_process_gets_a_slot_of_a_full_pool() {
    let mut desk = Desk::new();
    let mut mine = bio(Operation::Read, 8);
    mine.submitter.process = ProcessId(1);
    let first = desk.read(0, 1, 0);
    assert_eq!(desk.dispatch(0), Some(first));
    desk.read(1, 2, 1_000_000);
    assert_eq!(desk.dispatch(1), None);
    assert_eq!(desk.scheduler.status, Status::WaitRequest);
    assert_eq!(desk.scheduler.next_timer(), Ns::MAX);
    assert!(desk.scheduler.must_grant(&mine));
    desk.complete(5, first);
    assert_eq!(desk.scheduler.next_timer(), at(11));
    assert!(desk.scheduler.must_grant(&mine));
    mine.submitter.process = ProcessId(2);
    assert!(!desk.scheduler.must_grant(&mine));
}

#[test]
fn what_is_close_enough_grows_while_waiting() {
    // The head is at 8; close is 8192 sectors above at first, twice as much per tick waited.
    for (waited, sector, is_close) in [
        (0, 8 + 8192, true),
        (0, 16 + 8192, false),
        (1, 16 + 8192, true),
        (1, 16 + 2 * 8192, false),
        (3, 8 + 8 * 8192, true),
        (3, 16 + 8 * 8192, false),
    ] {
        let mut desk = Desk::new();
        let first = desk.read(0, 1, 0);
        assert_eq!(desk.dispatch(0), Some(first));
        desk.read(0, 2, 1_000_000);
        desk.complete(5, first);
        assert_eq!(desk.dispatch(5), None);
        let other = desk.read(5 + waited, 3, sector);
        let expected = is_close.then_some(other);
        assert_eq!(desk.dispatch(5 + waited), expected, "{sector} after {waited} ms");
    }
}

#[test]
fn a_close_request_of_another_process_counts_as_the_awaited_one() {
    let mut desk = Desk::new();
    let first = desk.read(0, 1, 0);
    assert_eq!(desk.dispatch(0), Some(first));
    desk.read(0, 2, 1_000_000);
    desk.complete(5, first);
    assert_eq!(desk.dispatch(5), None);
    desk.read(7, 3, 1_008);
    let awaited = *desk.scheduler.history.process(ProcessId(1));
    assert_eq!(awaited.position, Sector(1_016));
    assert_eq!((awaited.think.samples, awaited.think.total), (32, 256 * 2 / 8));
    assert_eq!(awaited.seek.mean, 1_000);
}

#[test]
fn a_request_for_the_same_sector_pushes_the_older_one_out() {
    let mut desk = Desk::new();
    let waiting = desk.read(0, 1, 0);
    assert_eq!(desk.dispatch(0), Some(waiting));
    let old = desk.read(1, 2, 1_000_000);
    assert_eq!(desk.dispatch(1), None);
    let new = desk.read(2, 3, 1_000_000);
    assert!(!desk.scheduler.is_waiting());
    let never = bio(Operation::Read, 1_000_008);
    let into = |id| RequestId(id);
    assert!(!desk.scheduler.allows_merge(at(2), &desk.requests, into(old), &never));
    assert!(desk.scheduler.allows_merge(at(2), &desk.requests, into(new), &never));
    assert_eq!(desk.dispatch(2), Some(old));
}

#[test]
fn the_old_batch_drains_before_the_new_one_begins() {
    let mut desk = Desk::new();
    desk.scheduler.tune("antic_expire", 0).unwrap();
    let first = desk.read(0, 1, 0);
    let write = desk.write(0, 2, 1_000);
    assert_eq!(desk.dispatch(0), Some(first));
    desk.complete(5, first);
    let second = desk.read(501, 1, 8);
    assert_eq!(desk.dispatch(501), Some(second));
    desk.read(501, 1, 800);
    // 5 + 500 ms have passed: the read batch is over, but one read is still at the device.
    assert_eq!(desk.dispatch(506), None);
    assert!(desk.scheduler.batch.has_changed);
    desk.complete(507, second);
    assert_eq!(desk.dispatch(507), Some(write));
    assert_eq!(desk.scheduler.batch.end, (EPOCH + 507 + 125) as Ticks);
}

#[test]
fn write_batches_aim_at_their_duration() {
    // Batch of at most 12 that ended in time with its count used up: half as long: one more; a
    // third and less: doubled. Too long: one less; more than thrice: halved. Idled: unchanged.
    let cases = [
        (60, 0, false, 13),
        (41, 0, false, 24),
        (60, 1, false, 12),
        (126, 5, false, 11),
        (376, 5, false, 6),
        (376, 5, true, 12),
    ];
    for (duration, left, is_idled, expected) in cases {
        let mut scheduler = Anticipatory::attach(&CONTEXT);
        scheduler.batch.writes_left = left;
        scheduler.batch.is_idled = is_idled;
        scheduler.batch.end = 1_000 + 125;
        scheduler.resize_write_batch(1_000 + duration);
        assert_eq!(scheduler.batch.writes, expected, "{duration} ms, {left} left");
    }
}

#[test]
fn the_first_sync_batch_resizes_against_the_attachment() {
    // The queue ran empty before (idled): unchanged; else halved long after the attachment.
    for (is_run_empty, expected) in [(false, 6), (true, 12)] {
        let mut desk = Desk::new();
        if is_run_empty {
            assert_eq!(desk.dispatch(0), None);
        }
        let (read, _) = (desk.read(1, 1, 0), desk.write(1, 2, 8));
        assert_eq!(desk.dispatch(1), Some(read));
        desk.complete(2, read);
        assert_eq!(desk.scheduler.batch.writes, expected);
    }
}

#[test]
fn processes_that_ended_while_awaited_teach_not_to_wait() {
    let mut desk = Desk::new();
    let mut now = 0;
    for process in 1..20 {
        let read = desk.read(now, process, 0);
        assert_eq!(desk.dispatch(now), Some(read));
        let other = desk.read(now, 1_000, 1_000_000);
        desk.complete(now + 1, read);
        desk.scheduler.exit(at(now + 1), ProcessId(process));
        if let Some(id) = desk.dispatch(now + 1) {
            assert_eq!(id, other);
            assert!(process > 5, "gave up after {process}");
            assert!(desk.scheduler.history.no_cooperation > 128);
            return;
        }
        desk.timer(now + 7);
        assert_eq!(desk.dispatch(now + 7), Some(other));
        desk.complete(now + 8, other);
        now += 100;
    }
    panic!("it still waits for processes that always end");
}

#[test]
fn a_refused_request_goes_first_and_counts_as_not_started() {
    let mut desk = Desk::new();
    let first = desk.read(0, 1, 0);
    desk.read(0, 1, 800);
    assert_eq!(desk.dispatch(0), Some(first));
    desk.scheduler.requeue(at(0), &desk.requests, RequestId(first));
    assert_eq!(desk.scheduler.history.process(ProcessId(1)).dispatched, 1);
    assert_eq!(desk.dispatch(0), Some(first));
    assert_eq!(desk.scheduler.history.process(ProcessId(1)).dispatched, 0);
}

#[test]
fn states_are_understood_or_refused() {
    let mut scheduler = Anticipatory::attach(&CONTEXT);
    assert!(scheduler.preset("write_batch_count: 3"));
    assert_eq!(scheduler.batch.writes, 3);
    assert!(scheduler.preset("process 7: {think_samples: 256, think_mean_ms: 10}"));
    assert_eq!(scheduler.history.process(ProcessId(7)).think.mean, 10);
    assert!(!scheduler.preset("process 7: {thinking: 256}"));
    assert!(!scheduler.preset("a long time ago"));
}
