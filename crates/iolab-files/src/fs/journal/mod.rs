//! Journal of blocks: one running and one committing transaction, and a circular log.

pub mod block_journal;
pub mod log;

pub use block_journal::{BlockJournal, JournalRules};
