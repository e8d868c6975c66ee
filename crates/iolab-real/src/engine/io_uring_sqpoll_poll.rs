//! `io_uring` with a kernel thread that submits and polls.
//!
//! The needs, refusals and omissions of each hold for them together.

use iolab_model::{Capabilities, Error, LaneRequest};

use super::io_uring_poll::{UringPoll, check_devices};
use super::ring::{Flavor, Ring};

/// Rings with a kernel thread that submits and polls.
pub struct UringSqpollPoll;

/// The target.
pub const fn target() -> Ring<UringSqpollPoll> {
    Ring::new()
}

impl Flavor for UringSqpollPoll {
    const NAME: &'static str = "io_uring_sqpoll_poll";
    const HAS_KERNEL_THREAD: bool = true;
    const IS_POLLED: bool = true;
    const CAPABILITIES: Capabilities = UringPoll::CAPABILITIES;

    fn check(request: &LaneRequest) -> Result<(), Error> {
        check_devices(request, Self::NAME)
    }
}
