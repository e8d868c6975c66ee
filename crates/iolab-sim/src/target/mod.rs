//! A simulated stack as a [`iolab_model::Target`]: the same workers run on it as on the kernel.

mod lane;
mod namespace;
mod simulation;

pub use lane::{CAPABILITIES, SimLane, SimTarget};
pub use namespace::Placement;
pub use simulation::{CpuCost, Simulation};
