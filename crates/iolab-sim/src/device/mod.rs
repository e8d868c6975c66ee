//! Devices: one folder or file each.

pub mod fixed;
pub mod guest;
pub mod ssd;
