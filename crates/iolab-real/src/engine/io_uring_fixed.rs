//! `io_uring` with registered buffers and files.
//!
//! The kernel maps the buffers and looks the files up once, when the lane and the file are opened,
//! instead of in each operation. The buffers are locked in memory: without `CAP_IPC_LOCK` they must
//! fit into `RLIMIT_MEMLOCK`, and a lane for which they do not is refused aloud. A lane has room
//! for 256 open files. Left out: vectored transfers.

use iolab_model::Capabilities;

use super::io_uring::Uring;
use super::ring::{Flavor, Ring};

/// Rings with registered buffers and files.
pub struct UringFixed;

/// The target.
pub const fn target() -> Ring<UringFixed> {
    Ring::new()
}

impl Flavor for UringFixed {
    const NAME: &'static str = "io_uring_fixed";
    const IS_REGISTERED: bool = true;
    const CAPABILITIES: Capabilities = Capabilities { has_vectors: false, ..Uring::CAPABILITIES };
}
