//! Linux's older asynchronous I/O: `io_submit(2)` and `io_getevents(2)`, without a library.
//!
//! Asynchronous only with direct I/O: through the page cache everything happens inside `io_submit`,
//! and the depth is never reached (caveat `libaio_buffered`). Transfers and flushes are queued and
//! submitted in batches; everything else is a plain system call and done at once. Vectored
//! transfers and flags work; a transfer at the file position starts where the lane's own ended.
//! Left out: reading completions from the ring in user memory, polled completion, streams and
//! mapped files.
//!
//! Source: `include/uapi/linux/aio_abi.h`, `io_submit(2)`.

use iolab_model::op::{Position, Token, Transfer};
use iolab_model::{
    Accepted, Bytes, Capabilities, Completion, Error, Lane, LaneRequest, Ns, Submission, Target,
    error::Errno,
};

use super::refusal::refused;
use super::slot::{ABILITIES, Slot, Work, take_batch};
use crate::affinity::last_errno;
use crate::buffer::Buffers;
use crate::clock::{monotonic, sleep_until};
use crate::files::Files;
use crate::priority;
use crate::vectors::Vectors;

/// Largest queue of this engine; `fs.aio-max-nr` (65536) is shared by the whole system.
const DEPTH_MAX: u32 = 4096;

const NAME: &str = "libaio";
const CAPABILITIES: Capabilities = Capabilities { depth_max: DEPTH_MAX, ..ABILITIES };

/// The target.
pub const fn target() -> Libaio {
    Libaio
}

/// The `libaio` target.
pub struct Libaio;

/// `IOCB_CMD_*`.
mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const SYNC: u16 = 2;
    pub const DATA_SYNC: u16 = 3;
    pub const READ_VECTORS: u16 = 7;
    pub const WRITE_VECTORS: u16 = 8;
}

/// `struct iocb`; the order of `key` and `flags` is that of little-endian machines.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Control {
    token: u64,
    key: u32,
    flags: u32,
    command: u16,
    priority: i16,
    fd: u32,
    memory: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    more_flags: u32,
    event_fd: u32,
}

const _: () = assert!(size_of::<Control>() == 64 && cfg!(target_endian = "little"));

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    token: u64,
    control: u64,
    answer: i64,
    second_answer: i64,
}

/// A completion queue of the kernel; dropping it waits for what is in flight.
struct Context(libc::c_ulong);

