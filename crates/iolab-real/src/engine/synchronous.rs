//! Common part of the engines that finish an op before they return.
//!
//! An engine is its system calls ([`Method`]); streams and mapped files are the same in all.

use std::marker::PhantomData;

use iolab_model::op::{Op, Position, Token, Transfer, TransferFlags};
use iolab_model::target::{Run, RunEnd};
use iolab_model::{
    Accepted, Bytes, Capabilities, Completion, Error, Lane, LaneRequest, Ns, Submission, Target,
    error::Errno,
};

use crate::affinity::last_errno;
use crate::buffer::Buffers;
use crate::clock::{LaneClock, sleep_until};
use crate::files::{Files, Opened};
use crate::priority;
use crate::vectors::Vectors;

/// Abilities of every synchronous engine.
pub const ABILITIES: Capabilities = Capabilities {
    can_verify: true,
    has_namespace: true,
    has_direct: true,
    has_append: true,
    has_mapping: true,
    has_stream: true,
    has_lock: true,
    has_allocate: true,
    has_deallocate: true,
    has_zeroing: true,
    has_end: true,
    has_links: true,
    has_small_calls: true,
    ..Capabilities::MINIMAL
};

/// Way in which a synchronous engine moves bytes.
pub trait Method: Send + Sync {
    /// Its name.
    const NAME: &'static str;

    /// Abilities of the engine: [`ABILITIES`], and perhaps more.
    const CAPABILITIES: Capabilities = ABILITIES;

    /// One system call; answers like read(2): bytes moved, or negative with errno.
    fn read(file: &mut Opened, call: &Call<'_>) -> isize;

    /// One system call; answers like write(2).
    fn write(file: &mut Opened, call: &Call<'_>) -> isize;
}

/// A transfer, ready for a system call.
pub struct Call<'a> {
    /// Begin of the transfer.
    pub at: Position,
    /// `RWF_*` of preadv2(2).
    pub flags: libc::c_int,
    /// Memory that is valid during the call, readable and, for a read, writable: one part, unless
    /// the engine can do vectors.
    parts: &'a [libc::iovec],
}

impl Call<'_> {
    /// Address of the first part.
    #[inline]
    pub fn start(&self) -> *mut libc::c_void {
        self.parts[0].iov_base
    }

    /// Length of the first part.
    #[inline]
    pub fn length(&self) -> usize {
        self.parts[0].iov_len
    }

    /// Address and number of the parts.
    #[inline]
    pub fn parts(&self) -> (*const libc::iovec, libc::c_int) {
        (self.parts.as_ptr(), self.parts.len() as libc::c_int)
    }
}

/// The kernel's flags for ours; `None` if one is unknown.
#[inline]
pub fn kernel_flags(flags: TransferFlags) -> Option<libc::c_int> {
    if flags.is_empty() {
        return Some(0);
    }
    // Linux include/uapi/linux/fs.h: RWF_*.
    let table = [
        (TransferFlags::HIGH_PRIORITY, libc::RWF_HIPRI),
        (TransferFlags::DATA_SYNC, libc::RWF_DSYNC),
        (TransferFlags::SYNC, libc::RWF_SYNC),
        (TransferFlags::NO_WAIT, libc::RWF_NOWAIT),
        (TransferFlags::DO_NOT_CACHE, libc::RWF_DONTCACHE),
    ];
    let known = table.iter().fold(TransferFlags::NONE, |all, &(flag, _)| all.with(flag));
    let asked = table.iter().filter(|&&(flag, _)| flags.contains(flag));
    known.contains(flags).then(|| asked.fold(0, |all, &(_, bit)| all | bit))
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
    vectors: Vectors,
    clock: LaneClock,
    method: PhantomData<M>,
}

impl<M: Method> Target for Synchronous<M> {
    type Lane = SynchronousLane<M>;

