//! The lane of all `io_uring` engines: rings shared with the kernel.
//!
//! Transfers and flushes are queued; everything else is a plain system call and done at once. The
//! ring is opened by the thread that uses it. An engine says what is different about its ring
//! ([`Flavor`]).

use std::marker::PhantomData;

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use iolab_model::op::{Handle, Op, Position, Token, Transfer, TransferFlags};
use iolab_model::{
    Accepted, Bytes, Capabilities, Completion, Error, Lane, LaneRequest, Ns, Submission, Target,
    error::Errno,
};

use super::ring_setup;
use super::slot::{ABILITIES, Slot, Work, take_batch};
use crate::buffer::Buffers;
use crate::clock::{monotonic, sleep_until};
use crate::files::Files;
use crate::priority;
use crate::vectors::Vectors;

/// Largest queue of these engines; the kernel allows 32768 entries.
const DEPTH_MAX: u32 = 4096;
/// Number of times that a lane looks for completions before it sleeps, if a kernel thread makes
/// them.
const LOOKS_MAX: u32 = 4000;

/// Difference of an engine's ring from others.
pub trait Flavor: Send + Sync {
    /// The engine's name.
    const NAME: &'static str;
    /// Buffers and files are registered with the ring.
    const IS_REGISTERED: bool = false;
    /// A kernel thread takes submissions.
    const HAS_KERNEL_THREAD: bool = false;
    /// Completions are polled for at the device.
    const IS_POLLED: bool = false;

    /// Abilities of the engine.
    const CAPABILITIES: Capabilities =
        Capabilities { depth_max: DEPTH_MAX, has_kernel_threads: true, ..ABILITIES };

    /// Tell whether the files of a lane can be reached this way.
    fn check(request: &LaneRequest) -> Result<(), Error> {
        let _ = request;
        Ok(())
    }
}

/// A target with rings.
pub struct Ring<F>(PhantomData<F>);

impl<F> Ring<F> {
    pub(super) const fn new() -> Self {
        Self(PhantomData)
    }
}

/// A ring with its files and buffers.
pub struct RingLane<F> {
    ring: IoUring,
    files: Files,
    buffers: Buffers,
    vectors: Vectors,
    slots: Vec<Slot>,
    /// Queued and not yet reaped.
    in_flight: u32,
    /// Of these, entries that the kernel has not been told of.
    unsubmitted: u32,
    /// Tokens of these, and most of them in one call, where times of handing over are kept.
    fresh: Option<(Vec<Token>, u32)>,
    flavor: PhantomData<F>,
}

impl<F: Flavor> Target for Ring<F> {
    type Lane = RingLane<F>;

    fn name(&self) -> &'static str {
        F::NAME
    }

    fn capabilities(&self) -> Capabilities {
        F::CAPABILITIES
    }

    fn preferred_bytes(&self, directory: &std::path::Path) -> Option<Bytes> {
        crate::files::preferred_bytes(directory)
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("engine".into(), F::NAME.into())]
    }

    fn open(&self, request: &LaneRequest) -> Result<RingLane<F>, Error> {
        F::check(request)?;
        priority::apply(request)?;
        let mut buffers = Buffers::new(request)?;
        let ring = ring_setup::set_up::<F>(request)?;
        if F::IS_REGISTERED {
            ring_setup::register::<F>(&ring, &mut buffers, request.depth)?;
        }
        Ok(RingLane {
            ring,
            files: Files::new(request.paths.clone(), F::CAPABILITIES),
            buffers,
            vectors: Vectors::default(),
            slots: vec![Slot::FREE; request.depth as usize],
            in_flight: 0,
            unsubmitted: 0,
            fresh: None,
            flavor: PhantomData,
        })
    }
}

impl<F: Flavor> RingLane<F> {
    /// Queues what a slot has still to do.
    fn push(&mut self, token: Token) -> Result<(), Errno> {
        let slot = self.slots[token.0 as usize];
        let mut entry = match slot.work {
            Work::Flush { handle, is_data_only } => {
                let fd = self.descriptor(handle)?;
                let flags = if is_data_only { FsyncFlags::DATASYNC } else { FsyncFlags::empty() };
                opcode::Fsync::new(Fd(fd)).flags(flags).build()
            }
            Work::Read(transfer) => self.entry::<false>(token, &slot, &transfer)?,
            Work::Write(transfer) => self.entry::<true>(token, &slot, &transfer)?,
        };
        let mut flags = squeue::Flags::empty();
        flags.set(squeue::Flags::FIXED_FILE, F::IS_REGISTERED);
        if let Work::Read(transfer) | Work::Write(transfer) = slot.work {
            flags.set(squeue::Flags::ASYNC, transfer.is_of_kernel_thread);
        }
        entry = entry.flags(flags);
        self.enqueue(&entry.user_data(u64::from(token.0)));
        if let Some((fresh, _)) = &mut self.fresh {
            fresh.push(token);
        }
        Ok(())
    }

