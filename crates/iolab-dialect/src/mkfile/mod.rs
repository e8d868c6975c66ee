//! Solaris's mkfile: files of a size, full of zeros or sparse, as on Solaris and illumos.
//!
//! Facts are those of the manual page and of the program's behaviour; what differs on purpose is on
//! the reference page of the dialect.

pub mod dialect;
pub mod lower;
pub mod options;
pub mod parse;
pub mod render;

#[cfg(test)]
mod tests;

pub use dialect::Mkfile;
