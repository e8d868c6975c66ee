//! A model of a log-structured merge store: what such a store reads and writes, decided without
//! doing it.
//!
//! [`LsmStore`] takes keys and the time, and says which file operations its clients and its
//! background threads make; whoever owns it carries them out, on a simulated file system or on
//! nothing. Rules, names and defaults are those of `RocksDB` 7.8: write buffers and log, flushes,
//! leveled and universal compaction, blocks, filters and their cache, stalls.
//!
//! Keys are numbers in the order of the keys that they stand for; of values only the size is known,
//! and a table keeps the mean of its entries. Left out: deletions, snapshots, merge operators,
//! several column families, sub-compactions, rate limiters, and direct I/O.
//! Sources: the headers of `RocksDB` 7.8.3 (`options.h`, `advanced_options.h`, `table.h`,
//! `universal_compaction.h`) and its public wiki.

pub mod action;
mod cache;
mod facts;
mod job;
mod leveled;
mod memtable;
pub mod options;
mod read;
mod stall;
mod store;
mod table;
mod universal;
mod version;
mod write;

pub use action::{Action, FileKind, FileNo, Key, StoreCost};
pub use job::{JobKind, StoreJob};
pub use options::{CompactionStyle, LsmOptions};
pub use read::{BlockRead, KeyLookup};
pub use store::LsmStore;
pub use write::{LogWrite, Ticket, WriterTurn};
