//! The open files of a lane, and every op that is a plain system call in all engines.
//!
//! A handle is a descriptor, a stdio stream ([`Stream`]) or a file to be mapped ([`Mapping`]), as
//! it was opened; a synchronous engine can hold all of them at once.
//!
//! Byte-range locks are those of open file descriptions (`F_OFD_SETLKW`): POSIX's own belong to the
//! process, so that workers that are threads would never wait for each other, and the first close
//! of any descriptor of the file would drop them. They live as long as the description, and a ring
//! may hold that longer than its descriptor: an op that a worker thread of the kernel did is put
//! away when the ring's owner enters it next. An owner that waits for the lock never would; hence
//! [`HeldLocks`].

use std::ffi::CString;
use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iolab_model::op::{
    Access, Advice, Deallocation, Durability, Handle, LockKind, Op, OpenHow, PathId, Position,
    WriteLife,
};
use iolab_model::{Bytes, Capabilities, Ns, error::Errno};

use crate::affinity::last_errno;
use crate::clock::{burn, monotonic, sleep_until};
use crate::created;
use crate::kernel;
use crate::listing::{Listing, seen_from};
use crate::mapping::Mapping;
use crate::stream::Stream;

/// A handle that is not mapped (yet) was used as one that is.
const NOT_MAPPED: Errno = Errno(libc::ENXIO);

/// `F_SET_RW_HINT` of `linux/fcntl.h`, which the crate libc has not.
const F_SET_RW_HINT: libc::c_int = 1024 + 12;

/// Permissions of a directory that is made: nobody else's business.
const DIRECTORY_MODE: u32 = 0o700;

/// One open file.
pub struct Opened {
    fd: RawFd,
    /// File position of the kernel, as far as this lane moved it.
    pub position: u64,
    is_writable: bool,
    locks: Option<HeldLocks>,
    via: Via,
}

/// Gives a file's locks back when its handle is closed or dropped; declared before what owns the
/// descriptor, so that it is dropped first.
struct HeldLocks(RawFd);

impl Drop for HeldLocks {
    fn drop(&mut self) {
        // Nothing can be done about a failure: the last close is the second chance.
        let _ = set_lock(self.0, libc::F_UNLCK, Bytes(0), Bytes(0));
    }
}

/// Way to an open file; each owns the descriptor.
enum Via {
    Descriptor(OwnedFd),
    Stream(Stream),
    Memory { mapping: Option<Mapping>, file: OwnedFd },
}

impl Opened {
    /// Tell whether it was opened for writing.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Tell whether it is a block device that was opened for reading alone.
    fn is_device_only_read(&self) -> bool {
        !self.is_writable && is_block_device(self.raw())
    }

    /// Its descriptor.
    #[inline]
    pub fn raw(&self) -> RawFd {
        self.fd
    }

    /// Tell whether transfers are system calls on the descriptor.
    #[inline]
    pub fn is_descriptor(&self) -> bool {
        matches!(self.via, Via::Descriptor(_))
    }

    /// The byte that a transfer starts at.
    #[inline]
    pub fn offset(&self, at: Position) -> u64 {
        match at {
            Position::At(at) => at.0,
            Position::Current | Position::End => self.position,
        }
    }

    /// Reads through the stream or the mapping.
    #[allow(clippy::inline_always, reason = "a return after a system call: crate::kernel")]
    #[inline(always)]
    pub fn read(&mut self, at: Position, into: &mut [u8]) -> Result<Bytes, Errno> {
        let offset = self.offset(at);
        match &mut self.via {
            Via::Descriptor(_) => Err(Errno::EINVAL),
            Via::Stream(stream) => stream.read(place(at), into),
            Via::Memory { mapping, .. } => {
                mapping.as_mut().ok_or(NOT_MAPPED)?.read(self.fd, offset, into)?;
                self.position = offset + into.len() as u64;
                Ok(Bytes(into.len() as u64))
            }
        }
    }

    /// Writes through the stream or the mapping.
    #[allow(clippy::inline_always, reason = "a return after a system call: crate::kernel")]
    #[inline(always)]
    pub fn write(&mut self, at: Position, from: &[u8]) -> Result<Bytes, Errno> {
        let offset = self.offset(at);
        match &mut self.via {
            Via::Descriptor(_) => Err(Errno::EINVAL),
            Via::Stream(stream) => stream.write(place(at), from),
            Via::Memory { mapping, .. } => {
                mapping.as_mut().ok_or(NOT_MAPPED)?.write(self.fd, offset, from)?;
                self.position = offset + from.len() as u64;
                Ok(Bytes(from.len() as u64))
            }
        }
    }

