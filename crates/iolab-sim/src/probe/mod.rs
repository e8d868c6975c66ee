//! Probing a device as if it were a stranger: sweeps over size, depth and distance in virtual time.
//!
//! What a probe of a real device would measure, it measures of a simulated one, so that the fits
//! can be judged by what was put in. The read cache is off where the profile has one. Left out: the
//! phases on write caches and on the host's overhead. The address map of a disk is taken from its
//! profile (of a real disk it would be measured zone by zone).
//!
//! Source: models specification 8.1, steps 1 to 4.

mod closed_loop;
mod depth;
mod findings;
mod seek;
mod size;

pub use depth::{DepthPoint, DepthSweep};
pub use findings::{Findings, probe};
pub use seek::{SeekPoint, SeekSweep};
pub use size::{SizePoint, SizeSweep};

#[cfg(test)]
mod tests;