    /// The entry of a transfer; what is left after a short one is one part.
    #[inline]
    fn entry<const IS_WRITE: bool>(
        &mut self,
        token: Token,
        slot: &Slot,
        transfer: &Transfer,
    ) -> Result<squeue::Entry, Errno> {
        let fd = Fd(self.descriptor(transfer.handle)?);
        let at = match transfer.at {
            Position::At(at) => at.0 + slot.done,
            // The file's own position (IORING_FEAT_RW_CUR_POS).
            Position::Current => u64::MAX,
            // The flag of the transfer says where.
            Position::End => 0,
        };
        let memory = self.buffers.slot(token);
        let memory = &mut memory[slot.done as usize..transfer.length.0 as usize];
        let (start, length, flags) = (memory.as_mut_ptr(), memory.len() as u32, slot.flags);
        if F::IS_REGISTERED {
            let index = token.0 as u16;
            return Ok(if IS_WRITE {
                let write = opcode::WriteFixed::new(fd, start, length, index);
                write.offset(at).rw_flags(flags).build()
            } else {
                let read = opcode::ReadFixed::new(fd, start, length, index);
                read.offset(at).rw_flags(flags).build()
            });
        }
        if transfer.vectors > 1 && slot.done == 0 {
            let parts = self.vectors.split(token, memory, transfer.vectors)?;
            let (start, count) = (parts.as_ptr(), parts.len() as u32);
            return Ok(if IS_WRITE {
                opcode::Writev::new(fd, start, count).offset(at).rw_flags(flags).build()
            } else {
                opcode::Readv::new(fd, start, count).offset(at).rw_flags(flags).build()
            });
        }
        Ok(if IS_WRITE {
            opcode::Write::new(fd, start, length).offset(at).rw_flags(flags).build()
        } else {
            opcode::Read::new(fd, start, length).offset(at).rw_flags(flags).build()
        })
    }

    /// The handle's descriptor, or its place in the table of registered files.
    #[inline]
    fn descriptor(&mut self, handle: Handle) -> Result<i32, Errno> {
        let fd = self.files.get(handle)?.raw();
        Ok(if F::IS_REGISTERED { handle.0 as i32 } else { fd })
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
        let is_flush = matches!(submission.op, Op::Fsync { .. } | Op::Fdatasync { .. });
        if F::IS_POLLED && is_flush {
            // A polled ring takes nothing but transfers.
            return Some(self.files.perform(&submission.op));
        }
        if let (false, Op::Read(transfer) | Op::Write(transfer)) = (F::IS_POLLED, submission.op)
            && transfer.flags.contains(TransferFlags::HIGH_PRIORITY)
        {
            // Without polling the kernel calls this flag an invalid argument.
            return Some(Err(Errno::EOPNOTSUPP));
        }
        let token = submission.token;
        match Slot::new(now, submission, &mut self.files, &mut self.buffers) {
            None if F::IS_REGISTERED => Some(self.perform_registered(&submission.op)),
            None => Some(self.files.perform(&submission.op)),
            Some(Err(errno)) => Some(Err(errno)),
            Some(Ok(slot)) => {
                self.slots[token.0 as usize] = slot;
                self.push(token).err().map(Err)
            }
        }
    }