    /// Moves the file position if it is not there already; `false` with errno set if that fails.
    #[inline]
    pub fn seek(&mut self, at: Position) -> bool {
        let Position::At(at) = at else { return true };
        if self.position == at.0 {
            return true;
        }
        if kernel::seek(self.fd, at.0) < 0 {
            return false;
        }
        self.position = at.0;
        true
    }

    /// Write the content of a stream to the file first; nothing to do for the others.
    fn flush(&mut self) -> Result<(), Errno> {
        if let Via::Stream(stream) = &mut self.via { stream.flush() } else { Ok(()) }
    }

    /// The stream, if it is one.
    fn stream(&mut self) -> Result<&mut Stream, Errno> {
        if let Via::Stream(stream) = &mut self.via { Ok(stream) } else { Err(Errno::EINVAL) }
    }

    /// Mapping of the handle, if it is one to be mapped.
    fn memory(&mut self) -> Result<&mut Option<Mapping>, Errno> {
        if let Via::Memory { mapping, .. } = &mut self.via {
            Ok(mapping)
        } else {
            Err(Errno::EINVAL)
        }
    }

    /// Closes it and says so if that fails: a late write error has its last chance here.
    fn close(self) -> Result<(), Errno> {
        drop(self.locks);
        let file = match self.via {
            Via::Descriptor(file) => file,
            Via::Stream(stream) => return stream.close(),
            Via::Memory { mapping, file } => {
                drop(mapping);
                file
            }
        };
        // SAFETY: the descriptor was owned by this handle and is given up here.
        let result = unsafe { libc::close(file.into_raw_fd()) };
        if result == 0 { Ok(()) } else { Err(last_errno()) }
    }
}

fn place(at: Position) -> Option<u64> {
    match at {
        Position::At(at) => Some(at.0),
        Position::Current | Position::End => None,
    }
}

/// Preferred size of transfers to files in a directory, where it says.
pub fn preferred_bytes(directory: &Path) -> Option<Bytes> {
    directory.metadata().ok().map(|found| Bytes(found.blksize())).filter(|size| size.0 > 0)
}

/// The open files of a lane, by handle.
pub struct Files {
    paths: Arc<[PathBuf]>,
    opened: Vec<Option<Opened>>,
    /// The directory that was listed last.
    listing: Option<Listing>,
    can: Capabilities,
}

/// A system call's answer: negative means look at errno.
fn answer(result: libc::c_int) -> Result<Bytes, Errno> {
    if result < 0 { Err(last_errno()) } else { Ok(Bytes(0)) }
}

impl Files {
    /// No file is open; only what the engine can do will be done.
    pub fn new(paths: Arc<[PathBuf]>, can: Capabilities) -> Self {
        Self { paths, opened: Vec::new(), listing: None, can }
    }

    /// Abilities of the engine.
    pub fn can(&self) -> &Capabilities {
        &self.can
    }

    /// The open file behind a handle.
    #[inline]
    pub fn get(&mut self, handle: Handle) -> Result<&mut Opened, Errno> {
        self.opened.get_mut(handle.0 as usize).and_then(Option::as_mut).ok_or(Errno::EBADF)
    }

