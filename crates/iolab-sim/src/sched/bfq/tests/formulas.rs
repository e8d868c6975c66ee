//! Numbers of the specification (`formula_checks` of the scenario file, and defaults of sysfs).

use iolab_model::Sector;

use super::driver::{Shape, bio, context};
use crate::api::bio::{Operation, PriorityClass};
use crate::api::request::{Request, Requests};
use crate::api::scheduler::{Attach, Hz, Scheduler, SchedulerContext};
use crate::sched::bfq::Bfq;
use crate::sched::bfq::entity::weight_of_level;
use crate::sched::bfq::queue::decayed_samples;
use crate::sched::bfq::state::MS;
use crate::tunable::Tunables;

fn recurrence(count: usize) -> Vec<u64> {
    let next = |samples: &u64| Some(decayed_samples(*samples));
    std::iter::successors(Some(0), next).skip(1).take(count).collect()
}

#[test]
fn decaying_sample_weight() {
    assert_eq!(recurrence(4), [32, 60, 84, 105]);
}

#[test]
fn bfq_budgets_assigned_reach_194_with_the_eleventh_slot() {
    assert_eq!(recurrence(11), [32, 60, 84, 105, 123, 139, 153, 165, 176, 186, 194]);
    let mut bfq = Bfq::attach(&context(true));
    bfq.budgets_assigned = 186;
    assert!(!bfq.knows_rate());
    bfq.budgets_assigned = 194;
    assert!(bfq.knows_rate());
}

#[test]
fn bfq_weight_from_ioprio() {
    let weights: Vec<u32> = (0..8).map(weight_of_level).collect();
    assert_eq!(weights, [80, 70, 60, 50, 40, 30, 20, 10]);
}

#[test]
fn bfq_budget_sectors() {
    let bfq = Bfq::attach(&context(true));
    assert_eq!(bfq.budget_ceiling(), 16_384);
    assert_eq!(2 * bfq.budget_ceiling() / 3, 10_922);
    assert_eq!(bfq.min_budget(), 512);
    assert_eq!(2 * bfq.min_budget(), 1_024);
}

#[test]
fn bfq_weight_raising_ms_before_rate_is_known() {
    for hz in [100, 250, 1_000] {
        for (is_rotational, ms) in [(true, 10_500), (false, 3_750)] {
            let context = SchedulerContext { hz: Hz(hz), ..context(is_rotational) };
            let ticks = Bfq::attach(&context).raising_duration();
            assert_eq!(ticks as u64, ms * u64::from(hz) / 1_000, "HZ {hz}");
        }
    }
}

#[test]
fn raising_lasts_3_to_25_seconds() {
    let mut bfq = Bfq::attach(&context(true));
    bfq.rate.rate = 1;
    assert_eq!(bfq.raising_duration(), 25_000);
    bfq.rate.rate = 1 << 20;
    assert_eq!(bfq.raising_duration(), 3_000);
}

#[test]
fn defaults_are_those_that_sysfs_shows() {
    let bfq = Bfq::attach(&context(true));
    let shown: Vec<(&str, u64)> =
        bfq.tunables().iter().map(|info| (info.name, bfq.tunable(info.name).unwrap())).collect();
    let expected = [
        ("fifo_expire_sync", 125),
        ("fifo_expire_async", 250),
        ("back_seek_max", 16_384),
        ("back_seek_penalty", 2),
        ("slice_idle", 8),
        ("slice_idle_us", 8_000),
        ("max_budget", 0),
        ("timeout_sync", 125),
        ("strict_guarantees", 0),
        ("low_latency", 1),
    ];
    assert_eq!(shown, expected);
    for info in bfq.tunables() {
        assert_eq!(bfq.tunable(info.name).unwrap(), info.default, "{}", info.name);
    }
}

#[test]
fn timeout_is_truncated_to_ticks() {
    let context = SchedulerContext { hz: Hz(250), ..context(true) };
    let mut bfq = Bfq::attach(&context);
    // HZ/8 = 31 ticks of 4 ms: what a 6.18 kernel shows.
    assert_eq!(bfq.tunable("timeout_sync").unwrap(), 124);
    bfq.tune("timeout_sync", 50).unwrap();
    assert_eq!(bfq.tunable("timeout_sync").unwrap(), 52);
}