    fn name(&self) -> &'static str {
        M::NAME
    }

    fn capabilities(&self) -> Capabilities {
        M::CAPABILITIES
    }

    fn preferred_bytes(&self, directory: &std::path::Path) -> Option<Bytes> {
        crate::files::preferred_bytes(directory)
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("engine".into(), M::NAME.into())]
    }

    fn open(&self, request: &LaneRequest) -> Result<Self::Lane, Error> {
        priority::apply(request)?;
        Ok(SynchronousLane {
            files: Files::new(request.paths.clone(), M::CAPABILITIES),
            buffers: Buffers::new(request)?,
            vectors: Vectors::default(),
            clock: LaneClock::new(),
            method: PhantomData,
        })
    }
}

impl<M: Method> SynchronousLane<M> {
    #[inline]
    fn perform(&mut self, token: Token, op: &Op) -> Result<Bytes, Errno> {
        match op {
            Op::Read(transfer) => self.transfer::<false>(token, transfer),
            Op::Write(transfer) if transfer.at == Position::End => self.append(token, transfer),
            Op::Write(transfer) => self.transfer::<true>(token, transfer),
            Op::StreamRead { length, .. } | Op::Touch { length, is_write: false, .. } => {
                let memory = self.buffers.slot(token).get_mut(..length.0 as usize);
                self.files.move_data(op, memory.ok_or(Errno::EINVAL)?)
            }
            Op::StreamWrite { length, .. } | Op::Touch { length, is_write: true, .. } => {
                let memory = self.buffers.outgoing(token, length.0 as usize);
                self.files.move_data(op, memory.ok_or(Errno::EINVAL)?)
            }
            other => self.files.perform(other),
        }
    }

    /// A write to the end of a file, which no engine's own call can do: pwritev2(2) with
    /// `RWF_APPEND`.
    #[cold]
    fn append(&mut self, token: Token, transfer: &Transfer) -> Result<Bytes, Errno> {
        if transfer.vectors > 1 || transfer.call_bytes > 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let flags = kernel_flags(transfer.flags).ok_or(Errno::EINVAL)? | libc::RWF_APPEND;
        let file = self.files.get(transfer.handle)?;
        if !file.is_descriptor() {
            return Err(Errno::EOPNOTSUPP);
        }
        let fd = file.raw();
        let memory = self.buffers.outgoing(token, transfer.length.0 as usize);
        let memory = memory.ok_or(Errno::EINVAL)?;
        let call = |from: usize| {
            let rest = &memory[from..];
            let part = libc::iovec { iov_base: rest.as_ptr() as *mut _, iov_len: rest.len() };
            // SAFETY: the part lies in the slot's buffer, which lives during the call; the offset
            // means nothing beside this flag, but that of -1 would move the file position.
            unsafe { libc::pwritev2(fd, &raw const part, 1, 0, flags) }
        };
        match call(0) {
            moved if moved == memory.len() as isize => Ok(transfer.length),
            moved => finish(transfer, moved, |_, done| call(done)),
        }
    }

    // Every return after a system call is mispredicted ([`crate::kernel`]): this one is saved.
    #[allow(clippy::inline_always, reason = "measured by benches/dialects.py")]
    #[inline(always)]
    fn transfer<const IS_WRITE: bool>(
        &mut self,
        token: Token,
        transfer: &Transfer,
    ) -> Result<Bytes, Errno> {
        let length = transfer.length.0 as usize;
        let is_special =
            transfer.vectors > 1 || !transfer.flags.is_empty() || transfer.call_bytes > 0;
        let file = self.files.get(transfer.handle)?;
        let memory = if IS_WRITE {
            self.buffers.outgoing(token, length)
        } else {
            self.buffers.slot(token).get_mut(..length)
        };
        let memory = memory.ok_or(Errno::EINVAL)?;
        if !file.is_descriptor() {
            // Neither the C library nor a copy has vectors, flags or small calls.
            return match (is_special, IS_WRITE) {
                (true, _) => Err(Errno::EOPNOTSUPP),
                (false, true) => file.write(transfer.at, memory),
                (false, false) => file.read(transfer.at, memory),
            };
        }
        let whole = [libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: length }];
        let (mut parts, mut flags) = (&whole[..], 0);
        if transfer.call_bytes > 0 {
            return call_by_call::<M, IS_WRITE>(file, transfer, memory);
        }
        if is_special {
            flags = accepted_flags(transfer, &M::CAPABILITIES)?;
            if transfer.vectors > 1 {
                parts = self.vectors.split(token, memory, transfer.vectors)?;
            }
        }
        let call = Call { at: transfer.at, flags, parts };
        let moved = if IS_WRITE { M::write(file, &call) } else { M::read(file, &call) };
        if moved == length as isize {
            return Ok(transfer.length);
        }
        finish(transfer, moved, |at, done| {
            let rest = &mut memory[done..];
            let rest = [libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() }];
            let call = Call { at, flags, parts: &rest };
            if IS_WRITE { M::write(file, &call) } else { M::read(file, &call) }
        })
    }
}

