//! Failures under streams, mappings, queues and locks: an op fails, and the process lives.
//!
//! Tests that need a file system of their own, which needs root, say so in their names and are
//! skipped aloud.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use iolab_model::op::{Access, Durability, Handle, LockKind, OpenHow, PathId, Submission, Token};
use iolab_model::{
    Bytes, Completion, Errno, Lane, LaneRequest, Ns, Op, Seed, Target, target::Content,
};
use iolab_real::{Engine, EngineVisitor};

const PAGE: Bytes = Bytes(4096);
const FILE: Handle = Handle(0);
const PATH: PathId = PathId(0);

/// One lane of one engine that runs one op after the other.
struct Bench<L>(L);

impl<L: Lane> Bench<L> {
    fn open<T: Target<Lane = L>>(target: &T, path: &Path) -> Self {
        let request = LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes(64 << 10),
            content: Content::Incompressible,
            seed: Seed(3),
            priority: None,
            submitter_cpu: None,
            paths: Arc::from([path.to_path_buf()]),
        };
        Self(target.open(&request).unwrap())
    }

    fn run(&mut self, op: Op) -> Result<Bytes, Errno> {
        let mut done: Vec<Completion> = Vec::new();
        let now = self.0.now();
        let submission = Submission { token: Token(0), intended: now, is_timed: true, op };
        self.0.submit_batch(now, &[submission], &mut done);
        self.0.reap(1, Ns::MAX, &mut done).unwrap();
        done.pop().unwrap().outcome
    }
}

fn how(access: Access) -> OpenHow {
    OpenHow {
        access,
        durability: Durability::None,
        is_readable: true,
        is_writable: true,
        is_truncating: false,
        stream_buffer_bytes: Bytes(16 << 10),
        permissions: iolab_model::op::Permissions::Group,
        write_life: iolab_model::op::WriteLife::Unsaid,
        is_remembered: false,
    }
}

fn touch(at: Bytes, is_write: bool) -> Op {
    Op::Touch { handle: FILE, at, length: PAGE, is_write }
}

/// A full file system of 1 MiB, in a mount that goes away with the test; `None` without root.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(name: &str) -> Option<Self> {
        let path = std::env::temp_dir().join(format!("iolab-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let source = c"tmpfs".as_ptr();
        let target = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        let options = c"size=1m".as_ptr().cast();
        // SAFETY: all strings are C strings that live during the call.
        let result = unsafe { libc::mount(source, target.as_ptr(), source, 0, options) };
        if result != 0 {
            println!("skipped: needs root to mount: {}", std::io::Error::last_os_error());
            std::fs::remove_dir(&path).unwrap();
            return None;
        }
        Some(Self(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let target = std::ffi::CString::new(self.0.to_str().unwrap()).unwrap();
        // SAFETY: the string lives during the call.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
        std::fs::remove_dir(&self.0).unwrap();
    }
}

/// Runs a test on an engine, in a directory.
struct On<'a>(&'a Path, fn(&mut dyn FnMut(Op) -> Result<Bytes, Errno>, &Path));

impl EngineVisitor for On<'_> {
    type Output = ();
    fn visit<T: Target + Sync>(self, target: &T) {
        let path = self.0.join("file");
        let mut bench = Bench::open(target, &path);
        (self.1)(&mut |op| bench.run(op), &path);
    }
}

#[test]
fn a_file_cut_under_its_mapping_ends_ops_and_not_the_process() {
    let directory = tempfile::tempdir().unwrap();
    for engine in [Engine::Mmap, Engine::Psync] {
        engine.visit(On(directory.path(), |run, path| {
            let length = Bytes(16 * PAGE.0);
            run(Op::Create { path: PATH, handle: FILE, how: how(Access::Mapped) }).unwrap();
            run(Op::Truncate { handle: FILE, length }).unwrap();
            run(Op::Map { handle: FILE, length }).unwrap();
            run(touch(Bytes(8 * PAGE.0), true)).unwrap();
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(2 * PAGE.0).unwrap();
            for is_write in [false, true, false] {
                // Again and again: the empty page that ended the first copy must not stay.
                assert_eq!(run(touch(Bytes(8 * PAGE.0), is_write)), Err(Errno::EIO));
            }
            assert_eq!(run(Op::read(FILE, Bytes(0), length)), Err(Errno::EIO), "many pages");
            assert_eq!(run(touch(PAGE, true)), Ok(PAGE), "what is left of the file");
            file.set_len(length.0).unwrap();
            assert_eq!(run(touch(Bytes(8 * PAGE.0), true)), Ok(PAGE), "the file is back");
            let written = std::fs::read(path).unwrap();
            let start = 8 * PAGE.0 as usize;
            assert!(written[start..start + 8] != [0; 8], "it reached the file, not a stray page");
            run(Op::Unlink { path: PATH }).unwrap();
        }));
    }
}

