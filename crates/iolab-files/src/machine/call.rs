//! Calls of workers: what an op means for an open file.

use std::path::Path;

use iolab_model::error::Errno;
use iolab_model::op::{
    Access, Advice, Deallocation, Durability, Handle, Op, OpenHow, Position, Token, Transfer,
    TransferFlags,
};
use iolab_model::{Bytes, Ns};

use super::buffered_read::ReadWork;
use super::buffered_write::WriteWork;
use super::direct::DirectWork;
use super::engine::Machine;
use super::flush::{FlushWork, Scope};
use super::mapped::TouchWork;
use super::name::{NameWork, Naming};
use super::stream::Stream;
use super::task::{RunBy, Work};
use super::write_out::Extent;
use crate::api::file_system::{Bypass, Promise, Reshape};
use crate::api::read_ahead::{Hint, ReadAhead, ReadState};

/// Flags of transfers that mean something here.
pub const FLAGS: TransferFlags = TransferFlags::DATA_SYNC.with(TransferFlags::SYNC);

/// An open file of a lane.
#[derive(Clone, Copy, Debug)]
pub struct HandleInfo {
    pub(super) owner: u32,
    pub(super) how: OpenHow,
    pub(super) position: u64,
    pub(super) read: ReadState,
    pub(super) hint: Hint,
    pub(super) stream: Stream,
    /// Bytes of the file that are mapped; 0: none.
    pub(super) mapped: u64,
    /// Failures of write-back up to which it was told.
    pub(super) seen: u64,
}

/// A call of a worker.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The worker's lane.
    pub lane: u32,
    /// Its slot.
    pub token: Token,
    /// Its op.
    pub op: &'a Op,
    /// Path that the op names first, if it names one.
    pub path: Option<&'a Path>,
    /// Path that the op names second.
    pub other: Option<&'a Path>,
    /// Answer that the caller knows already, whatever the op moves.
    pub answer: Option<Bytes>,
}

/// No such device or address: nothing is mapped (asm-generic/errno-base.h).
const ENXIO: Errno = Errno(6);

type Begun = Result<Vec<Work>, Errno>;

impl Machine {
    /// Takes a call. An error is the outcome of one that failed at once; everything else comes out
    /// of [`Machine::take_ended`].
    pub fn submit(&mut self, now: Ns, call: Call<'_>) -> Result<(), Errno> {
        self.now = self.now.max(now);
        let runner = RunBy::Lane(call.lane);
        let works = self.works_of(call)?;
        let index = self.spawn(runner, call.token);
        let task = self.task(index);
        task.minds = !matches!(call.op, Op::SyncAll | Op::Close { .. });
        task.works.extend(call.answer.map(Work::Answer));
        task.works.extend(works.into_iter().rev());
        if self.go_on(index, self.settings.cost.call_ns, false).is_some() {
            self.run(index);
        }
        Ok(())
    }

