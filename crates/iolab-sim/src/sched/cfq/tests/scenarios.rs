//! Dispatch orders, worked out by hand from the rules: device of 5 ms, one request at a time.

use iolab_model::Ns;

use super::super::queue::{Marks, QueueId};
use super::driver::Driver;
use super::{cfq, read};
use crate::api::bio::{Bio, BioId, Flags, Operation, Priority, PriorityClass};
use crate::api::scheduler::Scheduler;
use crate::tunable::Tunables;

/// A hand-worked example.
#[derive(Default)]
struct Scenario<'a> {
    tunables: &'a [(&'a str, u64)],
    state: &'a str,
    merges: bool,
    depth: usize,
    /// `name@microseconds process operation sector words...`, separated by commas.
    arrivals: &'a str,
    /// `name@microseconds`, separated by blanks.
    expected: &'a str,
}

/// `a1@0 1 read 1000 rt` and the like; words: `rt`, `idle`, `level7`, `urgent`, `no-idle`, `sync`,
/// `n64` (sectors).
fn arrival(text: &str) -> (&str, Ns, Bio) {
    let mut words = text.split_whitespace();
    let (name, at) = words.next().unwrap().split_once('@').unwrap();
    let process = words.next().unwrap().parse().unwrap();
    let operation = match words.next().unwrap() {
        "read" => Operation::Read,
        "write" => Operation::Write,
        other => panic!("{other}"),
    };
    let mut bio = read(process, words.next().unwrap().parse().unwrap(), 8);
    bio.operation = operation;
    for word in words {
        let priority = &mut bio.submitter.priority;
        match word {
            "rt" => priority.class = PriorityClass::RealTime,
            "idle" => *priority = Priority { class: PriorityClass::Idle, level: 0 },
            "urgent" => bio.flags = bio.flags.with(Flags::PRIORITY),
            "no-idle" => bio.flags = bio.flags.with(Flags::NO_IDLE),
            "sync" => bio.flags = bio.flags.with(Flags::SYNC),
            _ if word.starts_with("level") => priority.level = word[5..].parse().unwrap(),
            _ => bio.sectors = word[1..].parse().unwrap(),
        }
    }
    (name, Ns::from_us(at.parse().unwrap()), bio)
}

impl Scenario<'_> {
    fn run(&self) -> (Driver, String) {
        let mut cfq = cfq(true);
        for &(name, value) in self.tunables {
            cfq.tune(name, value).unwrap();
        }
        assert!(self.state.is_empty() || cfq.preset(self.state), "{}", self.state);
        let mut driver = Driver::new(cfq, Ns::from_ms(5), self.depth.max(1));
        driver.disturbance.merges = self.merges;
        let arrivals: Vec<_> = self.arrivals.split(',').map(arrival).collect();
        for (index, &(_, at, bio)) in arrivals.iter().enumerate() {
            driver.arrive(at, Bio { id: BioId(index as u32), ..bio });
        }
        driver.run();
        assert!(!driver.cfq.has_requests());
        let name = |id: BioId| arrivals[id.0 as usize].0;
        let order: Vec<String> = driver
            .log
            .iter()
            .map(|dispatch| {
                let names: Vec<&str> = dispatch.bios.iter().map(|&id| name(id)).collect();
                format!("{}@{}", names.join("+"), dispatch.at.0 / 1_000)
            })
            .collect();
        (driver, order.join(" "))
    }

    fn check(&self) {
        assert_eq!(self.run().1, self.expected);
    }
}

#[test]
fn cfq_01_slices_per_process_with_idling() {
    Scenario {
        arrivals: "a1@0 1 read 0, a2@0 1 read 8, a3@0 1 read 16, \
                   b1@0 2 read 1000000, b2@0 2 read 1000008, b3@0 2 read 1000016",
        expected: "a1@0 a2@5000 a3@10000 b1@23000 b2@28000 b3@33000",
        ..Scenario::default()
    }
    .check();
}

