//! mq-deadline against its specification and against a naive twin.

use iolab_model::{Ns, Sector};

use super::*;
use crate::api::bio::{BioId, Flags, Submitter};
use crate::api::scheduler::Hz;
use crate::tunable::Tunables;

fn context(hz: u32) -> SchedulerContext {
    SchedulerContext {
        is_rotational: true,
        hz: Hz(hz),
        slots: 256,
        depth: 1,
        cpus: 1,
        attached: Ns(0),
    }
}

fn bio(operation: Operation, sector: u64) -> Bio {
    let submitter = Submitter::default();
    Bio {
        id: BioId(0),
        operation,
        sector: Sector(sector),
        sectors: 8,
        flags: Flags::NONE,
        submitter,
    }
}

#[test]
fn defaults_are_those_that_sysfs_shows() {
    for hz in [100, 250, 1_000] {
        let scheduler = MqDeadline::attach(&context(hz));
        for info in scheduler.tunables() {
            assert_eq!(scheduler.tunable(info.name).unwrap(), info.default, "{} {hz}", info.name);
        }
    }
}

#[test]
fn times_are_rounded_up_to_ticks() {
    let mut scheduler = MqDeadline::attach(&context(250));
    scheduler.tune("read_expire", 3).unwrap();
    assert_eq!(scheduler.tunable("read_expire").unwrap(), 4);
    assert!(scheduler.tune("front_merges", 2).is_err());
    assert!(scheduler.tune("async_depth", 0).is_err());
}

#[test]
fn async_depth_limits_everything_but_reads() {
    let mut scheduler = MqDeadline::attach(&context(1_000));
    scheduler.tune("async_depth", 60).unwrap();
    assert_eq!(scheduler.limit_depth(&bio(Operation::Read, 0), 256), 256);
    assert_eq!(scheduler.limit_depth(&bio(Operation::Discard, 0), 256), 60);
    let mut write = bio(Operation::Write, 0);
    write.flags = Flags::SYNC;
    assert_eq!(scheduler.limit_depth(&write, 256), 60);
    assert_eq!(scheduler.limit_depth(&write, 32), 32);
}

#[test]
fn refused_requests_go_first_whatever_their_class_and_count_once() {
    let mut scheduler = MqDeadline::attach(&context(1_000));
    let mut requests = Requests::default();
    let now = Ns(0);
    let mut idle = bio(Operation::Read, 0);
    idle.submitter.priority.class = PriorityClass::Idle;
    let low = requests.add(Request::of(&idle, now));
    scheduler.insert(now, &requests, low);
    assert_eq!(scheduler.dispatch(now, &requests), Some(low));
    scheduler.requeue(now, &requests, low);
    let mut urgent = bio(Operation::Read, 8);
    urgent.submitter.priority.class = PriorityClass::RealTime;
    let high = requests.add(Request::of(&urgent, now));
    scheduler.insert(now, &requests, high);
    assert_eq!(scheduler.dispatch(now, &requests), Some(low));
    assert_eq!(scheduler.dispatch(now, &requests), Some(high));
    scheduler.complete(now, &requests, low);
    scheduler.complete(now, &requests, high);
    assert!(scheduler.classes.iter().all(|class| class.outstanding == 0));
}
