//! Kind, identity and length of a file, without its times.
//!
//! Since Linux 6.13 whoever asks for the time of a file's last change marks the file: each read and
//! write that follows looks whether a finer time is due. A file that is about to be measured is
//! asked for nothing but this.
//!
//! Source: Linux Documentation/filesystems/multigrain-ts.rst; statx(2).

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A file as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Device number.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Length in bytes.
    pub length: u64,
    kind: libc::mode_t,
}

impl Glance {
    /// The file that a name leads to.
    ///
    /// # Errors
    ///
    /// Nothing has the name, or it cannot be reached.
    pub fn of_path(path: &Path) -> io::Result<Self> {
        Self::ask(libc::AT_FDCWD, &CString::new(path.as_os_str().as_bytes())?, 0)
    }

    /// The file that has a name, a link as a link.
    ///
    /// # Errors
    ///
    /// See [`Glance::of_path`].
    pub fn of_name(path: &Path) -> io::Result<Self> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        Self::ask(libc::AT_FDCWD, &name, libc::AT_SYMLINK_NOFOLLOW)
    }

    /// An open file.
    ///
    /// # Errors
    ///
    /// The file system fails.
    pub fn of_file(file: &File) -> io::Result<Self> {
        Self::ask(file.as_raw_fd(), c"", libc::AT_EMPTY_PATH)
    }

    /// Tell whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind == libc::S_IFREG
    }

    /// Tell whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == libc::S_IFDIR
    }

    fn ask(fd: RawFd, name: &CStr, flags: libc::c_int) -> io::Result<Self> {
        let asked = libc::STATX_TYPE | libc::STATX_INO | libc::STATX_SIZE;
        let found = statx(fd, name, flags, asked)?;
        Ok(Self {
            device: libc::makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            length: found.stx_size,
            kind: libc::mode_t::from(found.stx_mode) & libc::S_IFMT,
        })
    }
}

/// statx(2) of what is asked for, and nothing else.
pub(crate) fn statx(
    fd: RawFd,
    name: &CStr,
    flags: libc::c_int,
    asked: libc::c_uint,
) -> io::Result<libc::statx> {
    let mut found = MaybeUninit::<libc::statx>::uninit();
    // SAFETY: `name` is a C string and `found` writable, both alive during the call.
    let result = unsafe { libc::statx(fd, name.as_ptr(), flags, asked, found.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a successful call has filled it.
    Ok(unsafe { found.assume_init() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    #[test]
    fn it_tells_what_the_library_tells() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&path, [7; 4097]).unwrap();
        symlink(&path, &link).unwrap();
        let about = path.metadata().unwrap();
        let found = Glance::of_path(&link).unwrap();
        assert_eq!((found.device, found.inode, found.length), (about.dev(), about.ino(), 4097));
        assert!(found.is_file() && !found.is_directory());
        assert_eq!(Glance::of_file(&File::open(&path).unwrap()).unwrap(), found);
        let as_link = Glance::of_name(&link).unwrap();
        assert!(as_link.inode != found.inode && !as_link.is_file());
        assert!(Glance::of_name(folder.path()).unwrap().is_directory());
        let absent = Glance::of_path(&folder.path().join("c")).unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    }
}
