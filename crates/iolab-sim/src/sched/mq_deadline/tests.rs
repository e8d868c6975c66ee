//! mq-deadline against its specification and against a naive twin.

mod twin;

use iolab_model::Ns;

use self::twin::Twin;
use super::*;
use crate::api::bio::Flags;
use crate::api::scheduler::Hz;
use crate::sched::SchedulerKind;
use crate::sched::exercise::{CONTEXT, Event, Exercise, bio};
use crate::tunable::Tunables;

#[test]
fn defaults_are_those_that_sysfs_shows() {
    for hz in [100, 250, 1_000] {
        let scheduler = MqDeadline::attach(&SchedulerContext { hz: Hz(hz), ..CONTEXT });
        for info in scheduler.tunables() {
            assert_eq!(scheduler.tunable(info.name).unwrap(), info.default, "{} {hz}", info.name);
        }
    }
}

#[test]
fn times_are_rounded_up_to_ticks() {
    let mut scheduler = MqDeadline::attach(&SchedulerContext { hz: Hz(250), ..CONTEXT });
    scheduler.tune("read_expire", 3).unwrap();
    assert_eq!(scheduler.tunable("read_expire").unwrap(), 4);
    assert!(scheduler.tune("front_merges", 2).is_err());
    assert!(scheduler.tune("async_depth", 0).is_err());
}

#[test]
fn async_depth_limits_everything_but_reads() {
    let mut scheduler = MqDeadline::attach(&CONTEXT);
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
    let mut scheduler = MqDeadline::attach(&CONTEXT);
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

/// Small values, so that batches end, deadlines pass and classes age all the time.
const TUNABLES: [(&str, u64); 5] = [
    ("read_expire", 5),
    ("write_expire", 11),
    ("prio_aging_expire", 25),
    ("fifo_batch", 3),
    ("writes_starved", 2),
];

#[test]
fn decides_like_a_naive_twin() {
    let (mut dispatched, mut joined) = (0, 0);
    for seed in 0..200 {
        let mut scheduler = MqDeadline::attach(&CONTEXT);
        let mut twin = Twin::default();
        for (name, value) in TUNABLES {
            scheduler.tune(name, value).unwrap();
            twin.set(name, value);
        }
        let kind = SchedulerKind::MqDeadline;
        let mut ours = Exercise::new(kind, &mut scheduler, seed);
        ours.run(1_000);
        let mut theirs = Exercise::new(kind, &mut twin, seed);
        theirs.run(1_000);
        for (index, (our, their)) in ours.events.iter().zip(&theirs.events).enumerate() {
            assert_eq!(our, their, "seed {seed}, event {index}");
        }
        assert_eq!(ours.events.len(), theirs.events.len());
        dispatched += ours.events.iter().filter(|e| matches!(e, Event::Dispatched(..))).count();
        joined += ours.events.iter().filter(|e| matches!(e, Event::Joined(..))).count();
    }
    assert!(dispatched > 40_000 && joined > 500, "{dispatched} dispatched, {joined} joined");
}
