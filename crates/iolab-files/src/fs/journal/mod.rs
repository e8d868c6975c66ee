//! Ways to durability that file systems share: a journal of blocks with a circular log, and writes
//! without any journal.

pub mod block_journal;
pub mod durability;
pub mod log;
pub mod plain;

pub use block_journal::{BlockJournal, JournalRules};
pub use durability::{DeltaLog, Durability, LogArea};
pub use plain::PlainLog;
