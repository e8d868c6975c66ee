//! `KvStore`: a key-value store under test, with keys and values as bytes.
//!
//! A store is opened once and shared by all clients; each call blocks until the store has answered.
//! Whoever opens it says how durable a write is when it returns. Left out: transactions, merges,
//! snapshots, and asynchronous calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error as ThisError;

/// A failure that a store tells, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("{0}")]
pub struct KvError(pub String);

crate::registry! {
    /// Promise of a write to a store that returned: one scale for all stores, so that they are
    /// compared at the same one.
    pub enum KvDurability as "durability" {
        /// Nothing: no log is written, a killed process loses data.
        None = "none",
        /// In the store's log, which the kernel writes when it wants: a killed process loses
        /// nothing, a machine without power does.
        Wal = "wal",
        /// In the log, and flushed to the device.
        Sync = "sync",
    }
}

/// Settings with which a store is opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvOptions {
    /// Promise of a write that returned.
    pub durability: KvDurability,
    /// Name of the group of records: a table, a column family.
    pub table: String,
    /// The store's own options, by its own names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<KvOption>,
    /// True to count what the store does inside, where that costs something.
    #[serde(default)]
    pub has_statistics: bool,
}

/// An option of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvOption {
    /// Part of the store that it belongs to: `db`, `cf` or `table`.
    pub part: String,
    /// Its name.
    pub name: String,
    /// Its value, as text.
    pub value: String,
}

/// A value that a store tells of itself after a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvFact {
    /// `snake_case`, with its unit.
    pub name: String,
    /// The value.
    pub value: f64,
}

/// A store of records, shared by all clients.
pub trait KvStore: Sync {
    /// Name in the list of stores.
    fn name(&self) -> &'static str;

    /// Version of its library, if it has one.
    fn version(&self) -> Option<String> {
        None
    }

    /// Tell whether it was made when it was opened, so that it holds nothing yet.
    fn is_new(&self) -> bool;

    /// Copies the value of a key into `value`, which is emptied before; false: there is none.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, KvError>;

    /// Stores a value, whether or not the key has one.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), KvError>;

    /// Removes a key and its value.
    fn delete(&self, key: &[u8]) -> Result<(), KvError>;

    /// Reads up to `count` records from a key on, in the order of their keys; answers how many.
    fn scan(
        &self,
        from: &[u8],
        count: u32,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u32, KvError>;

    /// Values that it tells of itself: bytes written inside, stalls, files.
    fn facts(&self) -> Vec<KvFact> {
        Vec::new()
    }

    /// Writes what is only in memory where it belongs, and gives everything back.
    fn close(self) -> Result<(), KvError>
    where
        Self: Sized;
}
