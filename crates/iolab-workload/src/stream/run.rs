//! Runs: transfers of the pattern's records with nothing between them, which a synchronous lane
//! makes without asking for each what it is ([`iolab_model::target::Run`]).
//!
//! They are the same transfers, with the same effects on what is counted, as those of
//! [`Worker::next`](crate::Worker::next); a test drives both ways side by side.

use iolab_model::op::{Op, Position, Submission, Transfer, WriteLife};
use iolab_model::{Bytes, Ns, Seed};

use super::timed::Unflushed;
use super::{FILE, Stage, StreamWorker};
use crate::generator::{Generator, Records as _};
use crate::group::{Gate, GroupState};
use crate::spec::{Cpus, Direction, FsyncPolicy, Manner, Pattern, Preallocation, Tenant};
use crate::worker::{RunKind, Step};

/// Tell whether the timed region of the workers of `tenant` is a run, which begins at once.
pub(super) fn is_plain(tenant: &Tenant) -> bool {
    let is_one_way = matches!(tenant.direction, Direction::Read | Direction::Write);
    let is_delayed = tenant.begins_ns.0 > 0 || tenant.manner.begin_step_ns.0 > 0;
    is_one_way && tenant.depth == 1 && !is_delayed && is_unhindered(tenant)
}

/// Tell whether the timed region of the workers of `tenant` is nothing but transfers of the
/// pattern's records, each of which begins as soon as a slot is free.
pub(super) fn is_unhindered(tenant: &Tenant) -> bool {
    let manner = Manner {
        begin_step_ns: Ns(0),
        advice: None,
        nice: 0,
        cpus: Cpus::default(),
        call_bytes: 0,
        preallocation: Preallocation::Extended,
        content: None,
        write_life: WriteLife::Unsaid,
        submitter_cpu: None,
        engine: None,
        is_unlinked: false,
        ..tenant.manner.clone()
    };
    !matches!(tenant.direction, Direction::Update { .. } | Direction::Reread { .. })
        && tenant.period_ns().is_none()
        && tenant.think_ns.0 == 0
        && !tenant.lock.is_of_each()
        && !matches!(
            tenant.fsync,
            FsyncPolicy::Every { .. }
                | FsyncPolicy::Between { ops: 1.., .. }
                | FsyncPolicy::Between { pass_ops: 1.., .. }
        )
        && manner == Manner::default()
}

/// Transfer of a run of `tenant`, but for its place.
pub(super) fn transfer_of(tenant: &Tenant) -> Transfer {
    Transfer {
        vectors: tenant.vectors.max(1),
        flags: tenant.flags,
        call_bytes: tenant.manner.call_bytes,
        is_of_kernel_thread: tenant.manner.kernel_thread_every == 1,
        ..Transfer::plain(FILE, Position::Current, tenant.io_size_bytes)
    }
}

/// Transfers of nothing in a rehearsal.
const REHEARSED: u64 = 3;

/// State that a rehearsal must not change.
#[derive(Debug)]
pub(super) struct Kept {
    generator: Generator,
    budget: u64,
}

impl<G: GroupState> StreamWorker<G> {
    /// Kind of its run.
    #[inline]
    pub(super) fn kind(&self) -> RunKind {
        RunKind {
            writes: self.tenant.direction == Direction::Write,
            is_counted_at_once: self.is_stonewalled,
        }
    }

    /// Begins the timed region if the gate is open and the first transfer is due at once.
    pub(super) fn begin_run(&mut self, now: Ns) {
        if self.is_plain && self.report.errors == 0 && self.group.is_open(Gate::Start) {
            self.begin(now);
        }
    }

    /// Puts transfers of no bytes at the beginning of the file in the place of its own: a call that
    /// moves nothing changes neither file nor position, but takes the same way through our code and
    /// much of the same through the kernel's.
    pub(super) fn begin_rehearsal(&mut self) -> Option<RunKind> {
        let of = &self.of_a_run;
        let is_simple = of.vectors == 1 && of.flags.is_empty() && of.call_bytes == 0;
        if !self.is_plain || !is_simple || self.stage != Stage::WaitStart || self.has_failed() {
            return None;
        }
        let nowhere = Generator::new(Pattern::Same, 1, Seed(0));
        self.rehearsing = Some(Kept {
            generator: core::mem::replace(&mut self.generator, nowhere),
            budget: core::mem::replace(&mut self.budget, REHEARSED),
        });
        self.of_a_run.length = Bytes(0);
        Some(self.kind())
    }

    /// Puts back what the rehearsal used.
    pub(super) fn end_rehearsal(&mut self) {
        if let Some(Kept { generator, budget }) = self.rehearsing.take() {
            (self.generator, self.budget, self.issued) = (generator, budget, 0);
            (self.of_a_run, self.unflushed) = (transfer_of(&self.tenant), Unflushed::default());
        }
    }

    /// The next transfer, unless the region is over.
    #[inline]
    pub(super) fn next_plain<const WRITES: bool>(&mut self, now: Ns) -> Option<Transfer> {
        if self.issued == self.budget || now >= self.deadline || self.group.is_stopped() {
            return None;
        }
        self.issued += 1;
        let length = self.of_a_run.length;
        let at = Bytes(self.origin + self.generator.next() * length.0);
        if WRITES {
            self.unflushed.add(at.0, length.0);
        }
        Some(Transfer { at: Position::At(at), ..self.of_a_run })
    }

    /// Counts whole transfers that followed each other.
    pub(super) fn plain_ended(&mut self, submitted: Ns, completed: &[Ns], length: Bytes) -> bool {
        if self.stage != Stage::Timed || self.is_cut_off() {
            return false;
        }
        let [first, .., last] = completed else {
            if let [only] = completed {
                self.ended_at(submitted, *only);
            }
            return self.count_plain(completed.len() as u64, length);
        };
        self.ended_at(submitted, *first);
        let gaps = completed.windows(2).map(|pair| pair[1].since(pair[0]).0);
        let longest = gaps.max().unwrap_or(0);
        self.report.call_ns += last.since(*first).0;
        self.report.gap_ns_max = self.report.gap_ns_max.max(longest);
        self.ended = *last;
        self.count_plain(completed.len() as u64, length)
    }

    /// Adds whole transfers to the counts.
    fn count_plain(&mut self, ops: u64, length: Bytes) -> bool {
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
        if self.rehearsing.is_some() {
            return None;
        }
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