#[test]
fn cfq_02_the_slice_of_a_thinking_reader_ends() {
    Scenario {
        tunables: &[("slice_sync", 20), ("low_latency", 0)],
        arrivals: "a1@0 1 read 0, b1@1000 2 read 1000000, a2@7000 1 read 8, \
                   a3@14000 1 read 16, a4@21000 1 read 24, a5@28000 1 read 32",
        expected: "a1@0 a2@7000 a3@14000 a4@21000 b1@26000 a5@39000",
        ..Scenario::default()
    }
    .check();
}

#[test]
fn cfq_03_sync_preempts_async() {
    Scenario {
        arrivals: "w1@0 9 write 5000, w2@0 9 write 5100, w3@0 9 write 5200, \
                   r1@2000 1 read 1000000",
        expected: "w1@0 r1@5000 w2@18000 w3@23000",
        ..Scenario::default()
    }
    .check();
}

#[test]
fn cfq_04_real_time_preempts_best_effort() {
    Scenario {
        arrivals: "a1@0 1 read 0, a2@0 1 read 8, a3@0 1 read 16, t1@2000 3 read 1000000 rt",
        expected: "a1@0 t1@5000 a2@18000 a3@23000",
        ..Scenario::default()
    }
    .check();
}

#[test]
fn cfq_06_the_way_back_costs_twice() {
    Scenario {
        arrivals: "x@0 1 read 992, y@1000 1 read 1500, z@1000 1 read 900",
        expected: "x@0 z@5000 y@10000",
        ..Scenario::default()
    }
    .check();
}

#[test]
fn cfq_07_the_fifo_is_looked_at_once_per_slice() {
    Scenario {
        tunables: &[("fifo_expire_sync", 3)],
        arrivals: "x@0 1 read 1000, z@1000 1 read 10, b@1000 1 read 1100, c@1000 1 read 1200",
        expected: "x@0 b@5000 c@10000 z@15000",
        ..Scenario::default()
    }
    .check();
}

#[test]
fn cfq_09_seeky_queues_do_not_idle_between_each_other() {
    Scenario {
        state: "processes 1 and 2: sync queues with all 32 seek-history bits set and the \
                idle-window flag cleared",
        arrivals: "a1@0 1 read 0, b1@1000 2 read 1000000, a2@20000 1 read 3000000",
        expected: "a1@0 b1@5000 a2@20000",
        ..Scenario::default()
    }
    .check();
}

#[test]
fn cfq_10_without_idling_nobody_waits() {
    Scenario {
        tunables: &[("slice_idle", 0), ("group_idle", 0)],
        arrivals: "a1@0 1 read 0, a2@0 1 read 8, b1@0 2 read 1000000, b2@0 2 read 1000008",
        expected: "a1@0 a2@5000 b1@10000 b2@15000",
        ..Scenario::default()
    }
    .check();
}

/// The last request of each of two processes decides where the other one reads: after `a2` the
/// device stands at 16, where process 2 wants to go on; its queue becomes active at once (no idle
/// time), and process 1's next request joins that queue.
#[test]
fn interleaved_readers_share_a_queue() {
    let (driver, order) = Scenario {
        arrivals: "a1@0 1 read 0, b1@0 2 read 8, a2@6000 1 read 16, b2@10000 2 read 24, \
                   a3@15000 1 read 32, b3@20000 2 read 40",
        ..Scenario::default()
    }
    .run();
    assert_eq!(order, "a1@0 b1@5000 a2@10000 b2@15000 a3@20000 b3@25000");
    assert_eq!(driver.cfq.queues.len(), 1, "one queue is left for both");
}

/// Five seeks later the shared queue is taken apart again: the first process that submits after
/// the end of the slice gets a new queue, the other one keeps the old.
#[test]
fn a_shared_queue_that_seeks_is_split() {
    let sharing = "a1@0 1 read 0, b1@0 2 read 8, a2@6000 1 read 16, a3@60000 1 read 5000000, \
                   b2@90000 2 read 9000000, a4@120000 1 read 1000000, b3@150000 2 read 7000000";
    for (last, queues) in [("", 1), (", a5@180000 1 read 3000000, b4@230000 2 read 8", 2)] {
        let arrivals = format!("{sharing}{last}");
        let (driver, _) = Scenario { arrivals: &arrivals, ..Scenario::default() }.run();
        assert_eq!(driver.cfq.queues.len(), queues, "{arrivals}");
    }
}

