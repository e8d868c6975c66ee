//! fio 3.33: its job files, command lines and results.
//!
//! Facts were established by running that version; see the reference page of the dialect for what
//! differs on purpose.

pub mod buffers;
pub mod command;
pub mod dialect;
pub mod engine;
pub mod eta;
pub mod expand;
pub mod geometry;
mod help;
pub mod host;
pub mod iolog;
pub mod job;
pub mod json;
pub mod logs;
pub mod lower;
pub mod normal;
pub mod options;
pub mod parse;
pub mod place;
pub mod places;
pub mod plan;
pub mod program;
pub mod render;
pub mod result;
pub mod row;
pub mod rules;
pub mod shape;
pub mod show;
pub mod showcmd;
pub mod tenant;
pub mod terse;
pub mod value;
pub mod verify;
pub mod verify_state;

#[cfg(test)]
mod tests;

pub use dialect::Fio;
