//! Devices: one folder or file each, one row in the list.

mod list;

pub mod fixed;

pub use list::{DeviceKind, build, profile};
