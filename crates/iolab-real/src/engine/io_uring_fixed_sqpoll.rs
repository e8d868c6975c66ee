//! `io_uring` with registered buffers and files, and a kernel thread that submits.
//!
//! The needs, refusals and omissions of each hold for them together.

use iolab_model::Capabilities;

use super::io_uring_fixed::UringFixed;
use super::ring::{Flavor, Ring};

/// Rings with registered buffers and files, and a kernel thread that submits.
pub struct UringFixedSqpoll;

/// The target.
pub const fn target() -> Ring<UringFixedSqpoll> {
    Ring::new()
}

impl Flavor for UringFixedSqpoll {
    const NAME: &'static str = "io_uring_fixed_sqpoll";
    const IS_REGISTERED: bool = true;
    const HAS_KERNEL_THREAD: bool = true;
    const CAPABILITIES: Capabilities = UringFixed::CAPABILITIES;
}
