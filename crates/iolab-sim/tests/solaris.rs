//! Named checks of UFS (SOL-*) on simulated stacks: requests, queues and rates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use iolab_model::op::{Access, Handle, OpenHow, PathId, Token};
use iolab_model::target::Content;
use iolab_model::{Bytes, Lane, LaneRequest, Ns, Op, Seed, Submission, Target};
use iolab_sim::stack::{QueueOverrides, Stack};
use iolab_sim::target::{SimLane, SimTarget, Simulation};

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;
const BLOCK: u64 = 8 * KIB;

/// A UFS on a device whose driver splits at 128 KiB, merges nothing and sorts nothing.
fn target(device: &str, files: &str) -> SimTarget {
    let depth = if device == "fixed-100us" { 32 } else { 64 };
    let text = format!(
        "name = \"x\"\ndevice.profile = {device:?}\n\
         [queue]\nscheduler = \"noop\"\nnomerges = 2\nmax_sectors_kb = 128\n\
         queue_depth = {depth}\n\
         [files]\nfs = \"ufs\"\n{files}\n"
    );
    let stack = Stack::parse("x.toml", &text).unwrap();
    let mut simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
    simulation.record_events();
    SimTarget::new(simulation, stack.facts().unwrap())
}

/// A worker with one file, which it opens as many times as it likes.
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
            paths: Arc::from([PathBuf::from("/simulated/testfile")]),
        };
        Self { lane: target.open(&request).unwrap() }
    }

    fn ask(&mut self, op: Op) {
        let mut done = Vec::new();
        let now = self.lane.now();
        let submission = Submission { token: Token(0), op, intended: now, is_timed: true };
        self.lane.submit_batch(now, &[submission], &mut done);
        self.lane.reap(1, Ns(u64::MAX - 1), &mut done).unwrap();
        let outcome = done.pop().unwrap_or_else(|| panic!("{op:?} never ended")).outcome;
        outcome.unwrap_or_else(|errno| panic!("{op:?}: errno {}", errno.0));
    }

    fn open(&mut self, handle: u32, access: Access, is_new: bool) {
        let how = OpenHow { access, is_readable: true, is_writable: true, ..OpenHow::default() };
        let (path, handle) = (PathId(0), Handle(handle));
        self.ask(if is_new {
            Op::Create { path, handle, how }
        } else {
            Op::Open { path, handle, how }
        });
    }

    /// Writes a file of some bytes in blocks, and closes it.
    fn make(&mut self, bytes: u64) {
        self.open(0, Access::Plain, true);
        for block in 0..bytes / BLOCK {
            self.ask(Op::write(Handle(0), Bytes(block * BLOCK), Bytes(BLOCK)));
        }
        self.ask(Op::Fsync { handle: Handle(0) });
        self.ask(Op::Close { handle: Handle(0) });
    }

    fn read(&mut self, handle: u32, from: u64, blocks: u64) {
        for block in 0..blocks {
            self.ask(Op::read(Handle(handle), Bytes(from + block * BLOCK), Bytes(BLOCK)));
        }
    }
}

/// Requests at the device: begin, end, KiB.
fn requests(target: &SimTarget, is_write: bool) -> Vec<(Ns, Ns, u64)> {
    let mut open = std::collections::BTreeMap::new();
    let mut seen = Vec::new();
    for event in target.take_events() {
        if (event.operation.0 & 1 == 1) != is_write || event.sectors == 0 {
            continue;
        }
        match event.action.name() {
            "D" => {
                open.insert(event.sector, event.at);
            }
            "C" => {
                let begin = open.remove(&event.sector).expect("it was sent");
                seen.push((begin, event.at, u64::from(event.sectors) / 2));
            }
            _ => {}
        }
    }
    seen
}

fn sizes(target: &SimTarget, is_write: bool) -> Vec<u64> {
    let mut all = requests(target, is_write);
    all.sort();
    all.into_iter().map(|(.., kib)| kib).collect()
}

/// Least, mean and greatest amount at the device between the first and the last time that it is
/// greatest, in clusters of 128 KiB (one with the border of an indirect block is two requests).
fn active(requests: &[(Ns, Ns, u64)]) -> (f64, f64, f64) {
    let mut edges: Vec<(Ns, i64)> = requests
        .iter()
        .flat_map(|&(begin, end, kib)| [(begin, kib as i64), (end, -(kib as i64))])
        .collect();
    edges.sort();
    let levels: Vec<(Ns, i64)> = edges
        .iter()
        .scan(0, |level, &(at, by)| {
            *level += by;
            Some((at, *level))
        })
        .collect();
    let highest = levels.iter().map(|&(_, level)| level).max().unwrap();
    let first = levels.iter().position(|&(_, level)| level == highest).unwrap();
    let last = levels.iter().rposition(|&(_, level)| level == highest).unwrap();
    let within = &levels[first..=last];
    let area: f64 =
        within.windows(2).map(|pair| (pair[1].0 - pair[0].0).0 as f64 * pair[0].1 as f64).sum();
    let time = (levels[last].0 - levels[first].0).0 as f64;
    let lowest = within.iter().map(|&(_, level)| level).min().unwrap();
    (lowest as f64 / 128.0, area / time / 128.0, highest as f64 / 128.0)
}

