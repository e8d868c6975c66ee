//! A target as a crew of workers sees it.
//!
//! Only plain streams are compiled for each target and each crew: their cost per op is part of what
//! they measure. All else goes through [`Erased`]: files are made by somebody who is
//! not measured; a program, a set of files and data that are composed or checked cost hundreds of
//! nanoseconds per op or more, whoever calls the lane.

use std::path::Path;

use iolab_model::{Erased, Error, Lane, Target};

use super::inline::InlineGroup;
use super::threads::Seat;
use crate::coordinate::WorkerOutcome;
use crate::group::Waking;
use crate::target::{BatchedNull, Null};

/// A target, and workers on it whose code knows its lanes.
pub trait Workplace: Sync {
    /// The target.
    fn erased(&self) -> Erased<'_>;

    /// The target of a tenant, by its index in the phase.
    fn of_tenant(&self, index: usize) -> Erased<'_> {
        let _ = index;
        self.erased()
    }

    /// A target that does nothing, with lanes that are called as those of this one are.
    fn null_alike(&self) -> &'static dyn Workplace;

    /// Runs the only worker of a phase to its end.
    fn work_alone(
        &self,
        seat: &Seat<'_>,
        directory: &Path,
        group: &InlineGroup<'_>,
    ) -> Result<WorkerOutcome, Error>;

    /// Runs one worker of several to its end.
    fn work_among(
        &self,
        seat: &Seat<'_>,
        directory: &Path,
        group: &Waking<'_>,
    ) -> Result<WorkerOutcome, Error>;
}

impl<T: Target + Sync> Workplace for T {
    fn erased(&self) -> Erased<'_> {
        Erased::new(self)
    }

    fn null_alike(&self) -> &'static dyn Workplace {
        static ERASED: Erased<'static> = Erased::new(&Null);
        static ERASED_BATCHED: Erased<'static> = Erased::new(&BatchedNull);
        match (T::Lane::IS_ERASED, self.takes_runs()) {
            (false, true) => &Null,
            (false, false) => &BatchedNull,
            (true, true) => &ERASED,
            (true, false) => &ERASED_BATCHED,
        }
    }

    fn work_alone(
        &self,
        seat: &Seat<'_>,
        directory: &Path,
        group: &InlineGroup<'_>,
    ) -> Result<WorkerOutcome, Error> {
        seat.run(self, directory, group)
    }

    fn work_among(
        &self,
        seat: &Seat<'_>,
        directory: &Path,
        group: &Waking<'_>,
    ) -> Result<WorkerOutcome, Error> {
        seat.run(self, directory, group)
    }
}
