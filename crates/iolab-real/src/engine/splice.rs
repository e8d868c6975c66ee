//! splice(2) through a pipe: what is read goes from the file into the pipe and is copied out of it;
//! what is written is lent to the pipe with vmsplice(2) and goes from there into the file.
//!
//! A pipe holds 64 KiB, so that a longer transfer takes several rounds. The pipe belongs to the
//! calling thread and is empty between two transfers; where one is left with data in it, because
//! its other end failed, it is made anew.
//!
//! Source: splice(2), vmsplice(2), pipe(7).

use std::cell::RefCell;
use std::io::PipeReader;
use std::io::PipeWriter;
use std::os::fd::AsRawFd;

use iolab_model::Capabilities;

use super::synchronous::{ABILITIES, Call, Method, Synchronous};
use crate::files::Opened;

/// Capacity of a pipe unless somebody changes it: 16 pages (pipe(7)).
const PIPE_BYTES: usize = 64 << 10;

/// Transfers through a pipe.
pub struct Splice;

/// The target.
pub const fn target() -> Synchronous<Splice> {
    Synchronous::new()
}

thread_local! {
    static PIPE: RefCell<Option<(PipeReader, PipeWriter)>> = const { RefCell::new(None) };
}

/// Calls `rounds` with the ends of this thread's pipe; its answer says whether the pipe is empty.
fn with_pipe(rounds: impl FnOnce(i32, i32) -> (isize, bool)) -> isize {
    PIPE.with_borrow_mut(|pipe| {
        let ends = match pipe.take() {
            Some(ends) => ends,
            None => match std::io::pipe() {
                Ok(ends) => ends,
                // errno is that of pipe2(2).
                Err(_) => return -1,
            },
        };
        let (moved, is_empty) = rounds(ends.0.as_raw_fd(), ends.1.as_raw_fd());
        if is_empty {
            *pipe = Some(ends);
        }
        moved
    })
}

/// Copies `length` bytes out of the pipe; false if they did not come.
fn take_out(pipe: i32, memory: *mut libc::c_void, length: usize) -> bool {
    let mut taken = 0;
    while taken < length {
        // SAFETY: the memory has room for `length` bytes and is writable while the call runs.
        let here = unsafe { libc::read(pipe, memory.byte_add(taken), length - taken) };
        if here <= 0 {
            return false;
        }
        taken += here as usize;
    }
    true
}

impl Method for Splice {
    const NAME: &'static str = "splice";
    /// splice(2) refuses files that were opened to be appended to (EINVAL).
    const CAPABILITIES: Capabilities = Capabilities { has_append: false, ..ABILITIES };

    fn read(file: &mut Opened, call: &Call<'_>) -> isize {
        let offset = file.offset(call.at);
        let length = call.length().min(PIPE_BYTES);
        let moved = with_pipe(|from, to| {
            let mut at = offset as i64;
            let null = std::ptr::null_mut();
            // SAFETY: `at` is writable during the call; no memory of ours is touched.
            let moved = unsafe {
                libc::splice(file.raw(), &raw mut at, to, null, length, libc::SPLICE_F_MOVE)
            };
            let is_out = moved <= 0 || take_out(from, call.start(), moved as usize);
            (if is_out { moved } else { -1 }, is_out)
        });
        file.position = offset + moved.max(0) as u64;
        moved
    }

    fn write(file: &mut Opened, call: &Call<'_>) -> isize {
        let offset = file.offset(call.at);
        let length = call.length().min(PIPE_BYTES);
        let moved = with_pipe(|from, to| {
            let part = libc::iovec { iov_base: call.start(), iov_len: length };
            // SAFETY: a call's memory is valid while it runs; the pages leave the pipe below, or
            // the pipe is closed, before it ends.
            let lent = unsafe { libc::vmsplice(to, &raw const part, 1, 0) };
            if lent <= 0 {
                return (lent, true);
            }
            let (mut at, mut written) = (offset as i64, 0);
            while written < lent {
                let rest = (lent - written) as usize;
                let null = std::ptr::null_mut();
                // SAFETY: as for reading.
                let here = unsafe {
                    libc::splice(from, null, file.raw(), &raw mut at, rest, libc::SPLICE_F_MOVE)
                };
                if here <= 0 {
                    return (if written > 0 { written } else { here }, false);
                }
                written += here;
            }
            (written, true)
        });
        file.position = offset + moved.max(0) as u64;
        moved
    }
}
