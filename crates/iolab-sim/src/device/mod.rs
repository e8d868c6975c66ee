//! Devices: one folder or file each, one row in the list.

mod list;
mod lognormal;

pub mod busy;
pub mod cloud;
pub mod controller;
pub mod disk;
pub mod faulty;
pub mod fixed;
pub mod guest;
pub mod smr;
pub mod ssd;

pub use list::{DeviceKind, build, memory_bytes, profile};
