//! Ready-made workloads: the tests of classic programs, and streams that compete.

mod iozone;
mod mixed;

pub use iozone::{FsyncChoice, IozoneRequest, IozoneTest, iozone};
pub use mixed::{MixedRequest, PatternName, StreamRequest, mixed};
