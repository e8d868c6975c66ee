//! Workers as forked processes; outcomes come back through pipes, gates and flags through shared
//! memory.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;
use std::time::Duration;

use iolab_drive::coordinate::{Crew, Observer, PhaseOutcome, WorkerOutcome, assemble, coordinate};
use iolab_drive::group::{SharedGroup, Waking};
use iolab_drive::pump::{Seat, Workplace, get_ready};
use iolab_model::{Error, error::Errno};
use iolab_real::shared::SharedBox;
use iolab_workload::spec::{Phase, Workload};
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::unistd::pipe2;

/// A forked worker that has not been waited for.
struct Worker {
    pid: libc::pid_t,
    pipe: File,
    is_lost: bool,
}

fn last_error(call: &'static str) -> Error {
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(Errno::EIO.0);
    Error::System { call, subject: "worker process".into(), errno: Errno(errno) }
}

/// Runs one phase with a process per worker.
///
/// Must be called while this process has a single thread, because it forks without exec.
pub fn run_processes(
    target: &dyn Workplace,
    (workload, phase): (&Workload, &Phase),
    directory: &Path,
    prepare: impl Fn(&Seat<'_>) -> Result<(), String>,
    observer: &mut dyn Observer,
) -> Result<PhaseOutcome, Error> {
    let mut seats = match get_ready(target, (workload, phase, None), directory, observer)? {
        ControlFlow::Continue(seats) => seats,
        ControlFlow::Break(nothing) => return Ok(nothing),
    };
    let board = observer.board();
    for seat in &mut seats {
        seat.board = board.as_deref();
    }
    // SAFETY: SharedGroup holds nothing but atomics.
    let group = unsafe { SharedBox::new(SharedGroup::default())? };
    let (heard, bell) = bell()?;
    let ring = || {
        // A full pipe is as good; and the coordinator looks from time to time anyway.
        let _ = (&bell).write(&[0]);
    };
    let ringing = Waking::new(&group, seats.len(), &ring);
    let mut workers = Vec::new();
    for seat in &seats {
        let work = || {
            prepare(seat)?;
            target.work_among(seat, directory, &ringing).map_err(|error| error.to_string())
        };
        match fork(work) {
            Ok(worker) => workers.push(worker),
            Err(error) => {
                for worker in &workers {
                    kill(worker);
                }
                return Err(error);
            }
        }
    }
    let mut crew = Processes { workers, heard };
    let clock = coordinate(&group, seats.len() as u32, observer, &mut crew);
    let ended: Vec<_> = crew.workers.into_iter().map(Worker::join).collect();
    let parent_ns = Some(clock.read());
    let lost_by = ended.iter().find_map(|ended| ended.as_ref().err()).cloned();
    let answers = ended.into_iter().flatten();
    let parsed = answers.filter_map(|text| serde_json::from_str::<WorkerAnswer>(&text).ok());
    let outcomes = parsed.collect::<Result<Vec<_>, String>>();
    let outcomes = outcomes.map_err(|problem| Error::BadWorkload {
        problem: format!("a worker process failed: {problem}"),
        remedy: "try threads: --workers-as threads, or thread=1 of fio".into(),
    })?;
    Ok(PhaseOutcome { parent_ns, lost_by, ..assemble(phase, outcomes, workload.interval_ns) })
}

/// Both ends of a pipe into which the last worker to arrive at a gate writes a byte.
fn bell() -> Result<(File, File), Error> {
    let flags = OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let (heard, bell) = pipe2(flags).map_err(|errno| Error::System {
        call: "pipe2",
        subject: "worker processes".into(),
        errno: Errno(errno as i32),
    })?;
    Ok((File::from(heard), File::from(bell)))
}

/// Processes, as their coordinator sees them.
struct Processes {
    workers: Vec<Worker>,
    heard: File,
}

impl Crew for Processes {
    fn lost(&mut self) -> u32 {
        self.workers.iter_mut().map(|worker| u32::from(worker.has_vanished())).sum()
    }

    fn rest(&mut self, longest: Duration) {
        let timeout = PollTimeout::try_from(longest).unwrap_or(PollTimeout::ZERO);
        let mut waiting = [PollFd::new(self.heard.as_fd(), PollFlags::POLLIN)];
        if matches!(poll(&mut waiting, timeout), Ok(1..)) {
            // What was written is no news any more.
            let _ = self.heard.read(&mut [0; 16]);
        }
    }
}

/// Answer that a worker process writes into its pipe.
type WorkerAnswer = Result<WorkerOutcome, String>;

/// Forks a worker; the child runs `body`, answers through the pipe and ends.
fn fork(body: impl FnOnce() -> WorkerAnswer) -> Result<Worker, Error> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(last_error("pipe2"));
    }
    // SAFETY: both descriptors were just opened and are owned by nobody else.
    let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    // SAFETY: this process has one thread (see `run_processes`), so the child's state is
    // consistent.
    match unsafe { libc::fork() } {
        -1 => Err(last_error("fork")),
        0 => {
            drop(read);
            // SAFETY: plain system calls; the child leaves without running the parent's
            // destructors.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            let text = answer.ok().and_then(|answer| serde_json::to_vec(&answer).ok());
            let is_fine = text.is_some_and(|text| File::from(write).write_all(&text).is_ok());
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(!is_fine)) }
        }
        pid => {
            drop(write);
            Ok(Worker { pid, pipe: File::from(read), is_lost: false })
        }
    }
}

fn kill(worker: &Worker) {
    // SAFETY: the child has not been waited for, so the number is still its own.
    unsafe {
        libc::kill(worker.pid, libc::SIGKILL);
        libc::waitpid(worker.pid, std::ptr::null_mut(), 0);
    }
}

/// End of a process in words, by its wait status.
fn ended_by(status: libc::c_int) -> String {
    if !libc::WIFSIGNALED(status) {
        return format!("exit code {}", libc::WEXITSTATUS(status));
    }
    let number = libc::WTERMSIG(status);
    match Signal::try_from(number) {
        // The kernel's own means when memory runs out; nothing of iolab's sends it to a worker
        // that is at work.
        Ok(Signal::SIGKILL) => {
            "SIGKILL: somebody killed it, or memory ran out, which `dmesg` tells".into()
        }
        Ok(signal) => signal.as_str().to_owned(),
        Err(_) => format!("signal {number}"),
    }
}

impl Worker {
    /// Tell whether it has ended, looked at without waiting: before the last gate is open no worker
    /// may.
    fn has_vanished(&mut self) -> bool {
        if self.is_lost {
            return true;
        }
        // SAFETY: siginfo_t is plain data, for which all zeroes is a valid value.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `info` is writable; WNOWAIT leaves the child to be waited for later.
        let result = unsafe { libc::waitid(libc::P_PID, self.pid as u32, &raw mut info, options) };
        // SAFETY: after a successful waitid the pid of a child's state is valid.
        self.is_lost = result == 0 && unsafe { info.si_pid() } == self.pid;
        self.is_lost
    }

    /// Reads its answer and waits for its end; an error says how it ended without one.
    fn join(mut self) -> Result<String, String> {
        let mut text = String::new();
        let has_read = self.pipe.read_to_string(&mut text).is_ok();
        let mut status = 0;
        // SAFETY: the child is ours and `status` is writable.
        unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
        if has_read && status == 0 { Ok(text) } else { Err(ended_by(status)) }
    }
}
