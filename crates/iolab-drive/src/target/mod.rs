//! Targets that need no device.

mod memory;
mod null;

pub use memory::{Memory, MemoryLane};
pub use null::{Null, NullLane};
