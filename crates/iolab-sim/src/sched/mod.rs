//! The I/O schedulers: one file or folder each, one row in the list.

pub mod common;
mod list;

pub mod cfq;
pub mod none;
pub mod noop;

pub use list::SchedulerKind;
