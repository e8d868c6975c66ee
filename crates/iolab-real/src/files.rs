//! The open files of a lane, and every op that is a plain system call in all engines.

use std::ffi::CString;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use iolab_model::op::{Access, Durability, Handle, Op, OpenHow, PathId};
use iolab_model::{Bytes, Ns, error::Errno};

use crate::affinity::last_errno;
use crate::clock::{monotonic, sleep_until};

/// One open file.
pub struct Opened {
    fd: OwnedFd,
    /// Where the kernel's file position is, as far as this lane moved it.
    pub position: u64,
}

impl Opened {
    /// Its descriptor.
    #[inline]
    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// The open files of a lane, by handle.
pub struct Files {
    paths: Arc<[PathBuf]>,
    opened: Vec<Option<Opened>>,
}

/// A system call's answer: negative means look at errno.
fn answer(result: libc::c_int) -> Result<Bytes, Errno> {
    if result < 0 { Err(last_errno()) } else { Ok(Bytes(0)) }
}

impl Files {
    /// No file is open.
    pub fn new(paths: Arc<[PathBuf]>) -> Self {
        Self { paths, opened: Vec::new() }
    }

    /// The open file behind a handle.
    #[inline]
    pub fn get(&mut self, handle: Handle) -> Result<&mut Opened, Errno> {
        self.opened.get_mut(handle.0 as usize).and_then(Option::as_mut).ok_or(Errno::EBADF)
    }

    /// Performs any op that is not a transfer.
    pub fn perform(&mut self, op: &Op) -> Result<Bytes, Errno> {
        match *op {
            Op::Fsync { handle } => {
                let fd = self.get(handle)?.raw();
                // SAFETY: `fd` is open; fsync touches no memory of ours.
                answer(unsafe { libc::fsync(fd) })
            }
            Op::Fdatasync { handle } => {
                let fd = self.get(handle)?.raw();
                // SAFETY: as above.
                answer(unsafe { libc::fdatasync(fd) })
            }
            Op::SyncFileRange { handle, at, length } => {
                let fd = self.get(handle)?.raw();
                let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
                    | libc::SYNC_FILE_RANGE_WRITE
                    | libc::SYNC_FILE_RANGE_WAIT_AFTER;
                // SAFETY: as above.
                answer(unsafe { libc::sync_file_range(fd, at.0 as i64, length.0 as i64, flags) })
            }
            Op::Create { path, handle, how } => {
                self.open(path, handle, how, libc::O_CREAT | libc::O_EXCL)
            }
            Op::Open { path, handle, how } => self.open(path, handle, how, 0),
            Op::Close { handle } => {
                self.get(handle)?;
                self.opened[handle.0 as usize] = None;
                Ok(Bytes(0))
            }
            Op::Truncate { handle, length } => {
                let fd = self.get(handle)?.raw();
                // SAFETY: as above.
                answer(unsafe { libc::ftruncate(fd, length.0 as i64) })
            }
            Op::Allocate { handle, at, length } => {
                let fd = self.get(handle)?.raw();
                // SAFETY: as above.
                answer(unsafe { libc::fallocate(fd, 0, at.0 as i64, length.0 as i64) })
            }
            Op::Think { duration } => {
                sleep_until(Ns(monotonic().0 + duration.0));
                Ok(Bytes(0))
            }
            _ => self.perform_on_names(op),
        }
    }

    fn perform_on_names(&mut self, op: &Op) -> Result<Bytes, Errno> {
        let errno = |e: &std::io::Error| Errno(e.raw_os_error().unwrap_or(Errno::EIO.0));
        let done = |r: std::io::Result<()>| r.map(|()| Bytes(0)).map_err(|e| errno(&e));
        match *op {
            Op::Unlink { path } => done(std::fs::remove_file(self.path(path)?)),
            Op::Rename { from, to } => done(std::fs::rename(self.path(from)?, self.path(to)?)),
            Op::Stat { path } => {
                let found = std::fs::symlink_metadata(self.path(path)?).map_err(|e| errno(&e))?;
                Ok(Bytes(found.len()))
            }
            Op::ReadDirectory { path } => {
                let list = |path| std::fs::read_dir(path)?.try_for_each(|entry| entry.map(drop));
                done(list(self.path(path)?))
            }
            Op::MakeDirectory { path } => done(std::fs::create_dir(self.path(path)?)),
            Op::RemoveDirectory { path } => done(std::fs::remove_dir(self.path(path)?)),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    fn path(&self, id: PathId) -> Result<&PathBuf, Errno> {
        self.paths.get(id.0 as usize).ok_or(Errno::ENOENT)
    }

    fn open(
        &mut self,
        path: PathId,
        handle: Handle,
        how: OpenHow,
        extra: libc::c_int,
    ) -> Result<Bytes, Errno> {
        let flags = open_flags(how).ok_or(Errno::EOPNOTSUPP)? | extra;
        let name = CString::new(self.path(path)?.as_os_str().as_bytes());
        let name = name.map_err(|_| Errno::EINVAL)?;
        // SAFETY: `name` is a C string that outlives the call. Mode 0640 is IOzone's.
        let fd = unsafe { libc::open(name.as_ptr(), flags, 0o640 as libc::c_uint) };
        if fd < 0 {
            return Err(last_errno());
        }
        // SAFETY: `fd` was just opened and is owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let slot = handle.0 as usize;
        if self.opened.len() <= slot {
            self.opened.resize_with(slot + 1, || None);
        }
        self.opened[slot] = Some(Opened { fd, position: 0 });
        Ok(Bytes(0))
    }
}

/// Flags of open(2), or `None` for a kind of access that these engines do not have.
fn open_flags(how: OpenHow) -> Option<libc::c_int> {
    let mode = match (how.is_readable, how.is_writable) {
        (_, false) => libc::O_RDONLY,
        (true, true) => libc::O_RDWR,
        (false, true) => libc::O_WRONLY,
    };
    let access = match how.access {
        Access::Plain => 0,
        Access::Direct => libc::O_DIRECT,
        Access::Append => libc::O_APPEND,
        Access::Mapped | Access::Stdio => return None,
    };
    let durability = match how.durability {
        Durability::None => 0,
        Durability::Sync => libc::O_SYNC,
        Durability::DataSync => libc::O_DSYNC,
    };
    let truncate = if how.is_truncating { libc::O_TRUNC } else { 0 };
    Some(mode | access | durability | truncate | libc::O_CLOEXEC | libc::O_NOFOLLOW)
}
