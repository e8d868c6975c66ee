//! pread(2) and pwrite(2): one call per op, no shared file position.

use super::synchronous::{Call, Method, Synchronous};
use crate::files::Opened;
use crate::kernel;

/// Positioned calls.
pub struct Psync;

/// The target.
pub const fn target() -> Synchronous<Psync> {
    Synchronous::new()
}

impl Method for Psync {
    const NAME: &'static str = "psync";

    #[inline]
    fn read(file: &mut Opened, call: &Call<'_>) -> isize {
        read(file, call)
    }

    #[inline]
    fn write(file: &mut Opened, call: &Call<'_>) -> isize {
        write(file, call)
    }
}

/// pread(2).
#[inline]
pub(super) fn read(file: &mut Opened, call: &Call<'_>) -> isize {
    let offset = file.offset(call.at);
    // SAFETY: a call's memory is valid and writable while it runs.
    let moved = unsafe { kernel::pread(file.raw(), call.start(), call.length(), offset) };
    file.position = offset + moved.max(0) as u64;
    moved
}

/// pwrite(2).
#[inline]
pub(super) fn write(file: &mut Opened, call: &Call<'_>) -> isize {
    let offset = file.offset(call.at);
    // SAFETY: a call's memory is valid while it runs.
    let moved = unsafe { kernel::pwrite(file.raw(), call.start(), call.length(), offset) };
    file.position = offset + moved.max(0) as u64;
    moved
}
