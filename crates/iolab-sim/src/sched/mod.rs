//! The I/O schedulers: one file each, one row here.

pub mod common;
mod list;

pub mod bfq;
pub mod deadline;
pub mod deadlines;
pub mod mq_deadline;
pub mod none;
pub mod noop;

pub use list::SchedulerKind;
