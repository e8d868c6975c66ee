//! A stdio stream: the C library's `FILE`, with a buffer of a known size.
//!
//! The buffer is ours, because setvbuf(3) of the GNU library takes no notice of a size without one.
//! It begins at a page, as what it is copied from and to does: a copy between places that differ by
//! a few bytes within their pages takes several times as long, since each load then waits for an
//! earlier store that has the same last 12 bits of its address (Intel 64 and IA-32 Architectures
//! Optimization Reference Manual, 4-KByte aliasing).
//! The stream is moved (fseeko) only when a transfer starts elsewhere, or where the C standard asks
//! for it, between a read and a write. What is still in the buffer reaches the file at fflush or
//! fclose, and only there a full file system may show. Left out: appending streams, line buffering.
//!
//! The library takes no notice of a transfer of no bytes. Who asks for one rehearses, so it takes
//! the way of a whole buffer through the library all the same, but from and to the null device.
//!
//! Source: fdopen(3), setvbuf(3), fread(3), fseeko(3), fclose(3).

use std::ffi::c_void;
use std::fs::OpenOptions;
use std::os::fd::{IntoRawFd as _, OwnedFd, RawFd};
use std::ptr::NonNull;

use iolab_model::op::OpenHow;
use iolab_model::{Bytes, error::Errno};

use crate::affinity::last_errno;
use crate::buffer::PageMemory;

unsafe extern "C" {
    // Of glibc and musl (unlocked_stdio(3)); the crate libc has them for other systems only.
    fn fread_unlocked(into: *mut c_void, size: usize, count: usize, file: *mut libc::FILE)
    -> usize;
    fn fwrite_unlocked(
        from: *const c_void,
        size: usize,
        count: usize,
        file: *mut libc::FILE,
    ) -> usize;
}

/// Direction of a stream's last transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Reading,
    Writing,
}

/// An open stream.
pub struct Stream {
    file: NonNull<libc::FILE>,
    fd: RawFd,
    is_open: bool,
    /// Used by the library until the stream is closed; empty if the library has its own.
    buffer: Option<PageMemory>,
    /// Begin of the next transfer, unless an error made that unknown.
    position: Option<u64>,
    direction: Option<Direction>,
}

// SAFETY: the stream is owned by this value alone; stdio streams have no thread affinity.
unsafe impl Send for Stream {}

impl Stream {
    /// A stream on an open descriptor.
    pub fn new(fd: OwnedFd, how: OpenHow) -> Result<Self, Errno> {
        let mode = match (how.is_readable, how.is_writable) {
            (_, false) => c"r",
            (true, true) => c"r+",
            (false, true) => c"w",
        };
        let size = usize::try_from(how.stream_buffer_bytes.0).map_err(|_| Errno::EINVAL)?;
        let mut buffer = PageMemory::new(size);
        let raw = fd.into_raw_fd();
        // SAFETY: the descriptor is open and ours, the mode a C string.
        let Some(file) = NonNull::new(unsafe { libc::fdopen(raw, mode.as_ptr()) }) else {
            let errno = last_errno();
            // SAFETY: the stream was not made, so that the descriptor is still ours.
            unsafe { libc::close(raw) };
            return Err(errno);
        };
        if let Some(memory) = &mut buffer {
            let (start, full) = (memory.bytes().as_mut_ptr().cast(), libc::_IOFBF);
            // SAFETY: nothing was transferred yet; the buffer lives until after fclose.
            unsafe { libc::setvbuf(file.as_ptr(), start, full, size) };
        }
        let (is_open, position) = (true, Some(0));
        Ok(Self { file, fd: raw, is_open, buffer, position, direction: None })
    }

    /// Reads at a byte, or where the stream is; fewer bytes only at the end of the file.
    #[allow(clippy::inline_always, reason = "a return after a system call: crate::kernel")]
    #[inline(always)]
    pub fn read(&mut self, at: Option<u64>, into: &mut [u8]) -> Result<Bytes, Errno> {
        self.move_to(at, Direction::Reading)?;
        if into.is_empty() {
            self.rehearse(Direction::Reading);
            return Ok(Bytes(0));
        }
        let mut done = 0;
        loop {
            let rest = &mut into[done..];
            let (start, length) = (rest.as_mut_ptr().cast(), rest.len());
            // SAFETY: `rest` is writable for its whole length during the call.
            let moved = unsafe { fread_unlocked(start, 1, length, self.file.as_ptr()) };
            done += self.count(moved);
            if moved == length || self.has_ended()? {
                return Ok(Bytes(done as u64));
            }
        }
    }

    /// Writes at a byte, or where the stream is.
    #[allow(clippy::inline_always, reason = "a return after a system call: crate::kernel")]
    #[inline(always)]
    pub fn write(&mut self, at: Option<u64>, from: &[u8]) -> Result<Bytes, Errno> {
        self.move_to(at, Direction::Writing)?;
        if from.is_empty() {
            self.rehearse(Direction::Writing);
            return Ok(Bytes(0));
        }
        let mut done = 0;
        loop {
            let rest = &from[done..];
            let (start, length) = (rest.as_ptr().cast(), rest.len());
            // SAFETY: `rest` is readable for its whole length during the call.
            let moved = unsafe { fwrite_unlocked(start, 1, length, self.file.as_ptr()) };
            done += self.count(moved);
            if moved == length || self.has_ended()? {
                return Ok(Bytes(done as u64));
            }
        }
    }