    /// Works of a call, in their order.
    fn works_of(&mut self, call: Call<'_>) -> Begun {
        let (lane, who) = (call.lane, (call.lane, call.token));
        match *call.op {
            Op::Read(transfer) | Op::Write(transfer) if self.is_stream(lane, transfer.handle) => {
                self.stream_transfer(who, transfer, matches!(call.op, Op::Write(_)))
            }
            Op::Read(transfer) if transfer.call_bytes > 0 => {
                self.small_calls(lane, transfer, false)
            }
            Op::Write(transfer) if transfer.call_bytes > 0 => {
                self.small_calls(lane, transfer, true)
            }
            Op::Read(transfer) => self.transfer(lane, transfer, false).map(|work| vec![work]),
            Op::Write(transfer) => self.transfer(lane, transfer, true).map(|work| vec![work]),
            Op::Fsync { handle } => self.flush_of(lane, handle, Promise::Full),
            Op::Fdatasync { handle } => self.flush_of(lane, handle, Promise::Data),
            Op::Msync { is_async, handle, at, length } => {
                self.mapped(lane, handle, (at.0, length.0))?;
                if is_async {
                    return Ok(Vec::new());
                }
                let extent = self.extent(lane, handle, (at, length))?;
                let flush = FlushWork::new(Scope::Pages(extent, Promise::Full));
                Ok(vec![Work::Flush(flush.by(Some((lane, handle.0))))])
            }
            Op::SyncFileRange { handle, at, length, how } => {
                let extent = self.extent(lane, handle, (at, length))?;
                let flush = FlushWork::new(Scope::Range(extent, how));
                Ok(vec![Work::Flush(flush.by(Some((lane, handle.0))))])
            }
            Op::SyncAll => Ok(vec![Work::Flush(FlushWork::new(Scope::All))]),
            Op::SyncDirectory { .. } => {
                let directory = self.tree.find(path(call.path)?)?;
                Ok(vec![Work::Flush(FlushWork::file(directory, Promise::Full))])
            }
            Op::Burn { duration } => {
                self.computed += duration;
                Ok(vec![Work::Burn(duration)])
            }
            Op::Map { handle, length } => self.map_file(lane, handle, length),
            Op::Unmap { handle } => self.unmap_file(lane, handle),
            Op::Touch { handle, at, length, is_write } => {
                self.touch(lane, handle, (at.0, length.0), is_write)
            }
            Op::Advise { handle, advice } => self.advise(lane, handle, advice),
            Op::StreamRead { handle, length } => self.stream_read(lane, handle, length.0),
            Op::StreamWrite { handle, length } => self.stream_write(who, handle, length.0),
            Op::StreamFlush { handle } => self.stream_flush(lane, handle),
            _ => self.naming(call),
        }
    }

    pub(super) fn handle(&self, lane: u32, handle: Handle) -> Result<HandleInfo, Errno> {
        let handles = &self.lanes[lane as usize].handles;
        handles.get(handle.0 as usize).copied().flatten().ok_or(Errno::EBADF)
    }

    pub(super) fn handle_mut(&mut self, lane: u32, handle: Handle) -> Option<&mut HandleInfo> {
        self.lanes[lane as usize].handles.get_mut(handle.0 as usize)?.as_mut()
    }

    /// A transfer that takes several calls, one after the other.
    fn small_calls(&mut self, lane: u32, transfer: Transfer, is_write: bool) -> Begun {
        let (mut works, mut done) = (Vec::new(), 0);
        let owner = self.handle(lane, transfer.handle)?.owner;
        let moved = self.bytes_of(lane, &transfer, is_write)?;
        while done < transfer.length.0 {
            let length = Bytes(u64::from(transfer.call_bytes).min(transfer.length.0 - done));
            let at = match transfer.at {
                Position::At(at) => Position::At(Bytes(at.0 + done)),
                at => at,
            };
            let call = Transfer { at, length, call_bytes: 0, ..transfer };
            if done > 0 {
                works.push(Work::Burn(Ns(self.settings.cost.call_ns)));
            }
            works.push(self.transfer(lane, call, is_write)?);
            works.push(Work::Unlock(owner));
            done += length.0;
        }
        works.push(Work::Answer(moved));
        Ok(works)
    }

    /// Bytes that a transfer moves: reads end where the file does.
    fn bytes_of(&self, lane: u32, transfer: &Transfer, is_write: bool) -> Result<Bytes, Errno> {
        let info = self.handle(lane, transfer.handle)?;
        if is_write {
            return Ok(transfer.length);
        }
        let at = match transfer.at {
            Position::At(at) => at.0,
            Position::Current | Position::End => info.position,
        };
        let left = self.tree.node(info.owner).size.saturating_sub(at);
        Ok(Bytes(transfer.length.0.min(left)))
    }