/// The same two readers far apart keep their queues, and each wait costs 8 ms.
#[test]
fn readers_far_apart_do_not_share() {
    let (driver, order) = Scenario {
        arrivals: "a1@0 1 read 0, b1@0 2 read 1000000, a2@20000 1 read 8, b2@40000 2 read 1000008",
        ..Scenario::default()
    }
    .run();
    assert_eq!(order, "a1@0 b1@13000 a2@26000 b2@40000");
    assert_eq!(driver.cfq.queues.len(), 2);
}

/// The idle class has one request at a time and only when nobody else has work; it is thrown out by
/// anybody. `i2` has to wait until process 1 has been waited for.
#[test]
fn the_idle_class_comes_last() {
    Scenario {
        arrivals: "i1@0 3 read 1000000 idle, i2@0 3 read 1000008 idle, \
                   a1@1000 1 read 0, a2@1000 1 read 8",
        expected: "i1@0 a1@5000 a2@10000 i2@23000",
        ..Scenario::default()
    }
    .check();
}

/// A boosted read (metadata) does not wait for the reader that has the device.
#[test]
fn urgent_requests_preempt() {
    let arrivals = "a1@0 1 read 0, a2@0 1 read 8, m1@1000 2 read 1000000 urgent";
    Scenario { arrivals, expected: "a1@0 m1@5000 a2@18000", ..Scenario::default() }.check();
    // Without the flag it waits: a2 is served, then process 1 is waited for.
    let arrivals = "a1@0 1 read 0, a2@0 1 read 8, m1@1000 2 read 1000000";
    Scenario { arrivals, expected: "a1@0 a2@5000 m1@18000", ..Scenario::default() }.check();
}

/// Journal writes say "do not wait for more": the next process follows at once. While requests of
/// the one queue are at the device nobody else starts; here there are two queues, so `b1` goes as
/// soon as the device is free.
#[test]
fn no_idle_writes_are_not_waited_for() {
    Scenario {
        arrivals: "a1@0 1 write 0 sync no-idle, b1@0 2 write 1000000 sync no-idle",
        expected: "a1@0 b1@5000",
        ..Scenario::default()
    }
    .check();
    Scenario {
        arrivals: "a1@0 1 write 0 sync, b1@0 2 write 1000000 sync",
        expected: "a1@0 b1@13000",
        ..Scenario::default()
    }
    .check();
}

/// Bios of the same process grow a request at both ends, and a gap that closes joins two; a bio of
/// another process that fits just as well does not merge.
#[test]
fn merges_stay_within_the_queue() {
    Scenario {
        merges: true,
        arrivals: "x@0 1 read 100000, a@1000 1 read 1000, c@1000 1 read 1016, \
                   o@1000 2 read 1024, b@1500 1 read 1008, f@2000 1 read 992",
        expected: "x@0 a+b+c+f@5000 o@10000",
        ..Scenario::default()
    }
    .check();
}

const NO_IDLING: &[(&str, u64)] = &[("slice_idle", 0), ("group_idle", 0)];

/// Half of `quantum` before the slice's clock runs, all of it while the slice is far from its end;
/// no limit for a queue that is alone.
#[test]
fn quantum_limits_requests_at_the_device() {
    let a = "a1@0 1 read 0, a2@0 1 read 8, a3@0 1 read 16, a4@0 1 read 24, a5@0 1 read 32, \
             a6@0 1 read 40, a7@0 1 read 48, a8@0 1 read 56, a9@0 1 read 64, aa@0 1 read 72, \
             ab@0 1 read 80, ac@0 1 read 88, ad@0 1 read 96";
    let alone = "a1@0 a2@0 a3@0 a4@0 a5@0 a6@0 a7@0 a8@0 a9@0 aa@0 ab@0 ac@0 ad@0";
    Scenario { depth: 16, arrivals: a, expected: alone, ..Scenario::default() }.check();
    Scenario {
        depth: 16,
        arrivals: &format!("{a}, b1@0 2 read 1000000"),
        expected: "a1@0 a2@0 a3@0 a4@0 a5@5000 a6@5000 a7@5000 a8@5000 a9@5000 aa@5000 ab@5000 \
                   ac@5000 ad@10000 b1@23000",
        ..Scenario::default()
    }
    .check();
}

