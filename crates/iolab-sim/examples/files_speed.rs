//! Number of file operations per second of CPU time on simulated file systems, single core.
//!
//! `cargo run --release -p iolab-sim --example files_speed [OPERATIONS [WORD...]]` prints one JSON
//! object per file system and kind of operation; words choose among both. The drive answers after
//! 100 us, software costs what stacks assume. What counts is the processor's time of this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use iolab_model::op::{Access, Handle, OpenHow, PathId, Token};
use iolab_model::target::Content;
use iolab_model::{Bytes, Lane, LaneRequest, Ns, Op, Seed, Submission, Target};
use iolab_sim::stack::{QueueOverrides, Stack};
use iolab_sim::target::{SimLane, SimTarget};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

const FILE: Handle = Handle(0);
const PATH: PathId = PathId(0);
/// Pages of the file that is read and written.
const PAGES: u64 = 65_536;

/// A prime number: its multiples reach every place, whatever the number of places.
const SCATTER: u64 = 2_654_435_761;

/// Time of the processor that this process has had, in seconds.
fn processor_seconds() -> f64 {
    let time =
        clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("every Linux has this clock");
    time.num_nanoseconds() as f64 / 1e9
}

fn main() {
    let words: Vec<String> = std::env::args().skip(2).collect();
    let is_asked = |word: &str, all: &[&str]| {
        let of_these = || words.iter().any(|asked| all.contains(&asked.as_str()));
        words.iter().any(|asked| asked == word) || !of_these()
    };
    let systems: Vec<&str> =
        iolab_files::fs::list::FILE_SYSTEMS.iter().map(|row| row.name).collect();
    let kinds = [
        "read",
        "write",
        "write_fsync",
        "create_write_delete",
        "scattered_fsync",
        "create_then_delete",
    ];
    let operations = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().unwrap());
    for row in iolab_files::fs::list::FILE_SYSTEMS {
        for (kind, run, share) in [
            ("read", read as fn(&mut Worker, u64), 1),
            ("write", write, 1),
            ("write_fsync", write_fsync, 10),
            ("create_write_delete", create_write_delete, 10),
            ("scattered_fsync", scattered_fsync, 10),
            ("create_then_delete", create_then_delete, 10),
        ] {
            if !is_asked(row.name, &systems) || !is_asked(kind, &kinds) {
                continue;
            }
            let count = operations / share;
            let mut worker = Worker::new(row.name, count);
            worker.open();
            if kind == "read" {
                write(&mut worker, PAGES);
            }
            let start = processor_seconds();
            run(&mut worker, count);
            let rate = count as f64 / (processor_seconds() - start);
            println!(
                "{{\"fs\":\"{}\",\"kind\":\"{kind}\",\"operations\":{count},\
                 \"operations_per_s\":{rate:.0}}}",
                row.name
            );
        }
    }
}

struct Worker {
    lane: SimLane,
    done: Vec<iolab_model::Completion>,
}

impl Worker {
    fn new(fs: &str, files: u64) -> Self {
        let text = format!("name = \"speed\"\ndevice.profile = \"fixed-100us\"\nfiles.fs = {fs:?}");
        let stack = Stack::parse("speed", &text).unwrap();
        let simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
        let target = SimTarget::new(simulation, Vec::new());
        let path = |number| Path::new("/simulated").join(format!("file{number}"));
        let paths: Vec<PathBuf> = (0..=files).map(path).collect();
        let request = LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes(65_536),
            content: Content::Zero,
            seed: Seed(7),
            priority: None,
            submitter_cpu: None,
            paths: Arc::from(paths),
        };
        Self { lane: target.open(&request).unwrap(), done: Vec::new() }
    }

    fn ask(&mut self, op: Op) {
        let now = self.lane.now();
        let submission = Submission { token: Token(0), op, intended: now, is_timed: true };
        self.lane.submit_batch(now, &[submission], &mut self.done);
        self.lane.reap(1, Ns(u64::MAX - 1), &mut self.done).unwrap();
        self.done.pop().unwrap().outcome.unwrap();
    }

    /// A file of 16 KiB.
    fn make(&mut self, path: PathId) {
        let how = OpenHow { is_readable: true, is_writable: true, ..OpenHow::default() };
        let handle = Handle(1);
        self.ask(Op::Create { path, handle, how });
        self.ask(Op::write(handle, Bytes(0), Bytes(16_384)));
        self.ask(Op::Close { handle });
    }

    fn open(&mut self) {
        let how = OpenHow {
            access: Access::Plain,
            is_readable: true,
            is_writable: true,
            ..OpenHow::default()
        };
        self.ask(Op::Create { path: PATH, handle: FILE, how });
    }
}

fn read(worker: &mut Worker, count: u64) {
    for index in 0..count {
        worker.ask(Op::read(FILE, Bytes(index % PAGES * 4096), Bytes(4096)));
    }
}

fn write(worker: &mut Worker, count: u64) {
    for index in 0..count {
        worker.ask(Op::write(FILE, Bytes(index % PAGES * 4096), Bytes(4096)));
    }
}

fn write_fsync(worker: &mut Worker, count: u64) {
    for index in 0..count {
        worker.ask(Op::write(FILE, Bytes(index % PAGES * 4096), Bytes(4096)));
        worker.ask(Op::Fsync { handle: FILE });
    }
}

/// A file that grows in pieces: no two neighbours of it are written one after the other.
fn scattered_fsync(worker: &mut Worker, count: u64) {
    for index in 0..count {
        let place = Bytes(index * SCATTER % count * 8192);
        worker.ask(Op::write(FILE, place, Bytes(8192)));
        worker.ask(Op::Fsync { handle: FILE });
    }
}

fn create_write_delete(worker: &mut Worker, count: u64) {
    for _ in 0..count {
        worker.make(PathId(1));
        worker.ask(Op::Unlink { path: PathId(1) });
    }
}

/// A directory that holds all files before the first one goes.
fn create_then_delete(worker: &mut Worker, count: u64) {
    let paths = || (1..=count as u32).map(PathId);
    paths().for_each(|path| worker.make(path));
    paths().for_each(|path| worker.ask(Op::Unlink { path }));
}
