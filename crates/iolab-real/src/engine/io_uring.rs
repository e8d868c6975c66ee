//! `io_uring`: rings shared with the kernel, one system call for a whole batch.
//!
//! Transfers and flushes are queued; everything else is a plain system call and done at once. The
//! ring is opened by the thread that uses it, with the cheapest task-work mode the kernel has.
//! Vectored transfers and flags work. Left out: polled completion, registered buffers and files,
//! kernel-side submission, which are engines of their own; streams and mapped files.
//!
//! Traps that the agent looks for: on tmpfs and for buffered writes the kernel hands ops to worker
//! threads; loop devices cannot poll; containers may forbid the system call.

use super::ring::{Flavor, Ring};

/// Rings as they are.
pub struct Uring;

/// The target.
pub const fn target() -> Ring<Uring> {
    Ring::new()
}

impl Flavor for Uring {
    const NAME: &'static str = "io_uring";
}