    /// A plain system call, with the table of registered files kept up to date.
    fn perform_registered(&mut self, op: &Op) -> Result<Bytes, Errno> {
        match *op {
            Op::Create { handle, .. } | Op::Open { handle, .. } => {
                if handle.0 >= ring_setup::FILES_MAX {
                    return Err(Errno(libc::EMFILE));
                }
                self.files.perform(op)?;
                let fd = self.files.get(handle)?.raw();
                ring_setup::place_file(&self.ring, handle, fd).inspect_err(|_| {
                    let _ = self.files.perform(&Op::Close { handle });
                })?;
                Ok(Bytes(0))
            }
            Op::Close { handle } => {
                self.files.get(handle)?;
                // A registered file would stay open.
                ring_setup::place_file(&self.ring, handle, -1)?;
                self.files.perform(op)
            }
            _ => self.files.perform(op),
        }
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
            } else if min > 0 || F::HAS_KERNEL_THREAD {
                self.ring.submit_and_wait(min as usize)
            } else {
                // Deferred completions are only delivered to a caller who asks for events.
                const GETEVENTS: u32 = 1; // Linux include/uapi/linux/io_uring.h
                let submitter = self.ring.submitter();
                // SAFETY: no argument structure is passed.
                unsafe { submitter.enter::<libc::sigset_t>(self.unsubmitted, 0, GETEVENTS, None) }
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

    /// Submits everything without waiting, and notes when it was handed over.
    fn hand_over(&mut self) -> Result<(), Error> {
        let mut began = None;
        while let Some((fresh, group)) = &mut self.fresh
            && self.unsubmitted > 0
        {
            // A kernel thread is given all of it, and takes it when it likes.
            let count = if F::HAS_KERNEL_THREAD { u32::MAX } else { *group };
            let count = count.min(self.unsubmitted);
            if let Some(now) = began {
                for token in fresh.iter().take(count as usize) {
                    self.slots[token.0 as usize].begin_at(now);
                }
            }
            let before = self.unsubmitted;
            self.enter_some(count)?;
            let taken = if F::HAS_KERNEL_THREAD { before } else { before - self.unsubmitted };
            if taken == 0 {
                return Ok(());
            }
            let now = monotonic();
            if let Some((fresh, _)) = &mut self.fresh {
                for token in fresh.drain(..(taken as usize).min(fresh.len())) {
                    self.slots[token.0 as usize].handed_over = now;
                }
            }
            began = Some(now);
            if F::HAS_KERNEL_THREAD {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Submits so many of the entries that the kernel has not been told of, or fewer if it is busy.
    fn enter_some(&mut self, count: u32) -> Result<(), Error> {
        if count == self.unsubmitted {
            return self.enter(0, Ns::MAX);
        }
        // SAFETY: no argument structure is passed.
        let result = unsafe { self.ring.submitter().enter::<libc::sigset_t>(count, 0, 0, None) };
        self.unsubmitted = self.ring.submission().len() as u32;
        match result.map_err(|error| error.raw_os_error()) {
            Ok(_) | Err(Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => Ok(()),
            Err(errno) => Err(Error::System {
                call: "io_uring_enter",
                subject: format!("{} ops in flight", self.in_flight),
                errno: Errno(errno.unwrap_or(Errno::EIO.0)),
            }),
        }
    }

    /// Looks for completions that a kernel thread makes: a system call would cost more than it.
    fn look(&mut self) {
        for _ in 0..LOOKS_MAX {
            if !self.ring.completion().is_empty() {
                return;
            }
            std::hint::spin_loop();
        }
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
            let submitted = slot.submitted;
            let outcome = match slot.advance(i64::from(entry.result())) {
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

impl<F: Flavor> Lane for RingLane<F> {
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
        let room = self.slots.len() - self.in_flight as usize;
        let accepted =
            take_batch((now, room), batch, done, |submission| self.start(now, submission));
        self.in_flight += accepted.queued as u32;
        accepted
    }

    fn kick(&mut self) -> Result<(), Error> {
        match (self.unsubmitted, &self.fresh) {
            (0, _) => Ok(()),
            (_, None) => self.enter(0, Ns::MAX),
            (_, Some(_)) => self.hand_over(),
        }
    }

    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        let target = done.len() + min.min(self.in_flight) as usize;
        self.drain(done);
        if self.unsubmitted > 0 && self.fresh.is_some() {
            self.hand_over()?;
            self.drain(done);
        }
        loop {
            let missing = target.saturating_sub(done.len()).min(self.in_flight as usize);
            if missing == 0 && self.unsubmitted == 0 {
                return Ok(());
            }
            if F::HAS_KERNEL_THREAD && missing > 0 {
                self.kick()?;
                let before = done.len();
                self.look();
                self.drain(done);
                if done.len() > before {
                    continue;
                }
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

    fn time_submissions(&mut self, group: u32) {
        self.fresh = Some((Vec::with_capacity(self.slots.len()), group.max(1)));
    }

    #[inline]
    fn submission_ns(&self, token: Token) -> Ns {
        self.slots[token.0 as usize].submission_ns()
    }
}

impl<F> Drop for RingLane<F> {
    /// The kernel may still write into the buffers of ops in flight: wait for them.
    fn drop(&mut self) {
        while self.in_flight > 0 {
            let ended = self.ring.completion().count() as u32;
            self.in_flight -= ended.min(self.in_flight);
            if ended == 0 && !is_waiting_possible(self.ring.submit_and_wait(1)) {
                // The ring is broken: leave the memory to the process's end rather than free it.
                std::process::abort();
            }
        }
    }
}

fn is_waiting_possible(result: std::io::Result<usize>) -> bool {
    result.map_or_else(
        |error| matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)),
        |_| true,
    )
}
