//! read(2) and write(2) at the file position, which lseek(2) moves first where it is elsewhere.
//!
//! A sequential pass is therefore plain reads or writes, a random one pairs of lseek and transfer:
//! the calls that `IOzone` makes. The seek is part of the op, as in its timing.

use super::synchronous::{Call, Method, Synchronous};
use crate::files::Opened;
use crate::kernel;

/// Calls at the file position.
pub struct Sync;

/// The target.
pub const fn target() -> Synchronous<Sync> {
    Synchronous::new()
}

impl Method for Sync {
    const NAME: &'static str = "sync";

    #[inline]
    fn read(file: &mut Opened, call: &Call<'_>) -> isize {
        if !file.seek(call.at) {
            return -1;
        }
        // SAFETY: a call's memory is valid and writable while it runs.
        let moved = unsafe { kernel::read(file.raw(), call.start(), call.length()) };
        file.position += moved.max(0) as u64;
        moved
    }

    #[inline]
    fn write(file: &mut Opened, call: &Call<'_>) -> isize {
        if !file.seek(call.at) {
            return -1;
        }
        // SAFETY: a call's memory is valid while it runs.
        let moved = unsafe { kernel::write(file.raw(), call.start(), call.length()) };
        file.position += moved.max(0) as u64;
        moved
    }
}
