//! bonnie++ 2.00: its command line, phases, table and CSV line; `bon_csv2txt` of every version.
//!
//! Facts were established by tracing the real program; see the reference page of the dialect for
//! what differs on purpose.

pub mod csv;
pub mod dialect;
pub mod lower;
pub mod options;
pub mod parse;
pub mod plan;
pub mod render;
pub mod result;
pub mod table;
pub mod typed;

#[cfg(test)]
mod tests;

pub use dialect::Bonnie;
