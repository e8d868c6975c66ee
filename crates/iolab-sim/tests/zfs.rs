//! Named checks of `ZFS` (ZFS-*) on simulated stacks: records, groups, limits, the log.

use std::path::PathBuf;
use std::sync::Arc;

use iolab_model::op::{Access, Handle, OpenHow, PathId, Token};
use iolab_model::target::Content;
use iolab_model::{Bytes, Lane, LaneRequest, Ns, Op, Seed, Submission, Target};
use iolab_sim::stack::{QueueOverrides, Stack};
use iolab_sim::target::{SimLane, SimTarget, Simulation};

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;

/// Four requests of 128 KiB at a time take 8738 us: 60 MB/s.
const SLOW: &str =
    "device = { profile = \"fixed-100us\", parameters = { latency = 8738, depth = 4 } }";
const FAST: &str = "device.profile = \"fixed-100us\"";
const OLD: &str = "kernel = \"2.6.32\"";

fn target(device: &str, files: &str) -> SimTarget {
    let stack = stack(device, files, "noop");
    let mut simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
    simulation.record_events();
    SimTarget::new(simulation, stack.facts().unwrap())
}

fn stack(device: &str, files: &str, scheduler: &str) -> Stack {
    let text = format!(
        "name = \"x\"\n{device}\nsoftware.costs = \"free\"\n\
         [queue]\nscheduler = {scheduler:?}\nnomerges = 2\n[files]\nfs = \"zfs\"\n{files}\n"
    );
    Stack::parse("x.toml", &text).unwrap()
}

struct Worker {
    lane: SimLane,
}

impl Worker {
    fn new(target: &SimTarget) -> Self {
        let request = LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes(MIB),
            content: Content::Zero,
            seed: Seed(7),
            priority: None,
            submitter_cpu: None,
            paths: Arc::from(vec![PathBuf::from("/simulated/testfile")]),
        };
        let mut worker = Self { lane: target.open(&request).unwrap() };
        let how = OpenHow {
            access: Access::Plain,
            is_readable: true,
            is_writable: true,
            ..OpenHow::default()
        };
        worker.ask(Op::Create { path: PathId(0), handle: Handle(0), how });
        worker
    }

    fn ask(&mut self, op: Op) -> Ns {
        let mut done = Vec::new();
        let now = self.lane.now();
        let submission = Submission { token: Token(0), op, intended: now, is_timed: true };
        self.lane.submit_batch(now, &[submission], &mut done);
        self.lane.reap(1, Ns(u64::MAX - 1), &mut done).unwrap();
        let end = done.pop().unwrap_or_else(|| panic!("{op:?} never ended"));
        end.outcome.unwrap_or_else(|errno| panic!("{op:?}: errno {}", errno.0));
        end.completed
    }

    fn write(&mut self, at: u64, bytes: u64) -> Ns {
        self.ask(Op::write(Handle(0), Bytes(at), Bytes(bytes)))
    }

    fn fill(&mut self, bytes: u64) {
        for at in (0..bytes).step_by(MIB as usize) {
            self.write(at, MIB);
        }
        self.ask(Op::SyncAll);
    }

    fn think(&mut self, ms: u64) {
        self.ask(Op::Burn { duration: Ns::from_ms(ms) });
    }

    fn sync(&mut self) {
        self.ask(Op::SyncAll);
    }
}

fn counter(target: &SimTarget, name: &str) -> u64 {
    let counters = target.inspect(Simulation::counters);
    counters.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{name}")).1 as u64
}

/// Requests that entered the block layer: time, KiB.
fn queued(target: &SimTarget, is_write: bool) -> Vec<(Ns, u64)> {
    let events = target.take_events();
    let is_one = |event: &&iolab_model::TraceEvent| {
        event.action.name() == "Q" && (event.operation.0 & 1 == 1) == is_write && event.sectors > 0
    };
    events.iter().filter(is_one).map(|e| (e.at, u64::from(e.sectors) / 2)).collect()
}

#[test]
fn zfs_1_small_overwrites_read_and_write_whole_records() {
    const COUNT: u64 = 64;
    let seen = |record: &str, bytes: u64| {
        let files = format!("{OLD}\nmemory = \"64m\"\nmkfs_options = [\"-O recordsize={record}\"]");
        let target = target(FAST, &files);
        let mut worker = Worker::new(&target);
        worker.fill(COUNT * MIB);
        target.prepare_cache(false);
        target.take_events();
        let before = counter(&target, "fs.data_bytes_written");
        for number in 0..COUNT {
            // Records far apart, in no order.
            let place = number * 37 % COUNT;
            worker.write(place * MIB + 3 * 128 * KIB, bytes);
        }
        worker.sync();
        let written = counter(&target, "fs.data_bytes_written") - before;
        // Pointers are 4 KiB.
        let reads = queued(&target, false).into_iter().filter(|(_, kib)| *kib > 4);
        (reads.map(|(_, kib)| kib).sum::<u64>() / COUNT, written / KIB / COUNT)
    };
    assert_eq!(seen("128k", 8 * KIB), (128, 128), "16 times what was written, and as much read");
    assert_eq!(seen("8k", 8 * KIB), (0, 8));
    assert_eq!(seen("128k", 128 * KIB), (0, 128), "whole records need no reading");
}

