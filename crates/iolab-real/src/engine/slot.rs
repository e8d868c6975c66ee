//! Op in flight in a queue slot, in the engines that queue.

use iolab_model::op::{Handle, Op, Position, Submission, Transfer, TransferFlags};
use iolab_model::{Accepted, Bytes, Capabilities, Completion, Ns, error::Errno};

use super::synchronous::accepted_flags;
use crate::buffer::Buffers;
use crate::clock::monotonic;
use crate::files::Files;

/// An op in flight.
#[derive(Clone, Copy)]
pub struct Slot {
    /// Time at which the lane took it.
    pub submitted: Ns,
    /// Work to be done.
    pub work: Work,
    /// `RWF_*` of preadv2(2).
    pub flags: libc::c_int,
    /// Bytes moved so far: short transfers go round again.
    pub done: u64,
    /// Return of the call that handed it over last; 0: not kept.
    pub handed_over: Ns,
}

/// An op that is queued; all others are plain system calls.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "as the ops of the same names")]
pub enum Work {
    Read(Transfer),
    Write(Transfer),
    Flush { handle: Handle, is_data_only: bool },
}

/// Takes ops from the front of a batch while there is room for ops in flight.
///
/// `start` answers `None` for an op that is queued, and how it ended for one that was done at once.
#[inline]
pub fn take_batch(
    (now, room): (Ns, usize),
    batch: &[Submission],
    done: &mut Vec<Completion>,
    mut start: impl FnMut(&Submission) -> Option<Result<Bytes, Errno>>,
) -> Accepted {
    let mut accepted = Accepted::default();
    for submission in batch {
        if accepted.queued == room {
            break;
        }
        match start(submission) {
            None => accepted.queued += 1,
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

impl Slot {
    /// Nothing is in flight.
    pub const FREE: Self = Self {
        submitted: Ns(0),
        work: Work::Flush { handle: Handle(u32::MAX), is_data_only: false },
        flags: 0,
        done: 0,
        handed_over: Ns(0),
    };

    /// Begins at `now`, unless a part of it is done.
    #[inline]
    pub fn begin_at(&mut self, now: Ns) {
        if self.done == 0 {
            self.submitted = now;
        }
    }

    /// From the submission to the return of the call that handed it over; 0: not kept.
    #[inline]
    pub fn submission_ns(&self) -> Ns {
        self.handed_over.since(self.submitted)
    }

    /// Meaning of an op for the queue; `None` if it is a plain system call.
    ///
    /// The buffer of a write is stamped.
    #[inline]
    pub fn new(
        now: Ns,
        submission: &Submission,
        files: &mut Files,
        buffers: &mut Buffers,
    ) -> Option<Result<Self, Errno>> {
        let (work, transfer) = match submission.op {
            Op::Read(transfer) => (Work::Read(transfer), transfer),
            Op::Write(transfer) => (Work::Write(transfer), transfer),
            // Whoever only reads a device has nothing to make durable, and a plain call knows.
            Op::Fsync { handle } | Op::Fdatasync { handle }
                if files.get(handle).is_ok_and(|opened| !opened.is_writable()) =>
            {
                return None;
            }
            Op::Fsync { handle } | Op::Fdatasync { handle } => {
                let is_data_only = matches!(submission.op, Op::Fdatasync { .. });
                let work = Work::Flush { handle, is_data_only };
                return Some(Ok(Self { submitted: now, work, ..Self::FREE }));
            }
            _ => return None,
        };
        let length = transfer.length.0 as usize;
        if length > buffers.size() {
            return Some(Err(Errno::EINVAL));
        }
        let mut flags = 0;
        if transfer.call_bytes > 0 {
            return Some(Err(Errno::EOPNOTSUPP));
        }
        if transfer.vectors > 1 || !transfer.flags.is_empty() {
            match accepted_flags(&transfer, files.can()) {
                Ok(accepted) => flags = accepted,
                Err(errno) => return Some(Err(errno)),
            }
        }
        if transfer.at == Position::End {
            if matches!(work, Work::Read(_)) {
                return Some(Err(Errno::EINVAL));
            }
            flags |= libc::RWF_APPEND;
        }
        if matches!(work, Work::Write(_)) {
            buffers.outgoing(submission.token, length);
        }
        Some(Ok(Self { submitted: now, work, flags, ..Self::FREE }))
    }

    /// Takes the kernel's answer; `Some` when the op has ended (complete, at the end of the file,
    /// or failed), `None` when it must go round again.
    #[inline]
    pub fn advance(&mut self, answer: i64) -> Option<Result<Bytes, Errno>> {
        if answer < 0 {
            let errno = Errno((-answer) as i32);
            return (!self.is_transient(errno)).then_some(Err(errno));
        }
        self.done += answer as u64;
        match self.work {
            Work::Flush { .. } => Some(Ok(Bytes(0))),
            Work::Read(transfer) | Work::Write(transfer) => {
                let has_ended = self.done >= transfer.length.0 || answer == 0;
                has_ended.then_some(Ok(Bytes(self.done)))
            }
        }
    }

    /// Tell whether asking again helps; who asks not to wait wants to know.
    fn is_transient(&self, errno: Errno) -> bool {
        match (errno.0, self.work) {
            (libc::EAGAIN, Work::Read(transfer) | Work::Write(transfer)) => {
                !transfer.flags.contains(TransferFlags::NO_WAIT)
            }
            (libc::EINTR, _) | (libc::EAGAIN, Work::Flush { .. }) => true,
            _ => false,
        }
    }
}

/// Abilities of both queueing engines.
pub const ABILITIES: Capabilities = Capabilities {
    is_asynchronous: true,
    can_verify: true,
    has_namespace: true,
    has_direct: true,
    has_append: true,
    has_lock: true,
    has_vectors: true,
    has_flags: true,
    has_allocate: true,
    has_deallocate: true,
    has_zeroing: true,
    has_end: true,
    has_links: true,
    ..Capabilities::MINIMAL
};
