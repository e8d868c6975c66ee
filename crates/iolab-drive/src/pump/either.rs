//! A worker of either kind, for phases in virtual time in which both occur.

use iolab_model::{Completion, Ns};
use iolab_workload::program::OperationCount;
use iolab_workload::{GroupState, ProgramWorker, Step, StreamReport, StreamWorker, Worker};

/// A stream or a program.
#[allow(clippy::large_enum_variant, reason = "there is one per worker")]
pub(super) enum Either<'a, G> {
    Stream(StreamWorker<G>),
    Program(ProgramWorker<'a, G>),
}

impl<G: GroupState> Either<'_, G> {
    /// What it counted.
    pub(super) fn results(&self) -> (StreamReport, Vec<OperationCount>) {
        match self {
            Self::Stream(worker) => (worker.report(), Vec::new()),
            Self::Program(worker) => (worker.report(), worker.operations()),
        }
    }
}

impl<G: GroupState> Worker for Either<'_, G> {
    fn next(&mut self, now: Ns) -> Step {
        match self {
            Self::Stream(worker) => worker.next(now),
            Self::Program(worker) => worker.next(now),
        }
    }

    fn complete(&mut self, completion: &Completion) -> bool {
        match self {
            Self::Stream(worker) => worker.complete(completion),
            Self::Program(worker) => worker.complete(completion),
        }
    }
}
