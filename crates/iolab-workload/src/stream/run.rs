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

/// What the transfers of a run of `tenant` are, but for their places.
pub(super) fn transfer_of(tenant: &Tenant) -> Transfer {
    Transfer {
        vectors: tenant.vectors.max(1),
        flags: tenant.flags,
        call_bytes: tenant.manner.call_bytes,
        ..Transfer::plain(FILE, Position::Current, tenant.io_size_bytes)
    }
}

impl<G: GroupState> StreamWorker<G> {
    /// The next transfer, unless the region is over.
    #[inline]
    pub(super) fn next_plain<const WRITES: bool>(&mut self, now: Ns) -> Option<Transfer> {
        if self.issued == self.budget || now >= self.deadline || self.group.is_stopped() {
            return None;
        }
        self.issued += 1;
        let length = self.of_a_run.length;
        let at = Bytes(self.generator.next() * length.0);
        if WRITES {
            self.unflushed.add(at.0, length.0);
        }
        Some(Transfer { at: Position::At(at), ..self.of_a_run })
    }

    /// Counts whole transfers that followed each other.
    pub(super) fn plain_ended(&mut self, submitted: Ns, completed: &[Ns], length: Bytes) -> bool {
        if self.is_cut_off() {
            return false;
        }
        let mut begin = submitted;
        for end in completed {
            self.ended_at(begin, *end);
            begin = *end;
        }
        let ops = completed.len() as u64;
        let moved = if self.tenant.direction == Direction::Write {
            &mut self.report.write_bytes
        } else {
            &mut self.report.read_bytes
        };
        *moved += ops * length.0;
        self.report.ops += ops;
        self.report.bytes += ops * length.0;
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
