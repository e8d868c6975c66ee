//! preadv(2) and pwritev(2): vectored and positioned calls, no shared file position.

use iolab_model::Capabilities;

use super::synchronous::{ABILITIES, Call, Method, Synchronous};
use crate::files::Opened;

/// Vectored, positioned calls.
pub struct Pvsync;

/// The target.
pub const fn target() -> Synchronous<Pvsync> {
    Synchronous::new()
}

impl Method for Pvsync {
    const NAME: &'static str = "pvsync";
    const CAPABILITIES: Capabilities = Capabilities { has_vectors: true, ..ABILITIES };

    #[inline]
    fn read(file: &mut Opened, call: &Call<'_>) -> isize {
        let (offset, (parts, count)) = (file.offset(call.at), call.parts());
        // SAFETY: a call's memory is valid and writable while it runs, and so is its array.
        let moved = unsafe { libc::preadv(file.raw(), parts, count, offset as i64) };
        file.position = offset + moved.max(0) as u64;
        moved
    }

    #[inline]
    fn write(file: &mut Opened, call: &Call<'_>) -> isize {
        let (offset, (parts, count)) = (file.offset(call.at), call.parts());
        // SAFETY: a call's memory is valid while it runs, and so is its array.
        let moved = unsafe { libc::pwritev(file.raw(), parts, count, offset as i64) };
        file.position = offset + moved.max(0) as u64;
        moved
    }
}