/// Asynchronous requests wait until no synchronous one is at the device; a queue that is waited for
/// does not start beside asynchronous ones.
#[test]
fn synchronous_and_asynchronous_requests_do_not_mix() {
    let read_first = "r1@0 1 read 0, w1@1000 9 write 1000000";
    Scenario {
        tunables: NO_IDLING,
        depth: 2,
        arrivals: read_first,
        expected: "r1@0 w1@5000",
        ..Scenario::default()
    }
    .check();
    let write_first = "w1@0 9 write 1000000, r1@1000 1 read 0";
    for (tunables, expected) in [(&[][..], "w1@0 r1@5000"), (NO_IDLING, "w1@0 r1@1000")] {
        let arrivals = write_first;
        Scenario { tunables, depth: 2, arrivals, expected, ..Scenario::default() }.check();
    }
}

/// After a synchronous request that took longer than `fifo_expire_sync`, asynchronous ones start
/// one by one.
#[test]
fn late_reads_hold_writes_back() {
    let arrivals =
        "r1@0 1 read 0, w1@5000 9 write 1000, w2@5000 9 write 1100, w3@5000 9 write 1200";
    let rows = [(125, "r1@0 w1@5000 w2@5000 w3@5000"), (5, "r1@0 w1@5000 w2@10000 w3@15000")];
    for (expire, expected) in rows {
        let tunables = &[("slice_idle", 0), ("group_idle", 0), ("fifo_expire_sync", expire)];
        Scenario { tunables, depth: 4, arrivals, expected, ..Scenario::default() }.check();
    }
}

/// Level 7 has an allowance of 4 asynchronous requests per slice while another queue waits.
#[test]
fn an_asynchronous_queue_has_an_allowance() {
    Scenario {
        arrivals: "w1@0 9 write 100 level7, w2@0 9 write 200 level7, w3@0 9 write 300 level7, \
                   w4@0 9 write 400 level7, w5@0 9 write 500 level7, w6@0 9 write 600 level7, \
                   v1@0 8 write 5000, v2@0 8 write 5100, v3@0 8 write 5200",
        expected: "w1@0 w2@5000 w3@10000 w4@15000 v1@20000 v2@25000 v3@30000 w5@35000 w6@40000",
        ..Scenario::default()
    }
    .check();
}

/// A queue of the idle class gives the device away after each request.
#[test]
fn the_idle_class_takes_turns_by_request() {
    Scenario {
        depth: 2,
        arrivals: "i1@0 3 read 0 idle, i2@0 3 read 8 idle, j1@0 4 read 1000000 idle",
        expected: "i1@0 j1@0 i2@5000",
        ..Scenario::default()
    }
    .check();
}

/// The slice of 10 ms ends at 115 with a request at the device: the only queue of its group is not
/// served before that is complete, unless `group_idle` is 0. (The reads before make the group's
/// mean think time 7 ms; the pauses of 16, 6 and 10 ms alone would be too long. `a2` is longer than
/// a page, or else the timer would run on and end the slice at 113.)
#[test]
fn the_group_is_idled_for_while_requests_are_at_the_device() {
    let arrivals = "w1@0 1 read 0, w2@6000 1 read 8, w3@12000 1 read 16, w4@18000 1 read 24, \
                    w5@24000 1 read 32, a1@100000 1 read 40, \
                    a2@111000 1 read 48 n16, a3@115500 1 read 64";
    let rows = [(8, "116000"), (0, "115500")];
    for (group_idle, last) in rows {
        let tunables = &[("slice_sync", 10), ("low_latency", 0), ("group_idle", group_idle)];
        let scenario = Scenario { tunables, depth: 2, arrivals, ..Scenario::default() };
        let (_, order) = scenario.run();
        assert!(order.ends_with(&format!("a1@100000 a2@111000 a3@{last}")), "{order}");
    }
}

