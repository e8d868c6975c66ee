//! `io_uring`: rings shared with the kernel, one system call for a whole batch.
//!
//! Transfers and flushes are queued; everything else is a plain system call and done at once. The
//! ring is opened by the thread that uses it, with the cheapest task-work mode the kernel has. Left
//! out: polled completion, registered buffers and files, kernel-side submission.
//!
//! Traps that the agent looks for: on tmpfs and for buffered writes the kernel hands ops to worker
//! threads; loop devices cannot poll; containers may forbid the system call.

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use iolab_model::op::{Op, Position, Token, Transfer};
use iolab_model::{
    Accepted, Bytes, Capabilities, Completion, Error, Lane, LaneRequest, Ns, Submission, Target,
    error::Errno,
};

use crate::buffer::Buffers;
use crate::clock::{monotonic, sleep_until};
use crate::files::Files;
use crate::priority;

/// Largest queue this engine offers; the kernel allows 32768 entries.
const DEPTH_MAX: u32 = 4096;

/// The target.
pub const fn target() -> Uring {
    Uring
}

/// The `io_uring` target.
pub struct Uring;

/// A ring with its files and buffers.
pub struct UringLane {
    ring: IoUring,
    files: Files,
    buffers: Buffers,
    slots: Vec<Slot>,
    /// Queued and not yet reaped.
    in_flight: u32,
    /// Of these, entries that the kernel has not been told of.
    unsubmitted: u32,
}

/// What is in flight in a queue slot.
#[derive(Clone, Copy)]
struct Slot {
    submitted: Ns,
    work: Work,
    done: u64,
}

#[derive(Clone, Copy)]
enum Work {
    Read(Transfer),
    Write(Transfer),
    Flush { fd: i32, is_data_only: bool },
}

impl Target for Uring {
    type Lane = UringLane;

    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            is_asynchronous: true,
            depth_max: DEPTH_MAX,
            can_verify: true,
            has_namespace: true,
            has_direct: true,
            has_append: true,
            has_allocate: true,
            ..Capabilities::MINIMAL
        }
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("engine".into(), "io_uring".into())]
    }

    fn open(&self, request: &LaneRequest) -> Result<UringLane, Error> {
        priority::apply(request)?;
        let slot =
            Slot { submitted: Ns(0), work: Work::Flush { fd: -1, is_data_only: false }, done: 0 };
        Ok(UringLane {
            ring: set_up(request.depth)?,
            files: Files::new(request.paths.clone()),
            buffers: Buffers::new(request)?,
            slots: vec![slot; request.depth as usize],
            in_flight: 0,
            unsubmitted: 0,
        })
    }
}

/// Opens a ring: first with completion work deferred to this thread (Linux 6.1), else plainly.
fn set_up(depth: u32) -> Result<IoUring, Error> {
    let entries = depth.next_power_of_two();
    let deferred = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .build(entries);
    let ring = match deferred {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries),
        other => other,
    };
    ring.map_err(|error| {
        let errno = Errno(error.raw_os_error().unwrap_or(Errno::EIO.0));
        let subject = match errno.0 {
            libc::EPERM | libc::ENOSYS => {
                "(the kernel or the container forbids io_uring: see kernel.io_uring_disabled, \
                 or use --engine psync)"
            }
            _ => "(the ring could not be set up)",
        };
        Error::System { call: "io_uring_setup", subject: subject.into(), errno }
    })
}

