//! `IOzone` 3.489: its command line, tables, throughput report, Excel report and files.
//!
//! Facts were established by tracing the real program; see the reference page of the dialect for
//! what differs on purpose.

pub mod biff;
pub mod build;
pub mod dialect;
pub mod lower;
pub mod options;
pub mod parse;
pub mod places;
pub mod plan;
pub mod render;
pub mod report;
pub mod result;
pub mod select;
pub mod side;
pub mod tables;
pub mod telemetry;
pub mod typed;
pub mod values;

#[cfg(test)]
mod tests;

pub use dialect::Iozone;
