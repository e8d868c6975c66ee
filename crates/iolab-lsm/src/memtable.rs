//! Write buffers: sorted keys in memory, with the log that holds the same.

use std::collections::BTreeSet;

use crate::action::{FileNo, Key};

/// Bytes of a node of the skip list beside its entry: pointers of 1.33 levels on average, and
/// alignment (`RocksDB` 7.8 `memtable/inlineskiplist.h`: branching factor 4).
const NODE_BYTES: u64 = 12;
/// Sequence number and type of an entry (`db/dbformat.h`).
pub const SEQUENCE_BYTES: u64 = 8;
/// Lengths of key and value of an entry, as variable-length numbers.
const LENGTH_BYTES: u64 = 3;

/// A write buffer.
#[derive(Debug)]
pub struct Memtable {
    /// Its log, if writes are logged.
    pub log: Option<FileNo>,
    /// Bytes that were appended to the log.
    pub log_bytes: u64,
    /// Bytes reserved for the log.
    pub log_reserved: u64,
    /// Bytes of the log whose write-out was begun.
    pub log_written_out: u64,
    pub keys: BTreeSet<Key>,
    /// Memory that it takes; overwritten entries stay.
    pub bytes: u64,
    /// Entries, overwritten ones included, and the bytes of their keys and values.
    pub entries: u64,
    pub key_bytes: u64,
    pub value_bytes: u64,
    /// Number of the flush that is under way.
    pub flush: Option<u64>,
}

impl Memtable {
    /// An empty one.
    pub const fn new(log: Option<FileNo>) -> Self {
        Self {
            log,
            log_bytes: 0,
            log_reserved: 0,
            log_written_out: 0,
            keys: BTreeSet::new(),
            bytes: 0,
            entries: 0,
            key_bytes: 0,
            value_bytes: 0,
            flush: None,
        }
    }

    /// Takes an entry.
    pub fn insert(&mut self, key: Key, key_bytes: u64, value_bytes: u64) {
        self.keys.insert(key);
        self.bytes += NODE_BYTES + SEQUENCE_BYTES + LENGTH_BYTES + key_bytes + value_bytes;
        self.entries += 1;
        self.key_bytes += key_bytes;
        self.value_bytes += value_bytes;
    }
}
