//! Common part of RAID 5 and RAID 6: address arithmetic, write plans, and the array's state
//! machine.

pub(super) mod array;
mod destage;
mod errors;
mod reads;
mod rebuild;
mod rows;
mod writes;

pub mod geometry;
pub mod plan;
