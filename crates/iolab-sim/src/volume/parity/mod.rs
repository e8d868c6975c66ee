//! What RAID 5 and RAID 6 share: address arithmetic, write plans, and the array's state machine.

pub mod geometry;
pub mod plan;