impl UringLane {
    /// Queues what a slot has still to do.
    fn push(&mut self, token: Token) -> Result<(), Errno> {
        let slot = self.slots[token.0 as usize];
        let entry = match slot.work {
            Work::Flush { fd, is_data_only } => {
                let flags = if is_data_only {
                    io_uring::types::FsyncFlags::DATASYNC
                } else {
                    io_uring::types::FsyncFlags::empty()
                };
                opcode::Fsync::new(Fd(fd)).flags(flags).build()
            }
            Work::Read(transfer) => {
                let (fd, at) = self.place(&transfer, slot.done)?;
                let rest = (transfer.length.0 - slot.done) as u32;
                let buffer = &mut self.buffers.slot(token)[slot.done as usize..];
                opcode::Read::new(Fd(fd), buffer.as_mut_ptr(), rest).offset(at).build()
            }
            Work::Write(transfer) => {
                let (fd, at) = self.place(&transfer, slot.done)?;
                let rest = (transfer.length.0 - slot.done) as u32;
                let buffer = &mut self.buffers.slot(token)[slot.done as usize..];
                opcode::Write::new(Fd(fd), buffer.as_ptr(), rest).offset(at).build()
            }
        };
        self.enqueue(&entry.user_data(u64::from(token.0)));
        Ok(())
    }

    /// Descriptor and offset; `u64::MAX` is the file's own position (`IORING_FEAT_RW_CUR_POS`).
    fn place(&mut self, transfer: &Transfer, done: u64) -> Result<(i32, u64), Errno> {
        let fd = self.files.get(transfer.handle)?.raw();
        let at = match transfer.at {
            Position::At(at) => at.0 + done,
            Position::Current => u64::MAX,
        };
        Ok((fd, at))
    }

    #[inline]
    fn enqueue(&mut self, entry: &squeue::Entry) {
        // SAFETY: the buffer belongs to this lane and to this slot, which stays taken until its
        // completion is reaped; the descriptor stays open because closing waits for the lane's
        // owner.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.expect("the ring has at least as many entries as the lane has slots");
        self.unsubmitted += 1;
    }

    /// Starts an op; `Some` if it ended at once.
    #[inline]
    fn start(&mut self, now: Ns, submission: &Submission) -> Option<Result<Bytes, Errno>> {
        let token = submission.token;
        let length_fits =
            |transfer: &Transfer, buffers: &Buffers| transfer.length.0 as usize <= buffers.size();
        let work = match submission.op {
            Op::Read(transfer) if length_fits(&transfer, &self.buffers) => Work::Read(transfer),
            Op::Write(transfer) if length_fits(&transfer, &self.buffers) => {
                self.buffers.outgoing(token, transfer.length.0 as usize);
                Work::Write(transfer)
            }
            Op::Read(_) | Op::Write(_) => return Some(Err(Errno::EINVAL)),
            Op::Fsync { handle } | Op::Fdatasync { handle } => {
                let is_data_only = matches!(submission.op, Op::Fdatasync { .. });
                match self.files.get(handle) {
                    Ok(file) => Work::Flush { fd: file.raw(), is_data_only },
                    Err(errno) => return Some(Err(errno)),
                }
            }
            ref other => return Some(self.files.perform(other)),
        };
        self.slots[token.0 as usize] = Slot { submitted: now, work, done: 0 };
        self.push(token).err().map(Err)
    }

