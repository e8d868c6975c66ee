use iolab_files::api::own_cache::{DeviceQueue, QueueOrder};

use super::*;
use crate::device::fixed::Fixed;

const KIB: u64 = 1024;

fn rules(order: QueueOrder) -> DeviceQueue {
    DeviceQueue { order, aggregation_bytes: 128 * KIB, read_gap_bytes: 32 * KIB }
}

const OLD: QueueOrder = QueueOrder::Deadline {
    min_pending: 4,
    max_pending: 10,
    ramp_rate: 2,
    tick: Ns::from_ms(1),
    time_shift: 6,
};
const NEW: QueueOrder = QueueOrder::Classes {
    active: [(10, 10), (10, 10), (1, 3), (2, 10)],
    ramp: (30, 60),
    dirty_max: 1000,
};

/// A device that keeps what it was given until it is told to end it.
#[derive(Default)]
struct Kept {
    sent: Rc<std::cell::RefCell<Vec<Bio>>>,
    ends: Rc<std::cell::RefCell<Vec<BioId>>>,
}

impl Layer for Kept {
    fn info(&self) -> Info {
        Fixed::new(Ns(1), 1, false).info()
    }

    fn submit(&mut self, _: Ns, bio: &Bio) {
        self.sent.borrow_mut().push(*bio);
    }

    fn next_event(&self) -> Ns {
        if self.ends.borrow().is_empty() { Ns::MAX } else { Ns(0) }
    }

    fn advance(&mut self, _: Ns, done: &mut Vec<Ended>) {
        done.extend(self.ends.borrow_mut().drain(..).map(Ended::ok));
    }

    fn counters(&self) -> Vec<(String, f64)> {
        Vec::new()
    }
}

struct Bench {
    queue: VdevQueue,
    sent: Rc<std::cell::RefCell<Vec<Bio>>>,
    ends: Rc<std::cell::RefCell<Vec<BioId>>>,
    dirty: Rc<Cell<u64>>,
    next: u32,
}

impl Bench {
    fn new(order: QueueOrder) -> Self {
        let (kept, dirty) = (Kept::default(), Rc::new(Cell::new(0)));
        let (sent, ends) = (kept.sent.clone(), kept.ends.clone());
        let queue = VdevQueue::new(rules(order), Box::new(kept), dirty.clone());
        Self { queue, sent, ends, dirty, next: 0 }
    }

    fn submit(&mut self, now: Ns, operation: Operation, (at, kib): (u64, u64), flags: Flags) {
        self.next += 1;
        let submitter = Submitter { process: ProcessId(1), ..Submitter::default() };
        let (sector, sectors) = (Sector(at * 2), (kib * 2) as u32);
        let bio =
            Bio { id: BioId(self.next), operation, sector, sectors, flags, submitter, segments: 0 };
        self.queue.submit(now, &bio);
    }

    /// Lets everything happen that is due.
    fn run(&mut self, now: Ns) -> Vec<BioId> {
        let mut done = Vec::new();
        while self.queue.next_event() <= now {
            self.queue.advance(now, &mut done);
        }
        done.iter().map(|ended| ended.id).collect()
    }

    /// Ends the oldest request that is active.
    fn end_one(&mut self, now: Ns) -> Vec<BioId> {
        let bio = self.sent.borrow_mut().remove(0);
        self.ends.borrow_mut().push(bio.id);
        self.run(now)
    }

    /// Places and lengths of active requests, in KiB.
    fn active(&self) -> Vec<(u64, u32)> {
        self.sent.borrow().iter().map(|bio| (bio.sector.0 / 2, bio.sectors / 2)).collect()
    }
}

#[test]
fn zfs_10_pending_requests_ramp_up_with_each_end() {
    let mut bench = Bench::new(OLD);
    for number in 0..20 {
        bench.submit(Ns(0), Operation::Write, (number * 1024, 128), Flags::NONE);
    }
    bench.run(Ns(0));
    let mut counts = vec![bench.active().len()];
    for _ in 0..8 {
        bench.end_one(Ns(1000));
        counts.push(bench.active().len());
    }
    assert_eq!(counts, [4, 5, 6, 7, 8, 9, 10, 10, 10]);
}

