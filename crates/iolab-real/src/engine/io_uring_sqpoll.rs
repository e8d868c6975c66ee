//! `io_uring` with a kernel thread that looks for submissions, so that submitting is no system
//! call.
//!
//! Each lane has such a thread, named `iou-sqp-PID`. It keeps a CPU busy for as long as there is
//! work and one second longer; its time is part of the process's, and the lane itself looks for
//! completions a while before it sleeps. With fewer than two CPUs per worker it is slower than
//! `io_uring`. The thread runs where the worker may run, unless the request names its CPU.

use super::ring::{Flavor, Ring};

/// Rings with a submitting kernel thread.
pub struct UringSqpoll;

/// The target.
pub const fn target() -> Ring<UringSqpoll> {
    Ring::new()
}

impl Flavor for UringSqpoll {
    const NAME: &'static str = "io_uring_sqpoll";
    const HAS_KERNEL_THREAD: bool = true;
}
