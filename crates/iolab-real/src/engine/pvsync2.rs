//! preadv2(2) and pwritev2(2): vectored and positioned calls with flags for each transfer.
//!
//! The flags are `hipri` (poll for the completion; ignored where the device cannot), `dsync` and
//! `sync` (the write is durable when it returns), `nowait` (EAGAIN rather than wait; the answer
//! where the file system cannot tell is EOPNOTSUPP) and `dontcache` (Linux 6.14; EOPNOTSUPP on
//! btrfs and tmpfs). What the file system declines is an error of the op, never done without.

use iolab_model::Capabilities;

use super::synchronous::{ABILITIES, Call, Method, Synchronous};
use crate::files::Opened;

/// Vectored, positioned calls with flags.
pub struct Pvsync2;

/// The target.
pub const fn target() -> Synchronous<Pvsync2> {
    Synchronous::new()
}

impl Method for Pvsync2 {
    const NAME: &'static str = "pvsync2";
    const CAPABILITIES: Capabilities =
        Capabilities { has_vectors: true, has_flags: true, ..ABILITIES };

    #[inline]
    fn read(file: &mut Opened, call: &Call<'_>) -> isize {
        let (offset, (parts, count)) = (file.offset(call.at), call.parts());
        // SAFETY: a call's memory is valid and writable while it runs, and so is its array.
        let moved = unsafe { libc::preadv2(file.raw(), parts, count, offset as i64, call.flags) };
        file.position = offset + moved.max(0) as u64;
        moved
    }

    #[inline]
    fn write(file: &mut Opened, call: &Call<'_>) -> isize {
        let (offset, (parts, count)) = (file.offset(call.at), call.parts());
        // SAFETY: a call's memory is valid while it runs, and so is its array.
        let moved = unsafe { libc::pwritev2(file.raw(), parts, count, offset as i64, call.flags) };
        file.position = offset + moved.max(0) as u64;
        moved
    }
}