#[test]
fn zfs_11_order_is_time_in_steps_of_64_ticks_plus_priority_then_place() {
    let order = |tick: u64, read_at: u64| {
        let mut bench = Bench::new(OLD);
        for number in 0..4 {
            bench.submit(Ns(0), Operation::Read, (900_000 + number * 1024, 4), Flags::NONE);
        }
        bench.run(Ns(0));
        bench.submit(Ns(0), Operation::Write, (5000, 128), Flags::NONE);
        bench.submit(Ns::from_ms(tick), Operation::Read, (read_at, 128), Flags::NONE);
        bench.run(Ns::from_ms(tick));
        bench.end_one(Ns::from_ms(tick));
        bench.active()[3].0
    };
    assert_eq!(order(256, 9000), 5000, "a tie: lower offset first");
    assert_eq!(order(256, 1000), 1000, "a tie: lower offset first");
    assert_eq!(order(255, 9000), 9000, "key 3 before key 4");
}

#[test]
fn zfs_12_adjacent_writes_are_aggregated_up_to_the_limit() {
    let mut bench = Bench::new(OLD);
    for number in 0..20 {
        bench.submit(Ns(0), Operation::Write, (number * 8, 8), Flags::NONE);
    }
    bench.run(Ns(0));
    assert_eq!(bench.active(), [(0, 128), (128, 32)]);
    let done = bench.end_one(Ns(1));
    assert_eq!(done.len(), 16, "all of them end with it");
}

#[test]
fn zfs_5_records_of_a_pass_are_one_request() {
    for order in [OLD, NEW] {
        let mut bench = Bench::new(order);
        for number in 0..16 {
            bench.submit(Ns(0), Operation::Write, (number * 8, 8), Flags::NONE);
        }
        bench.run(Ns(0));
        assert_eq!(bench.active(), [(0, 128)]);
    }
}

#[test]
fn zfs_13_reads_bridge_holes_and_writes_do_not() {
    let mut bench = Bench::new(OLD);
    for number in 0..4 {
        bench.submit(Ns(0), Operation::Read, (number * 40, 8), Flags::NONE);
    }
    bench.run(Ns(0));
    assert_eq!(bench.active(), [(0, 128)]);
    let mut bench = Bench::new(OLD);
    for number in 0..4 {
        bench.submit(Ns(0), Operation::Write, (number * 12, 8), Flags::NONE);
    }
    bench.run(Ns(0));
    assert_eq!(bench.active(), [(0, 8), (12, 8), (24, 8), (36, 8)]);
}

#[test]
fn zfs_2_writes_of_transactions_rise_with_dirty_data() {
    let most = |percent: u64| async_writes_max((2, 10), (30, 60), percent * 10, 1000);
    assert_eq!([30, 45, 60, 90].map(most), [2, 6, 10, 10]);
    let mut bench = Bench::new(NEW);
    bench.dirty.set(450);
    for number in 0..20 {
        bench.submit(Ns(0), Operation::Write, (number * 1024, 128), Flags::NONE);
    }
    bench.run(Ns(0));
    assert_eq!(bench.active().len(), 6);
    bench.dirty.set(1000);
    bench.end_one(Ns(1));
    assert_eq!(bench.active().len(), 10);
}

#[test]
fn classes_below_their_minimum_go_first_and_async_sweeps_by_place() {
    let mut bench = Bench::new(NEW);
    bench.submit(Ns(0), Operation::Write, (9000, 8), Flags::NONE);
    bench.submit(Ns(0), Operation::Write, (100, 8), Flags::NONE);
    bench.submit(Ns(0), Operation::Write, (5000, 8), Flags::NONE);
    bench.submit(Ns(0), Operation::Read, (70_000, 8), Flags::BACKGROUND);
    bench.submit(Ns(0), Operation::Read, (90_000, 8), Flags::NONE);
    bench.submit(Ns(0), Operation::Read, (80_000, 8), Flags::NONE);
    bench.run(Ns(0));
    let places: Vec<u64> = bench.active().iter().map(|(at, _)| *at).collect();
    assert_eq!(places, [90_000, 80_000, 70_000, 100, 5000], "two writes at 0 % dirty");
}

#[test]
fn flushes_pass_and_everything_ends_once() {
    let mut bench = Bench::new(OLD);
    for number in 0..30 {
        bench.submit(Ns(0), Operation::Write, (number * 1024, 8), Flags::SYNC);
    }
    bench.submit(Ns(0), Operation::Flush, (0, 0), Flags::PREFLUSH);
    bench.run(Ns(0));
    assert_eq!(bench.active()[0], (0, 0), "the flush waits for nothing");
    let mut ended = Vec::new();
    while !bench.active().is_empty() {
        ended.extend(bench.end_one(Ns(5)));
    }
    ended.sort_unstable();
    assert_eq!(ended, (1..=31).map(BioId).collect::<Vec<_>>());
}
