//! The machine as one object: every read and every change of it goes through here.

mod actor;
mod device;
#[cfg(test)]
mod emulated;
mod paper;

pub use actor::{Machine, command, find_program};
pub use device::{DeviceIdentity, Whose};
#[cfg(test)]
pub use emulated::{Fuse, fake_machine, tree};
