//! Dirty throttling and write-back.

pub mod control;
pub mod limits;
pub mod pace;
pub mod writer;

pub use control::DirtyControl;
pub use writer::Writer;
