//! Counts of a worker for each operation of its program.

use iolab_model::{Histogram, Ns};

use super::code::Counted;
use super::operation::{OperationCount, OperationPart};

/// Counts of one operation.
#[derive(Debug)]
pub(super) struct Tally {
    /// Number of times that it was begun.
    pub(super) begun: u64,
    pub(super) ops: u64,
    bytes: u64,
    latency: Histogram,
    response: Option<Histogram>,
    /// Parts between the cuts of the phase.
    parts: Vec<OperationPart>,
}

impl Tally {
    /// `is_resident`: its memory is there before it counts, which many workers have no room for.
    pub(super) fn new(is_paced: bool, is_resident: bool) -> Self {
        let histogram = || if is_resident { Histogram::resident() } else { Histogram::new() };
        Self {
            begun: 0,
            ops: 0,
            bytes: 0,
            latency: histogram(),
            response: is_paced.then(histogram),
            parts: Vec::new(),
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

    /// Bytes that it moved.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Forgets what was counted.
    pub(super) fn count_anew(&mut self) {
        (self.ops, self.bytes) = (0, 0);
        self.latency = Histogram::new();
        self.response = self.response.as_ref().map(|_| Histogram::new());
        self.parts.clear();
    }

    /// Counts the same in a part of the phase.
    pub(super) fn count_part(&mut self, part: usize, latency: Ns, bytes: u64) {
        if self.parts.len() <= part {
            self.parts.resize_with(part + 1, OperationPart::default);
        }
        let part = &mut self.parts[part];
        part.ops += 1;
        part.bytes += bytes;
        part.latency.record(latency.0);
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
            parts: self.parts.clone(),
        }
    }
}
