//! Ways to durability that file systems share: a journal of blocks with a circular log, and writes
//! without any journal; and what a crash undoes.

pub mod block_journal;
pub mod log;
pub mod persistence;
pub mod plain;
pub mod undo;

pub use block_journal::{BlockJournal, JournalRules};
pub use persistence::{DeltaLog, LogArea, Persistence};
pub use plain::PlainLog;
pub use undo::{FormerNode, MappedNode, UndoLog};