#[test]
fn zfs_6_noop_and_deadline_agree_on_a_device_that_takes_all() {
    let ends = |scheduler: &str, depth: u32| {
        let device =
            format!("device = {{ profile = \"fixed-100us\", parameters = {{ depth = {depth} }} }}");
        let stack = stack(&device, &format!("{OLD}\nmemory = \"256m\""), scheduler);
        let simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
        let target = SimTarget::new(simulation, Vec::new());
        let mut worker = Worker::new(&target);
        worker.fill(64 * MIB);
        target.prepare_cache(false);
        let mut ends = Vec::new();
        for number in 0..512 {
            ends.push(worker.write(number * 97 % 512 * 128 * KIB, 8 * KIB));
        }
        worker.sync();
        ends.push(worker.lane.now());
        ends
    };
    assert_eq!(ends("noop", 16), ends("deadline", 16));
    assert_eq!(ends("noop", 10), ends("deadline", 10));
}

#[test]
fn zfs_7_a_write_is_on_the_device_after_five_seconds_and_with_fsync_at_once() {
    let target = target(FAST, &format!("{OLD}\nmemory = \"1g\""));
    let mut worker = Worker::new(&target);
    worker.sync();
    worker.think(20_000);
    target.take_events();
    let written = worker.write(0, 4 * KIB);
    worker.think(6_000);
    let writes = queued(&target, true);
    let first = writes[0].0;
    assert!(first.since(written) <= Ns::from_ms(5_000), "{first} after {written}");
    let last = writes.last().unwrap().0;
    assert!(last.since(first) < Ns::from_ms(5), "all of the group, and its labels");
    let commits = counter(&target, "fs.zil_commits");
    worker.write(4 * KIB, 4 * KIB);
    let flushes = counter(&target, "fs.flushes");
    worker.ask(Op::Fsync { handle: Handle(0) });
    let sizes: Vec<u64> = queued(&target, true).into_iter().map(|(_, kib)| kib).collect();
    assert_eq!(sizes, [12], "4 KiB and a header take a log block of 12 KiB");
    assert_eq!(counter(&target, "fs.zil_commits") - commits, 1);
    assert_eq!(counter(&target, "fs.flushes") - flushes, 1);
    let before = worker.lane.now();
    worker.ask(Op::Fsync { handle: Handle(0) });
    assert!(worker.lane.now().since(before) < Ns::from_us(50), "nothing is left to do");
}

#[test]
fn zfs_7_a_large_write_with_fsync_goes_to_its_place_and_is_named() {
    let target = target(FAST, &format!("{OLD}\nmemory = \"1g\""));
    let mut worker = Worker::new(&target);
    worker.sync();
    target.take_events();
    worker.write(0, 128 * KIB);
    worker.ask(Op::Fsync { handle: Handle(0) });
    let mut sizes: Vec<u64> = queued(&target, true).into_iter().map(|(_, kib)| kib).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [4, 128]);
    worker.sync();
    let again = queued(&target, true).into_iter().filter(|(_, kib)| *kib == 128).count();
    assert_eq!(again, 0, "its group does not write it again");
}

/// Rate of a fast writer in bytes per second from one instant on, limit and longest wait.
fn write_for(target: &SimTarget, worker: &mut Worker, seconds: u64, skip: u64) -> (f64, u64) {
    let begin = worker.lane.now();
    let (mut at, mut from) = (0, (begin, 0));
    let mut dirty_max = 0;
    while worker.lane.now().since(begin) < Ns::from_ms(1000 * seconds) {
        worker.write(at, 64 * KIB);
        // 500 MB/s.
        worker.ask(Op::Burn { duration: Ns::from_us(115) });
        at += 64 * KIB;
        if worker.lane.now().since(begin) < Ns::from_ms(1000 * skip) {
            from = (worker.lane.now(), at);
        }
        dirty_max = dirty_max.max(counter(target, "fs.open_bytes"));
    }
    let elapsed = worker.lane.now().since(from.0).0 as f64 / 1e9;
    ((at - from.1) as f64 / elapsed, dirty_max)
}

