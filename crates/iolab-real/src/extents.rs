//! Extents of a file: runs of neighbouring blocks, asked of the kernel (FIEMAP).

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::glance::Glance;

/// Linux include/uapi/linux/fs.h: `FS_IOC_FIEMAP`.
const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;
/// Linux include/uapi/linux/fiemap.h.
const LAST: u32 = 0x1;
const UNKNOWN: u32 = 0x2;
const DELAYED: u32 = 0x4;
const ENCODED: u32 = 0x8;
const INLINE: u32 = 0x200;
/// Most calls for one file: who has a million extents is not counted for the rest of the day.
const CALLS_MAX: usize = 256;
/// Entries that one call may fill in.
const BATCH: usize = 256;

/// Linux include/uapi/linux/fiemap.h: `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

/// Linux include/uapi/linux/fiemap.h: `struct fiemap`, with room for its entries.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [Extent; BATCH],
}

/// Number of runs of neighbouring blocks of a file; `None` if it cannot be opened, if its file
/// system does not say, or if data have no place of their own: none yet, packed, or in an inode.
/// Nothing is written for the answer.
///
/// Entries that continue each other in the file and on the device are one: file systems cut them
/// at lengths of their own, and where blocks were never written.
pub fn count(path: &Path) -> Option<u64> {
    // Whatever has the name by now must not be waited for.
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let about = Glance::of_file(&file).ok()?;
    if !about.is_file() {
        return None;
    }
    // What was reserved behind the end is no place of data.
    let mut runs = Runs::default();
    for _ in 0..CALLS_MAX {
        let begin = runs.end;
        if begin >= about.length {
            return Some(runs.count);
        }
        let batch = next(file.as_raw_fd(), (begin, about.length))?;
        for extent in &batch {
            runs.add(extent)?;
        }
        if batch.last().is_none_or(|extent| extent.flags & LAST != 0) {
            return Some(runs.count);
        }
        if runs.end <= begin {
            return None;
        }
    }
    None
}

/// Entries of a part of the file; `None` if the file system does not tell them.
fn next(file: RawFd, (start, end): (u64, u64)) -> Option<Vec<Extent>> {
    let mut request = Box::new(Request {
        start,
        length: end - start,
        flags: 0,
        mapped: 0,
        room: BATCH as u32,
        reserved: 0,
        extents: [Extent::default(); BATCH],
    });
    // SAFETY: the request is a `struct fiemap` with `room` entries, alive during the call.
    let result = unsafe { libc::ioctl(file, FS_IOC_FIEMAP as _, &raw mut *request) };
    (result == 0).then(|| request.extents[..request.mapped as usize].to_vec())
}

#[derive(Default)]
struct Runs {
    count: u64,
    /// Ends of the last entry, in the file and on the device.
    end: u64,
    place_end: u64,
}

impl Runs {
    fn add(&mut self, extent: &Extent) -> Option<()> {
        if extent.flags & (UNKNOWN | DELAYED | ENCODED | INLINE) != 0 {
            return None;
        }
        let continues =
            self.count > 0 && (self.end, self.place_end) == (extent.logical, extent.physical);
        self.count += u64::from(!continues);
        self.end = extent.logical + extent.length;
        self.place_end = extent.physical + extent.length;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(extents: &[(u64, u64, u64, u32)]) -> Option<u64> {
        let mut runs = Runs::default();
        for &(logical, physical, length, flags) in extents {
            runs.add(&Extent { logical, physical, length, flags, ..Extent::default() })?;
        }
        Some(runs.count)
    }

    #[test]
    fn entries_that_continue_each_other_are_one_run() {
        assert_eq!(runs(&[]), Some(0));
        assert_eq!(runs(&[(0, 100, 10, 0), (10, 110, 5, 0x800)]), Some(1));
        assert_eq!(runs(&[(0, 100, 10, 0), (10, 111, 5, 0)]), Some(2));
        assert_eq!(runs(&[(0, 100, 10, 0), (12, 110, 5, 0)]), Some(2), "a hole lies between");
        assert_eq!(runs(&[(0, 100, 10, 0), (10, 0, 5, DELAYED | UNKNOWN)]), None);
    }

    #[test]
    fn what_is_no_plain_file_has_no_extents() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(count(place.path()), None);
        assert_eq!(count(&place.path().join("nothing")), None);
        let link = place.path().join("link");
        std::fs::write(place.path().join("file"), "data").unwrap();
        std::os::unix::fs::symlink(place.path().join("file"), &link).unwrap();
        assert_eq!(count(&link), None);
    }
}
