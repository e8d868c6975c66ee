//! What the engines that finish an op before they return have in common.

use std::marker::PhantomData;

use iolab_model::op::{Op, Position, Token, Transfer};
use iolab_model::{
    Accepted, Bytes, Capabilities, Completion, Error, Lane, LaneRequest, Ns, Submission, Target,
    error::Errno,
};

use crate::affinity::last_errno;
use crate::buffer::Buffers;
use crate::clock::{monotonic, sleep_until};
use crate::files::{Files, Opened};
use crate::priority;

/// How a synchronous engine moves bytes.
pub trait Method: Send + Sync {
    /// Its name.
    const NAME: &'static str;

    /// One system call; answers like read(2): bytes moved, or negative with errno.
    fn read(file: &mut Opened, at: Position, buffer: &mut [u8]) -> isize;

    /// One system call; answers like write(2).
    fn write(file: &mut Opened, at: Position, buffer: &[u8]) -> isize;
}

/// A target of a synchronous engine.
pub struct Synchronous<M>(PhantomData<M>);

impl<M> Synchronous<M> {
    pub(super) const fn new() -> Self {
        Self(PhantomData)
    }
}

/// A lane of a synchronous engine.
pub struct SynchronousLane<M> {
    files: Files,
    buffers: Buffers,
    method: PhantomData<M>,
}

impl<M: Method> Target for Synchronous<M> {
    type Lane = SynchronousLane<M>;

    fn name(&self) -> &'static str {
        M::NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            can_verify: true,
            has_namespace: true,
            has_direct: true,
            has_append: true,
            has_allocate: true,
            ..Capabilities::MINIMAL
        }
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("engine".into(), M::NAME.into())]
    }

    fn open(&self, request: &LaneRequest) -> Result<Self::Lane, Error> {
        priority::apply(request)?;
        let files = Files::new(request.paths.clone());
        Ok(SynchronousLane { files, buffers: Buffers::new(request)?, method: PhantomData })
    }
}

impl<M: Method> SynchronousLane<M> {
    #[inline]
    fn perform(&mut self, token: Token, op: &Op) -> Result<Bytes, Errno> {
        match op {
            Op::Read(transfer) => self.read(token, transfer),
            Op::Write(transfer) => self.write(token, transfer),
            other => self.files.perform(other),
        }
    }

    #[inline]
    fn read(&mut self, token: Token, transfer: &Transfer) -> Result<Bytes, Errno> {
        let file = self.files.get(transfer.handle)?;
        let length = transfer.length.0 as usize;
        let buffer = self.buffers.slot(token).get_mut(..length).ok_or(Errno::EINVAL)?;
        let moved = M::read(file, transfer.at, buffer);
        if moved == length as isize {
            return Ok(transfer.length);
        }
        finish(transfer, moved, |at, done| M::read(file, at, &mut buffer[done..]))
    }

    #[inline]
    fn write(&mut self, token: Token, transfer: &Transfer) -> Result<Bytes, Errno> {
        let file = self.files.get(transfer.handle)?;
        let length = transfer.length.0 as usize;
        let buffer = self.buffers.outgoing(token, length).ok_or(Errno::EINVAL)?;
        let moved = M::write(file, transfer.at, buffer);
        if moved == length as isize {
            return Ok(transfer.length);
        }
        finish(transfer, moved, |at, done| M::write(file, at, &buffer[done..]))
    }
}

/// Goes on after a short, interrupted or failed first call, until done or end of file.
#[cold]
fn finish(
    transfer: &Transfer,
    first: isize,
    mut again: impl FnMut(Position, usize) -> isize,
) -> Result<Bytes, Errno> {
    let length = transfer.length.0 as usize;
    let (mut done, mut moved) = (0, first);
    loop {
        match moved {
            0 => return Ok(Bytes(done as u64)),
            1.. => done += moved as usize,
            _ if last_errno().0 == libc::EINTR => {}
            _ => return Err(last_errno()),
        }
        if done == length {
            return Ok(transfer.length);
        }
        let at = match transfer.at {
            Position::At(at) => Position::At(Bytes(at.0 + done as u64)),
            Position::Current => Position::Current,
        };
        moved = again(at, done);
    }
}

impl<M: Method> Lane for SynchronousLane<M> {
    #[inline]
    fn now(&self) -> Ns {
        monotonic()
    }

    #[inline]
    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        let mut submitted = now;
        for submission in batch {
            let outcome = self.perform(submission.token, &submission.op);
            let completed = monotonic();
            done.push(Completion { token: submission.token, submitted, completed, outcome });
            submitted = completed;
        }
        Accepted { done: batch.len(), queued: 0 }
    }

    fn kick(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn reap(&mut self, _: u32, _: Ns, _: &mut Vec<Completion>) -> Result<(), Error> {
        Ok(())
    }

    #[inline]
    fn in_flight(&self) -> u32 {
        0
    }

    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        Some(self.buffers.slot(token))
    }

    fn sleep_until(&mut self, instant: Ns) {
        sleep_until(instant);
    }
}