#[test]
fn zfs_8_the_limit_of_a_group_is_a_second_of_the_device() {
    let target = target(SLOW, &format!("{OLD}\nmemory = \"8g\""));
    let mut worker = Worker::new(&target);
    worker.sync();
    // 32 MiB, inflated 24 times.
    assert_eq!(counter(&target, "fs.write_limit_bytes"), 32 * MIB / 24);
    let mut groups = Vec::new();
    let mut last = counter(&target, "fs.txgs");
    let begin = worker.lane.now();
    let mut at = 0;
    while groups.len() < 30 && worker.lane.now().since(begin) < Ns::from_ms(60_000) {
        worker.write(at, 64 * KIB);
        worker.ask(Op::Burn { duration: Ns::from_us(115) });
        at += 64 * KIB;
        let now = counter(&target, "fs.txgs");
        if now > last {
            last = now;
            groups.push((worker.lane.now(), counter(&target, "fs.write_limit_bytes")));
        }
    }
    let limit = groups[10].1 as f64;
    assert!((limit / 60e6 - 1.0).abs() < 0.15, "{limit} after ten groups");
    for pair in groups[20..].windows(2) {
        let lasted = pair[1].0.since(pair[0].0);
        assert!((Ns::from_ms(950)..Ns::from_ms(1300)).contains(&lasted), "a group of {lasted}");
    }
}

#[test]
fn zfs_9_a_writer_stops_hard_at_the_limit() {
    let target = target(SLOW, &format!("{OLD}\nmemory = \"8g\""));
    let mut worker = Worker::new(&target);
    let (rate, dirty_max) = write_for(&target, &mut worker, 40, 10);
    assert!((rate / 60e6 - 1.0).abs() < 0.05, "{rate} bytes a second");
    let limit = counter(&target, "fs.write_limit_bytes");
    assert!(dirty_max <= limit * 105 / 100 + 128 * KIB, "{dirty_max} of {limit} bytes were dirty");
}

#[test]
fn later_releases_delay_writers_before_they_stop() {
    let target = target(SLOW, "kernel = \"5.4\"\nmemory = \"1g\"");
    let mut worker = Worker::new(&target);
    let (rate, _) = write_for(&target, &mut worker, 30, 10);
    assert!((rate / 60e6 - 1.0).abs() < 0.07, "{rate} bytes a second");
    let dirty = counter(&target, "cache.nr_dirty_max") * 4096;
    // A tenth of memory.
    assert!(dirty < (1 << 30) / 10, "{dirty}");
    assert!(counter(&target, "cache.throttled_ns") > 0);
}

#[test]
fn a_log_device_takes_all_of_a_commit() {
    let files = format!("{OLD}\nmemory = \"1g\"");
    let text = format!("{FAST}\nlog_device.device.profile = \"fixed-100us\"");
    let target = target(&text, &files);
    let mut worker = Worker::new(&target);
    worker.sync();
    target.take_events();
    worker.write(0, 128 * KIB);
    worker.ask(Op::Fsync { handle: Handle(0) });
    let sizes: Vec<u64> = queued(&target, true).into_iter().map(|(_, kib)| kib).collect();
    assert_eq!(sizes, [128, 4], "data are copied where there is a log device");
    let own = counter(&target, "place.log_device.vdev_queue.issued");
    assert_eq!(own, 2, "both on the log device");
}

#[test]
fn a_sequential_reader_keeps_several_records_on_their_way() {
    let target = target(SLOW, &format!("{OLD}\nmemory = \"128m\""));
    let mut worker = Worker::new(&target);
    worker.fill(256 * MIB);
    target.prepare_cache(false);
    let begin = worker.lane.now();
    for at in (0..256 * MIB).step_by(64 << 10) {
        worker.ask(Op::read(Handle(0), Bytes(at), Bytes(64 * KIB)));
    }
    let rate = 256.0 * MIB as f64 / (worker.lane.now().since(begin).0 as f64 / 1e9);
    let all = target.inspect(Simulation::counters);
    assert!(rate > 0.9 * 60e6, "{rate} bytes a second {all:?}");
    assert!(counter(&target, "vdev_queue.active_max") == 10);
}

#[test]
fn direct_transfers_are_refused_by_old_releases_alone() {
    let opened = |files: &str| {
        let target = target(FAST, files);
        let mut worker = Worker::new(&target);
        worker.write(0, 4 * KIB);
        let how = OpenHow { access: Access::Direct, is_readable: true, ..OpenHow::default() };
        let op = Op::Open { path: PathId(0), handle: Handle(1), how };
        let now = worker.lane.now();
        let submission = Submission { token: Token(0), op, intended: now, is_timed: true };
        let mut done = Vec::new();
        worker.lane.submit_batch(now, &[submission], &mut done);
        if done.is_empty() {
            worker.lane.reap(1, Ns(u64::MAX - 1), &mut done).unwrap();
        }
        done.pop().unwrap().outcome.map_err(|errno| errno.0)
    };
    assert_eq!(opened(OLD), Err(22));
    assert!(opened("kernel = \"5.4\"").is_ok());
    assert!(opened("kernel = \"6.18\"").is_ok());
}