fn mkfile(system: &str, bytes: u64) -> Vec<(Ns, Ns, u64)> {
    let target = target("scsi7200-1995", &format!("memory = \"64m\"\nsystem = {{ {system} }}"));
    Worker::new(&target).make(bytes);
    requests(&target, true).into_iter().filter(|&(.., kib)| kib > 8).collect()
}

#[test]
fn sol_2_the_default_throttle_swings_between_two_and_four_clusters() {
    let seen = active(&mkfile("ufs_HW = 393216, ufs_LW = 262144", 32 * MIB));
    assert!(seen.0 >= 1.0 && (3.9..=4.0).contains(&seen.2), "{seen:?}");
    assert!((3.0..=3.55).contains(&seen.1), "mean {}", seen.1);
}

#[test]
fn sol_3_wide_watermarks_swing_between_2_and_49_clusters() {
    let seen = active(&mkfile("ufs_HW = 6291456, ufs_LW = 262144", 100 * MIB));
    assert!(seen.0 >= 1.0 && (48.0..=49.0).contains(&seen.2), "{seen:?}");
    assert!((25.3..=26.2).contains(&seen.1), "mean {}", seen.1);
    let seen = active(&mkfile("ufs_HW = 6291456, ufs_LW = 3801088", 100 * MIB));
    assert!((39.0..=40.0).contains(&seen.1), "mean {}", seen.1);
}

#[test]
fn sol_7_the_rate_of_the_article() {
    let seen = mkfile("ufs_HW = 6291456, ufs_LW = 3801088", 200 * MIB);
    let (first, last) = (seen[100].1, seen[seen.len() - 100].1);
    let seconds = (last - first).0 as f64 / 1e9;
    let kib: u64 = seen[101..=seen.len() - 100].iter().map(|&(.., kib)| kib).sum();
    let rate = kib as f64 / seconds;
    assert!((5097.0 * 0.97..5097.0 * 1.03).contains(&rate), "{rate} KiB/s");
}

#[test]
fn sol_1_a_cluster_above_maxphys_is_cut() {
    let target = target("fixed-100us", "memory = \"64m\"\nmkfs_options = [\"-C 64\"]");
    Worker::new(&target).make(8 * MIB);
    let seen = sizes(&target, true);
    let whole = seen.iter().filter(|&&kib| kib == 128).count();
    assert!(whole >= 62, "{seen:?}");
    assert!(seen.iter().all(|&kib| kib <= 128), "{seen:?}");
}

#[test]
fn sol_4_two_readers_of_one_file_get_no_read_ahead() {
    let made = || {
        let target = target("fixed-100us", "memory = \"64m\"");
        let mut worker = Worker::new(&target);
        worker.make(8 * MIB);
        target.prepare_cache(false);
        worker.open(1, Access::Plain, false);
        worker.open(2, Access::Plain, false);
        target.take_events();
        (target, worker)
    };
    let (target, mut worker) = made();
    for block in 0..256 {
        worker.read(1, block * BLOCK, 1);
        worker.read(2, 4 * MIB + block * BLOCK, 1);
    }
    let seen = sizes(&target, false);
    assert!(seen.iter().all(|&kib| kib == 8), "{seen:?}");
    let (target, mut worker) = made();
    worker.read(1, 0, 512);
    let alone = sizes(&target, false);
    assert_eq!(alone[..3], [8, 8, 80], "the 12th block ends the first run");
    let long = alone.iter().filter(|&&kib| kib == 128).count();
    assert!(long >= 30, "{alone:?}");
    let (target, mut worker) = made();
    worker.read(2, 4 * MIB, 256);
    let half = sizes(&target, false);
    assert!(half.iter().filter(|&&kib| kib == 8).count() <= 2, "{half:?}");
}