#[test]
fn needs_root_a_full_file_system_under_a_mapping_ends_the_op() {
    let Some(disk) = SmallDisk::new("mapped") else { return };
    Engine::Mmap.visit(On(&disk.0, |run, _| {
        let length = Bytes(4 << 20);
        run(Op::Create { path: PATH, handle: FILE, how: how(Access::Mapped) }).unwrap();
        run(Op::Truncate { handle: FILE, length }).unwrap();
        run(Op::Map { handle: FILE, length }).unwrap();
        let pages = length.0 / PAGE.0;
        let outcomes: Vec<_> =
            (0..pages).map(|page| run(touch(Bytes(page * PAGE.0), true))).collect();
        let written = outcomes.iter().take_while(|outcome| **outcome == Ok(PAGE)).count() as u64;
        assert!((100..=(1 << 20) / PAGE.0).contains(&written), "{written} pages fit");
        let rest = &outcomes[written as usize..];
        assert!(rest.iter().all(|outcome| *outcome == Err(Errno::EIO)), "no page fits any more");
    }));
}

#[test]
fn needs_root_a_full_file_system_shows_when_a_stream_is_flushed_or_closed() {
    let Some(disk) = SmallDisk::new("stream") else { return };
    std::fs::write(disk.0.join("filler"), vec![1; (1 << 20) - 8192]).unwrap();
    Engine::Stdio.visit(On(&disk.0, |run, _| {
        run(Op::Create { path: PATH, handle: FILE, how: how(Access::Stdio) }).unwrap();
        let write = Op::StreamWrite { handle: FILE, length: Bytes(12 << 10) };
        assert_eq!(run(write), Ok(Bytes(12 << 10)), "it fits into the buffer");
        assert_eq!(run(Op::StreamFlush { handle: FILE }), Err(Errno::ENOSPC));
        run(Op::Unlink { path: PATH }).unwrap();
        let _ = run(Op::Close { handle: FILE });
        run(Op::Create { path: PATH, handle: FILE, how: how(Access::Stdio) }).unwrap();
        assert_eq!(run(write), Ok(Bytes(12 << 10)));
        assert_eq!(run(Op::Close { handle: FILE }), Err(Errno::ENOSPC), "the last chance");
        assert_eq!(run(Op::Close { handle: FILE }), Err(Errno::EBADF), "it is closed all the same");
    }));
}

/// A SIGBUS that is none of ours does what it always did: it ends the process.
#[test]
fn a_foreign_fault_keeps_its_default_action() {
    let directory = tempfile::tempdir().unwrap();
    Engine::Mmap.visit(On(directory.path(), |run, _| {
        // The handler is there once something was mapped.
        run(Op::Create { path: PATH, handle: FILE, how: how(Access::Mapped) }).unwrap();
        run(Op::Truncate { handle: FILE, length: PAGE }).unwrap();
        run(Op::Map { handle: FILE, length: PAGE }).unwrap();
    }));
    let file = tempfile::tempfile().unwrap();
    file.set_len(PAGE.0).unwrap();
    // SAFETY: a fresh mapping touches no existing memory; the child only makes system calls, reads
    // one byte and exits.
    let status = unsafe {
        use std::os::fd::AsRawFd as _;
        let (fd, length) = (file.as_raw_fd(), PAGE.0 as usize);
        let null = std::ptr::null_mut();
        let start = libc::mmap(null, length, libc::PROT_READ, libc::MAP_SHARED, fd, 0);
        assert_ne!(start, libc::MAP_FAILED);
        libc::ftruncate(fd, 0);
        let child = libc::fork();
        if child == 0 {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            start.cast::<u8>().read_volatile();
            libc::_exit(0);
        }
        let mut status = 0;
        libc::waitpid(child, &raw mut status, 0);
        libc::munmap(start, length);
        status
    };
    assert!(libc::WIFSIGNALED(status), "the child ended by itself: {status}");
    assert_eq!(libc::WTERMSIG(status), libc::SIGBUS);
}

