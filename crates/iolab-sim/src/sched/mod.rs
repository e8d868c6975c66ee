//! The I/O schedulers: one file or folder each, one row in the list.

pub mod anticipatory;
pub mod common;
mod list;

#[cfg(test)]
pub(crate) mod exercise;

pub mod bfq;
pub mod cfq;
pub mod deadline;
pub mod deadlines;
pub mod kyber;
pub mod mq_deadline;
pub mod none;
pub mod noop;

pub use list::SchedulerKind;
