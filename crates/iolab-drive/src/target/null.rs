//! A target that does nothing: every op succeeds at once. It measures the harness itself.
//!
//! At depth 1 it answers like a synchronous engine (done), above like an asynchronous one (queued),
//! so that both paths of the pump are measured. It keeps neither data nor names, says so
//! ([`Capabilities::keeps_nothing`]), and declines data verification, mapping, streams and locks
//! aloud.

use core::hint::black_box;

use iolab_model::op::Access;
use iolab_model::target::{Run, RunEnd};
use iolab_model::{
    Accepted, Bytes, Capabilities, Completion, Error, Lane, LaneRequest, Ns, Op, Submission,
    Target, error::Errno, op::Token,
};

use crate::clock::{burn, monotonic, sleep_until};

/// The null target.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

/// A null target that is given every op in a batch, as lanes without runs are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BatchedNull;

/// A lane of the null target.
#[derive(Debug)]
pub struct NullLane {
    depth: u32,
    takes_runs: bool,
    waiting: Vec<(Token, Ns, Result<Bytes, Errno>)>,
}

impl Target for Null {
    type Lane = NullLane;

    fn name(&self) -> &'static str {
        "null"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            is_asynchronous: true,
            depth_max: 4096,
            has_direct: true,
            has_vectors: true,
            has_flags: true,
            has_small_calls: true,
            has_namespace: true,
            has_append: true,
            has_allocate: true,
            has_deallocate: true,
            has_zeroing: true,
            has_end: true,
            has_links: true,
            has_key_value: true,
            keeps_nothing: true,
            ..Capabilities::MINIMAL
        }
    }

    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn open(&self, request: &LaneRequest) -> Result<NullLane, Error> {
        let depth = request.depth;
        Ok(NullLane { depth, takes_runs: true, waiting: Vec::with_capacity(depth as usize) })
    }
}

impl Target for BatchedNull {
    type Lane = NullLane;

    fn name(&self) -> &'static str {
        Null.name()
    }

    fn capabilities(&self) -> Capabilities {
        Null.capabilities()
    }

    fn facts(&self) -> Vec<(String, String)> {
        Null.facts()
    }

    fn open(&self, request: &LaneRequest) -> Result<NullLane, Error> {
        Ok(NullLane { takes_runs: false, ..Null.open(request)? })
    }
}

/// Transfers move all they are asked to; what depends on memory or a lock is declined; everything
/// else succeeds.
#[inline]
fn answer(op: &Op) -> Result<Bytes, Errno> {
    match op {
        Op::Read(transfer) | Op::Write(transfer) => Ok(transfer.length),
        Op::Copy { length, .. } | Op::KeyValue { length, .. } => Ok(*length),
        Op::Burn { duration } => {
            burn(*duration);
            Ok(Bytes(0))
        }
        Op::Open { how, .. } | Op::Create { how, .. }
            if matches!(how.access, Access::Mapped | Access::Stdio) =>
        {
            Err(Errno::EOPNOTSUPP)
        }
        Op::Map { .. }
        | Op::Unmap { .. }
        | Op::Msync { .. }
        | Op::Touch { .. }
        | Op::StreamRead { .. }
        | Op::StreamWrite { .. }
        | Op::StreamFlush { .. }
        | Op::Lock { .. } => Err(Errno::EOPNOTSUPP),
        _ => Ok(Bytes(0)),
    }
}

impl Lane for NullLane {
    const HAS_RUNS: bool = true;

    #[inline]
    fn takes_runs(&self) -> bool {
        self.takes_runs
    }

    #[inline]
    fn run<R: Run>(&mut self, now: Ns, run: &mut R) -> RunEnd {
        let mut submitted = now;
        while let Some(transfer) = run.next(submitted) {
            let completed = monotonic();
            run.ended(submitted, completed, black_box(&transfer).length);
            submitted = completed;
        }
        RunEnd::Over(submitted)
    }

    #[inline]
    fn now(&self) -> Ns {
        monotonic()
    }

    #[inline]
    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        let mut accepted = Accepted::default();
        if self.depth == 1 {
            let mut submitted = now;
            for submission in batch {
                let outcome = answer(&submission.op);
                let completed = monotonic();
                done.push(Completion { token: submission.token, submitted, completed, outcome });
                submitted = completed;
            }
            accepted.done = batch.len();
            return accepted;
        }
        let room = self.depth as usize - self.waiting.len();
        for submission in &batch[..batch.len().min(room)] {
            self.waiting.push((submission.token, now, answer(&submission.op)));
            accepted.queued += 1;
        }
        accepted
    }

    fn kick(&mut self) -> Result<(), Error> {
        Ok(())
    }

    #[inline]
    fn reap(&mut self, _: u32, _: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        let completed = monotonic();
        let complete =
            |(token, submitted, outcome)| Completion { token, submitted, completed, outcome };
        done.extend(self.waiting.drain(..).map(complete));
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        self.waiting.len() as u32
    }

    fn sleep_until(&mut self, instant: Ns) {
        sleep_until(instant);
    }
}
