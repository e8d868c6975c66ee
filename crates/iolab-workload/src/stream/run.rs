//! Runs: transfers of the pattern's records with nothing between them, which a synchronous lane
//! makes without asking for each what it is ([`iolab_model::target::Run`]).
//!
//! They are the same transfers, with the same effects on what is counted, as those of
//! [`Worker::next`](crate::Worker::next); a test drives both ways side by side.

use iolab_model::op::{Op, Position, Submission, Transfer};
use iolab_model::{Bytes, Ns};

use super::{FILE, StreamWorker};
use crate::generator::Records as _;
use crate::group::GroupState;
use crate::spec::{Direction, FsyncPolicy, LockPolicy, Manner, Tenant};
use crate::worker::Step;

/// Whether the timed region of the workers of `tenant` is a run.
pub(super) fn is_plain(tenant: &Tenant) -> bool {
    let is_one_way = matches!(tenant.direction, Direction::Read | Direction::Write);
    let manner =
        Manner { begin_step_ns: Ns(0), advice: None, call_bytes: 0, ..tenant.manner.clone() };
    is_one_way
        && tenant.depth == 1
        && tenant.period_ns().is_none()
        && tenant.think_ns.0 == 0
        && tenant.lock != LockPolicy::Record
        && !matches!(tenant.fsync, FsyncPolicy::Every { .. })
        && manner == Manner::default()
}

impl<G: GroupState> StreamWorker<G> {
    /// The next transfer, unless the region is over.
    #[inline]
    pub(super) fn next_plain(&mut self, now: Ns) -> Option<Transfer> {
        if self.issued == self.budget || now >= self.deadline || self.group.is_stopped() {
            return None;
        }
        self.issued += 1;
        let length = self.tenant.io_size_bytes;
        let at = Bytes(self.generator.next() * length.0);
        if self.tenant.direction == Direction::Write {
            self.unflushed.add(at.0, length.0);
        }
        let (vectors, flags) = (self.tenant.vectors.max(1), self.tenant.flags);
        let call_bytes = self.tenant.manner.call_bytes;
        Some(Transfer { handle: FILE, at: Position::At(at), length, vectors, flags, call_bytes })
    }

    /// Counts a whole transfer.
    #[inline]
    pub(super) fn plain_ended(&mut self, submitted: Ns, completed: Ns, length: Bytes) -> bool {
        if self.is_cut_off() {
            return false;
        }
        self.ended_at(submitted, completed);
        let moved = match self.tenant.direction {
            Direction::Write => &mut self.report.write_bytes,
            _ => &mut self.report.read_bytes,
        };
        *moved += length.0;
        self.report.ops += 1;
        self.report.bytes += length.0;
        true
    }

    /// A transfer of the run as an op in flight.
    pub(super) fn submit_plain(&mut self, transfer: &Transfer, now: Ns) -> Option<Submission> {
        let op = match self.tenant.direction {
            Direction::Write => Op::Write(*transfer),
            _ => Op::Read(*transfer),
        };
        match self.submit(now, true, op) {
            Step::Submit(submission) => Some(submission),
            _ => None,
        }
    }
}
