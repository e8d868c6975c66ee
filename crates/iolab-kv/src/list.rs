//! The stores, one row each.

use std::path::Path;

use iolab_model::Error;
use iolab_model::kv::{KvOptions, KvStore};

use crate::memory::MemoryStore;
use crate::rocksdb::RocksDb;

iolab_model::registry! {
    /// A store by name.
    pub enum StoreKind as "store" {
        /// `RocksDB`, of the system's library.
        RocksDb = "rocksdb",
        /// A map in this process.
        Memory = "memory",
    }
}

impl StoreKind {
    /// Tell whether it has a directory of its own.
    pub const fn has_directory(self) -> bool {
        matches!(self, Self::RocksDb)
    }
}

/// Work on a store whose type is known to it alone.
pub trait StoreVisitor {
    /// Result of the work.
    type Output;

    /// Works on the store that `open` opens.
    fn visit<S: KvStore + Send>(self, open: impl FnOnce() -> Result<S, Error>) -> Self::Output;
}

/// Lets `visitor` work on a store that lies in `directory`, if it has one.
pub fn visit<V: StoreVisitor>(
    store: StoreKind,
    directory: &Path,
    options: &KvOptions,
    visitor: V,
) -> V::Output {
    match store {
        StoreKind::RocksDb => visitor.visit(|| RocksDb::open(directory, options)),
        StoreKind::Memory => visitor.visit(|| Ok(MemoryStore::default())),
    }
}
