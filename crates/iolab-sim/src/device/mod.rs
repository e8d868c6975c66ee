//! Devices: one folder or file each.

pub mod fixed;
