//! A store on a device, for checks.

mod device;

pub use device::*;
