//! Files that this process made, by what no other file has: device, inode and instant of birth.
//!
//! A name alone does not tell whose a file is: somebody else may have taken it a moment before, or
//! afterwards. An inode is given to another file once its own is gone, which then has another
//! birth. Left out: file systems that keep no birth (`STATX_BTIME` of statx(2)), where the rest has
//! to do, and what forked workers make, which is nothing.

use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::glance::statx;

/// Identity of a file as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birth {
    /// Device number.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Time at which the inode was made, if the file system keeps that.
    pub born_ns: Option<i64>,
}

static CREATED: Mutex<Vec<Birth>> = Mutex::new(Vec::new());

/// Notes a file that was just made.
pub fn note(fd: RawFd) {
    let found = birth(fd, c"", libc::AT_EMPTY_PATH);
    CREATED.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
}

/// The file that has this name, a link as a link, if this process made it.
pub fn made(path: &Path) -> Option<Birth> {
    let found = of_path(path)?;
    let known = CREATED.lock().unwrap_or_else(PoisonError::into_inner);
    known.contains(&found).then_some(found)
}

/// The file that has this name, a link as a link.
pub fn of_path(path: &Path) -> Option<Birth> {
    let name = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    birth(libc::AT_FDCWD, &name, libc::AT_SYMLINK_NOFOLLOW)
}

fn birth(fd: RawFd, name: &std::ffi::CStr, flags: libc::c_int) -> Option<Birth> {
    let found = statx(fd, name, flags, libc::STATX_INO | libc::STATX_BTIME).ok()?;
    let born = found.stx_btime;
    let born_ns = born.tv_sec.saturating_mul(1_000_000_000).saturating_add(born.tv_nsec.into());
    Some(Birth {
        device: libc::makedev(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        born_ns: (found.stx_mask & libc::STATX_BTIME != 0).then_some(born_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::fd::AsRawFd as _;

    #[test]
    fn a_file_of_the_same_name_is_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        assert_eq!(made(&path), None);
        let file = File::create_new(&path).unwrap();
        assert_eq!(made(&path), None, "whoever made it did not say so");
        note(file.as_raw_fd());
        assert_eq!(made(&path), of_path(&path));
        assert!(made(&path).is_some());
        drop(file);
        fs::remove_file(&path).unwrap();
        // The kernel's file times advance by a tick, 10 ms at most.
        std::thread::sleep(std::time::Duration::from_millis(30));
        fs::write(&path, "somebody's, perhaps with the same inode").unwrap();
        assert_eq!(made(&path), None);
    }
}
