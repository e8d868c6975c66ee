//! A simulated stack as a [`iolab_model::Target`]: the same workers run on it as on the kernel.

mod beside;
mod buffers;
mod filed;
mod filed_lane;
mod lane;
mod namespace;
mod readings;
mod simulation;

pub(crate) use beside::Beside;
pub use lane::{CAPABILITIES, SimLane, SimTarget};
pub(crate) use namespace::EXTENT;
pub use namespace::{DIRECTORY, Placement};
pub use readings::ReadingsTaken;
pub use simulation::{CpuCost, Simulation};
