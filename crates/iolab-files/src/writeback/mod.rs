//! Dirty throttling and write-back.

pub mod control;
pub mod limits;
pub mod pace;
pub mod writer;

pub use control::Control;
pub use writer::Writer;
