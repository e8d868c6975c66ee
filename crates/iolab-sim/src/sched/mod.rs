//! The I/O schedulers: one file each, one row here.

pub mod common;
mod list;

pub mod bfq;
pub mod none;
pub mod noop;

pub use list::SchedulerKind;
