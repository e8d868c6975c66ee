//! POSIX asynchronous I/O as the C library has it: `aio_read(3)`, `aio_write(3)`, `aio_fsync(3)`,
//! reaped with `aio_error(3)` and `aio_suspend(3)`.
//!
//! glibc serves the calls with threads of the process, one call of a file after the other: a depth
//! above 1 on one file queues in user space, and the device sees one transfer at a time. That is
//! its nature, and what a comparison with it is about. The threads do not survive a fork, so that
//! its workers are threads. Transfers and flushes are queued; everything
//! else is a plain system call and done at once. A transfer at the file position starts where the
//! lane's own ended. Left out: flags and vectors, which the interface has not, writes to the end of
//! a file, streams and mapped files.
//!
//! Source: aio(7); glibc 2.36, manual, "Perform I/O Operations in Parallel".

use iolab_model::op::{Position, Token, Transfer};
use iolab_model::{
    Accepted, Bytes, Capabilities, Completion, Error, Lane, LaneRequest, Ns, Submission, Target,
    error::Errno,
};

use super::slot::{ABILITIES, Slot, Work, take_batch};
use crate::affinity::last_errno;
use crate::buffer::Buffers;
use crate::clock::{monotonic, sleep_until};
use crate::files::Files;
use crate::priority;

/// Largest queue of this engine: every look at the ends goes through all of it.
const DEPTH_MAX: u32 = 1024;

const NAME: &str = "posixaio";
const CAPABILITIES: Capabilities = Capabilities {
    depth_max: DEPTH_MAX,
    has_vectors: false,
    has_flags: false,
    has_end: false,
    ..ABILITIES
};

/// The target.
pub const fn target() -> PosixAio {
    PosixAio
}

/// The `posixaio` target.
pub struct PosixAio;

/// Control blocks and buffers, and what is in flight.
pub struct PosixAioLane {
    files: Files,
    buffers: Buffers,
    slots: Vec<Slot>,
    /// One per slot; never moved, because the C library is given their addresses.
    controls: Box<[libc::aiocb]>,
    /// Tokens of what is in flight, in order of submission.
    active: Vec<Token>,
    /// Addresses of the control blocks of these, for waiting.
    awaited: Vec<*const libc::aiocb>,
    /// Times of handing over are kept.
    is_timed: bool,
}

/// A control block of nothing.
fn blank() -> libc::aiocb {
    // SAFETY: the structure is plain numbers and pointers, for which zero is a value; zero in
    // `sigev_notify` is SIGEV_SIGNAL, which `push` replaces before anything is submitted.
    unsafe { std::mem::zeroed() }
}

impl Target for PosixAio {
    type Lane = PosixAioLane;

    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn preferred_bytes(&self, directory: &std::path::Path) -> Option<Bytes> {
        crate::files::preferred_bytes(directory)
    }

    fn survives_forks(&self) -> bool {
        false
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("engine".into(), NAME.into())]
    }

    fn open(&self, request: &LaneRequest) -> Result<PosixAioLane, Error> {
        priority::apply(request)?;
        let depth = request.depth as usize;
        Ok(PosixAioLane {
            files: Files::new(request.paths.clone(), CAPABILITIES),
            buffers: Buffers::new(request)?,
            slots: vec![Slot::FREE; depth],
            controls: (0..depth).map(|_| blank()).collect(),
            active: Vec::with_capacity(depth),
            awaited: Vec::with_capacity(depth),
            is_timed: false,
        })
    }
}

impl PosixAioLane {
    /// Hands over what a slot has still to do.
    fn push(&mut self, token: Token) -> Result<(), Errno> {
        let work = self.slots[token.0 as usize].work;
        let answer = match work {
            Work::Flush { handle, is_data_only } => {
                let fd = self.files.get(handle)?.raw();
                let how = if is_data_only { libc::O_DSYNC } else { libc::O_SYNC };
                let control = self.control(token, fd);
                // SAFETY: the control block stays in place until its answer was taken.
                unsafe { libc::aio_fsync(how, control) }
            }
            Work::Read(transfer) => {
                let control = self.transfer(token, &transfer)?;
                // SAFETY: as above; the buffer belongs to this lane and to this slot, which stays
                // taken until then, and dropping the lane waits.
                unsafe { libc::aio_read(control) }
            }
            Work::Write(transfer) => {
                let control = self.transfer(token, &transfer)?;
                // SAFETY: as above.
                unsafe { libc::aio_write(control) }
            }
        };
        if answer != 0 {
            return Err(last_errno());
        }
        if self.is_timed {
            self.slots[token.0 as usize].handed_over = monotonic();
        }
        Ok(())
    }

    /// The empty control block of a slot, for a descriptor.
    fn control(&mut self, token: Token, fd: i32) -> &mut libc::aiocb {
        let control = &mut self.controls[token.0 as usize];
        *control = blank();
        control.aio_fildes = fd;
        control.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        control
    }

