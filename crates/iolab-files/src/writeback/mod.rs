//! Dirty throttling and write-back.

pub mod control;
pub mod limits;
pub mod pace;
pub mod unlimited;
pub mod writer;

pub use control::DirtyControl;
pub use unlimited::Unlimited;
pub use writer::Writer;
