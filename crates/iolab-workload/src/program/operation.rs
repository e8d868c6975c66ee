//! Record of an operation of a program.

use iolab_model::Histogram;
use iolab_model::op::Access;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::OperationKind;

/// An operation of a program: what it is, and what was counted of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationCount {
    /// The user's word for it.
    pub id: String,
    /// Kind of the operation.
    pub kind: OperationKind,
    /// Number of times that it ended inside the timed region.
    pub ops: u64,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Bytes of each, if they are all alike.
    pub io_size_bytes: Option<u64>,
    /// The way to the data, if it is always the same.
    pub access: Option<Access>,
    /// From the beginning of its first call to the end of its last one.
    pub latency: Histogram,
    /// From the instant at which its pass was meant to begin to its end; only under a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Histogram>,
    /// Counts of the parts between the cuts of the phase, if it has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<OperationPart>,
}

/// Counts of an operation between two cuts of a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationPart {
    /// Number of times that it ended there.
    pub ops: u64,
    /// Bytes that it moved.
    pub bytes: u64,
    /// From the beginning of its first call to the end of its last one.
    pub latency: Histogram,
}

impl OperationPart {
    /// Adds another one.
    pub fn merge(&mut self, other: &Self) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
    }
}

impl OperationCount {
    /// Adds what another worker counted of the same operation.
    pub fn merge(&mut self, other: &Self) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
        if let (Some(mine), Some(theirs)) = (&mut self.response, &other.response) {
            mine.merge(theirs);
        }
        if self.parts.len() < other.parts.len() {
            self.parts.resize_with(other.parts.len(), OperationPart::default);
        }
        self.parts.iter_mut().zip(&other.parts).for_each(|(mine, theirs)| mine.merge(theirs));
    }
}
