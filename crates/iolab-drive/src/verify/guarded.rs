//! Lanes that are checked where a plan says so, and lanes as they are: which, is decided once for
//! all workers of a phase.

use iolab_model::op::{Submission, Token};
use iolab_model::seed::Stream;
use iolab_model::{Accepted, Completion, Error, Lane, Ns};
use iolab_workload::StreamReport;

use super::{LanePlan, VerifyingLane};

/// Decision whether lanes are checked.
pub trait Guard<L: Lane> {
    /// A lane with what checks it.
    type Lane: Lane;

    /// Puts what checks around a lane of so many slots; `plan` is asked for only by who checks.
    fn guard(lane: L, slots: u32, plan: impl FnOnce() -> Option<(LanePlan, Stream)>) -> Self::Lane;

    /// Adds what was found to the report of the lane's worker.
    fn report(lane: Self::Lane, report: &mut StreamReport);
}

/// Nothing is checked.
#[derive(Clone, Copy, Debug)]
pub struct Unguarded;

impl<L: Lane> Guard<L> for Unguarded {
    type Lane = L;

    fn guard(lane: L, _: u32, _: impl FnOnce() -> Option<(LanePlan, Stream)>) -> L {
        lane
    }

    fn report(_: L, _: &mut StreamReport) {}
}

/// Reads of workers are checked, if their lanes have plans.
#[derive(Clone, Copy, Debug)]
pub struct Guarding;

impl<L: Lane> Guard<L> for Guarding {
    type Lane = Guarded<L>;

    fn guard(lane: L, slots: u32, plan: impl FnOnce() -> Option<(LanePlan, Stream)>) -> Guarded<L> {
        match plan() {
            Some((plan, random)) => {
                Guarded::Verifying(VerifyingLane::new(lane, plan, slots, random))
            }
            None => Guarded::Plain(lane),
        }
    }

    fn report(lane: Guarded<L>, report: &mut StreamReport) {
        if let Guarded::Verifying(lane) = lane {
            lane.into_findings().report(report);
        }
    }
}

/// A lane that is checked, or not.
#[allow(clippy::large_enum_variant, reason = "there is one per worker")]
pub enum Guarded<L> {
    /// Passes everything on.
    Plain(L),
    /// Checks what it reads.
    Verifying(VerifyingLane<L>),
}

macro_rules! either {
    ($lane:expr, $inner:ident => $call:expr) => {
        match $lane {
            Guarded::Plain($inner) => $call,
            Guarded::Verifying($inner) => $call,
        }
    };
}

impl<L: Lane> Lane for Guarded<L> {
    fn now(&self) -> Ns {
        either!(self, lane => lane.now())
    }

    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        either!(self, lane => lane.submit_batch(now, batch, done))
    }

    fn kick(&mut self) -> Result<(), Error> {
        either!(self, lane => lane.kick())
    }

    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        either!(self, lane => lane.reap(min, until, done))
    }

    fn in_flight(&self) -> u32 {
        either!(self, lane => lane.in_flight())
    }

    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        either!(self, lane => lane.buffer(token))
    }

    fn sleep_until(&mut self, instant: Ns) {
        either!(self, lane => lane.sleep_until(instant));
    }

    fn time_submissions(&mut self, group: u32) {
        either!(self, lane => lane.time_submissions(group));
    }

    fn submission_ns(&self, token: Token) -> Ns {
        either!(self, lane => lane.submission_ns(token))
    }
}
