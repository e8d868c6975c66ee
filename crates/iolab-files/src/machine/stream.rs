//! Streams of the C library: a buffer of their own in front of read(2) and write(2).
//!
//! Source: glibc libio/fileops.c (`_IO_file_xsgetn`, `_IO_new_file_xsputn`): transfers of whole
//! buffers go past the buffer.

use iolab_model::error::Errno;
use iolab_model::op::{Access, Handle, Position, Token, Transfer};
use iolab_model::{Bytes, Ns};

use super::buffered_read::ReadWork;
use super::buffered_write::WriteWork;
use super::call::HandleInfo;
use super::engine::Machine;
use super::task::Work;

/// State of a stream: its buffer holds `held` bytes that were read before and are behind the
/// position, or `waiting` bytes that were written and lie directly before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stream {
    held: u64,
    waiting: u64,
}

/// Size of a stream's buffer.
const fn buffer(info: &HandleInfo) -> u64 {
    // The C library takes st_blksize, a page here.
    if info.how.stream_buffer_bytes.0 == 0 { 4096 } else { info.how.stream_buffer_bytes.0 }
}

/// A system call of several that a transfer makes: it leaves the lock on the file.
const fn alone(work: Work, owner: u32) -> [Work; 2] {
    [work, Work::Unlock(owner)]
}

impl Machine {
    fn stream(&self, lane: u32, handle: Handle) -> Result<HandleInfo, Errno> {
        let info = self.handle(lane, handle)?;
        if info.how.access == Access::Stdio { Ok(info) } else { Err(Errno::EINVAL) }
    }

    /// Tell whether a handle is a stream.
    pub(super) fn is_stream(&self, lane: u32, handle: Handle) -> bool {
        self.stream(lane, handle).is_ok()
    }

    /// A transfer at a place: the stream goes there first, if it is elsewhere.
    pub(super) fn stream_transfer(
        &mut self,
        (lane, token): (u32, Token),
        transfer: Transfer,
        is_write: bool,
    ) -> Result<Vec<Work>, Errno> {
        let Transfer { handle, at, length, flags, call_bytes, .. } = transfer;
        if !flags.is_empty() || call_bytes > 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let mut info = self.stream(lane, handle)?;
        let at = match at {
            Position::At(at) => at.0,
            Position::Current => info.position,
            Position::End => return Err(Errno::EOPNOTSUPP),
        };
        let mut works = Vec::new();
        if at != info.position {
            works = self.stream_flush(lane, handle)?;
            info = self.stream(lane, handle)?;
            info.stream.held = 0;
            self.forget_held((lane, handle.0));
            info.position = at;
            self.set_handle(lane, handle, info);
        }
        works.extend(if is_write {
            self.stream_write((lane, token), handle, length.0)?
        } else {
            self.stream_read(lane, handle, length.0)?
        });
        Ok(works)
    }

    pub(super) fn stream_read(
        &mut self,
        lane: u32,
        handle: Handle,
        length: u64,
    ) -> Result<Vec<Work>, Errno> {
        let mut works = self.stream_flush(lane, handle)?;
        let mut info = self.stream(lane, handle)?;
        let (at, size) = (info.position, buffer(&info));
        let end = (at + length).min(self.tree.node(info.owner).size).max(at);
        let slot = (lane, handle.0);
        let mut next = at + info.stream.held.min(length);
        info.stream.held -= info.stream.held.min(length);
        let whole = end.saturating_sub(next) / size * size;
        if whole > 0 {
            let read = ReadWork::new(info.owner, slot, next, next + whole);
            works.extend(alone(Work::Read(read.of_stream(handle.0)), info.owner));
            next += whole;
        }
        if next < end {
            let read = ReadWork::new(info.owner, slot, next, next + size);
            works.extend(alone(Work::Read(read.of_stream(handle.0)), info.owner));
            let got = (next + size).min(self.tree.node(info.owner).size);
            info.stream.held = got - end;
        }
        info.position = end;
        works.push(Work::FromStream(handle.0, Bytes(end - at)));
        let copied = self.settings.cost.copy(end - at, 0);
        works.push(Work::Burn(Ns(copied)));
        works.push(Work::Answer(Bytes(end - at)));
        self.set_handle(lane, handle, info);
        Ok(works)
    }

    pub(super) fn stream_write(
        &mut self,
        (lane, token): (u32, Token),
        handle: Handle,
        length: u64,
    ) -> Result<Vec<Work>, Errno> {
        let mut info = self.stream(lane, handle)?;
        if !info.how.is_writable {
            return Err(Errno::EBADF);
        }
        info.stream.held = 0;
        self.forget_held((lane, handle.0));
        self.copied_to_stream((lane, handle.0), token, length);
        let size = buffer(&info);
        let from = info.position - info.stream.waiting;
        let total = info.stream.waiting + length;
        let mut works = Vec::new();
        let sent = total / size * size;
        if sent > 0 {
            // What was buffered fills up and leaves; whole buffers follow in one call.
            let filled = if info.stream.waiting > 0 { size } else { 0 };
            for (from, end) in [(from, from + filled), (from + filled, from + sent)] {
                if end > from {
                    let write = WriteWork::new(info.owner, lane, from, end);
                    works.extend(alone(Work::Write(write.of_stream(handle.0)), info.owner));
                }
            }
        }
        info.stream.waiting = total - sent;
        info.position += length;
        works.push(Work::Burn(Ns(self.settings.cost.copy(length, 0))));
        works.push(Work::Answer(Bytes(length)));
        self.set_handle(lane, handle, info);
        Ok(works)
    }

    /// Writes what the buffer of a stream holds; nothing for other handles.
    pub(super) fn stream_flush(&mut self, lane: u32, handle: Handle) -> Result<Vec<Work>, Errno> {
        let mut info = self.stream(lane, handle)?;
        let waiting = core::mem::take(&mut info.stream.waiting);
        let mut works = Vec::new();
        if waiting > 0 {
            let (from, end) = (info.position - waiting, info.position);
            let write = WriteWork::new(info.owner, lane, from, end);
            works.extend(alone(Work::Write(write.of_stream(handle.0)), info.owner));
            works.push(Work::Answer(Bytes(0)));
        }
        self.set_handle(lane, handle, info);
        Ok(works)
    }

    fn set_handle(&mut self, lane: u32, handle: Handle, info: HandleInfo) {
        if let Some(place) = self.handle_mut(lane, handle) {
            *place = info;
        }
    }
}
