//! The block queue: what stands between those who submit bios and a device.

mod accounting;
mod block;
mod chain;
mod charged;
mod flush;
mod intake;
mod merge;
mod parameters;
mod slots;
#[cfg(test)]
mod tests;
mod throttle;
mod waiters;

pub use accounting::{Accounting, is_of_the_instant};
pub use block::{BlockQueue, rerun_after};
pub(crate) use parameters::DEPTH_MAX;
pub use parameters::QueueParameters;
pub use slots::{BATCH_REQUESTS, BATCH_TIME, batch_limit, congested_off, congested_on};
