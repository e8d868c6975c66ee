//! Targets that need no device.

mod memory;
mod null;

pub use memory::{Memory, MemoryLane};
pub(crate) use null::BatchedNull;
pub use null::{Null, NullLane};