#[test]
fn sol_5_a_mapping_is_read_in_pieces_of_64_kib() {
    let target = target("fixed-100us", "memory = \"256m\"\nmkfs_options = [\"-C 128\"]");
    let mut worker = Worker::new(&target);
    worker.make(64 * MIB);
    target.prepare_cache(false);
    worker.open(1, Access::Mapped, false);
    target.take_events();
    worker.ask(Op::Map { handle: Handle(1), length: Bytes(64 * MIB) });
    for at in (0..64 * MIB).step_by(BLOCK as usize) {
        let (at, length) = (Bytes(at), Bytes(BLOCK));
        worker.ask(Op::Touch { handle: Handle(1), at, length, is_write: false });
    }
    let seen: Vec<u64> = sizes(&target, false).into_iter().filter(|&kib| kib > 8).collect();
    let whole = seen.iter().filter(|&&kib| kib == 64).count();
    // Runs end at the indirect blocks: there a piece is read in two.
    assert!(whole >= 1024 - 8 && seen.iter().sum::<u64>() == 64 * KIB, "{whole} of {}", seen.len());
}

/// MiB that a second pass over a file reads.
fn second_pass(files: &str, mib: u64) -> u64 {
    let target = target("fixed-100us", files);
    let mut worker = Worker::new(&target);
    worker.make(mib * MIB);
    target.prepare_cache(false);
    worker.open(1, Access::Plain, false);
    worker.read(1, 0, mib * MIB / BLOCK);
    target.take_events();
    worker.read(1, 0, mib * MIB / BLOCK);
    sizes(&target, false).iter().sum::<u64>() / KIB
}

#[test]
fn sol_10_pages_behind_a_sequential_reader_are_given_up() {
    let nine = "memory = \"1g\"\nkernel = \"solaris-9\"";
    let again = second_pass(nine, 300);
    assert!((190..=300).contains(&again), "{again} MiB: all behind a tenth of free memory");
    let kept = format!("{nine}\nsystem = {{ freebehind = 0 }}");
    assert_eq!(second_pass(&kept, 300), 0);
    assert_eq!(second_pass("memory = \"1g\"", 300), 0, "Solaris 8 does it when memory is short");
}

#[test]
fn sol_11_half_a_block_is_read_before_it_is_written() {
    let count = |bytes: u64| {
        let target = target("fixed-100us", "memory = \"64m\"");
        let mut worker = Worker::new(&target);
        worker.make(16 * MIB);
        target.prepare_cache(false);
        worker.open(1, Access::Plain, false);
        target.take_events();
        for step in 0..1000 {
            // 771 and 1024 have no common divisor: every second block, each once.
            let block = step * 771 % 1024 * 2;
            worker.ask(Op::write(Handle(1), Bytes(block * BLOCK), Bytes(bytes)));
        }
        worker.ask(Op::Fsync { handle: Handle(1) });
        let events = target.take_events();
        let number = |write: u8, action: &str| {
            let is_one = |event: &&iolab_model::TraceEvent| {
                event.action.name() == action
                    && event.operation.0 & 1 == write
                    && event.sectors == 16
            };
            events.iter().filter(is_one).count() as i64
        };
        (number(0, "D"), number(1, "D"))
    };
    let (reads, writes) = count(4 * KIB);
    assert!((1000..=1004).contains(&reads), "{reads} reads");
    assert!((1000..=1006).contains(&writes), "{writes} writes");
    let (reads, writes) = count(8 * KIB);
    assert!((0..=4).contains(&reads), "{reads} reads");
    assert!((1000..=1006).contains(&writes), "{writes} writes");
}

#[test]
fn a_log_saves_the_waits_for_names() {
    let taken = |mount: &str| {
        let target =
            target("scsi7200-1995", &format!("memory = \"64m\"\nmount_options = [{mount:?}]"));
        let request = LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes(MIB),
            content: Content::Zero,
            seed: Seed(7),
            priority: None,
            paths: (0..100)
                .map(|index| Path::new("/simulated").join(format!("f{index}")))
                .collect::<Vec<_>>()
                .into(),
        };
        let mut worker = Worker { lane: target.open(&request).unwrap() };
        let begin = worker.lane.now();
        for index in 0..100 {
            let how = OpenHow { is_writable: true, ..OpenHow::default() };
            worker.ask(Op::Create { path: PathId(index), handle: Handle(0), how });
            worker.ask(Op::Close { handle: Handle(0) });
        }
        ((worker.lane.now() - begin).0 as f64 / 1e9, target.inspect(Simulation::bios_done))
    };
    let (plain, logged) = (taken("nologging"), taken("logging"));
    assert!(plain.0 > 100.0 * 0.008, "each name waits for two turns of the disk: {plain:?}");
    assert!(logged.0 < plain.0 / 20.0, "{logged:?} against {plain:?}");
}
