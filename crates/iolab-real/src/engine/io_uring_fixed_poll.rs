//! `io_uring` with registered buffers and files, and polled completion.
//!
//! The needs, refusals and omissions of each hold for them together.

use iolab_model::{Capabilities, Error, LaneRequest};

use super::io_uring_poll::{UringPoll, check_devices};
use super::ring::{Flavor, Ring};

/// Rings with registered buffers and files, and polled completion.
pub struct UringFixedPoll;

/// The target.
pub const fn target() -> Ring<UringFixedPoll> {
    Ring::new()
}

impl Flavor for UringFixedPoll {
    const NAME: &'static str = "io_uring_fixed_poll";
    const IS_REGISTERED: bool = true;
    const IS_POLLED: bool = true;
    const CAPABILITIES: Capabilities =
        Capabilities { has_vectors: false, ..UringPoll::CAPABILITIES };

    fn check(request: &LaneRequest) -> Result<(), Error> {
        check_devices(request, Self::NAME)
    }
}
