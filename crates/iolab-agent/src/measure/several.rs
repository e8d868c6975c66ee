//! Targets of a phase: one, or several where its tenants use different engines.

use std::path::Path;

use iolab_drive::coordinate::WorkerOutcome;
use iolab_drive::group::Waking;
use iolab_drive::pump::{InlineGroup, Seat, Workplace};
use iolab_drive::target::Null;
use iolab_model::{Erased, Error, Target};
use iolab_real::{Engine, EngineVisitor};
use iolab_workload::spec::Phase;

use super::child::{Ended, Trial, is_kernel};
use super::slices::Sliced;

/// A target for each engine of a phase; each exists while the next ones are looked for.
struct Gathering<'a> {
    trial: &'a Trial<'a>,
    phase: &'a Phase,
    /// Names of the engines, without repetition.
    engines: &'a [&'a str],
    /// Targets of the first of them.
    found: Vec<&'a dyn Workplace>,
}

impl Gathering<'_> {
    /// Finds the other targets, and runs the phase on all.
    fn go_on(self) -> Result<Ended, Error> {
        let Some(name) = self.engines.get(self.found.len()) else { return self.run() };
        let trial = self.trial;
        match *name {
            "null" => self.and(&Null),
            "memory" => self.and(&trial.memory),
            name => name.parse::<Engine>()?.visit(self),
        }
    }

    fn and(self, place: &dyn Workplace) -> Result<Ended, Error> {
        let Gathering { trial, phase, engines, found } = self;
        let found = found.into_iter().chain([place]).collect();
        Gathering { trial, phase, engines, found }.go_on()
    }

    fn run(self) -> Result<Ended, Error> {
        let (trial, phase) = (self.trial, self.phase);
        if let [only] = self.found[..] {
            return trial.run_phase(only, phase);
        }
        let workload = &trial.request.workload;
        let index = |name: &str| self.engines.iter().position(|engine| *engine == name);
        let place = |name| self.found[index(name).expect("each engine has a target")];
        let of_tenant = |tenant| place(workload.engine_of_tenant(phase, tenant));
        let several = Several {
            of_phase: place(workload.engine_of(phase)),
            of_tenants: phase.tenants.iter().map(of_tenant).collect(),
        };
        trial.run_phase(&several, phase)
    }
}

impl EngineVisitor for Gathering<'_> {
    type Output = Result<Ended, Error>;

    fn visit<T: Target + Sync>(self, target: &T) -> Self::Output {
        match self.trial.table {
            Some(table) if is_kernel(target.name()) => self.and(&Sliced::new(target, table)),
            _ => self.and(target),
        }
    }
}

/// Runs a phase on the targets that its engines' names stand for.
pub(super) fn on_its_targets(trial: &Trial<'_>, phase: &Phase) -> Result<Ended, Error> {
    let engines: Vec<&str> = trial.request.workload.engines_of(phase).into_iter().collect();
    Gathering { trial, phase, engines: &engines, found: Vec::new() }.go_on()
}

/// Targets of the tenants of a phase.
struct Several<'a> {
    /// The one on which files are laid out.
    of_phase: &'a dyn Workplace,
    of_tenants: Vec<&'a dyn Workplace>,
}

impl Workplace for Several<'_> {
    fn erased(&self) -> Erased<'_> {
        self.of_phase.erased()
    }

    fn of_tenant(&self, index: usize) -> Erased<'_> {
        self.of_tenants[index].erased()
    }

    fn null_alike(&self) -> &'static dyn Workplace {
        self.of_tenants[0].null_alike()
    }

    fn work_alone(
        &self,
        seat: &Seat<'_>,
        directory: &Path,
        group: &InlineGroup<'_>,
    ) -> Result<WorkerOutcome, Error> {
        self.of_tenants[seat.tenant_index].work_alone(seat, directory, group)
    }

    fn work_among(
        &self,
        seat: &Seat<'_>,
        directory: &Path,
        group: &Waking<'_>,
    ) -> Result<WorkerOutcome, Error> {
        self.of_tenants[seat.tenant_index].work_among(seat, directory, group)
    }
}
