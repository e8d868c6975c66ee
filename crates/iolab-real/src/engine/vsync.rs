//! readv(2) and writev(2) at the file position, which lseek(2) moves first where it is elsewhere.
//!
//! A transfer of several vectors is one call with as many equal parts of one buffer; a plain one is
//! a call with one part. What a short call leaves is asked for in one part. Left out: gathering
//! several ops into one call, which would give them one latency.

use iolab_model::Capabilities;

use super::synchronous::{ABILITIES, Call, Method, Synchronous};
use crate::files::Opened;

/// Vectored calls at the file position.
pub struct Vsync;

/// The target.
pub const fn target() -> Synchronous<Vsync> {
    Synchronous::new()
}

impl Method for Vsync {
    const NAME: &'static str = "vsync";
    const CAPABILITIES: Capabilities = Capabilities { has_vectors: true, ..ABILITIES };

    #[inline]
    fn read(file: &mut Opened, call: &Call<'_>) -> isize {
        if !file.seek(call.at) {
            return -1;
        }
        let (parts, count) = call.parts();
        // SAFETY: a call's memory is valid and writable while it runs, and so is its array.
        let moved = unsafe { libc::readv(file.raw(), parts, count) };
        file.position += moved.max(0) as u64;
        moved
    }

    #[inline]
    fn write(file: &mut Opened, call: &Call<'_>) -> isize {
        if !file.seek(call.at) {
            return -1;
        }
        let (parts, count) = call.parts();
        // SAFETY: a call's memory is valid while it runs, and so is its array.
        let moved = unsafe { libc::writev(file.raw(), parts, count) };
        file.position += moved.max(0) as u64;
        moved
    }
}
