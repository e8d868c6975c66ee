//! The page cache's state of a file: asked (cachestat, else mincore), dropped, warmed.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use iolab_model::{Bytes, Error};

use crate::affinity::last_errno;
use crate::glance::Glance;

/// Linux `arch/x86/entry/syscalls/syscall_64.tbl` and the generic table: cachestat, since 6.5.
const SYS_CACHESTAT: libc::c_long = 451;
/// Dirty pages survive the first fadvise; after write-back the next one drops them.
const DROP_ATTEMPTS: u32 = 3;

/// Method by which residency was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// cachestat(2).
    Cachestat,
    /// mincore(2) on a mapping.
    Mincore,
}

impl Method {
    /// Name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cachestat => "cachestat",
            Self::Mincore => "mincore",
        }
    }
}

/// Resident part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Pages in the cache.
    pub resident_pages: u64,
    /// Pages of the file.
    pub pages: u64,
    /// Method by which it was found out.
    pub method: Method,
}

fn failed(call: &'static str, path: &Path) -> Error {
    Error::System { call, subject: path.display().to_string(), errno: last_errno() }
}

fn open(path: &Path) -> Result<(File, u64), Error> {
    let wrong = |e: &std::io::Error| Error::System {
        call: "open",
        subject: path.display().to_string(),
        errno: iolab_model::error::Errno(e.raw_os_error().unwrap_or(5)),
    };
    let file = OpenOptions::new().read(true).open(path).map_err(|e| wrong(&e))?;
    let length = Glance::of_file(&file).map_err(|e| wrong(&e))?.length;
    Ok((file, length))
}

/// Share of a file that is in the page cache.
pub fn residency(path: &Path) -> Result<Residency, Error> {
    let (file, length) = open(path)?;
    let pages = length.div_ceil(Bytes::PAGE.0);
    let (resident_pages, method) = match cachestat(&file) {
        Some(stat) => (stat.cache, Method::Cachestat),
        None => (mincore(&file, length).ok_or_else(|| failed("mincore", path))?, Method::Mincore),
    };
    Ok(Residency { resident_pages, pages, method })
}

/// Pages of a file that its device does not have yet: dirty, or being written back. None where the
/// kernel does not tell (before 6.5).
///
/// # Errors
///
/// The file cannot be opened.
pub fn unwritten_pages(path: &Path) -> Result<Option<u64>, Error> {
    let (file, _) = open(path)?;
    Ok(cachestat(&file).map(|stat| stat.dirty + stat.writeback))
}

/// Linux include/uapi/linux/mman.h: `struct cachestat_range`, `struct cachestat`.
#[repr(C)]
#[derive(Default)]
struct CacheStat {
    cache: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

fn cachestat(file: &File) -> Option<CacheStat> {
    let range = [0_u64, 0];
    let mut stat = CacheStat::default();
    // SAFETY: both structures have the kernel's layout and live through the call.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut stat, 0)
    };
    (result == 0).then_some(stat)
}

fn mincore(file: &File, length: u64) -> Option<u64> {
    if length == 0 {
        return Some(0);
    }
    let size = length as usize;
    // SAFETY: a private read-only mapping that nobody dereferences.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return None;
    }
    let mut pages = vec![0_u8; size.div_ceil(Bytes::PAGE.0 as usize)];
    // SAFETY: the mapping is `size` long and `pages` has one byte per page.
    let result = unsafe { libc::mincore(start, size, pages.as_mut_ptr()) };
    // SAFETY: mapped above with this size.
    unsafe { libc::munmap(start, size) };
    (result == 0).then(|| pages.iter().filter(|&&page| page & 1 == 1).count() as u64)
}

/// Writes back and drops a file's pages; what stays is the caller's to find out with [`residency`].
pub fn drop_file(path: &Path) -> Result<Residency, Error> {
    let (file, _) = open(path)?;
    // A flush would empty the cache of the whole disk, which others may use.
    let is_device = crate::files::is_block_device(file.as_raw_fd());
    let mut now = residency(path)?;
    for _ in 0..DROP_ATTEMPTS {
        // SAFETY: plain system calls on an open descriptor.
        unsafe {
            if !is_device {
                libc::fdatasync(file.as_raw_fd());
            }
            libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED);
        }
        now = residency(path)?;
        if now.resident_pages == 0 {
            break;
        }
    }
    Ok(now)
}

/// Reads a file once, so that its pages are in the cache.
pub fn warm_file(path: &Path) -> Result<Residency, Error> {
    let (mut file, _) = open(path)?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer).map_err(|_| failed("read", path))? > 0 {}
    residency(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cachestat_and_mincore_agree_on_a_warm_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![1; 100_000]).unwrap();
        let warm = warm_file(file.path()).unwrap();
        assert_eq!((warm.resident_pages, warm.pages), (25, 25));
        assert_eq!(mincore(file.as_file(), 100_000), Some(25));
    }

    #[test]
    fn pages_are_unwritten_until_they_are_flushed() {
        use std::io::Write as _;

        let mut file = tempfile::NamedTempFile::new_in(".").unwrap();
        file.write_all(&vec![1; 1 << 20]).unwrap();
        let Some(before) = unwritten_pages(file.path()).unwrap() else { return };
        file.as_file().sync_data().unwrap();
        assert!((1..=256).contains(&before), "write-back may have begun: {before}");
        assert_eq!(unwritten_pages(file.path()).unwrap(), Some(0));
    }

    #[test]
    fn a_missing_file_is_named() {
        let message = residency(Path::new("/nowhere/x")).unwrap_err().to_string();
        assert!(
            message.contains("open /nowhere/x") && message.contains("No such file"),
            "{message}"
        );
    }
}
