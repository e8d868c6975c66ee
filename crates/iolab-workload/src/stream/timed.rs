//! The timed region: which op comes next, and when.

use iolab_model::op::{LockKind, Op, Position, RangeSync, Transfer};
use iolab_model::{Bytes, Ns};

use super::{FILE, Stage, StreamWorker};
use crate::bursting::BURN_MAX;
use crate::generator::Records as _;
use crate::group::GroupState;
use crate::spec::{Direction, Flush, FsyncPolicy, LockPolicy};
use crate::worker::Step;

/// Up to three ops that follow each other: lock, transfer, unlock; or read, write. Only workers of
/// depth 1 have any, so a free slot means that the one before has ended.
#[derive(Debug, Default)]
pub(super) struct Chain {
    ops: [Option<Op>; 2],
}

impl Chain {
    #[inline]
    fn is_empty(&self) -> bool {
        self.ops[0].is_none()
    }

    /// Two ops that follow the one at hand.
    pub(super) fn of(second: Op, third: Op) -> Self {
        Self { ops: [Some(second), Some(third)] }
    }

    fn take(&mut self) -> Option<Op> {
        let first = self.ops[0].take();
        self.ops.swap(0, 1);
        first
    }
}

/// Bytes written since the last flush.
#[derive(Debug)]
pub(super) struct Unflushed {
    writes: u64,
    from: u64,
    to: u64,
    /// Writes since the timed region began.
    all: u64,
    /// Nothing was begun since the last flush.
    has_just_flushed: bool,
}

impl Default for Unflushed {
    fn default() -> Self {
        Self { writes: 0, from: u64::MAX, to: 0, all: 0, has_just_flushed: false }
    }
}

impl Unflushed {
    #[inline]
    pub(super) fn add(&mut self, at: u64, length: u64) {
        self.writes += 1;
        self.all += 1;
        self.from = self.from.min(at);
        self.to = self.to.max(at + length);
    }

    /// Tell whether the number of writes is a multiple of `ops`, and something has begun since it
    /// was flushed.
    #[inline]
    fn is_at_multiple(&self, ops: u64) -> bool {
        self.all > 0 && !self.has_just_flushed && self.all.is_multiple_of(ops.max(1))
    }

    /// The flush of all of it.
    fn flush(&mut self, how: Flush, range: RangeSync) -> Op {
        let (at, length) = (Bytes(self.from), Bytes(self.to - self.from));
        *self = Self { all: self.all, has_just_flushed: true, ..Self::default() };
        match how {
            Flush::Fsync => Op::Fsync { handle: FILE },
            Flush::Fdatasync => Op::Fdatasync { handle: FILE },
            Flush::SyncFileRange => Op::SyncFileRange { handle: FILE, at, length, how: range },
            Flush::Msync => Op::Msync { handle: FILE, at, length, is_async: false },
            Flush::MsyncAsync => Op::Msync { handle: FILE, at, length, is_async: true },
        }
    }
}

impl<G: GroupState> StreamWorker<G> {
    #[inline]
    pub(super) fn next_timed(&mut self, now: Ns) -> Step {
        if !self.is_unhindered {
            return self.next_hindered(now);
        }
        if self.group.is_stopped() || now >= self.deadline {
            return self.end_out_of_time(now.min(self.deadline), now);
        }
        if self.issued == self.budget {
            return self.end_timed(now);
        }
        if self.free.is_empty() {
            return Step::Await;
        }
        if now < self.earliest {
            return Step::SleepUntil(self.earliest.min(self.deadline));
        }
        let op = self.draw();
        self.submission(now, true, op)
    }

