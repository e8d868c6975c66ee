//! A mapped file: transfers are copies from or to memory.
//!
//! Writable handles are mapped shared, so that what is copied in reaches the file; read-only ones
//! are mapped private and read-only, as `IOzone` maps them. A page that cannot be had ends the op
//! with EIO ([`crate::fault`]). Left out: huge pages, remapping on growth.
//!
//! Source: mmap(2), madvise(2), msync(2), munmap(2).

use std::os::fd::RawFd;
use std::ptr::NonNull;

use iolab_model::{Bytes, error::Errno, op::Advice};

use crate::affinity::last_errno;
use crate::fault;

/// A mapping of a file's first bytes.
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
    is_writable: bool,
    /// Pages lost to a fault could not be mapped again.
    is_broken: bool,
}

// SAFETY: the mapping is owned by this value alone and has no thread affinity.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `length` bytes of an open file.
    pub fn new(fd: RawFd, length: Bytes, is_writable: bool) -> Result<Self, Errno> {
        fault::install();
        let length = usize::try_from(length.0).map_err(|_| Errno::EINVAL)?;
        // SAFETY: a mapping at an address that the kernel chooses touches no existing memory.
        let start = unsafe { map(std::ptr::null_mut(), length, is_writable, (fd, 0)) }?;
        Ok(Self { start, length, is_writable, is_broken: false })
    }

    /// Copies from the file at byte `at`.
    #[inline]
    pub fn read(&mut self, fd: RawFd, at: u64, into: &mut [u8]) -> Result<(), Errno> {
        let start = self.place(at, into.len())?;
        let address = start.as_ptr() as usize;
        // SAFETY: `place` keeps the range inside the mapping, which lives as long as self and
        // which no buffer of ours overlaps.
        let has_faulted = unsafe {
            fault::copy(
                start.as_ptr(),
                into.as_mut_ptr(),
                into.len(),
                address..address + into.len(),
            )
        };
        if has_faulted { Err(self.restore(fd, at, into.len())) } else { Ok(()) }
    }

    /// Copies to the file at byte `at`.
    #[inline]
    pub fn write(&mut self, fd: RawFd, at: u64, from: &[u8]) -> Result<(), Errno> {
        if !self.is_writable {
            return Err(Errno::EBADF);
        }
        let start = self.place(at, from.len())?;
        let address = start.as_ptr() as usize;
        // SAFETY: as in `read`; the mapping is writable.
        let has_faulted = unsafe {
            fault::copy(from.as_ptr(), start.as_ptr(), from.len(), address..address + from.len())
        };
        if has_faulted { Err(self.restore(fd, at, from.len())) } else { Ok(()) }
    }

    /// Writes the pages of a range back; waits for it unless told not to.
    pub fn sync(&mut self, at: Bytes, length: Bytes, is_async: bool) -> Result<(), Errno> {
        self.place(at.0, usize::try_from(length.0).map_err(|_| Errno::EINVAL)?)?;
        let (start, length) = self.pages(at.0 as usize, length.0 as usize);
        let flags = if is_async { libc::MS_ASYNC } else { libc::MS_SYNC };
        // SAFETY: the pages belong to this mapping.
        let result = unsafe { libc::msync(start.as_ptr().cast(), length, flags) };
        if result == 0 { Ok(()) } else { Err(last_errno()) }
    }

    /// Says how the whole mapping will be used.
    pub fn advise(&mut self, advice: Advice) -> Result<(), Errno> {
        let advice = match advice {
            Advice::Normal => libc::MADV_NORMAL,
            Advice::Random => libc::MADV_RANDOM,
            Advice::Sequential => libc::MADV_SEQUENTIAL,
            Advice::DontNeed => libc::MADV_DONTNEED,
            Advice::WillNeed => libc::MADV_WILLNEED,
        };
        // SAFETY: the pages belong to this mapping of a file; none of these advices changes what
        // the file holds.
        let result = unsafe { libc::madvise(self.start.as_ptr().cast(), self.length, advice) };
        if result == 0 { Ok(()) } else { Err(last_errno()) }
    }

    /// Address of a range in memory; EINVAL outside, EIO once pages are lost.
    #[inline]
    fn place(&self, at: u64, length: usize) -> Result<NonNull<u8>, Errno> {
        let end = usize::try_from(at).ok().and_then(|at| at.checked_add(length));
        if end.is_none_or(|end| end > self.length) {
            return Err(Errno::EINVAL);
        }
        if self.is_broken {
            return Err(Errno::EIO);
        }
        // SAFETY: the offset was just found to be inside the mapping.
        Ok(unsafe { self.start.add(at as usize) })
    }

    /// The whole pages around a range.
    fn pages(&self, at: usize, length: usize) -> (NonNull<u8>, usize) {
        let page = fault::page_bytes();
        let first = at - at % page;
        let end = (at + length).next_multiple_of(page);
        // SAFETY: rounding down stays inside the mapping, which starts on a page.
        (unsafe { self.start.add(first) }, end - first)
    }

    /// Puts the file's own pages back where a fault left empty ones; answers EIO.
    #[cold]
    fn restore(&mut self, fd: RawFd, at: u64, length: usize) -> Errno {
        let (start, length) = self.pages(at as usize, length);
        let offset = start.as_ptr() as usize - self.start.as_ptr() as usize;
        // SAFETY: the range is part of this mapping; nothing else is replaced.
        let mapped =
            unsafe { map(start.as_ptr(), length, self.is_writable, (fd, offset as libc::off_t)) };
        self.is_broken |= mapped.is_err();
        Errno::EIO
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length; nobody borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// mmap(2) of part of a file, at an address unless that is null.
///
/// # Safety
///
/// At a non-null address only memory is replaced that is the caller's to replace.
unsafe fn map(
    address: *mut u8,
    length: usize,
    is_writable: bool,
    (fd, offset): (RawFd, libc::off_t),
) -> Result<NonNull<u8>, Errno> {
    let (protection, sharing) = if is_writable {
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)
    } else {
        (libc::PROT_READ, libc::MAP_PRIVATE)
    };
    let fixed = if address.is_null() { 0 } else { libc::MAP_FIXED };
    // SAFETY: promised by the caller.
    let start =
        unsafe { libc::mmap(address.cast(), length, protection, sharing | fixed, fd, offset) };
    if start == libc::MAP_FAILED {
        return Err(last_errno());
    }
    Ok(NonNull::new(start.cast()).expect("mmap never answers with null"))
}