    fn transfer(&mut self, lane: u32, transfer: Transfer, is_write: bool) -> Result<Work, Errno> {
        let info = self.handle(lane, transfer.handle)?;
        let HandleInfo { owner, how, position, .. } = info;
        if !TransferFlags::ALL.contains(transfer.flags) {
            return Err(Errno::EINVAL);
        }
        if !FLAGS.contains(transfer.flags) || transfer.call_bytes > 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        if is_write && !how.is_writable || !is_write && !how.is_readable {
            return Err(Errno::EBADF);
        }
        let is_appending =
            is_write && (how.access == Access::Append || matches!(transfer.at, Position::End));
        let size = self.tree.node(owner).size;
        let at = match transfer.at {
            Position::At(at) if !is_appending => at.0,
            Position::Current if !is_appending => position,
            Position::End if !is_write => return Err(Errno::EINVAL),
            _ => size,
        };
        let end = at.checked_add(transfer.length.0).ok_or(Errno::EINVAL)?;
        if let Some(info) = self.handle_mut(lane, transfer.handle) {
            info.position = if is_write { end } else { end.min(size).max(at) };
        }
        let asked = promise_of(how.durability, transfer.flags);
        let promise = self.fs.promise(asked.filter(|_| is_write)).filter(|_| is_write);
        let by = (lane, transfer.handle.0);
        if transfer.length.0 == 0 {
            return Ok(Work::Burn(Ns(0)));
        }
        let bypass = self.facts.clusters.map_or(Bypass::NONE, |clusters| clusters.bypass);
        let range = (at, end);
        let is_there = self.can_go_past(owner, range, is_write, is_appending);
        let is_aligned = (at | transfer.length.0).is_multiple_of(512);
        let is_forced = bypass.takes(transfer.length, asked.is_some());
        if is_forced && is_aligned && is_there && how.access != Access::Mapped {
            let commits = is_write && bypass.commits;
            let promise = promise.or(commits.then_some(Promise::Data));
            return Ok(Work::Direct(
                DirectWork::new(owner, (at, end), is_write)
                    .promising(promise, by)
                    .appending(is_appending),
            ));
        }
        let way = match how.access {
            Access::Direct if !is_there => Access::Plain,
            access => self.way_of(owner, range, access, is_write),
        };
        match way {
            Access::Direct if !(at | transfer.length.0).is_multiple_of(512) => Err(Errno::EINVAL),
            Access::Direct => Ok(Work::Direct(
                DirectWork::new(owner, (at, end), is_write)
                    .promising(promise, by)
                    .appending(is_appending),
            )),
            Access::Mapped => {
                self.mapped(lane, transfer.handle, (at, transfer.length.0))?;
                let touch = TouchWork::new(owner, lane, (at, end), is_write);
                Ok(Work::Touch(touch.advised(info.hint)))
            }
            Access::Stdio => Err(Errno::EOPNOTSUPP),
            Access::Plain | Access::Append if is_write => Ok(Work::Write(
                WriteWork::new(owner, lane, at, end).promising(promise, by).appending(is_appending),
            )),
            Access::Plain | Access::Append => {
                Ok(Work::Read(ReadWork::new(owner, (lane, transfer.handle.0), at, end)))
            }
        }
    }

    fn flush_of(&mut self, lane: u32, handle: Handle, promise: Promise) -> Begun {
        let owner = self.handle(lane, handle)?.owner;
        let mut works = self.stream_flush(lane, handle).unwrap_or_default();
        let flush = FlushWork::file(self.flushable(owner)?, promise);
        works.push(Work::Flush(flush.by(Some((lane, handle.0)))));
        Ok(works)
    }

    /// Pages of a range of a file; a range without a length goes to its end.
    fn extent(
        &self,
        lane: u32,
        handle: Handle,
        (at, length): (Bytes, Bytes),
    ) -> Result<Extent, Errno> {
        let owner = self.handle(lane, handle)?.owner;
        let end = match length.0 {
            0 => u64::MAX,
            length => at.0.saturating_add(length).div_ceil(4096),
        };
        Ok(Extent { owner, from: at.0 / 4096, end })
    }

