//! Checks of what programs do beside transfers: giving blocks back, writing to the end, links and
//! copies, names that are made durable, key-value requests.

use std::path::PathBuf;

use super::{FILE, Probe, RECORD, RECORDS};
use crate::error::Errno;
use crate::op::{Access, Deallocation, Handle, KeyValueKind, Op, PathId, Position, Transfer};
use crate::target::Target;
use crate::units::{Bytes, Ns};

const OTHER: Handle = Handle(1);

/// Punched, zeroed and discarded ranges are empty, their neighbours are not, and the length stays.
pub(super) fn deallocate<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let can = target.capabilities();
    if !can.has_deallocate {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    probe.fill(can.has_namespace)?;
    let kinds = [Deallocation::Punch, Deallocation::Zero, Deallocation::Discard];
    for (place, how) in (1_u64..).step_by(2).zip(kinds) {
        let (at, next) = (Bytes(place * RECORD.0), Bytes((place + 1) * RECORD.0));
        probe.ok(Op::write(FILE, next, RECORD))?;
        let neighbour = probe.held();
        match probe.one(Op::Deallocate { handle: FILE, at, length: RECORD, how })?.outcome {
            // A file system may have one of them and not the other.
            Err(Errno::EOPNOTSUPP) if how != Deallocation::Punch => continue,
            Err(errno) => return Err(format!("{how:?} failed with errno {}", errno.0)),
            Ok(_) => {}
        }
        if !can.can_verify {
            continue;
        }
        probe.ok(Op::read(FILE, at, RECORD))?;
        if probe.held().iter().any(|byte| *byte != 0) {
            return Err(format!("a range is not empty after {how:?}"));
        }
        probe.ok(Op::read(FILE, next, RECORD))?;
        if probe.held() != neighbour {
            return Err(format!("{how:?} changed the neighbour"));
        }
    }
    if can.keeps_nothing || !can.has_namespace {
        return Ok(());
    }
    let length = probe.ok(Op::Stat { path: PathId(0) })?;
    let is_same = length == Bytes(RECORDS * RECORD.0);
    is_same.then_some(()).ok_or_else(|| format!("{length:?} long after giving blocks back"))
}

/// Two writes to the end lie one behind the other, and where a handle reads does not move.
pub(super) fn end<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let can = target.capabilities();
    if !can.has_end {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    probe.fill(can.has_namespace)?;
    let append = Op::Write(Transfer::plain(FILE, Position::End, RECORD));
    let mut written = Vec::new();
    for _ in 0..2 {
        let moved = probe.ok(append)?;
        if moved != RECORD {
            return Err(format!("{moved:?} written to the end"));
        }
        written.push(probe.held());
    }
    if !can.can_verify {
        return Ok(());
    }
    for (record, expected) in (RECORDS..).zip(&written) {
        probe.forget();
        probe.ok(Op::read(FILE, Bytes(record * RECORD.0), RECORD))?;
        if probe.held() != *expected {
            return Err("what was written to the end is not there".into());
        }
    }
    Ok(())
}

/// A second name stays when the first goes; a copy has the bytes; a directory can be made durable.
pub(super) fn links<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let can = target.capabilities();
    if !can.has_links || can.keeps_nothing {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    probe.fill(true)?;
    probe.ok(Op::Fsync { handle: FILE })?;
    probe.ok(Op::write(FILE, RECORD, RECORD))?;
    let expected = probe.held();
    probe.ok(Op::Fsync { handle: FILE })?;
    probe.ok(Op::Link { from: PathId(0), to: PathId(1), is_symbolic: false })?;
    probe
        .fails(Op::Link { from: PathId(0), to: PathId(1), is_symbolic: false }, &[Errno::EEXIST])?;
    probe.ok(Op::Create { path: PathId(2), handle: OTHER, how: probe.how })?;
    let copy = Op::Copy { from: FILE, from_at: RECORD, to: OTHER, to_at: Bytes(0), length: RECORD };
    match probe.one(copy)?.outcome {
        // Not every file system can copy inside the kernel what is open for direct I/O.
        // A mapped file is read where it is mapped, which this one is not.
        Ok(moved) if moved == RECORD && probe.how.access == Access::Mapped => {}
        Ok(moved) if moved == RECORD => {
            probe.forget();
            probe.ok(Op::read(OTHER, Bytes(0), RECORD))?;
            if can.can_verify && probe.held() != expected {
                return Err("a copy holds other bytes than its source".into());
            }
        }
        other => return Err(format!("{copy:?} gave {other:?}")),
    }
    let linked = probe.ok(Op::StatTarget { path: PathId(1) })?;
    if linked != Bytes(RECORDS * RECORD.0) {
        return Err(format!("{linked:?} long behind its second name"));
    }
    probe.ok(Op::Unlink { path: PathId(0) })?;
    let length = probe.ok(Op::Stat { path: PathId(1) })?;
    if length != Bytes(RECORDS * RECORD.0) {
        return Err(format!("{length:?} long under its second name"));
    }
    probe.ok(Op::Unlink { path: PathId(2) })?;
    probe.ok(Op::MakeDirectory { path: PathId(2) })?;
    probe.ok(Op::SyncDirectory { path: PathId(2) })?;
    probe.ok(Op::RemoveDirectory { path: PathId(2) })?;
    probe.ok(Op::Burn { duration: Ns(1000) }).map(drop)
}

/// Check that what was put comes back, what was not is missing, and a scan goes upwards.
pub(super) fn key_value<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let can = target.capabilities();
    if !can.has_key_value || can.keeps_nothing {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    let length = Bytes(100);
    let ask = |kind, key| Op::KeyValue { kind, key, length };
    probe.fails(ask(KeyValueKind::Get, 7), &[Errno::ENOENT])?;
    probe.fails(ask(KeyValueKind::Modify, 7), &[Errno::ENOENT])?;
    let mut written = Vec::new();
    for key in [7, 9, u64::MAX] {
        probe.ok(ask(KeyValueKind::Put, key))?;
        written.push(probe.held());
    }
    probe.forget();
    if probe.ok(ask(KeyValueKind::Get, 9))? != length {
        return Err("a value has another length than was put".into());
    }
    let found = probe.held();
    if can.can_verify && found.get(..100) != written[1].get(..100) {
        return Err("a value is not what was put".into());
    }
    let scanned = probe.ok(ask(KeyValueKind::Scan { count: 2 }, 8))?;
    if scanned != Bytes(200) {
        return Err(format!("a scan of two values gave {scanned:?}"));
    }
    probe.ok(ask(KeyValueKind::Modify, 7))?;
    probe.ok(ask(KeyValueKind::Delete, 7))?;
    probe.fails(ask(KeyValueKind::Delete, 7), &[Errno::ENOENT])
}
