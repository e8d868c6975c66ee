//! read(2) and write(2) at the file position, which lseek(2) moves first where it is elsewhere.
//!
//! A sequential pass is therefore plain reads or writes, a random one pairs of lseek and transfer:
//! the calls that `IOzone` makes. The seek is part of the op, as in its timing.

use iolab_model::op::Position;

use super::synchronous::{Method, Synchronous};
use crate::files::Opened;

/// Calls at the file position.
pub struct Sync;

/// The target.
pub const fn target() -> Synchronous<Sync> {
    Synchronous::new()
}

impl Method for Sync {
    const NAME: &'static str = "sync";

    #[inline]
    fn read(file: &mut Opened, at: Position, buffer: &mut [u8]) -> isize {
        if !seek(file, at) {
            return -1;
        }
        // SAFETY: the buffer is writable for its whole length during the call.
        let moved = unsafe { libc::read(file.raw(), buffer.as_mut_ptr().cast(), buffer.len()) };
        file.position += moved.max(0) as u64;
        moved
    }

    #[inline]
    fn write(file: &mut Opened, at: Position, buffer: &[u8]) -> isize {
        if !seek(file, at) {
            return -1;
        }
        // SAFETY: the buffer is readable for its whole length during the call.
        let moved = unsafe { libc::write(file.raw(), buffer.as_ptr().cast(), buffer.len()) };
        file.position += moved.max(0) as u64;
        moved
    }
}

/// Moves the file position if it is not there already; `false` with errno set if that fails.
#[inline]
fn seek(file: &mut Opened, at: Position) -> bool {
    let Position::At(at) = at else { return true };
    if file.position == at.0 {
        return true;
    }
    // SAFETY: a plain system call on an open descriptor.
    let reached = unsafe { libc::lseek(file.raw(), at.0 as i64, libc::SEEK_SET) };
    if reached < 0 {
        return false;
    }
    file.position = at.0;
    true
}