    /// One `io_uring_enter(2)`: submits everything and waits for `min` completions, until `until`.
    fn enter(&mut self, min: u32, until: Ns) -> Result<(), Error> {
        loop {
            let result = if min > 0 && until != Ns::MAX {
                let left = until.since(monotonic()).0;
                let time =
                    Timespec::new().sec(left / 1_000_000_000).nsec((left % 1_000_000_000) as u32);
                let args = SubmitArgs::new().timespec(&time);
                self.ring.submitter().submit_with_args(min as usize, &args)
            } else if min > 0 {
                self.ring.submit_and_wait(min as usize)
            } else {
                // Deferred completions are only delivered to a caller who asks for events.
                const GETEVENTS: u32 = 1; // Linux include/uapi/linux/io_uring.h
                // SAFETY: no argument structure is passed.
                unsafe {
                    self.ring.submitter().enter::<libc::sigset_t>(
                        self.unsubmitted,
                        0,
                        GETEVENTS,
                        None,
                    )
                }
            };
            match result {
                Ok(_) => break,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::ETIME | libc::EBUSY | libc::EAGAIN) => break,
                    errno => {
                        return Err(Error::System {
                            call: "io_uring_enter",
                            subject: format!("{} ops in flight", self.in_flight),
                            errno: Errno(errno.unwrap_or(Errno::EIO.0)),
                        });
                    }
                },
            }
        }
        self.unsubmitted = self.ring.submission().len() as u32;
        Ok(())
    }

    /// Takes what has completed; short transfers go round again.
    fn drain(&mut self, done: &mut Vec<Completion>) {
        let completed = monotonic();
        loop {
            // Bound before the body: the queue's borrow must end, because `push` needs the ring.
            let next = self.ring.completion().next();
            let Some(entry) = next else { return };
            let token = Token(entry.user_data() as u32);
            let slot = &mut self.slots[token.0 as usize];
            let outcome = match entry.result() {
                errno if errno < 0 && is_transient(errno) => None,
                errno if errno < 0 => Some(Err(Errno(-errno))),
                moved => slot.advance(moved as u64),
            };
            let submitted = slot.submitted;
            let outcome = match outcome {
                Some(outcome) => outcome,
                None => match self.push(token) {
                    Ok(()) => continue,
                    Err(errno) => Err(errno),
                },
            };
            self.in_flight -= 1;
            done.push(Completion { token, submitted, completed, outcome });
        }
    }
}

fn is_transient(negative_errno: i32) -> bool {
    matches!(-negative_errno, libc::EINTR | libc::EAGAIN)
}

impl Slot {
    /// Adds moved bytes; `Some` when the op has ended (complete, or at the end of the file).
    #[inline]
    fn advance(&mut self, moved: u64) -> Option<Result<Bytes, Errno>> {
        self.done += moved;
        match self.work {
            Work::Flush { .. } => Some(Ok(Bytes(0))),
            Work::Read(transfer) | Work::Write(transfer) => {
                let has_ended = self.done >= transfer.length.0 || moved == 0;
                has_ended.then_some(Ok(Bytes(self.done)))
            }
        }
    }
}

impl Lane for UringLane {
    #[inline]
    fn now(&self) -> Ns {
        monotonic()
    }

    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        let mut accepted = Accepted::default();
        for submission in batch {
            if self.in_flight as usize == self.slots.len() {
                break;
            }
            match self.start(now, submission) {
                None => {
                    self.in_flight += 1;
                    accepted.queued += 1;
                }
                Some(outcome) => {
                    let completed = monotonic();
                    let (token, submitted) = (submission.token, now);
                    done.push(Completion { token, submitted, completed, outcome });
                    accepted.done += 1;
                }
            }
        }
        accepted
    }

    fn kick(&mut self) -> Result<(), Error> {
        if self.unsubmitted == 0 { Ok(()) } else { self.enter(0, Ns::MAX) }
    }

    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        let target = done.len() + min.min(self.in_flight) as usize;
        self.drain(done);
        loop {
            let missing = target.saturating_sub(done.len()).min(self.in_flight as usize);
            if missing == 0 && self.unsubmitted == 0 {
                return Ok(());
            }
            self.enter(missing as u32, until)?;
            self.drain(done);
            if missing == 0 || (until != Ns::MAX && monotonic() >= until) {
                return Ok(());
            }
        }
    }

    #[inline]
    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        Some(self.buffers.slot(token))
    }

    fn sleep_until(&mut self, instant: Ns) {
        sleep_until(instant);
    }
}

impl Drop for UringLane {
    /// The kernel may still write into the buffers of ops in flight: wait for them.
    fn drop(&mut self) {
        let mut rest = Vec::new();
        while self.in_flight > 0 {
            if self.reap(self.in_flight, Ns::MAX, &mut rest).is_err() {
                // The ring is broken: leave the memory to the process's end rather than free it.
                std::process::abort();
            }
        }
    }
}
