//! Checks of what only some targets can do: vectors, flags, streams, mapped files, locks.

use std::path::PathBuf;

use super::{FILE, Probe, RECORD, RECORDS, read_write};
use crate::error::Errno;
use crate::op::{
    Access, Handle, LockKind, Op, OpenHow, PathId, Position, Token, Transfer, TransferFlags,
};
use crate::target::{Capabilities, Lane, Target};
use crate::units::Bytes;

/// Answer to a transfer to memory that is not mapped.
const ENXIO: Errno = Errno(6);
/// The answer to "do not wait" where it would.
const EAGAIN: Errno = Errno(11);

const OTHER: Handle = Handle(1);

impl<L: Lane> Probe<L> {
    /// Content of the buffer, if the target has any.
    pub(super) fn held(&mut self) -> Vec<u8> {
        self.lane
            .buffer(Token(0))
            .map(|buffer| buffer[..RECORD.0 as usize].to_vec())
            .unwrap_or_default()
    }

    /// Empties the buffer, so that only a read can fill it again.
    pub(super) fn forget(&mut self) {
        if let Some(buffer) = self.lane.buffer(Token(0)) {
            buffer.fill(0);
        }
    }

    /// Runs an op that must move a record, and compares the buffer where data come back.
    fn gives(&mut self, op: Op, expected: &[u8], can: &Capabilities) -> Result<(), String> {
        self.forget();
        let moved = self.ok(op)?;
        if moved != RECORD {
            return Err(format!("{op:?} moved {moved:?}"));
        }
        let is_same = !can.can_verify || self.held() == expected;
        is_same.then_some(()).ok_or_else(|| format!("{op:?} gave other bytes than were written"))
    }
}

fn whole(at: Bytes) -> Transfer {
    Transfer::plain(FILE, Position::At(at), RECORD)
}

/// Check that parts that were written are read as a whole, and the other way round.
pub(super) fn vectors<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let can = target.capabilities();
    if !can.has_vectors {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    probe.fill(can.has_namespace)?;
    for (written, read) in [(4, 1), (1, 8), (16, 2)] {
        let at = Bytes(u64::from(written) * RECORD.0);
        let moved = probe.ok(Op::Write(Transfer { vectors: written, ..whole(at) }))?;
        if moved != RECORD {
            return Err(format!("{moved:?} written in {written} parts"));
        }
        let expected = probe.held();
        probe.gives(Op::Read(Transfer { vectors: read, ..whole(at) }), &expected, &can)?;
    }
    Ok(())
}

/// Check that data written call by call are read as a whole, and the other way round.
pub(super) fn small_calls<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let can = target.capabilities();
    if !can.has_small_calls {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    probe.fill(can.has_namespace)?;
    for (index, (written, read)) in [(1, 0), (0, 1), (1000, 7)].into_iter().enumerate() {
        let record = whole(Bytes(index as u64 * RECORD.0));
        let moved = probe.ok(Op::Write(Transfer { call_bytes: written, ..record }))?;
        if moved != RECORD {
            return Err(format!("{moved:?} written by calls of {written} bytes"));
        }
        let expected = probe.held();
        probe.gives(Op::Read(Transfer { call_bytes: read, ..record }), &expected, &can)?;
    }
    Ok(())
}

/// Durable writes work; what the file system may decline it declines with a known errno.
pub(super) fn flags<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let can = target.capabilities();
    if !can.has_flags {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    probe.fill(can.has_namespace)?;
    for flags in [TransferFlags::DATA_SYNC, TransferFlags::SYNC] {
        probe.ok(Op::Write(Transfer { flags, ..whole(RECORD) }))?;
        let expected = probe.held();
        probe.gives(Op::Read(whole(RECORD)), &expected, &can)?;
    }
    let optional =
        [TransferFlags::HIGH_PRIORITY, TransferFlags::NO_WAIT, TransferFlags::DO_NOT_CACHE];
    for flags in optional {
        let op = Op::Read(Transfer { flags, ..whole(RECORD) });
        match probe.one(op)?.outcome {
            Ok(RECORD) | Err(Errno::EOPNOTSUPP) => {}
            Err(EAGAIN) if flags == TransferFlags::NO_WAIT => {}
            other => return Err(format!("{op:?} gave {other:?}")),
        }
    }
    let unknown = Op::Read(Transfer { flags: TransferFlags(1 << 15), ..whole(RECORD) });
    if can.can_verify { probe.fails(unknown, &[Errno::EINVAL]) } else { Ok(()) }
}