/// Keeps a queue full for many ops.
struct Hammer<'a>(&'a Path);

impl EngineVisitor for Hammer<'_> {
    type Output = ();
    fn visit<T: Target + Sync>(self, target: &T) {
        const DEPTH: u32 = 32;
        let mut lane = target
            .open(&LaneRequest {
                worker: 0,
                depth: DEPTH,
                buffer_bytes: PAGE,
                content: Content::Zero,
                seed: Seed(5),
                priority: None,
                submitter_cpu: None,
                paths: Arc::from([self.0.to_path_buf()]),
            })
            .unwrap();
        let mut done = Vec::new();
        let submission = |token, op| Submission { token, intended: Ns(0), is_timed: true, op };
        let open = Op::Open { path: PATH, handle: FILE, how: how(Access::Plain) };
        lane.submit_batch(lane.now(), &[submission(Token(0), open)], &mut done);
        assert_eq!(done.pop().unwrap().outcome, Ok(Bytes(0)));
        let mut free: Vec<Token> = (0..DEPTH).map(Token).collect();
        for _ in 0..15_000 {
            let batch: Vec<_> = free
                .drain(..)
                .map(|token| submission(token, Op::read(FILE, Bytes(0), PAGE)))
                .collect();
            let accepted = lane.submit_batch(lane.now(), &batch, &mut done);
            assert_eq!(accepted.total(), batch.len(), "{}", target.name());
            lane.reap(1, Ns::MAX, &mut done).unwrap();
            free.extend(done.drain(..).map(|completion| {
                assert_eq!(completion.outcome, Ok(PAGE), "{}", target.name());
                completion.token
            }));
        }
    }
}

/// Symptom: a panic after some 100 000 ops of `io_uring_sqpoll`, the submission ring was full.
/// Cause: its kernel thread posts completions of a batch before it gives the batch's entries back.
#[test]
fn a_queue_that_is_always_full_never_overflows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, [0; 4096]).unwrap();
    for engine in [Engine::IoUring, Engine::IoUringFixed, Engine::IoUringSqpoll, Engine::Libaio] {
        if let Err(refused) = engine.probe(&[]) {
            println!("skipped: {engine}: {}", refused.why);
            continue;
        }
        engine.visit(Hammer(&path));
    }
}

/// Two lanes of an engine, as two threads of one process have them.
struct Exclude<'a>(&'a Path);

impl EngineVisitor for Exclude<'_> {
    type Output = ();
    fn visit<T: Target + Sync>(self, target: &T) {
        let lock = |kind| Op::Lock { handle: FILE, kind, at: Bytes(0), length: PAGE };
        let open = Op::Open { path: PATH, handle: FILE, how: how(Access::Plain) };
        let mut first = Bench::open(target, self.0);
        first.run(open).unwrap();
        first.run(lock(LockKind::Exclusive)).unwrap();
        let is_released = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut second = Bench::open(target, self.0);
                second.run(open).unwrap();
                second.run(lock(LockKind::Exclusive)).unwrap();
                assert!(is_released.load(SeqCst), "{}: two held the lock", target.name());
            });
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(30) {
                std::thread::yield_now();
            }
            is_released.store(true, SeqCst);
            first.run(lock(LockKind::Release)).unwrap();
        });
    }
}

#[test]
fn workers_that_are_threads_wait_for_each_others_locks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, [0; 4096]).unwrap();
    for &engine in Engine::ALL {
        if engine.is_polled() || engine.probe(&[]).is_err() {
            continue; // The conformance test counts and explains these.
        }
        engine.visit(Exclude(&path));
    }
}
