//! fio 3.33: its job files, command lines and results.
//!
//! Facts were established by running that version; see the reference page of the dialect for what
//! differs on purpose.

pub mod command;
pub mod host;
pub mod job;
pub mod options;
pub mod parse;
pub mod place;
pub mod row;
pub mod showcmd;
pub mod value;

#[cfg(test)]
mod tests;