    /// The control block of a transfer, or of what is left of it.
    fn transfer(&mut self, token: Token, transfer: &Transfer) -> Result<&mut libc::aiocb, Errno> {
        let slot = &mut self.slots[token.0 as usize];
        let file = self.files.get(transfer.handle)?;
        let start = file.offset(transfer.at);
        if transfer.at == Position::Current {
            // Asynchronous I/O has no file position: the next transfer starts where this ends.
            file.position = start + transfer.length.0;
            if let Work::Read(kept) | Work::Write(kept) = &mut slot.work {
                kept.at = Position::At(Bytes(start));
            }
        }
        let (fd, done) = (file.raw(), slot.done);
        let memory = &mut self.buffers.slot(token)[done as usize..transfer.length.0 as usize];
        let (memory, length) = (memory.as_mut_ptr(), memory.len());
        let control = self.control(token, fd);
        control.aio_buf = memory.cast();
        control.aio_nbytes = length;
        control.aio_offset = (start + done) as i64;
        Ok(control)
    }

    /// Starts an op; `Some` if it ended at once.
    fn start(&mut self, now: Ns, submission: &Submission) -> Option<Result<Bytes, Errno>> {
        let token = submission.token;
        match Slot::new(now, submission, &mut self.files, &mut self.buffers) {
            None => Some(self.files.perform(&submission.op)),
            Some(Err(errno)) => Some(Err(errno)),
            Some(Ok(slot)) if slot.flags != 0 => Some(Err(Errno::EOPNOTSUPP)),
            Some(Ok(slot)) => {
                let submitted = if self.is_timed { monotonic() } else { now };
                self.slots[token.0 as usize] = Slot { submitted, ..slot };
                match self.push(token) {
                    Ok(()) => {
                        self.active.push(token);
                        None
                    }
                    Err(errno) => Some(Err(errno)),
                }
            }
        }
    }

    /// Takes what has ended; short transfers go round again.
    fn drain(&mut self, done: &mut Vec<Completion>) {
        let mut index = 0;
        let mut completed = None;
        while let Some(token) = self.active.get(index).copied() {
            let place = token.0 as usize;
            let control = &raw mut self.controls[place];
            // SAFETY: the control block is that of a request in flight.
            let state = unsafe { libc::aio_error(control) };
            if state == libc::EINPROGRESS {
                index += 1;
                continue;
            }
            // SAFETY: the request has ended, and its answer is taken once.
            let moved = unsafe { libc::aio_return(control) };
            let answer = if state == 0 { moved as i64 } else { -i64::from(state) };
            let outcome = match self.slots[place].advance(answer) {
                Some(outcome) => outcome,
                None => match self.push(token) {
                    Ok(()) => {
                        index += 1;
                        continue;
                    }
                    Err(errno) => Err(errno),
                },
            };
            self.active.remove(index);
            let completed = *completed.get_or_insert_with(monotonic);
            let submitted = self.slots[place].submitted;
            done.push(Completion { token, submitted, completed, outcome });
        }
    }

    /// Waits until something in flight has ended, but not beyond `until`.
    fn wait(&mut self, until: Ns) -> Result<(), Error> {
        self.awaited.clear();
        let controls = &self.controls;
        self.awaited.extend(self.active.iter().map(|token| &raw const controls[token.0 as usize]));
        let left = if until == Ns::MAX { 0 } else { until.since(monotonic()).0 };
        let time = libc::timespec {
            tv_sec: (left / 1_000_000_000) as i64,
            tv_nsec: (left % 1_000_000_000) as i64,
        };
        let time = if until == Ns::MAX { std::ptr::null() } else { &raw const time };
        let count = self.awaited.len() as i32;
        // SAFETY: the list holds addresses of control blocks of requests in flight; `time` is null
        // or a valid timespec.
        let answer = unsafe { libc::aio_suspend(self.awaited.as_ptr(), count, time) };
        let errno = if answer == 0 { Errno(0) } else { last_errno() };
        match errno.0 {
            0 | libc::EINTR | libc::EAGAIN => Ok(()),
            _ => {
                let subject = format!("{} ops in flight", self.active.len());
                Err(Error::System { call: "aio_suspend", subject, errno })
            }
        }
    }
}

impl Lane for PosixAioLane {
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
        let room = self.slots.len() - self.active.len();
        take_batch((now, room), batch, done, |submission| self.start(now, submission))
    }

    fn kick(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        let target = done.len() + (min as usize).min(self.active.len());
        loop {
            self.drain(done);
            let is_late = until != Ns::MAX && monotonic() >= until;
            if done.len() >= target || self.active.is_empty() || is_late {
                return Ok(());
            }
            self.wait(until)?;
        }
    }

    fn in_flight(&self) -> u32 {
        self.active.len() as u32
    }

    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        Some(self.buffers.slot(token))
    }

    fn sleep_until(&mut self, instant: Ns) {
        sleep_until(instant);
    }

    /// Each op is handed over by a call of its own.
    fn time_submissions(&mut self, _: u32) {
        self.is_timed = true;
    }

    fn submission_ns(&self, token: Token) -> Ns {
        self.slots[token.0 as usize].submission_ns()
    }
}

impl Drop for PosixAioLane {
    /// The C library may still write into the buffers of ops in flight: wait for them.
    fn drop(&mut self) {
        let mut done = Vec::with_capacity(self.active.len());
        while !self.active.is_empty() {
            self.drain(&mut done);
            if !self.active.is_empty() && self.wait(Ns::MAX).is_err() {
                // Leave the memory to the process's end rather than free it.
                std::process::abort();
            }
        }
    }
}