#[test]
fn the_two_files_of_slice_idle_are_one_value() {
    let mut bfq = Bfq::attach(&context(true));
    bfq.tune("slice_idle_us", 1_500).unwrap();
    assert_eq!(bfq.tunable("slice_idle").unwrap(), 1);
    bfq.tune("strict_guarantees", 1).unwrap();
    assert_eq!(bfq.settings.slice_idle, 8 * MS, "strict guarantees need a long wait");
}

#[test]
fn ranges_are_checked() {
    let mut bfq = Bfq::attach(&context(true));
    for (name, value) in [
        ("fifo_expire_sync", 0),
        ("back_seek_penalty", 0),
        ("timeout_sync", 0),
        ("low_latency", 2),
        ("max_budget", 1 << 31),
    ] {
        assert!(bfq.tune(name, value).is_err(), "{name} = {value}");
    }
}

#[test]
fn a_user_budget_caps_growth_at_once_but_new_queues_later() {
    let mut bfq = Bfq::attach(&context(true));
    bfq.tune("max_budget", 2_000).unwrap();
    assert_eq!((bfq.max_budget, bfq.budget_ceiling()), (2_000, 16_384));
    bfq.budgets_assigned = 194;
    assert_eq!(bfq.budget_ceiling(), 2_000);
    bfq.tune("max_budget", 0).unwrap();
    // 9333 / 2^16 sectors per us, 125 ms.
    assert_eq!(bfq.max_budget, (9_333 * 1_000 * 125) >> 16);
}

#[test]
fn writes_may_not_use_all_slots() {
    let mut bfq = Bfq::attach(&context(true));
    let read = bio(Shape { operation: Operation::Read, ..Shape::default() });
    let write = bio(Shape { operation: Operation::Write, ..Shape::default() });
    let mut direct = write;
    direct.flags = crate::api::bio::Flags::SYNC;
    let depths = |bfq: &Bfq| [&read, &direct, &write].map(|bio| bfq.limit_depth(bio, 256));
    assert_eq!(depths(&bfq), [256, 192, 128]);
    bfq.raised_busy = 1;
    assert_eq!(depths(&bfq), [256, 96, 48]);
}

#[test]
fn a_queue_with_more_than_its_share_gets_one_slot() {
    let mut bfq = Bfq::attach(&context(true));
    bfq.tune("low_latency", 0).unwrap();
    let mut requests = Requests::default();
    let now = iolab_model::Ns::from_seconds(1);
    for place in 0..130 {
        let process = if place < 128 { 1 } else { 2 };
        let shape = Shape { process, sector: place * 1_000, ..Shape::default() };
        let id = requests.add(Request::of(&bio(shape), now));
        bfq.insert(now, &requests, id);
    }
    // Two queues of equal weight: 128 of 256 slots each.
    let heavy = bio(Shape { process: 1, ..Shape::default() });
    let light = bio(Shape { process: 2, ..Shape::default() });
    assert_eq!([&heavy, &light].map(|bio| bfq.limit_depth(bio, 256)), [1, 256]);
}

#[test]
fn the_better_request_is_ahead_or_not_far_behind() {
    let bfq = Bfq::attach(&context(true));
    let mut requests = Requests::default();
    let mut at = |sector: u64| {
        let shape = Shape { sector, ..Shape::default() };
        Some(requests.add(Request::of(&bio(shape), iolab_model::Ns(0))))
    };
    let (behind, ahead, far) = (at(100_000 - 10), at(100_000 + 30), at(0));
    let better = |a, b| bfq.back_seek().better(&requests, a, b, Sector(100_000));
    assert_eq!(better(behind, ahead), behind, "10 back cost 20, less than 30 ahead");
    assert_eq!(better(far, ahead), ahead, "beyond 16 MiB back comes last");
}

#[test]
fn classes_none_and_best_effort_share_a_tree() {
    use crate::sched::bfq::entity::Class;
    assert_eq!(Class::of(PriorityClass::None), Class::BestEffort);
    assert!(Class::of(PriorityClass::RealTime) < Class::of(PriorityClass::Idle));
}
