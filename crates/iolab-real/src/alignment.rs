//! Alignment of direct I/O on a file, asked of the kernel (statx `STATX_DIOALIGN`, Linux 6.1).

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use iolab_model::{Bytes, Error, error::Errno};

use crate::affinity::last_errno;

/// Linux include/uapi/linux/stat.h: `STATX_DIOALIGN`.
const STATX_DIOALIGN: u32 = 0x2000;

/// Alignment of direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Of the buffer's address.
    pub memory: Bytes,
    /// Of offset and length; zero means that direct I/O is not possible.
    pub offset: Bytes,
}

/// The alignment for a file; `None` if the kernel or the file system does not say.
pub fn direct_alignment(path: &Path) -> Result<Option<DirectAlignment>, Error> {
    let failed =
        |errno| Error::System { call: "statx", subject: path.display().to_string(), errno };
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| failed(Errno::EINVAL))?;
    // SAFETY: statx is plain data, for which all zeroes is a valid value.
    let mut answer: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is a C string and `answer` a writable statx, both alive during the call.
    let result =
        unsafe { libc::statx(libc::AT_FDCWD, name.as_ptr(), 0, STATX_DIOALIGN, &raw mut answer) };
    if result != 0 {
        return Err(failed(last_errno()));
    }
    if answer.stx_mask & STATX_DIOALIGN == 0 {
        return Ok(None);
    }
    Ok(Some(DirectAlignment {
        memory: Bytes(u64::from(answer.stx_dio_mem_align)),
        offset: Bytes(u64::from(answer.stx_dio_offset_align)),
    }))
}
