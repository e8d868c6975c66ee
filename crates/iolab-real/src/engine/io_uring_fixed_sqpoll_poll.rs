//! `io_uring` with registered buffers and files, and a kernel thread that submits and polls.
//!
//! The needs, refusals and omissions of each hold for them together.

use iolab_model::{Capabilities, Error, LaneRequest};

use super::io_uring_poll::{UringPoll, check_devices};
use super::ring::{Flavor, Ring};

/// Rings with registered buffers and files, and a kernel thread that submits and polls.
pub struct UringFixedSqpollPoll;

/// The target.
pub const fn target() -> Ring<UringFixedSqpollPoll> {
    Ring::new()
}

impl Flavor for UringFixedSqpollPoll {
    const NAME: &'static str = "io_uring_fixed_sqpoll_poll";
    const IS_REGISTERED: bool = true;
    const HAS_KERNEL_THREAD: bool = true;
    const IS_POLLED: bool = true;
    const CAPABILITIES: Capabilities =
        Capabilities { has_vectors: false, ..UringPoll::CAPABILITIES };

    fn check(request: &LaneRequest) -> Result<(), Error> {
        check_devices(request, Self::NAME)
    }
}
