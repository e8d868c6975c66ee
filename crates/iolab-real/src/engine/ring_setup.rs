//! Making a ring, and what is registered with it.

use io_uring::IoUring;
use iolab_model::op::{Handle, Token};
use iolab_model::{Error, LaneRequest, error::Errno};

use super::refusal::refused;
use super::ring::Flavor;
use crate::buffer::Buffers;

/// Handles that a table of registered files has room for.
pub const FILES_MAX: u32 = 256;
/// A polling thread without work goes to sleep after this time; waking it is a system call.
const IDLE_MS: u32 = 1000;

/// Opens a ring: first with completion work deferred to this thread (Linux 6.1), else plainly.
///
/// Where a kernel thread submits, there is nothing to defer.
pub fn set_up<F: Flavor>(request: &LaneRequest) -> Result<IoUring, Error> {
    let depth = request.depth;
    // A kernel thread gives the entries of a batch back after it has handled the whole batch. Some
    // have completed by then, and their slots are in use again: the old and the new must fit.
    let share = if F::HAS_KERNEL_THREAD { 2 } else { 1 };
    let entries = (share * depth).next_power_of_two();
    let mut plain = IoUring::builder();
    if F::IS_POLLED {
        plain.setup_iopoll();
    }
    if F::HAS_KERNEL_THREAD {
        plain.setup_sqpoll(IDLE_MS);
        if let Some(cpu) = request.submitter_cpu {
            plain.setup_sqpoll_cpu(cpu);
        }
    }
    let mut deferred = plain.clone();
    if !F::HAS_KERNEL_THREAD {
        deferred.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun();
    }
    let ring = match deferred.build(entries) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => plain.build(entries),
        other => other,
    };
    ring.map_err(|error| refused(F::NAME, "io_uring_setup", errno_of(&error)))
}

/// Registers each slot's buffer under the slot's number, and an empty table of files.
pub fn register<F: Flavor>(ring: &IoUring, buffers: &mut Buffers, depth: u32) -> Result<(), Error> {
    let parts: Vec<libc::iovec> = (0..depth)
        .map(|slot| {
            let memory = buffers.slot(Token(slot));
            libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() }
        })
        .collect();
    let failed = |error: &std::io::Error| refused(F::NAME, "io_uring_register", errno_of(error));
    // SAFETY: the buffers live in the lane beside the ring, which is closed before they are freed.
    unsafe { ring.submitter().register_buffers(&parts) }.map_err(|error| failed(&error))?;
    ring.submitter().register_files_sparse(FILES_MAX).map_err(|error| failed(&error))
}

/// Puts a descriptor into the table of registered files; -1 takes it out.
pub fn place_file(ring: &IoUring, handle: Handle, fd: i32) -> Result<(), Errno> {
    let placed = ring.submitter().register_files_update(handle.0, &[fd]);
    placed.map(drop).map_err(|error| errno_of(&error))
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(Errno::EIO.0))
}