    /// Performs any op that moves no data between the lane's buffers and a file.
    pub fn perform(&mut self, op: &Op) -> Result<Bytes, Errno> {
        match *op {
            Op::Fsync { handle } | Op::Fdatasync { handle }
                if self.get(handle)?.is_device_only_read() =>
            {
                // The kernel would empty the cache of a disk that others use.
                Ok(Bytes(0))
            }
            Op::Fsync { handle } => {
                let fd = self.flushed(handle)?;
                // SAFETY: `fd` is open; fsync touches no memory of ours.
                answer(unsafe { libc::fsync(fd) })
            }
            Op::Fdatasync { handle } => {
                let fd = self.flushed(handle)?;
                // SAFETY: as above.
                answer(unsafe { libc::fdatasync(fd) })
            }
            Op::SyncFileRange { handle, at, length, how } => {
                let fd = self.flushed(handle)?;
                let flag = |is_asked, flag: libc::c_uint| if is_asked { flag } else { 0 };
                let flags = flag(how.waits_before, libc::SYNC_FILE_RANGE_WAIT_BEFORE)
                    | flag(how.writes, libc::SYNC_FILE_RANGE_WRITE)
                    | flag(how.waits_after, libc::SYNC_FILE_RANGE_WAIT_AFTER);
                // SAFETY: as above.
                answer(unsafe { libc::sync_file_range(fd, at.0 as i64, length.0 as i64, flags) })
            }
            Op::Create { path, handle, how } => {
                self.open(path, handle, how, libc::O_CREAT | libc::O_EXCL)
            }
            Op::Open { path, handle, how } => self.open(path, handle, how, 0),
            Op::Close { handle } => {
                let slot = self.opened.get_mut(handle.0 as usize);
                let opened = slot.and_then(Option::take).ok_or(Errno::EBADF)?;
                opened.close().map(|()| Bytes(0))
            }
            Op::Truncate { handle, length } => {
                let fd = self.flushed(handle)?;
                // SAFETY: as above.
                answer(unsafe { libc::ftruncate(fd, length.0 as i64) })
            }
            Op::Allocate { handle, at, length, keeps_length } => {
                let fd = self.flushed(handle)?;
                let mode = if keeps_length { libc::FALLOC_FL_KEEP_SIZE } else { 0 };
                // SAFETY: as above.
                answer(unsafe { libc::fallocate(fd, mode, at.0 as i64, length.0 as i64) })
            }
            Op::Lock { handle, kind, at, length } => self.lock(handle, kind, at, length),
            Op::Deallocate { handle, at, length, how } => self.deallocate(handle, at, length, how),
            Op::Copy { from, from_at, to, to_at, length } => {
                self.copy((from, from_at), (to, to_at), length)
            }
            Op::Burn { duration } => {
                burn(duration);
                Ok(Bytes(0))
            }
            Op::SyncAll => {
                // SAFETY: the call has no arguments and cannot fail.
                unsafe { libc::sync() };
                Ok(Bytes(0))
            }
            Op::Think { duration } => {
                sleep_until(Ns(monotonic().0 + duration.0));
                Ok(Bytes(0))
            }
            _ => self.perform_on_memory(op),
        }
    }

    fn perform_on_memory(&mut self, op: &Op) -> Result<Bytes, Errno> {
        match *op {
            Op::Map { handle, length } if self.can.has_mapping => {
                let opened = self.get(handle)?;
                let (fd, is_writable) = (opened.raw(), opened.is_writable);
                let memory = opened.memory()?;
                if memory.is_some() {
                    return Err(Errno::EBUSY);
                }
                *memory = Some(Mapping::new(fd, length, is_writable)?);
                Ok(Bytes(0))
            }
            Op::Unmap { handle } if self.can.has_mapping => {
                let mapping = self.get(handle)?.memory()?.take();
                mapping.map(|_| Bytes(0)).ok_or(NOT_MAPPED)
            }
            Op::Advise { handle, advice } => self.advise(handle, advice),
            Op::Msync { handle, at, length, is_async } if self.can.has_mapping => {
                let mapping = self.get(handle)?.memory()?.as_mut().ok_or(NOT_MAPPED)?;
                mapping.sync(at, length, is_async).map(|()| Bytes(0))
            }
            Op::StreamFlush { handle } if self.can.has_stream => {
                self.get(handle)?.stream()?.flush().map(|()| Bytes(0))
            }
            _ => self.perform_on_names(op),
        }
    }

    /// Advice about a mapping, or about reads of a file that is open as a descriptor.
    fn advise(&mut self, handle: Handle, advice: Advice) -> Result<Bytes, Errno> {
        let opened = self.get(handle)?;
        // A file that is to be mapped is advised about as others are until it is.
        if !opened.is_descriptor()
            && let Some(mapping) = opened.memory()?
        {
            return mapping.advise(advice).map(|()| Bytes(0));
        }
        let advice = match advice {
            Advice::Normal => libc::POSIX_FADV_NORMAL,
            Advice::Random => libc::POSIX_FADV_RANDOM,
            Advice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
            Advice::DontNeed => libc::POSIX_FADV_DONTNEED,
            Advice::WillNeed => libc::POSIX_FADV_WILLNEED,
        };
        // SAFETY: the descriptor is open; the call touches no memory of ours.
        match unsafe { libc::posix_fadvise(opened.raw(), 0, 0, advice) } {
            0 => Ok(Bytes(0)),
            errno => Err(Errno(errno)),
        }
    }