    /// Moves a buffer through the library, from or to a device that has nothing and keeps nothing,
    /// and calls the kernel for nothing. What fails here only makes the first transfer slower.
    #[cold]
    #[inline(never)]
    fn rehearse(&mut self, direction: Direction) {
        // A page at most: more would drive out of the caches what the transfers work on.
        let page = Bytes::PAGE.0 as usize;
        let size = self.buffer.as_mut().map_or(page, |buffer| buffer.bytes().len().min(page));
        let device = OpenOptions::new().read(true).write(true).open("/dev/null");
        let how = OpenHow {
            is_readable: true,
            is_writable: true,
            stream_buffer_bytes: Bytes(size as u64),
            ..OpenHow::default()
        };
        let null = device.ok().and_then(|device| Self::new(device.into(), how).ok());
        if let (Some(mut memory), Some(mut null)) = (PageMemory::new(size), null) {
            let _ = match direction {
                Direction::Reading => null.read(None, memory.bytes()),
                Direction::Writing => null.write(None, memory.bytes()),
            };
        }
        let mut nothing = [0_u8; 0];
        let start = nothing.as_mut_ptr().cast();
        // SAFETY: the descriptor is open, and no byte is moved.
        unsafe {
            match direction {
                Direction::Reading => libc::read(self.fd, start, 0),
                Direction::Writing => libc::write(self.fd, start, 0),
            }
        };
    }

    /// Sends what is buffered to the file; a stream that was read forgets what it read ahead.
    pub fn flush(&mut self) -> Result<(), Errno> {
        // SAFETY: the stream is open.
        if unsafe { libc::fflush(self.file.as_ptr()) } == 0 {
            return Ok(());
        }
        Err(self.failed())
    }

    /// Closes it; an error says that buffered data did not reach the file.
    pub fn close(mut self) -> Result<(), Errno> {
        self.is_open = false;
        // SAFETY: the stream is open and not used again.
        let result = unsafe { libc::fclose(self.file.as_ptr()) };
        if result == 0 { Ok(()) } else { Err(last_errno()) }
    }

    #[inline]
    fn count(&mut self, moved: usize) -> usize {
        self.position = self.position.map(|position| position + moved as u64);
        moved
    }

    #[inline]
    fn move_to(&mut self, at: Option<u64>, direction: Direction) -> Result<(), Errno> {
        let is_turning = self.direction.is_some_and(|last| last != direction);
        let is_elsewhere = at.is_some() && at != self.position;
        self.direction = Some(direction);
        if !is_turning && !is_elsewhere {
            return Ok(());
        }
        let (offset, whence) = match at.or(self.position) {
            Some(at) => (at as libc::off_t, libc::SEEK_SET),
            None => (0, libc::SEEK_CUR),
        };
        // SAFETY: the stream is open.
        if unsafe { libc::fseeko(self.file.as_ptr(), offset, whence) } != 0 {
            return Err(self.failed());
        }
        self.position = at.or(self.position);
        Ok(())
    }

    /// After a short transfer: whether the file ended; an interrupted call goes on.
    #[cold]
    fn has_ended(&mut self) -> Result<bool, Errno> {
        // SAFETY: the stream is open.
        let is_broken = unsafe { libc::ferror(self.file.as_ptr()) } != 0;
        let position = self.position;
        let errno = self.failed();
        if is_broken && errno.0 != libc::EINTR {
            return Err(errno);
        }
        self.position = position;
        Ok(!is_broken)
    }

    #[cold]
    fn failed(&mut self) -> Errno {
        let errno = last_errno();
        // SAFETY: the stream is open.
        unsafe { libc::clearerr(self.file.as_ptr()) };
        self.position = None;
        errno
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.is_open {
            // SAFETY: the stream is open and not used again. Whoever wants to know whether buffered
            // data reached the file closes it.
            unsafe { libc::fclose(self.file.as_ptr()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    fn stream(file: &std::fs::File) -> Stream {
        let stream_buffer_bytes = Bytes(16);
        let how = OpenHow { is_writable: true, stream_buffer_bytes, ..OpenHow::default() };
        let how = OpenHow { is_readable: true, ..how };
        Stream::new(file.try_clone().unwrap().into(), how).unwrap()
    }

    #[test]
    fn a_rehearsal_moves_and_changes_nothing() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"sixteen bytes ..and eight").unwrap();
        file.rewind().unwrap();
        let mut into = [0; 16];
        let mut reader = stream(&file);
        assert_eq!(reader.read(Some(0), &mut []), Ok(Bytes(0)));
        assert_eq!(reader.read(Some(0), &mut into), Ok(Bytes(16)));
        assert_eq!(&into, b"sixteen bytes ..");
        assert_eq!(reader.read(Some(16), &mut []), Ok(Bytes(0)));
        assert_eq!(reader.read(Some(16), &mut into), Ok(Bytes(9)));
        assert_eq!(&into[..9], b"and eight");
        reader.close().unwrap();
        file.rewind().unwrap();
        let mut writer = stream(&file);
        assert_eq!(writer.write(Some(0), &[]), Ok(Bytes(0)));
        assert_eq!(writer.write(Some(0), b"SIXTEEN"), Ok(Bytes(7)));
        writer.close().unwrap();
        file.rewind().unwrap();
        assert_eq!(std::io::read_to_string(file).unwrap(), "SIXTEEN bytes ..and eight");
    }
}
