//! `RocksDB`: the system's library, opened when it is needed.
//!
//! The C interface is the library's stable one; options go through its own option strings, so that
//! each version takes those that it has (`RocksDB` 6.11 to 10, `include/rocksdb/c.h`). Left out:
//! transactions, merges, backups, and everything that a workload does not ask for.

mod facts;
mod library;
mod options;
mod store;

pub use library::{InstalledLibrary, find};
pub use store::RocksDb;