    /// The next op where something may have to come before it.
    #[inline(never)]
    fn next_hindered(&mut self, now: Ns) -> Step {
        if !self.chain.is_empty() {
            return self.next_in_chain(now);
        }
        if self.group.is_stopped() || now >= self.deadline {
            return self.end_out_of_time(now.min(self.deadline), now);
        }
        if self.is_flush_due() && !self.free.is_empty() {
            let op = self.unflushed.flush(self.tenant.flush, self.tenant.manner.range_sync);
            return self.submit(now, true, op);
        }
        if self.has_ended_a_pass() {
            return self.flush_pass(now);
        }
        if self.read_back.is_some()
            && let Some(step) = self.next_read_back(now)
        {
            return step;
        }
        if self.issued == self.budget {
            return self.end_timed(now);
        }
        if self.free.len() <= self.idle_slots as usize {
            return Step::Await;
        }
        if self.drained_slots > 0 {
            self.idle_slots = 0;
        }
        if self.must_drain_first() {
            return Step::Await;
        }
        let mut intended = now;
        if self.pace_ns > 0.0 {
            let due = self.started + self.delayed();
            intended = due + Ns((self.issued as f64 * self.pace_ns) as u64);
        }
        // Who has nothing more to do in its time waits for its end.
        let not_before = intended.max(self.earliest).min(self.deadline);
        if let Some(duration) = self.bursting.as_ref().and_then(|burst| burst.to_burn(now)) {
            self.asides = 1;
            let duration = duration.min(BURN_MAX);
            return self.submit_aside(now, Op::Burn { duration });
        }
        if now < not_before {
            return Step::SleepUntil(not_before);
        }
        if self.is_dropping_due() {
            return self.drop_cache(now);
        }
        if self.is_disturbed() {
            return self.jump(now);
        }
        let op = match self.tenant.direction {
            Direction::Reread { read_share } => match self.next_reread(read_share) {
                Some(op) => op,
                None => return self.end_timed(now),
            },
            _ => self.draw(),
        };
        self.unflushed.has_just_flushed = false;
        if self.tenant.lock.is_of_each() {
            return self.locked(now, op);
        }
        let step = self.submission(intended, true, op);
        let is_full = self.free.is_empty();
        self.bursting.iter_mut().for_each(|burst| burst.begun(now, is_full));
        step
    }

    /// Tell whether so much was written that it is flushed now.
    #[inline]
    fn is_flush_due(&self) -> bool {
        match self.tenant.fsync {
            FsyncPolicy::Every { ops } => self.unflushed.writes >= ops,
            FsyncPolicy::Between { ops, is_repeated, .. } => {
                let is_due = if is_repeated {
                    self.unflushed.is_at_multiple(ops)
                } else {
                    self.unflushed.writes >= ops
                };
                ops > 0 && is_due && self.issued < self.budget
            }
            _ => false,
        }
    }

    /// Tell whether a pass is over behind which all is flushed.
    #[inline]
    fn has_ended_a_pass(&self) -> bool {
        let FsyncPolicy::Between { pass_ops, .. } = self.tenant.fsync else { return false };
        pass_ops > 0
            && self.issued != self.flushed_at
            && self.issued.is_multiple_of(pass_ops)
            && self.issued < self.budget
    }

    /// Flushes a pass as soon as all of it has ended; it takes time, and is not counted.
    #[cold]
    fn flush_pass(&mut self, now: Ns) -> Step {
        if self.in_flight() > 0 {
            return Step::Await;
        }
        self.flushed_at = self.issued;
        self.asides += 1;
        let op = self.flush_all();
        self.submit_aside(now, op)
    }

    /// The next record, read or written.
    #[inline]
    pub(super) fn draw(&mut self) -> Op {
        self.issued += 1;
        let is_read = match self.tenant.direction {
            Direction::Read | Direction::Update { .. } | Direction::Reread { .. } => true,
            Direction::Write => false,
            Direction::Mixed { read_share } => self.random.unit() < read_share,
        };
        let transfer = self.record(is_read);
        if is_read {
            if let Direction::Update { write_share } = self.tenant.direction {
                self.update(transfer, write_share);
            }
            return Op::Read(transfer);
        }
        if let Position::At(at) = transfer.at {
            self.unflushed.add(at.0, transfer.length.0);
        }
        Op::Write(transfer)
    }