/// The flags of a transfer, if the engine can do what is special about it.
#[cold]
pub fn accepted_flags(transfer: &Transfer, can: &Capabilities) -> Result<libc::c_int, Errno> {
    let has_flags = !transfer.flags.is_empty();
    if (transfer.vectors > 1 && !can.has_vectors) || (has_flags && !can.has_flags) {
        return Err(Errno::EOPNOTSUPP);
    }
    kernel_flags(transfer.flags).ok_or(Errno::EINVAL)
}

/// A transfer of several calls, each of a plain range without vectors or flags.
fn call_by_call<M: Method, const IS_WRITE: bool>(
    file: &mut Opened,
    transfer: &Transfer,
    memory: &mut [u8],
) -> Result<Bytes, Errno> {
    if transfer.vectors > 1 || !transfer.flags.is_empty() {
        return Err(Errno::EOPNOTSUPP);
    }
    let mut done = 0;
    for part in memory.chunks_mut(transfer.call_bytes as usize) {
        let length = Bytes(part.len() as u64);
        let one = Transfer { at: further(transfer.at, done), length, call_bytes: 0, ..*transfer };
        let mut call = |at, from: usize| {
            let rest = &mut part[from..];
            let whole = [libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() }];
            let call = Call { at, flags: 0, parts: &whole };
            if IS_WRITE { M::write(file, &call) } else { M::read(file, &call) }
        };
        let moved = call(one.at, 0);
        let is_whole = moved == length.0 as isize;
        let moved = if is_whole { length } else { finish(&one, moved, call)? };
        done += moved.0;
        if moved < length {
            break;
        }
    }
    Ok(Bytes(done))
}

/// A position so many bytes further on.
#[inline]
fn further(at: Position, bytes: u64) -> Position {
    match at {
        Position::At(at) => Position::At(Bytes(at.0 + bytes)),
        Position::Current | Position::End => at,
    }
}

/// Goes on after a short, interrupted or failed first call, until done or end of file.
///
/// What is left of a vectored transfer is one part.
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
        moved = again(further(transfer.at, done as u64), done);
    }
}

impl<M: Method> Lane for SynchronousLane<M> {
    const HAS_RUNS: bool = true;

    #[inline]
    fn run<R: Run>(&mut self, now: Ns, run: &mut R) -> RunEnd {
        let token = Token(0);
        let mut submitted = now;
        while let Some(transfer) = run.next(submitted) {
            let outcome = if R::WRITES {
                self.transfer::<true>(token, &transfer)
            } else {
                self.transfer::<false>(token, &transfer)
            };
            let completed = self.clock.now();
            if outcome != Ok(transfer.length) {
                let completion = Completion { token, submitted, completed, outcome };
                return RunEnd::FellShort(transfer, completion);
            }
            run.ended(submitted, completed, transfer.length);
            submitted = completed;
        }
        RunEnd::Over(submitted)
    }

    #[inline]
    fn now(&self) -> Ns {
        self.clock.now()
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
            let completed = self.clock.now();
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
