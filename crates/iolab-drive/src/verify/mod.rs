//! Check that storage returns what was written: a lane around a lane composes what is written and
//! examines what is read.
//!
//! [`lane`] does it for any target that gives its buffers out; [`block`] is what a block looks
//! like, [`iolab_workload::verify::ledger`] what is known of earlier writes, [`plan`] what it may
//! expect of the rest. Times of ops leave the checking out; throughput has it in, which a caveat
//! says.

pub mod block;
pub mod guarded;
pub mod hash;
pub mod lane;
pub mod plan;
pub mod told;

pub use guarded::{Guard, Guarding, Unguarded};
pub use lane::VerifyingLane;
pub use plan::{Findings, LanePlan};