impl Context {
    fn new(depth: u32) -> Result<Self, Error> {
        let mut id: libc::c_ulong = 0;
        // SAFETY: `id` is writable during the call and zero, as the call demands.
        let result =
            unsafe { libc::syscall(libc::SYS_io_setup, libc::c_long::from(depth), &raw mut id) };
        if result == 0 { Ok(Self(id)) } else { Err(refused(NAME, "io_setup", last_errno())) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is ours; after this the kernel touches no buffer of its ops.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

/// A completion queue with its files and buffers.
pub struct LibaioLane {
    /// First, so that it is dropped before the buffers.
    context: Context,
    files: Files,
    buffers: Buffers,
    vectors: Vectors,
    slots: Vec<Slot>,
    /// One per slot; never moved, because the kernel is given their addresses.
    controls: Box<[Control]>,
    /// Addresses of the controls that the kernel has not been told of, in order.
    unsubmitted: Vec<usize>,
    events: Vec<Event>,
    /// Ended at submission.
    ended: Vec<Completion>,
    /// Queued and not yet reaped.
    in_flight: u32,
    /// Most ops of a call that hands them over, where its times are kept.
    group: Option<usize>,
}

impl Target for Libaio {
    type Lane = LibaioLane;

    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn preferred_bytes(&self, directory: &std::path::Path) -> Option<Bytes> {
        crate::files::preferred_bytes(directory)
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("engine".into(), NAME.into())]
    }

    fn open(&self, request: &LaneRequest) -> Result<LibaioLane, Error> {
        priority::apply(request)?;
        let depth = request.depth as usize;
        Ok(LibaioLane {
            context: Context::new(request.depth)?,
            files: Files::new(request.paths.clone(), CAPABILITIES),
            buffers: Buffers::new(request)?,
            vectors: Vectors::default(),
            slots: vec![Slot::FREE; depth],
            controls: vec![Control::default(); depth].into_boxed_slice(),
            unsubmitted: Vec::with_capacity(depth),
            events: vec![Event::default(); depth],
            ended: Vec::with_capacity(depth),
            in_flight: 0,
            group: None,
        })
    }
}

impl LibaioLane {
    /// Queues what a slot has still to do.
    fn push(&mut self, token: Token) -> Result<(), Errno> {
        let slot = self.slots[token.0 as usize];
        let control = match slot.work {
            Work::Flush { handle, is_data_only } => Control {
                fd: self.files.get(handle)?.raw() as u32,
                command: if is_data_only { command::DATA_SYNC } else { command::SYNC },
                ..Control::default()
            },
            Work::Read(transfer) => {
                self.control(token, &transfer, [command::READ, command::READ_VECTORS])?
            }
            Work::Write(transfer) => {
                self.control(token, &transfer, [command::WRITE, command::WRITE_VECTORS])?
            }
        };
        let place = &mut self.controls[token.0 as usize];
        *place = Control { token: u64::from(token.0), ..control };
        self.unsubmitted.push(std::ptr::from_mut(place) as usize);
        Ok(())
    }

    /// The control block of a transfer; what is left after a short one is one part.
    #[inline]
    fn control(
        &mut self,
        token: Token,
        transfer: &Transfer,
        [plain, vectored]: [u16; 2],
    ) -> Result<Control, Errno> {
        let slot = &mut self.slots[token.0 as usize];
        let file = self.files.get(transfer.handle)?;
        let start = file.offset(transfer.at);
        if transfer.at == Position::Current {
            // Asynchronous I/O has no file position: the next transfer starts where this ends.
            file.position = start + transfer.length.0;
            let at = Position::At(Bytes(start));
            match &mut slot.work {
                Work::Read(kept) | Work::Write(kept) => kept.at = at,
                Work::Flush { .. } => {}
            }
        }
        let memory = self.buffers.slot(token);
        let memory = &mut memory[slot.done as usize..transfer.length.0 as usize];
        let mut control = Control {
            fd: file.raw() as u32,
            flags: slot.flags as u32,
            command: plain,
            memory: memory.as_mut_ptr() as u64,
            length: memory.len() as u64,
            offset: (start + slot.done) as i64,
            ..Control::default()
        };
        if transfer.vectors > 1 && slot.done == 0 {
            let parts = self.vectors.split(token, memory, transfer.vectors)?;
            control.command = vectored;
            (control.memory, control.length) = (parts.as_ptr() as u64, parts.len() as u64);
        }
        Ok(control)
    }

    /// Starts an op; `Some` if it ended at once.
    #[inline]
    fn start(&mut self, now: Ns, submission: &Submission) -> Option<Result<Bytes, Errno>> {
        match Slot::new(now, submission, &mut self.files, &mut self.buffers) {
            None => Some(self.files.perform(&submission.op)),
            Some(Err(errno)) => Some(Err(errno)),
            Some(Ok(slot)) => {
                self.slots[submission.token.0 as usize] = slot;
                self.push(submission.token).err().map(Err)
            }
        }
    }

    /// Hands everything over, or as much as the kernel takes while it has work of ours.
    ///
    /// An op that is refused at submission has ended; the others go on.
    fn submit(&mut self) {
        let mut began = None;
        while !self.unsubmitted.is_empty() {
            let count = self.unsubmitted.len().min(self.group.unwrap_or(usize::MAX));
            let list = self.unsubmitted.as_ptr();
            if let Some(now) = began {
                self.begin_now(count, now);
            }
            // SAFETY: the list holds addresses of control blocks that stay in place, with buffers
            // that belong to this lane and to slots that stay taken until they are reaped.
            let taken = unsafe { libc::syscall(libc::SYS_io_submit, self.context.0, count, list) };
            if taken > 0 {
                if self.group.is_some() {
                    began = Some(self.note_handing_over(taken as usize));
                }
                self.unsubmitted.drain(..taken as usize);
                continue;
            }
            let errno = if taken == 0 { Errno(libc::EAGAIN) } else { last_errno() };
            let waiting = self.unsubmitted.len();
            let is_kernel_busy = self.in_flight as usize > waiting + self.ended.len();
            match errno.0 {
                libc::EINTR => {}
                libc::EAGAIN if is_kernel_busy => return,
                _ => self.fail_first(errno),
            }
        }
    }

    /// Notes when the first ops of the list were handed over.
    fn note_handing_over(&mut self, count: usize) -> Ns {
        let now = monotonic();
        for place in 0..count {
            let index = self.index_of(self.unsubmitted[place]);
            self.slots[index].handed_over = now;
        }
        now
    }

    /// The first ops of the list begin with the call that hands them over.
    fn begin_now(&mut self, count: usize, now: Ns) {
        for place in 0..count {
            let index = self.index_of(self.unsubmitted[place]);
            self.slots[index].begin_at(now);
        }
    }

    /// Slot of the control block at an address.
    fn index_of(&self, address: usize) -> usize {
        (address - self.controls.as_ptr() as usize) / size_of::<Control>()
    }

    /// Ends the op that the kernel refused to take.
    #[cold]
    fn fail_first(&mut self, errno: Errno) {
        let address = self.unsubmitted.remove(0);
        let index = self.index_of(address);
        self.ended.push(Completion {
            token: Token(index as u32),
            submitted: self.slots[index].submitted,
            completed: monotonic(),
            outcome: Err(errno),
        });
    }

    /// Waits for `min` completions, until `until`, and takes what there is; short transfers go
    /// round again.
    fn collect(&mut self, min: usize, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        let left = if min == 0 { 0 } else { until.since(monotonic_unless_forever(until)).0 };
        let time = libc::timespec {
            tv_sec: (left / 1_000_000_000) as i64,
            tv_nsec: (left % 1_000_000_000) as i64,
        };
        let is_forever = min > 0 && until == Ns::MAX;
        let time = if is_forever { std::ptr::null() } else { &raw const time };
        let (room, events) = (self.events.len(), self.events.as_mut_ptr());
        // SAFETY: `events` has room for `room` events; `time` is null or a valid timespec.
        let count = unsafe {
            libc::syscall(libc::SYS_io_getevents, self.context.0, min, room, events, time)
        };
        if count < 0 {
            let errno = last_errno();
            let subject = format!("{} ops in flight", self.in_flight);
            let failed = Error::System { call: "io_getevents", subject, errno };
            return if errno.0 == libc::EINTR { Ok(()) } else { Err(failed) };
        }
        let completed = monotonic();
        for index in 0..count as usize {
            let Event { token, answer, .. } = self.events[index];
            let token = Token(token as u32);
            let slot = &mut self.slots[token.0 as usize];
            let submitted = slot.submitted;
            let outcome = match slot.advance(answer) {
                Some(outcome) => outcome,
                None => match self.push(token) {
                    Ok(()) => continue,
                    Err(errno) => Err(errno),
                },
            };
            self.in_flight -= 1;
            done.push(Completion { token, submitted, completed, outcome });
        }
        Ok(())
    }
}

/// The clock is not read where nobody looks at it.
fn monotonic_unless_forever(until: Ns) -> Ns {
    if until == Ns::MAX { Ns::MAX } else { monotonic() }
}

impl Lane for LibaioLane {
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
        self.submit();
        Ok(())
    }

    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        let target = done.len() + min.min(self.in_flight) as usize;
        loop {
            self.submit();
            self.in_flight -= self.ended.len() as u32;
            done.append(&mut self.ended);
            let missing = target.saturating_sub(done.len());
            let in_kernel = self.in_flight as usize - self.unsubmitted.len();
            if in_kernel > 0 {
                self.collect(missing.min(in_kernel), until, done)?;
            }
            let is_late = until != Ns::MAX && monotonic() >= until;
            if (done.len() >= target && self.unsubmitted.is_empty()) || is_late {
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
        self.group = Some(group.max(1) as usize);
    }

    #[inline]
    fn submission_ns(&self, token: Token) -> Ns {
        self.slots[token.0 as usize].submission_ns()
    }
}
