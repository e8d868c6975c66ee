//! Injected errors below a file system, through queue, scheduler and device: every op ends, and
//! whoever was promised something hears of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use iolab_model::error::Errno;
use iolab_model::op::{Access, Durability, Handle, OpenHow, PathId, Token};
use iolab_model::target::Content;
use iolab_model::{Bytes, Lane, LaneRequest, Ns, Op, Seed, Submission, Target};
use iolab_sim::stack::{QueueOverrides, Stack};
use iolab_sim::target::{SimLane, SimTarget, Simulation};

const RECORD: u64 = 4096;
const RECORDS: u64 = 16;
/// Read-only file system (asm-generic/errno-base.h).
const EROFS: Errno = Errno(30);
/// Longest time of an op: it waits for no daemon for longer.
const LONGEST: Ns = Ns(120_000_000_000);

/// A worker on a file system whose device fails after so many commands.
struct Worker {
    target: SimTarget,
    lane: SimLane,
}

impl Worker {
    fn new(fs: &str, of: &str, after: u32, times: &str) -> Self {
        let text = format!(
            "name = \"x\"\nqueue.scheduler = \"none\"\ndevice.profile = \"fixed-100us\"\n\
             [files]\nfs = {fs:?}\nmemory = \"64m\"\n\
             [[faults]]\nerror = \"EIO\"\nof = {of:?}\nafter_ops = {after}\n{times}"
        );
        let stack = Stack::parse("x.toml", &text).unwrap_or_else(|error| panic!("{error}"));
        let simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
        let target = SimTarget::new(simulation, stack.facts().unwrap());
        let request = LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes(1 << 20),
            content: Content::Zero,
            seed: Seed(7),
            priority: None,
            submitter_cpu: None,
            paths: Arc::from([PathBuf::from("/simulated/file"), Path::new("/simulated/b").into()]),
        };
        let lane = target.open(&request).unwrap();
        Self { target, lane }
    }

    fn ask(&mut self, op: Op) -> Result<Bytes, Errno> {
        let mut done = Vec::new();
        let now = self.lane.now();
        let submission = Submission { token: Token(0), op, intended: now, is_timed: true };
        self.lane.submit_batch(now, &[submission], &mut done);
        self.lane.reap(1, now + LONGEST, &mut done).unwrap();
        let end = done.pop().unwrap_or_else(|| panic!("{op:?} never ended"));
        if let Err(errno) = end.outcome {
            assert!([Errno::EIO, EROFS].contains(&errno), "{op:?}: errno {}", errno.0);
        }
        end.outcome
    }

    fn create(&mut self, file: u32) -> Result<Bytes, Errno> {
        let how = OpenHow {
            access: Access::Plain,
            durability: Durability::None,
            is_readable: true,
            is_writable: true,
            ..OpenHow::default()
        };
        self.ask(Op::Create { path: PathId(file), handle: Handle(file), how })
    }

    fn faults(&self) -> usize {
        self.target.inspect(Simulation::incidents).len()
    }
}

/// Writes records, each with a flush, reads them and removes the file; the errors that it met.
fn errors(worker: &mut Worker) -> Vec<Errno> {
    let mut outcomes = Vec::new();
    let made = worker.create(0);
    outcomes.push(made);
    if made.is_ok() {
        let handle = Handle(0);
        for record in 0..RECORDS {
            let at = Bytes(record * RECORD);
            outcomes.push(worker.ask(Op::write(handle, at, Bytes(RECORD))));
            outcomes.push(worker.ask(Op::Fsync { handle }));
        }
        worker.target.prepare_cache(false);
        for record in 0..RECORDS {
            outcomes.push(worker.ask(Op::read(handle, Bytes(record * RECORD), Bytes(RECORD))));
        }
        assert!(worker.ask(Op::Close { handle }).is_ok(), "close(2) has no failures");
        outcomes.push(worker.ask(Op::Unlink { path: PathId(0) }));
    }
    assert!(worker.ask(Op::SyncAll).is_ok(), "sync(2) has no failures");
    outcomes.push(worker.create(1));
    outcomes.into_iter().filter_map(Result::err).collect()
}

#[test]
fn every_op_of_every_file_system_ends_when_its_device_fails() {
    for row in iolab_files::fs::list::FILE_SYSTEMS {
        for of in ["write", "flush", "read"] {
            for after in (0..14).chain([20, 40]) {
                for times in ["times = 1\n", ""] {
                    let case = format!("{} {of} after {after} {times:?}", row.name);
                    let mut worker = Worker::new(row.name, of, after, times);
                    let errors = errors(&mut worker);
                    if of == "write" && after < 14 {
                        assert!(worker.faults() > 0, "{case}: there are so many writes");
                        // Its metadata in place are written again.
                        let is_told = !errors.is_empty() || row.name == "xfs";
                        assert!(is_told, "{case}: nobody was told");
                    }
                }
            }
        }
    }
}

/// Outcomes of a record and its flush, both again, a look at the record, and a new file, when a
/// write fails.
fn outcomes(fs: &str, after: u32) -> [Option<Errno>; 6] {
    let mut worker = Worker::new(fs, "write", after, "times = 1\n");
    let handle = Handle(0);
    let write = Op::write(handle, Bytes(0), Bytes(RECORD));
    worker.create(0).unwrap();
    let ops = [write, Op::Fsync { handle }, write, Op::Fsync { handle }];
    let [first, flush, second, again] = ops.map(|op| worker.ask(op).err());
    let read = worker.ask(Op::read(handle, Bytes(0), Bytes(RECORD))).err();
    [first, flush, second, again, read, worker.create(1).err()]
}

/// Outcomes that the failure of some early write has.
fn has_outcomes(fs: &str, expected: [Option<Errno>; 6]) -> bool {
    (0..8).any(|after| outcomes(fs, after) == expected)
}

/// The errors of jbd2 that aborts and of an xfs that shuts down: who waits is told of the failure,
/// and afterwards the one cannot be written any more, and the other not be used at all.
#[test]
fn a_journal_that_cannot_be_written_stops_its_file_system() {
    let (io, read_only) = (Some(Errno::EIO), Some(EROFS));
    for fs in ["ext3", "ext4"] {
        let expected = [None, io, read_only, read_only, None, read_only];
        assert!(has_outcomes(fs, expected), "{fs}");
    }
    assert!(has_outcomes("xfs", [None, io, io, io, io, io]));
}

/// Failed data are told once, and the file system goes on; so it does after failed metadata without
/// a journal.
#[test]
fn data_that_could_not_be_written_are_told_once() {
    for fs in ["ext2", "ext3", "ext4", "xfs"] {
        let expected = [None, Some(Errno::EIO), None, None, None, None];
        assert!(has_outcomes(fs, expected), "{fs}");
    }
}
