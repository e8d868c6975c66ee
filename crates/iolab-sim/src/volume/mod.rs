//! Volumes: several members that look like one; one file per layout, one row in the list.

mod fan_out;
mod list;
mod members;
mod mirror;
mod parameters;
mod slots;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod write_counts;

pub mod parity;
pub mod raid0;
pub mod raid1;
pub mod raid10;
pub mod raid5;
pub mod raid6;
pub mod raidz;
pub mod raidz1;
pub mod raidz2;
pub mod raidz3;
pub mod ranges;
pub mod single;
pub mod stripe;
pub mod transfer;

pub use list::{VolumeKind, build};
pub use parameters::{ParityLayout, Tie, VolumeParameters, WriteRule};
pub use write_counts::{WriteCounts, plan_write};