    fn map_file(&mut self, lane: u32, handle: Handle, length: Bytes) -> Begun {
        let HandleInfo { owner, mapped, .. } = self.handle(lane, handle)?;
        if mapped > 0 {
            return Err(Errno::EBUSY);
        }
        let pages = self.settings.read_ahead_kb / 4;
        self.tree.node_mut(owner).mapped = self.rule.opened(pages);
        if let Some(info) = self.handle_mut(lane, handle) {
            info.mapped = length.0;
        }
        self.tree.node_mut(owner).mappings += u32::from(length.0 > 0);
        Ok(Vec::new())
    }

    fn unmap_file(&mut self, lane: u32, handle: Handle) -> Begun {
        let HandleInfo { owner, mapped, .. } = self.handle(lane, handle)?;
        if mapped == 0 {
            return Err(ENXIO);
        }
        if let Some(info) = self.handle_mut(lane, handle) {
            info.mapped = 0;
        }
        self.tree.node_mut(owner).mappings -= 1;
        self.cache.unmap(owner);
        Ok(Vec::new())
    }

    /// Check that a range lies in what is mapped.
    fn mapped(
        &self,
        lane: u32,
        handle: Handle,
        (at, length): (u64, u64),
    ) -> Result<HandleInfo, Errno> {
        let info = self.handle(lane, handle)?;
        if info.mapped == 0 {
            return Err(ENXIO);
        }
        let is_inside = at.checked_add(length).is_some_and(|end| end <= info.mapped);
        if is_inside { Ok(info) } else { Err(Errno::EINVAL) }
    }

    fn touch(
        &mut self,
        lane: u32,
        handle: Handle,
        (at, length): (u64, u64),
        is_write: bool,
    ) -> Begun {
        let HandleInfo { owner, hint, how, .. } = self.mapped(lane, handle, (at, length))?;
        if is_write && !how.is_writable {
            return Err(Errno::EBADF);
        }
        let touch = TouchWork::new(owner, lane, (at, at + length), is_write);
        Ok(vec![Work::Touch(touch.advised(hint))])
    }

    fn advise(&mut self, lane: u32, handle: Handle, advice: Advice) -> Begun {
        let info = self.handle(lane, handle)?;
        let pages = self.settings.read_ahead_kb / 4;
        let hint = match advice {
            Advice::Normal => Hint::Normal,
            Advice::Random => Hint::Random,
            Advice::Sequential => Hint::Sequential,
            Advice::DontNeed => {
                let end = u64::MAX;
                self.push_out(Extent { owner: info.owner, from: 0, end }, RunBy::Lane(lane));
                self.cache.forget_clean(info.owner);
                return Ok(Vec::new());
            }
            Advice::WillNeed if self.facts.clusters.is_some() || self.own_cache().is_some() => {
                return Ok(Vec::new());
            }
            Advice::WillNeed => {
                self.will_need(lane, info);
                return Ok(Vec::new());
            }
        };
        let rule = self.rule;
        if let Some(info) = self.handle_mut(lane, handle) {
            info.hint = hint;
            rule.advised(&mut info.read, hint, pages);
        }
        Ok(Vec::new())
    }

    /// Starts to read what advice names: the whole file, as far as the rule goes.
    fn will_need(&mut self, lane: u32, info: HandleInfo) {
        let pages = self.pages_of(info.owner);
        let access = crate::api::read_ahead::ReadAccess {
            page: 0,
            request: pages,
            hint: info.hint,
            io_pages: self.settings.max_sectors_kb / 4,
            file_pages: pages,
        };
        let window = self.rule.will_need(&info.read, access);
        let mut new = Vec::new();
        self.rule.folios(window, pages, &self.cache.view(info.owner), &mut new);
        self.add_folios(info.owner, &new, (0, 0), RunBy::Lane(lane));
    }

