//! A worker of any kind, for phases in virtual time in which several kinds occur.

use iolab_model::{Completion, Ns};
use iolab_workload::program::OperationCount;
use iolab_workload::{
    FileSetWorker, GroupState, ProgramWorker, Step, StreamReport, StreamWorker, WholeOperation,
    Worker,
};

/// A stream, a program or a set of files.
#[allow(clippy::large_enum_variant, reason = "there is one per worker")]
pub(super) enum Either<'a, G> {
    Stream(StreamWorker<G>),
    Program(ProgramWorker<'a, G>),
    Files(FileSetWorker<G>),
}

impl<G: GroupState> Either<'_, G> {
    /// Counts of the worker.
    pub(super) fn results(&self) -> (StreamReport, Vec<OperationCount>) {
        match self {
            Self::Stream(worker) => (worker.report(), Vec::new()),
            Self::Program(worker) => (worker.report(), worker.operations()),
            Self::Files(worker) => (worker.report(), Vec::new()),
        }
    }
}

impl<G: GroupState> Worker for Either<'_, G> {
    fn next(&mut self, now: Ns) -> Step {
        match self {
            Self::Stream(worker) => worker.next(now),
            Self::Program(worker) => worker.next(now),
            Self::Files(worker) => worker.next(now),
        }
    }

    fn complete(&mut self, completion: &Completion) -> bool {
        match self {
            Self::Stream(worker) => worker.complete(completion),
            Self::Program(worker) => worker.complete(completion),
            Self::Files(worker) => worker.complete(completion),
        }
    }

    fn begun_anew(&mut self) -> Option<Ns> {
        match self {
            Self::Stream(worker) => worker.begun_anew(),
            Self::Program(worker) => worker.begun_anew(),
            Self::Files(_) => None,
        }
    }

    fn whole_operation(&mut self) -> Option<WholeOperation> {
        match self {
            Self::Stream(_) | Self::Program(_) => None,
            Self::Files(worker) => worker.whole_operation(),
        }
    }
}
