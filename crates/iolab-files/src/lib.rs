//! The file half of the simulation: page cache, read-ahead, write-back and file systems.
//!
//! Policies are deciders ([`api`]): plain data in, decisions out, time as an argument. The machine
//! (`machine`) owns time, memory and the operations in progress, asks the deciders, and turns what
//! they answer into block requests; it knows no file system by name. What lies below the requests
//! is the block half, `iolab-sim`, which this crate does not know.
//!
//! The decision and its reasons: `docs/design/0011-files-in-simulation.md`.

pub mod api;
pub mod cache;
pub mod error;
pub mod fs;
pub mod machine;
pub mod readahead;
pub mod reclaim;
pub mod sector;
pub mod writeback;

pub use error::FilesError;