/// A stream holds data back until it is flushed or closed, and reads them in order.
pub(super) fn streams<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let can = target.capabilities();
    if !can.has_stream {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    let stream_buffer_bytes = Bytes(4 * RECORD.0);
    let how = OpenHow { access: Access::Stdio, stream_buffer_bytes, ..read_write(target) };
    let length = |probe: &mut Probe<T::Lane>, records: u64| {
        let length = probe.ok(Op::Stat { path: PathId(1) })?;
        let is_right = length == Bytes(records * RECORD.0);
        is_right.then_some(()).ok_or_else(|| format!("{length:?} long, not {records} records"))
    };
    probe.ok(Op::Create { path: PathId(1), handle: OTHER, how })?;
    let mut written = Vec::new();
    for (in_file, is_flushed) in [(0, false), (2, true), (2, false)] {
        probe.ok(Op::StreamWrite { handle: OTHER, length: RECORD })?;
        written.push(probe.held());
        if is_flushed {
            probe.ok(Op::StreamFlush { handle: OTHER })?;
        }
        length(&mut probe, in_file)?;
    }
    probe.ok(Op::Close { handle: OTHER })?;
    length(&mut probe, 3)?;
    probe.ok(Op::Open { path: PathId(1), handle: OTHER, how })?;
    let next = Op::StreamRead { handle: OTHER, length: RECORD };
    for record in &written {
        probe.gives(next, record, &can)?;
    }
    if probe.ok(next)? != Bytes(0) {
        return Err("a stream went on beyond the end".into());
    }
    probe.gives(Op::read(OTHER, RECORD, RECORD), &written[1], &can)?;
    probe.gives(next, &written[2], &can)?;
    probe.ok(Op::write(OTHER, Bytes(0), RECORD))?;
    let first = probe.held();
    probe.ok(Op::Fsync { handle: OTHER })?;
    probe.gives(Op::read(OTHER, Bytes(0), RECORD), &first, &can)?;
    if can.has_plain {
        let how = OpenHow { access: Access::Plain, ..how };
        probe.ok(Op::Open { path: PathId(1), handle: Handle(2), how })?;
        probe.gives(Op::read(Handle(2), Bytes(0), RECORD), &first, &can)?;
        probe.fails(Op::StreamRead { handle: Handle(2), length: RECORD }, &[Errno::EINVAL])?;
        probe.fails(Op::StreamFlush { handle: Handle(2) }, &[Errno::EINVAL])?;
    }
    Ok(())
}

/// Check that touched pages are in the file; what lies outside the mapping is refused.
pub(super) fn mapped<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let can = target.capabilities();
    if !can.has_mapping {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    let handle = OTHER;
    let how = OpenHow { access: Access::Mapped, ..read_write(target) };
    let length = Bytes(4 * RECORD.0);
    let touch = |at, is_write| Op::Touch { handle, at, length: RECORD, is_write };
    probe.ok(Op::Create { path: PathId(1), handle, how })?;
    probe.fails(Op::read(handle, Bytes(0), RECORD), &[ENXIO])?;
    probe.ok(Op::Truncate { handle, length })?;
    probe.ok(Op::Map { handle, length })?;
    probe.fails(Op::Map { handle, length }, &[Errno::EBUSY])?;
    probe.ok(touch(RECORD, true))?;
    let first = probe.held();
    probe.ok(Op::write(handle, Bytes(2 * RECORD.0), RECORD))?;
    let second = probe.held();
    probe.gives(touch(RECORD, false), &first, &can)?;
    probe.gives(Op::read(handle, Bytes(2 * RECORD.0), RECORD), &second, &can)?;
    for is_async in [false, true] {
        let at = Bytes(RECORD.0 + 10);
        probe.ok(Op::Msync { handle, at, length: Bytes(100), is_async })?;
    }
    let outside = Bytes(3 * RECORD.0 + 1);
    probe.fails(touch(outside, false), &[Errno::EINVAL])?;
    probe.fails(touch(Bytes(u64::MAX), true), &[Errno::EINVAL])?;
    let msync = Op::Msync { handle, at: outside, length: RECORD, is_async: false };
    probe.fails(msync, &[Errno::EINVAL])?;
    probe.ok(Op::Unmap { handle })?;
    probe.fails(Op::Unmap { handle }, &[ENXIO])?;
    probe.fails(touch(RECORD, false), &[ENXIO])?;
    probe.ok(Op::Close { handle })?;
    let read_only = OpenHow { is_writable: false, ..how };
    probe.ok(Op::Open { path: PathId(1), handle, how: read_only })?;
    probe.ok(Op::Map { handle, length })?;
    probe.gives(touch(RECORD, false), &first, &can)?;
    probe.fails(touch(RECORD, true), &[Errno::EBADF])?;
    probe.ok(Op::Close { handle }).map(drop)
}

/// Two handles of one file share and exclude; that a lock is waited for needs two threads.
pub(super) fn locks<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let can = target.capabilities();
    if !can.has_lock {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    probe.fill(can.has_namespace)?;
    probe.ok(Op::Open { path: PathId(0), handle: OTHER, how: probe.how })?;
    let lock = |handle, kind, at| Op::Lock { handle, kind, at: Bytes(at), length: RECORD };
    for op in [
        lock(FILE, LockKind::Shared, 0),
        lock(OTHER, LockKind::Shared, 0),
        lock(FILE, LockKind::Release, 0),
        lock(OTHER, LockKind::Exclusive, 0),
        lock(FILE, LockKind::Exclusive, RECORD.0),
        lock(OTHER, LockKind::Release, 0),
        lock(FILE, LockKind::Exclusive, 0),
    ] {
        probe.ok(op)?;
    }
    probe.ok(Op::Close { handle: FILE })?;
    probe.ok(lock(OTHER, LockKind::Exclusive, 0))?;
    probe.fails(lock(FILE, LockKind::Shared, 0), &[Errno::EBADF])
}

/// Blocks are there, and so is what was written before.
pub(super) fn allocate<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let can = target.capabilities();
    if !can.has_allocate {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    probe.fill(can.has_namespace)?;
    let last = Bytes((RECORDS - 1) * RECORD.0);
    probe.ok(Op::write(FILE, last, RECORD))?;
    let expected = probe.held();
    let length = Bytes(2 * RECORDS * RECORD.0);
    for keeps_length in [true, false] {
        probe.ok(Op::Allocate { handle: FILE, at: Bytes(0), length, keeps_length })?;
    }
    probe.gives(Op::read(FILE, last, RECORD), &expected, &can)
}