/// A driver with process 1's reads at these milliseconds, `slice_sync` set, run up to the last.
fn up_to_last(slice_sync: u64, reads_ms: &[u64]) -> Driver {
    let mut cfq = cfq(true);
    cfq.tune("slice_sync", slice_sync).unwrap();
    cfq.tune("low_latency", 0).unwrap();
    let mut driver = Driver::new(cfq, Ns::from_ms(5), 1);
    for (index, &ms) in reads_ms.iter().enumerate() {
        driver.arrive(Ns::from_ms(ms), read(1, index as u64 * 8, 8));
    }
    let last = Ns::from_ms(*reads_ms.last().unwrap());
    while driver.next_event() <= last {
        driver.step(&mut |_, _| None);
    }
    driver
}

fn is_slice_new(driver: &Driver) -> bool {
    driver.cfq.queues[driver.cfq.active.unwrap()].marks.has(Marks::FRESH)
}

/// A small request of the only queue leaves the timer running; at 13 both the timer and the slice
/// end, but the request that came at 13 still belongs to that slice.
#[test]
fn the_timer_does_not_throw_out_a_request_that_came_in_time() {
    let driver = up_to_last(8, &[0, 13]);
    assert_eq!(driver.log.len(), 2);
    assert!(!is_slice_new(&driver));
}

/// The only queue of a group gets its slice extended when it ends with the queue empty; the next
/// request begins a new one.
#[test]
fn an_extended_slice_ends_with_the_next_request() {
    let driver = up_to_last(5, &[0, 7]);
    assert!(!is_slice_new(&driver), "5 to 10: a2 is in the first slice");
    let driver = up_to_last(5, &[0, 7, 14]);
    assert_eq!(driver.log[2].at, Ns::from_ms(14));
    assert!(is_slice_new(&driver), "12 is after 10: extended for a3, which begins a new slice");
}

/// Keys in the service trees, worked out: the first queue is due 80 ms ago (none is counted yet);
/// preempted before its first completion, it keeps its whole slice as residual, so it is due at
/// 2 + 80 - 100; real time goes a second before itself. The idle class is due 200 ms from now, or
/// after its last.
#[test]
fn queues_are_due_as_the_rules_say() {
    let mut driver = Driver::new(cfq(true), Ns::from_ms(5), 1);
    let (_, _, late) = arrival("t@2000 3 read 1000000 rt");
    let (_, _, idle) = arrival("i@2000 4 read 2000000 idle");
    let (_, _, idler) = arrival("j@2000 5 read 3000000 idle");
    driver.arrive(Ns(0), read(1, 0, 8));
    driver.arrive(Ns(0), read(1, 8, 8));
    driver.step(&mut |_, _| None);
    let keys = |driver: &Driver| -> Vec<i64> {
        let queues = (0..driver.cfq.queues.slots()).map(|id| QueueId(id as u32));
        queues.map(|id| driver.cfq.queues[id].place.unwrap().1).collect()
    };
    assert_eq!(keys(&driver), [-80]);
    for bio in [late, idle, idler] {
        driver.arrive(Ns::from_ms(2), bio);
    }
    driver.step(&mut |_, _| None);
    assert_eq!(keys(&driver), [2 + 80 - 100, 2 - 1_000, 2 + 200, 2 + 400]);
}

/// A full pool still has one slot for the process that the device waits for, once per slice.
#[test]
fn the_awaited_process_gets_a_slot() {
    let mut driver = Driver::new(cfq(true), Ns::from_ms(5), 1);
    driver.arrive(Ns(0), read(1, 0, 8));
    driver.arrive(Ns(0), read(2, 1_000_000, 8));
    driver.step(&mut |_, _| None);
    assert!(!driver.cfq.must_grant(&read(1, 8, 8)), "it is not waited for yet");
    driver.step(&mut |_, _| None);
    assert_eq!(driver.cfq.next_timer(), Ns::from_ms(13));
    assert!(driver.cfq.must_grant(&read(1, 8, 8)));
    assert!(!driver.cfq.must_grant(&read(2, 8, 8)), "the other one is not waited for");
}

