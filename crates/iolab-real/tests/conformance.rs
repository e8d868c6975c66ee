//! The conformance suite on every engine, in a directory of this machine.
//!
//! An engine that cannot be used there must say why before anything is done; it is counted.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use iolab_model::conformance::{Failure, check};
use iolab_model::op::{
    Access, Durability, Handle, LockKind, Op, OpenHow, PathId, Submission, Token,
};
use iolab_model::{Bytes, Lane as _, LaneRequest, Ns, Seed, Target, target::Content};
use iolab_real::{Engine, EngineVisitor};

/// Conformance in a directory: the rule that the engine broke there, or why it cannot be used.
struct Conform<'a>(&'a Path);

impl EngineVisitor for Conform<'_> {
    type Output = Result<Vec<Failure>, String>;
    fn visit<T: Target + Sync>(self, target: &T) -> Self::Output {
        let request = LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes::PAGE,
            content: Content::Zero,
            seed: Seed(1),
            priority: None,
            submitter_cpu: None,
            paths: [self.0.join("probe")].into(),
        };
        target.open(&request).map_err(|error| error.to_string())?;
        Ok(check(target, self.0))
    }
}

/// Directories to run in: `IOLAB_TEST_DIRS` (colon separated: one per file system), else the
/// temporary directory.
fn directories() -> Vec<PathBuf> {
    match std::env::var_os("IOLAB_TEST_DIRS") {
        Some(list) => std::env::split_paths(&list).collect(),
        None => vec![std::env::temp_dir()],
    }
}

/// Runs it on a thread of its own: what waits for ever is a failure with a name.
fn within(limit: Duration, what: &str, body: impl FnOnce() + Send + 'static) {
    let (ended, end) = channel::<()>();
    let thread = std::thread::spawn(move || {
        let _ended = ended;
        body();
    });
    let answer = end.recv_timeout(limit);
    assert!(answer != Err(std::sync::mpsc::RecvTimeoutError::Timeout), "{what} waits for ever");
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn every_engine_conforms() {
    for base in directories() {
        let mut conforming = 0;
        for &engine in Engine::ALL {
            let directory = tempfile::tempdir_in(&base).unwrap();
            let (sender, result) = channel();
            let path = directory.path().to_path_buf();
            within(Duration::from_secs(60), &engine.to_string(), move || {
                sender.send(engine.visit(Conform(&path))).unwrap();
            });
            match result.recv().unwrap() {
                Ok(failures) => {
                    assert!(failures.is_empty(), "{engine} on {}: {failures:#?}", base.display());
                    conforming += 1;
                }
                // The kernel refuses it, or the device cannot poll; and what to do instead.
                Err(why) => {
                    let may_be_refused = engine.probe(std::slice::from_ref(&base)).is_err();
                    assert!(may_be_refused && why.contains("--engine"), "{engine}: {why}");
                    println!("skipped: {why}");
                }
            }
        }
        println!("{}: {conforming} of {} engines conform", base.display(), Engine::ALL.len());
        assert!(conforming >= 7, "the synchronous engines work everywhere");
    }
}

/// Writes, locks, closes and locks again, over and over, in a lane that only goes on when it got
/// the lock.
struct LocksAgain<'a>(&'a Path);

impl EngineVisitor for LocksAgain<'_> {
    type Output = ();
    fn visit<T: Target + Sync>(self, target: &T) {
        const RECORD: Bytes = Bytes(128 << 10);
        let request = LaneRequest {
            worker: 0,
            depth: 8,
            buffer_bytes: RECORD,
            content: Content::Zero,
            seed: Seed(1),
            priority: None,
            submitter_cpu: None,
            paths: [self.0.join("locked")].into(),
        };
        // Refused: the conformance test says so.
        let Ok(mut lane) = target.open(&request) else { return };
        let mut done = Vec::new();
        let mut run = |ops: &[Op]| {
            let now = lane.now();
            let submissions: Vec<Submission> = (0..)
                .zip(ops)
                .map(|(slot, &op)| Submission {
                    token: Token(slot),
                    intended: now,
                    is_timed: true,
                    op,
                })
                .collect();
            let mut left = &submissions[..];
            while !left.is_empty() {
                let accepted = lane.submit_batch(now, left, &mut done);
                left = &left[accepted.total()..];
                lane.kick().unwrap();
                lane.reap(lane.in_flight(), Ns::MAX, &mut done).unwrap();
            }
            assert_eq!(done.len(), ops.len());
            for completion in done.drain(..) {
                completion.outcome.unwrap();
            }
        };
        let (first, second) = (Handle(0), Handle(1));
        let how = OpenHow {
            access: target.capabilities().default_access,
            durability: Durability::None,
            is_readable: true,
            is_writable: true,
            is_truncating: false,
            stream_buffer_bytes: Bytes(0),
            permissions: iolab_model::op::Permissions::Group,
            write_life: iolab_model::op::WriteLife::Unsaid,
            is_remembered: false,
        };
        let kind = LockKind::Exclusive;
        let lock = |handle| Op::Lock { handle, kind, at: Bytes(0), length: RECORD };
        for round in 0..200 {
            let path = PathId(0);
            let create = Op::Create { path, handle: first, how };
            run(&[if round == 0 { create } else { Op::Open { path, handle: first, how } }]);
            run(&[Op::Open { path, handle: second, how }]);
            if how.access != Access::Mapped {
                let write = |index| Op::write(first, Bytes(index * RECORD.0), RECORD);
                run(&[0, 1, 2, 3, 4, 5, 6, 7].map(write));
            }
            run(&[lock(first)]);
            run(&[Op::Close { handle: first }]);
            run(&[lock(second)]);
            run(&[Op::Close { handle: second }]);
        }
    }
}

#[test]
fn closing_gives_the_locks_back_at_once() {
    for &engine in Engine::ALL {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_path_buf();
        within(Duration::from_secs(60), &engine.to_string(), move || {
            engine.visit(LocksAgain(&path));
        });
    }
}