    /// Performs an op on a stream or a mapping that moves data; `memory` is the slot's buffer, cut
    /// to the op's length.
    pub fn move_data(&mut self, op: &Op, memory: &mut [u8]) -> Result<Bytes, Errno> {
        match *op {
            Op::Touch { handle, at, is_write, .. } if self.can.has_mapping => {
                let opened = self.get(handle)?;
                opened.memory()?;
                if is_write {
                    opened.write(Position::At(at), memory)
                } else {
                    opened.read(Position::At(at), memory)
                }
            }
            Op::StreamRead { handle, .. } if self.can.has_stream => {
                self.get(handle)?.stream()?.read(None, memory)
            }
            Op::StreamWrite { handle, .. } if self.can.has_stream => {
                self.get(handle)?.stream()?.write(None, memory)
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    fn perform_on_names(&mut self, op: &Op) -> Result<Bytes, Errno> {
        let errno = |e: &std::io::Error| Errno(e.raw_os_error().unwrap_or(Errno::EIO.0));
        let done = |r: std::io::Result<()>| r.map(|()| Bytes(0)).map_err(|e| errno(&e));
        match *op {
            Op::Unlink { path } => done(std::fs::remove_file(self.path(path)?)),
            Op::Rename { from, to } => done(std::fs::rename(self.path(from)?, self.path(to)?)),
            Op::Stat { path } => {
                let name = self.path(path)?;
                let found = std::fs::symlink_metadata(name).map_err(|e| errno(&e))?;
                if !found.is_file() && is_device(name) {
                    return device_bytes(name).map_err(|e| errno(&e));
                }
                Ok(Bytes(found.len()))
            }
            Op::StatTarget { path } => {
                let found = std::fs::metadata(self.path(path)?).map_err(|e| errno(&e))?;
                Ok(Bytes(found.len()))
            }
            Op::NextNames { path, count } => self.next_names(path, count).map_err(|e| errno(&e)),
            Op::ReadDirectory { path } => directory_bytes(self.path(path)?).map_err(|e| errno(&e)),
            Op::MakeDirectory { path } => {
                done(std::fs::DirBuilder::new().mode(DIRECTORY_MODE).create(self.path(path)?))
            }
            Op::RemoveDirectory { path } => done(std::fs::remove_dir(self.path(path)?)),
            Op::Link { from, to, is_symbolic: false } => {
                done(std::fs::hard_link(self.path(from)?, self.path(to)?))
            }
            Op::Link { from, to, is_symbolic: true } => {
                let (from, to) = (self.path(from)?, self.path(to)?);
                done(std::os::unix::fs::symlink(seen_from(from, to), to))
            }
            Op::SyncDirectory { path } => {
                let sync = |path| std::fs::File::open(path)?.sync_all();
                done(sync(self.path(path)?))
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// Gives the blocks of a range back; a discard of a block device is an ioctl of its own.
    fn deallocate(
        &mut self,
        handle: Handle,
        at: Bytes,
        length: Bytes,
        how: Deallocation,
    ) -> Result<Bytes, Errno> {
        /// Linux include/uapi/linux/fs.h: `BLKDISCARD`, `_IO(0x12, 119)`.
        const BLKDISCARD: libc::c_ulong = 0x1277;
        let fd = self.flushed(handle)?;
        let mode = match how {
            Deallocation::Zero => libc::FALLOC_FL_ZERO_RANGE,
            Deallocation::Punch | Deallocation::Discard => libc::FALLOC_FL_PUNCH_HOLE,
        };
        if how == Deallocation::Discard && is_block_device(fd) {
            let range = [at.0, length.0];
            // SAFETY: the call reads two 64-bit numbers, which live during it.
            return answer(unsafe { libc::ioctl(fd, BLKDISCARD as _, range.as_ptr()) });
        }
        let mode = mode | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: `fd` is open; the call touches no memory of ours.
        answer(unsafe { libc::fallocate(fd, mode, at.0 as i64, length.0 as i64) })
    }

    /// Copies inside the kernel, until done or at the end of the source.
    fn copy(
        &mut self,
        (from, from_at): (Handle, Bytes),
        (to, to_at): (Handle, Bytes),
        length: Bytes,
    ) -> Result<Bytes, Errno> {
        let (source, target) = (self.flushed(from)?, self.flushed(to)?);
        let (mut read_at, mut write_at) = (from_at.0 as i64, to_at.0 as i64);
        let mut done = 0;
        while done < length.0 {
            let rest = (length.0 - done) as usize;
            let (read_at, write_at) = (&raw mut read_at, &raw mut write_at);
            // SAFETY: both positions are ours and live during the call, which advances them.
            match unsafe { libc::copy_file_range(source, read_at, target, write_at, rest, 0) } {
                0 => break,
                moved if moved > 0 => done += moved as u64,
                _ if last_errno().0 == libc::EINTR => {}
                _ => return Err(last_errno()),
            }
        }
        Ok(Bytes(done))
    }

    /// The descriptor of a handle, once a stream's buffer has been sent.
    fn flushed(&mut self, handle: Handle) -> Result<RawFd, Errno> {
        let opened = self.get(handle)?;
        opened.flush()?;
        Ok(opened.raw())
    }

    /// Waits for a lock on a byte range, or gives it back; a length of 0 reaches to the end.
    fn lock(
        &mut self,
        handle: Handle,
        kind: LockKind,
        at: Bytes,
        length: Bytes,
    ) -> Result<Bytes, Errno> {
        let kind = match kind {
            LockKind::Shared => libc::F_RDLCK,
            LockKind::Exclusive => libc::F_WRLCK,
            LockKind::Release => libc::F_UNLCK,
        };
        let opened = self.get(handle)?;
        if kind != libc::F_UNLCK && opened.locks.is_none() {
            opened.locks = Some(HeldLocks(opened.fd));
        }
        set_lock(opened.fd, kind, at, length)
    }

    fn path(&self, id: PathId) -> Result<&PathBuf, Errno> {
        let number = id.0 as usize;
        match number.checked_sub(self.paths.len()) {
            None => self.paths.get(number),
            Some(place) => self.listing.as_ref().and_then(|listing| listing.name(place)),
        }
        .ok_or(Errno::ENOENT)
    }

    /// The next names of a directory become paths; answers how many there are.
    fn next_names(&mut self, path: PathId, count: u32) -> std::io::Result<Bytes> {
        let listing = match self.listing.take() {
            Some(listing) if listing.goes_on(path) => listing,
            before => {
                let unknown = || std::io::Error::from_raw_os_error(Errno::ENOENT.0);
                let directory = self.paths.get(path.0 as usize).ok_or_else(unknown)?;
                Listing::begin(path, directory, before)?
            }
        };
        self.listing.insert(listing).read_on(count)
    }

    fn open(
        &mut self,
        path: PathId,
        handle: Handle,
        how: OpenHow,
        extra: libc::c_int,
    ) -> Result<Bytes, Errno> {
        let flags = open_flags(how, &self.can).ok_or(Errno::EOPNOTSUPP)? | extra;
        let path = self.path(path)?;
        let mode = how.permissions.bits();
        let file = match open_file(path, flags, mode) {
            Err(errno) if errno.0 == libc::ELOOP && !how.is_writable && is_device(path) => {
                let found = open_file(path, flags & !libc::O_NOFOLLOW, mode)?;
                if !is_block_device(found.as_raw_fd()) {
                    return Err(errno);
                }
                found
            }
            opened => opened?,
        };
        let raw = file.as_raw_fd();
        if extra & libc::O_EXCL != 0 && how.is_remembered {
            created::note(raw);
        }
        if how.is_writable {
            hint(raw, how.write_life)?;
        }
        let via = match how.access {
            Access::Stdio => Via::Stream(Stream::new(file, how)?),
            Access::Mapped => Via::Memory { mapping: None, file },
            _ => Via::Descriptor(file),
        };
        let slot = handle.0 as usize;
        if self.opened.len() <= slot {
            self.opened.resize_with(slot + 1, || None);
        }
        self.opened[slot] =
            Some(Opened { fd: raw, position: 0, is_writable: how.is_writable, locks: None, via });
        Ok(Bytes(0))
    }
}

/// Says how long what is written into a file will live; its inode keeps that while it is in memory.
fn hint(fd: RawFd, life: WriteLife) -> Result<(), Errno> {
    // Numbers of `linux/fcntl.h`.
    let number: u64 = match life {
        WriteLife::Unsaid => return Ok(()),
        WriteLife::None => 1,
        WriteLife::Short => 2,
        WriteLife::Medium => 3,
        WriteLife::Long => 4,
        WriteLife::Extreme => 5,
    };
    // SAFETY: `number` is readable during the call; the descriptor is open.
    answer(unsafe { libc::fcntl(fd, F_SET_RW_HINT, &raw const number) }).map(drop)
}

/// Opens a file.
fn open_file(path: &Path, flags: libc::c_int, mode: libc::c_uint) -> Result<OwnedFd, Errno> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: `name` is a C string that outlives the call.
    let fd = unsafe { libc::open(name.as_ptr(), flags, mode) };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: `fd` was just opened and is owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Tell whether a name leads to a block device: those of disks that last are links.
fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device())
}

/// Tell whether a descriptor is that of a block device.
pub fn is_block_device(fd: RawFd) -> bool {
    // SAFETY: stat is plain data, for which all zeroes is a valid value.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `found` is writable and the descriptor open.
    let is_known = unsafe { libc::fstat(fd, &raw mut found) } == 0;
    is_known && found.st_mode & libc::S_IFMT == libc::S_IFBLK
}

/// Waits for a lock of the open file description, or gives it back.
fn set_lock(fd: RawFd, kind: libc::c_int, at: Bytes, length: Bytes) -> Result<Bytes, Errno> {
    // SAFETY: flock is plain data, for which all zeroes is a valid value; l_pid must be 0.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    (range.l_start, range.l_len) = (at.0 as libc::off_t, length.0 as libc::off_t);
    loop {
        // SAFETY: `range` is a valid flock during the call; the descriptor's owner keeps it open.
        let result = answer(unsafe { libc::fcntl(fd, libc::F_OFD_SETLKW, &raw const range) });
        if result != Err(Errno(libc::EINTR)) {
            return result;
        }
    }
}

/// Flags of open(2), or `None` for a kind of access that the engine does not have.
fn open_flags(how: OpenHow, can: &Capabilities) -> Option<libc::c_int> {
    let mode = match (how.is_readable, how.is_writable) {
        (_, false) => libc::O_RDONLY,
        (true, true) => libc::O_RDWR,
        // A shared mapping is read where it is written (mmap(2), EACCES).
        (false, true) if how.access == Access::Mapped => libc::O_RDWR,
        (false, true) => libc::O_WRONLY,
    };
    let (is_possible, access) = match how.access {
        Access::Plain => (can.has_plain, 0),
        Access::Direct => (can.has_direct, libc::O_DIRECT),
        Access::Append => (can.has_append, libc::O_APPEND),
        Access::Mapped => (can.has_mapping, 0),
        Access::Stdio => (can.has_stream, 0),
    };
    let durability = match how.durability {
        Durability::None => 0,
        Durability::Sync => libc::O_SYNC,
        Durability::DataSync => libc::O_DSYNC,
    };
    let truncate = if how.is_truncating { libc::O_TRUNC } else { 0 };
    let flags = mode | access | durability | truncate | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    is_possible.then_some(flags)
}

/// Bytes of a block device, which its inode does not tell.
fn device_bytes(node: &std::path::Path) -> std::io::Result<Bytes> {
    use std::io::Seek as _;
    Ok(Bytes(std::fs::File::open(node)?.seek(std::io::SeekFrom::End(0))?))
}

/// Reads a whole directory; answers how many bytes its entries take, `.` and `..` included, as
/// getdents64(2) gives them: 19 bytes, the name and its end, rounded up to 8.
fn directory_bytes(path: &std::path::Path) -> std::io::Result<Bytes> {
    let entry_bytes = |name: usize| (19 + name as u64 + 1).next_multiple_of(8);
    let mut sum = entry_bytes(1) + entry_bytes(2);
    for entry in std::fs::read_dir(path)? {
        sum += entry_bytes(entry?.file_name().len());
    }
    Ok(Bytes(sum))
}
