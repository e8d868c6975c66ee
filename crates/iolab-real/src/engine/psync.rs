//! pread(2) and pwrite(2): one call per op, no shared file position.

use iolab_model::op::Position;

use super::synchronous::{Method, Synchronous};
use crate::files::Opened;

/// Positioned calls.
pub struct Psync;

/// The target.
pub const fn target() -> Synchronous<Psync> {
    Synchronous::new()
}

impl Method for Psync {
    const NAME: &'static str = "psync";

    #[inline]
    fn read(file: &mut Opened, at: Position, buffer: &mut [u8]) -> isize {
        let offset = offset(file, at);
        // SAFETY: the buffer is writable for its whole length during the call.
        let moved = unsafe {
            libc::pread(file.raw(), buffer.as_mut_ptr().cast(), buffer.len(), offset as i64)
        };
        file.position = offset + moved.max(0) as u64;
        moved
    }

    #[inline]
    fn write(file: &mut Opened, at: Position, buffer: &[u8]) -> isize {
        let offset = offset(file, at);
        // SAFETY: the buffer is readable for its whole length during the call.
        let moved = unsafe {
            libc::pwrite(file.raw(), buffer.as_ptr().cast(), buffer.len(), offset as i64)
        };
        file.position = offset + moved.max(0) as u64;
        moved
    }
}

#[inline]
fn offset(file: &Opened, at: Position) -> u64 {
    match at {
        Position::At(at) => at.0,
        Position::Current => file.position,
    }
}
