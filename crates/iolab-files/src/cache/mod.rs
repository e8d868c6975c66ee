//! The page cache: pages by file, memory, and what is dirty.

mod map;
mod page_cache;

pub use map::{PageMap, Slot};
pub use page_cache::{CacheCounters, PageCache};
