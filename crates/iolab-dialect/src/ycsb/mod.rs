//! YCSB's core workload: its command line, its property files and its reports.
//!
//! Source: YCSB 0.17.0 and its development head, by behaviour; where they differ the head is
//! followed. A command line becomes clients of a store ([`iolab_workload::kv`]).

pub mod dialect;
pub mod export;
pub mod hdr_log;
pub mod lower;
pub mod options;
pub mod options_file;
pub mod parse;
pub mod properties;
pub mod render;
pub mod table;

#[cfg(test)]
mod tests;

pub use dialect::Ycsb;
