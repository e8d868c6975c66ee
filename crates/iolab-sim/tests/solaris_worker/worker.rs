//! A worker on a simulated Solaris stack, and what its disk saw.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use iolab_model::op::{Access, Handle, OpenHow, PathId, Token};
use iolab_model::target::Content;
use iolab_model::{Bytes, Lane, LaneRequest, Ns, Op, Seed, Submission, Target};
use iolab_sim::stack::{QueueOverrides, Stack};
use iolab_sim::target::{SimLane, SimTarget};

pub const KIB: u64 = 1024;
pub const MIB: u64 = 1 << 20;
pub const BLOCK: u64 = 8 * KIB;

pub fn queue_and_files(max_sectors_kb: u32, depth: u32, fs: &str, files: &str) -> String {
    format!(
        "[queue]\nscheduler = \"noop\"\nnomerges = 2\nmax_sectors_kb = {max_sectors_kb}\n\
         queue_depth = {depth}\n[files]\nfs = {fs:?}\n{files}\n"
    )
}

/// A simulation of a stack file without its name.
pub fn built(text: &str) -> SimTarget {
    let stack = Stack::parse("x.toml", &format!("name = \"x\"\n{text}")).unwrap();
    let mut simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
    simulation.record_events();
    SimTarget::new(simulation, stack.facts().unwrap())
}

/// A worker with one file, which it opens as many times as it likes.
pub struct Worker {
    pub lane: SimLane,
}

impl Worker {
    pub fn new(target: &SimTarget) -> Self {
        Self::with(target, [PathBuf::from("/simulated/testfile")].into())
    }

    pub fn with(target: &SimTarget, paths: Vec<PathBuf>) -> Self {
        Self::made(target, paths, 1)
    }

    /// One with so many operations at once.
    pub fn deep(target: &SimTarget, depth: u32) -> Self {
        Self::made(target, [PathBuf::from("/simulated/testfile")].into(), depth)
    }

    fn made(target: &SimTarget, paths: Vec<PathBuf>, depth: u32) -> Self {
        let request = LaneRequest {
            worker: 0,
            depth,
            buffer_bytes: Bytes(MIB),
            content: Content::Zero,
            seed: Seed(7),
            priority: None,
            submitter_cpu: None,
            paths: Arc::from(paths),
        };
        Self { lane: target.open(&request).unwrap() }
    }

    pub fn ask(&mut self, op: Op) {
        let mut done = Vec::new();
        let now = self.lane.now();
        let submission = Submission { token: Token(0), op, intended: now, is_timed: true };
        self.lane.submit_batch(now, &[submission], &mut done);
        self.lane.reap(1, Ns(u64::MAX - 1), &mut done).unwrap();
        let outcome = done.pop().unwrap_or_else(|| panic!("{op:?} never ended")).outcome;
        outcome.unwrap_or_else(|errno| panic!("{op:?}: errno {}", errno.0));
    }

    pub fn open(&mut self, handle: u32, access: Access, is_new: bool) {
        let how = OpenHow { access, is_readable: true, is_writable: true, ..OpenHow::default() };
        let (path, handle) = (PathId(0), Handle(handle));
        self.ask(if is_new {
            Op::Create { path, handle, how }
        } else {
            Op::Open { path, handle, how }
        });
    }

    /// Writes a file of some bytes in blocks, and closes it.
    pub fn make(&mut self, bytes: u64) {
        self.open(0, Access::Plain, true);
        for block in 0..bytes / BLOCK {
            self.ask(Op::write(Handle(0), Bytes(block * BLOCK), Bytes(BLOCK)));
        }
        self.ask(Op::Fsync { handle: Handle(0) });
        self.ask(Op::Close { handle: Handle(0) });
    }

    pub fn read(&mut self, handle: u32, from: u64, blocks: u64) {
        for block in 0..blocks {
            self.ask(Op::read(Handle(handle), Bytes(from + block * BLOCK), Bytes(BLOCK)));
        }
    }
}

/// Requests at the device: begin, end, KiB.
pub fn requests(target: &SimTarget, is_write: bool) -> Vec<(Ns, Ns, u64)> {
    let mut open = std::collections::BTreeMap::new();
    let mut seen = Vec::new();
    for event in target.take_events() {
        if (event.operation.0 & 1 == 1) != is_write || event.sectors == 0 {
            continue;
        }
        match event.action.name() {
            "D" => {
                open.insert((event.device, event.sector), event.at);
            }
            "C" => {
                let begin = open.remove(&(event.device, event.sector)).expect("it was sent");
                seen.push((begin, event.at, u64::from(event.sectors) / 2));
            }
            _ => {}
        }
    }
    seen
}

pub fn sizes(target: &SimTarget, is_write: bool) -> Vec<u64> {
    let mut all = requests(target, is_write);
    all.sort();
    all.into_iter().map(|(.., kib)| kib).collect()
}

/// Least, mean and greatest amount at the device between the first and the last time that it is
/// greatest, in clusters of 128 KiB (one with the border of an indirect block is two requests).
pub fn active(requests: &[(Ns, Ns, u64)]) -> (f64, f64, f64) {
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

pub fn hundred() -> Vec<PathBuf> {
    (0..100).map(|index| Path::new("/simulated").join(format!("f{index}"))).collect()
}

/// Requests at the data disk that do not go on where the one before ended: `head` is in front of
/// the stack's tables, `files` are keys of the file system.
pub fn data_seeks(fs: &str, head: &str, files: &str, steps: &[(u32, u64, u64)]) -> usize {
    let files = format!("memory = \"64m\"\n{files}");
    let rest = queue_and_files(128, 1, fs, &files);
    let target = built(&format!("device.profile = \"atlas3\"\n{head}{rest}"));
    let mut worker = Worker::with(&target, hundred());
    let how = OpenHow { is_readable: true, is_writable: true, ..OpenHow::default() };
    for handle in 0..6 {
        worker.ask(Op::Create { path: PathId(handle), handle: Handle(handle), how });
    }
    for &(file, block, count) in steps {
        let (at, length) = (Bytes(block * BLOCK), Bytes(count * BLOCK));
        worker.ask(Op::write(Handle(file), at, length));
        worker.ask(Op::Fsync { handle: Handle(file) });
    }
    let mut last = 0;
    let mut seeks = 0;
    for event in target.take_events() {
        if event.device == 0 && event.action.name() == "D" && event.sectors > 0 {
            seeks += usize::from(event.sector.0 != last);
            last = event.sector.0 + u64::from(event.sectors);
        }
    }
    seeks
}