/// A process that ends is not waited for, and its queue is gone with its last request.
#[test]
fn nobody_waits_for_a_process_that_has_ended() {
    let mut driver = Driver::new(cfq(true), Ns::from_ms(5), 1);
    for (id, bio) in [read(1, 0, 8), read(2, 1_000_000, 8)].into_iter().enumerate() {
        driver.arrive(Ns(0), Bio { id: BioId(id as u32), ..bio });
    }
    driver.step(&mut |_, _| None);
    driver.step(&mut |_, _| None);
    assert_eq!(driver.log.len(), 1, "the device waits for process 1");
    driver.cfq.exit(Ns::from_ms(6), read(1, 0, 8).submitter.process);
    assert_eq!(driver.cfq.next_timer(), Ns::MAX);
    driver.arrive(Ns::from_ms(6), Bio { id: BioId(2), ..read(2, 1_000_008, 8) });
    driver.run();
    assert_eq!(driver.log[1].at, Ns::from_ms(6));
    assert_eq!(driver.cfq.queues.len(), 1, "only that of process 2 is left");
}

/// A refused request is offered again before anything else, and is not counted twice.
#[test]
fn a_refused_request_comes_first() {
    let mut cfq = cfq(true);
    let mut requests = crate::Requests::default();
    let ids =
        [0, 5_000, 100].map(|sector| requests.add(crate::Request::of(&read(1, sector, 8), Ns(0))));
    for id in ids {
        cfq.insert(Ns(0), &requests, id);
    }
    let first = cfq.dispatch(Ns(0), &requests).unwrap();
    cfq.activate(Ns(0), &requests, first);
    cfq.requeue(Ns(0), &requests, first);
    assert!(cfq.has_requests());
    assert_eq!(cfq.dispatch(Ns(9), &requests), Some(first));
    cfq.activate(Ns(9), &requests, first);
    assert_eq!((cfq.in_driver, cfq.in_flight), (1, [0, 1]));
}

/// Defaults per tick rate and device, and what sysfs shows of values between two ticks.
#[test]
fn tunables_are_kept_in_ticks() {
    let names = ["fifo_expire_sync", "slice_async", "slice_idle", "group_idle", "target_latency"];
    let rows = [
        (1_000, true, [125, 40, 8, 8, 300]),
        (1_000, false, [125, 40, 0, 8, 300]),
        (250, true, [124, 40, 8, 8, 300]),
        (100, true, [120, 40, 10, 10, 300]),
    ];
    for (hz, is_rotational, expected) in rows {
        let cfq = super::cfq_at(crate::Hz(hz), is_rotational);
        let shown = names.map(|name| cfq.tunable(name).unwrap());
        assert_eq!(shown, expected, "HZ {hz}, rotational {is_rotational}");
    }
    let mut cfq = super::cfq_at(crate::Hz(250), true);
    cfq.tune("slice_sync", 9).unwrap();
    assert_eq!(cfq.tunable("slice_sync").unwrap(), 12, "9 ms are three ticks of 4 ms");
    for info in cfq.tunables() {
        cfq.tune(info.name, info.min).unwrap();
        cfq.tune(info.name, info.max).unwrap();
        if info.unit != crate::tunable::Unit::Milliseconds {
            assert_eq!(cfq.tunable(info.name).unwrap(), info.max, "{}", info.name);
        }
    }
    assert!(cfq.tune("quantum", 0).is_err());
    assert_eq!(super::cfq(true).tunables().len(), 12);
    for info in super::cfq(true).tunables() {
        assert_eq!(super::cfq(true).tunable(info.name).unwrap(), info.default, "{}", info.name);
    }
}
