//! `Worker`: a passive state machine that is asked for its next op.

use iolab_model::op::{OpClass, Transfer};
use iolab_model::{Bytes, Completion, Ns, Submission};

use crate::program::OperationCount;
use crate::report::StreamReport;

/// Next wish of a worker.
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

/// Kind of the transfers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunKind {
    /// True if they write; otherwise they read.
    pub writes: bool,
    /// True if a transfer counts is known only when it ends (a stonewall may fall).
    pub is_counted_at_once: bool,
}

/// An operation of several ops, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeOperation {
    /// Histogram that it goes into.
    pub class: OpClass,
    /// Time at which its first op was submitted.
    pub began: Ns,
    /// Time at which its last op ended.
    pub ended: Ns,
    /// Bytes that it moved.
    pub bytes: u64,
}

/// One actor of a workload. It never blocks, sleeps or reads a clock.
pub trait Worker {
    /// Next step at `now`, the latest reading of the target's clock.
    fn next(&mut self, now: Ns) -> Step;

    /// Takes the end of an op; answers whether it counts (timed, and not cut off by a stonewall).
    fn complete(&mut self, completion: &Completion) -> bool;

    /// The operation of several ops that ended with the last completion, if it is to be counted in
    /// place of its ops.
    #[inline]
    fn whole_operation(&mut self) -> Option<WholeOperation> {
        None
    }

    /// Time at which counting began anew with the last completion; earlier counts are forgotten.
    #[inline]
    fn begun_anew(&mut self) -> Option<Ns> {
        None
    }

    /// Counts until now, and those of each operation of its program; absent: it has none to show
    /// before its end.
    fn so_far(&self) -> Option<(StreamReport, Vec<OperationCount>)> {
        None
    }

    /// Rests a moment on its own thread, or until what it waits for may be there, where it knows a
    /// better way than to ask again and again; answers whether it did. Called only where nothing is
    /// under way and [`Worker::next`] said [`Step::Await`].
    fn rest(&mut self) -> bool {
        false
    }

    /// Tell whether nothing but alike transfers comes next, so that the following three may be
    /// called in place of [`Worker::next`] and [`Worker::complete`]. If the timed region can begin
    /// so, it begins at `now`.
    fn run_kind(&mut self, now: Ns) -> Option<RunKind> {
        let _ = now;
        None
    }

    /// While it waits for its timed region, which will be a run: makes the next run one of
    /// transfers of nothing, so that no code of the region is executed there for the first time.
    /// [`Worker::rehearsed`] must follow.
    fn rehearsal(&mut self) -> Option<RunKind> {
        None
    }

    /// The rehearsal is over, and leaves no trace.
    fn rehearsed(&mut self) {}

    /// The next transfer of a run that writes or reads; `None`: ask [`Worker::next`].
    fn next_of_run<const WRITES: bool>(&mut self, now: Ns) -> Option<Transfer> {
        let _ = now;
        None
    }

    /// Takes the ends of transfers of a run that moved all their bytes, each one submitted when the
    /// one before it ended, the first one at `submitted`; answers whether they count.
    fn ended_in_run(&mut self, submitted: Ns, completed: &[Ns], length: Bytes) -> bool {
        let _ = (submitted, completed, length);
        false
    }

    /// Takes back a transfer of a run that did not end so, as if it had been submitted with
    /// [`Worker::next`]; [`Worker::complete`] gets its completion.
    fn leave_run(&mut self, transfer: &Transfer, now: Ns) -> Option<Submission> {
        let _ = (transfer, now);
        None
    }
}