    /// The read of the next record that a mixed worker with the same draws writes, if one is left.
    #[cold]
    fn next_reread(&mut self, read_share: f64) -> Option<Op> {
        while self.issued < self.budget {
            self.issued += 1;
            let is_read = self.random.unit() < read_share;
            let transfer = self.record(is_read);
            if !is_read {
                return Some(Op::Read(transfer));
            }
        }
        None
    }

    /// After the read of a record perhaps its writing back.
    fn update(&mut self, transfer: Transfer, write_share: f64) {
        let is_written = match self.generator.is_update() {
            Some(is_update) => is_update,
            None => self.random.unit() < write_share,
        };
        if is_written {
            if let Position::At(at) = transfer.at {
                self.unflushed.add(at.0, transfer.length.0);
            }
            self.chain = Chain { ops: [Some(Op::Write(transfer)), None] };
        }
    }

    /// The transfer of the next record that is read, or written.
    #[inline]
    pub(super) fn record(&mut self, is_read: bool) -> Transfer {
        if !self.is_unhindered && !self.tenant.manner.replay.is_empty() {
            return self.replayed();
        }
        let order = match &mut self.writes {
            Some(writes) if !is_read => writes,
            _ => &mut self.generator,
        };
        let at = Bytes(self.origin + order.next() * self.of_a_run.length.0);
        let mut transfer = Transfer { at: Position::At(at), ..self.of_a_run };
        if !self.is_unhindered && self.tenant.manner.kernel_thread_every > 1 {
            let every = self.tenant.manner.kernel_thread_every;
            transfer.is_of_kernel_thread = self.issued.is_multiple_of(every);
        }
        transfer
    }

    /// Locks the record of `op`; the op and the unlocking follow.
    #[cold]
    fn locked(&mut self, now: Ns, op: Op) -> Step {
        let (transfer, kind) = match op {
            Op::Read(transfer) => (transfer, LockKind::Shared),
            Op::Write(transfer) => (transfer, LockKind::Exclusive),
            _ => unreachable!("only transfers are drawn"),
        };
        let (is_alone, is_record) =
            (self.tenant.lock == LockPolicy::Exclusive, self.tenant.lock == LockPolicy::Record);
        let kind = if is_alone { LockKind::Exclusive } else { kind };
        // Length 0 is everything to the end of the file (fcntl(2)).
        let (at, length) = match transfer.at {
            Position::At(at) if is_record => (at, transfer.length),
            _ => (Bytes(0), if is_record { transfer.length } else { Bytes(0) }),
        };
        let lock = |kind| Op::Lock { handle: FILE, kind, at, length };
        self.chain = Chain::of(op, lock(LockKind::Release));
        self.submit(now, true, lock(kind))
    }

    #[cold]
    fn next_in_chain(&mut self, now: Ns) -> Step {
        if self.free.is_empty() {
            return Step::Await;
        }
        match self.chain.take() {
            Some(op) if self.asides > 0 => self.submit_aside(now, op),
            Some(op) => self.submit(now, true, op),
            None => Step::Await,
        }
    }

    /// Nothing new is begun, because its time is over or because it was stopped.
    #[cold]
    fn end_out_of_time(&mut self, end: Ns, now: Ns) -> Step {
        self.out_of_time.get_or_insert(end);
        self.end_timed(now)
    }

    /// The timed region is over for this worker as soon as nothing is in flight.
    fn end_timed(&mut self, now: Ns) -> Step {
        if self.is_stonewalled && !self.group.is_stopped() {
            self.group.stop();
        }
        if self.in_flight() > 0 {
            return Step::Await;
        }
        self.stage = Stage::UnlockFile;
        self.next_untimed(now)
    }
}