    fn naming(&mut self, call: Call<'_>) -> Begun {
        let lane = call.lane;
        let naming = match *call.op {
            Op::Create { how, .. } | Op::Open { how, .. } if !self.takes_access(how.access) => {
                return Err(Errno::EINVAL);
            }
            Op::Create { handle, how, .. } => {
                Naming::Create { path: path(call.path)?.into(), slot: (lane, handle.0), how }
            }
            Op::Open { handle, how, .. } => {
                Naming::Open { path: path(call.path)?.into(), slot: (lane, handle.0), how }
            }
            Op::Close { handle } => {
                let info = self.handle(lane, handle)?;
                let mut works = self.stream_flush(lane, handle).unwrap_or_default();
                self.lanes[lane as usize].handles[handle.0 as usize] = None;
                works.push(Work::Name(NameWork::new(Naming::Close(info))));
                return Ok(works);
            }
            Op::Unlink { .. } => Naming::Unlink(path(call.path)?.into()),
            Op::Rename { .. } => {
                Naming::Rename { from: path(call.path)?.into(), to: path(call.other)?.into() }
            }
            Op::MakeDirectory { .. } => Naming::MakeDirectory(path(call.path)?.into()),
            Op::RemoveDirectory { .. } => Naming::RemoveDirectory(path(call.path)?.into()),
            Op::ReadDirectory { .. } | Op::NextNames { .. } => {
                Naming::List(path(call.path)?.into())
            }
            Op::Stat { .. } | Op::StatTarget { .. } => Naming::Stat(path(call.path)?.into()),
            Op::Truncate { handle, length } => {
                let HandleInfo { owner, how, .. } = self.handle(lane, handle)?;
                if !how.is_writable {
                    return Err(Errno::EINVAL);
                }
                self.check_end(length.0)?;
                Naming::Truncate { owner, to: length.0 }
            }
            Op::Allocate { handle, at, length, keeps_length } => {
                let range = (at.0, length.0);
                self.reshaping((lane, handle), range, Reshape::Allocate, keeps_length)?
            }
            Op::Deallocate { handle, at, length, how } => {
                let how = match how {
                    Deallocation::Zero => Reshape::Zero,
                    // In a file a discard makes a hole.
                    Deallocation::Punch | Deallocation::Discard => Reshape::Punch,
                };
                self.reshaping((lane, handle), (at.0, length.0), how, true)?
            }
            _ => return Err(Errno::EOPNOTSUPP),
        };
        Ok(vec![Work::Name(NameWork::new(naming))])
    }

    /// Source: Linux fs/open.c (`vfs_fallocate`).
    fn reshaping(
        &self,
        (lane, handle): (u32, Handle),
        (at, length): (u64, u64),
        how: Reshape,
        keeps_length: bool,
    ) -> Result<Naming, Errno> {
        let info = self.handle(lane, handle)?;
        let end = at.checked_add(length).filter(|_| length > 0).ok_or(Errno::EINVAL)?;
        if !info.how.is_writable {
            return Err(Errno::EBADF);
        }
        if !self.can_reshape(how) {
            return Err(Errno::EOPNOTSUPP);
        }
        if how == Reshape::Allocate {
            self.check_end(end)?;
        }
        Ok(Naming::Reshape { owner: info.owner, range: (at, end), how, keeps_length })
    }

    /// Refuses a longer file than the file system has.
    pub(super) const fn check_end(&self, end: u64) -> Result<(), Errno> {
        if end > self.facts.file_bytes_max {
            // File too large (asm-generic/errno-base.h).
            return Err(Errno(27));
        }
        Ok(())
    }
}

fn path(path: Option<&Path>) -> Result<&Path, Errno> {
    path.ok_or(Errno::ENOENT)
}

/// Promise of a write.
fn promise_of(durability: Durability, flags: TransferFlags) -> Option<Promise> {
    let is_full = durability == Durability::Sync || flags.contains(TransferFlags::SYNC);
    let is_data = durability == Durability::DataSync || flags.contains(TransferFlags::DATA_SYNC);
    match (is_full, is_data) {
        (true, _) => Some(Promise::Full),
        (false, true) => Some(Promise::Data),
        (false, false) => None,
    }
}
