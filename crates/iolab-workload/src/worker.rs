//! `Worker`: a passive state machine that is asked for its next op.

use iolab_model::{Completion, Ns, Submission};

/// What a worker wants to happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this op.
    Submit(Submission),
    /// Nothing before this instant; completions may arrive meanwhile.
    SleepUntil(Ns),
    /// Nothing before a completion arrives or the group's state changes.
    Await,
    /// Never anything again; no op is in flight.
    Finished,
}

/// One actor of a workload. It never blocks, sleeps or reads a clock.
pub trait Worker {
    /// What to do at `now`, the latest reading of the target's clock.
    fn next(&mut self, now: Ns) -> Step;

    /// Takes the end of an op; answers whether it counts (timed, and not cut off by a stonewall).
    fn complete(&mut self, completion: &Completion) -> bool;
}
