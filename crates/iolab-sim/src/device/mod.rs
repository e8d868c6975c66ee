//! Devices: one folder or file each.

pub mod disk;
pub mod fixed;
