//! What a record says of an operation of a program.

use iolab_model::Histogram;
use serde::{Deserialize, Serialize};

iolab_model::registry! {
    /// Kind of an operation, as records and analysis know it.
    pub enum OperationKind as "kind of operation" {
        /// Reads data.
        Read = "read",
        /// Writes data.
        Write = "write",
        /// Reads and writes.
        Mixed = "mixed",
        /// Reads a place and writes it back.
        Update = "update",
        /// Makes something durable.
        Sync = "sync",
        /// Works on names, lengths and blocks of files.
        Name = "name",
        /// Works on keys of a store.
        KeyValue = "key_value",
        /// Anything else.
        Other = "other",
    }
}

/// An operation of a program: what it is, and what was counted of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// The user's word for it.
    pub id: String,
    /// What it is.
    pub kind: OperationKind,
    /// How often it ended inside the timed region.
    pub ops: u64,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Bytes of each, if they are all alike.
    pub io_size_bytes: Option<u64>,
    /// `plain`, `direct`, `mapped`, `stdio` or `append`, if they are all alike.
    pub access: Option<String>,
    /// From the beginning of its first call to the end of its last one.
    pub latency: Histogram,
    /// From the instant at which its pass was meant to begin to its end; only under a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Histogram>,
}

impl Operation {
    /// Adds what another worker counted of the same operation.
    pub fn merge(&mut self, other: &Self) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
        if let (Some(mine), Some(theirs)) = (&mut self.response, &other.response) {
            mine.merge(theirs);
        }
    }
}
