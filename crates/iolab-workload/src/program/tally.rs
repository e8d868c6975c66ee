//! Counts of a worker for each operation of its program.

use iolab_model::{Histogram, Ns};

use super::code::Counted;
use super::operation::OperationCount;

/// Counts of one operation.
#[derive(Debug)]
pub(super) struct Tally {
    /// Number of times that it was begun.
    pub(super) begun: u64,
    pub(super) ops: u64,
    bytes: u64,
    latency: Histogram,
    response: Option<Histogram>,
}

impl Tally {
    pub(super) fn new(is_paced: bool) -> Self {
        Self {
            begun: 0,
            ops: 0,
            bytes: 0,
            latency: Histogram::resident(),
            response: is_paced.then(Histogram::resident),
        }
    }

    /// An operation has ended that was meant to begin, and began, then.
    pub(super) fn count(&mut self, (intended, began): (Ns, Ns), ended: Ns, bytes: u64) {
        self.ops += 1;
        self.bytes += bytes;
        self.latency.record(ended.since(began).0);
        if let Some(response) = &mut self.response {
            response.record(ended.since(intended).0);
        }
    }

    /// For the record.
    pub(super) fn operation(&self, counted: &Counted) -> OperationCount {
        OperationCount {
            id: counted.id.clone(),
            kind: counted.nature.kind,
            ops: self.ops,
            bytes: self.bytes,
            io_size_bytes: counted.nature.io_size_bytes,
            access: counted.nature.access,
            latency: self.latency.clone(),
            response: self.response.clone(),
        }
    }
}
