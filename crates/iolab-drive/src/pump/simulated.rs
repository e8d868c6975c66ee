//! Workers in virtual time: all on this thread, gates opened by the last to arrive.

use std::cell::{Cell, RefCell};
use std::path::Path;

use iolab_model::{Error, Target, VirtualTime};
use iolab_workload::program::Stage;
use iolab_workload::spec::{Phase, Workload};
use iolab_workload::verify::Books;
use iolab_workload::{Gate, GroupState};

use super::either::Either;
use super::events::Actor;
use super::events::run_events;
use super::layout::{Laid, checked, layout_actor, nothing, stage_actor, staged};
use super::threads::{Seat, seats, stage_of};
use crate::coordinate::{Observer, PhaseOutcome, WorkerOutcome, assemble};
use crate::kv::run_simulated_kv;
use crate::needs;

/// The observer is asked whether to stop once in so many questions of the workers.
const ASK_EVERY: u32 = 1 << 16;

/// Group state of workers that share a thread, with their observer inside.
pub(crate) struct ObservedGroup<'a, O> {
    observer: RefCell<&'a mut O>,
    workers: u32,
    arrived: [Cell<u32>; Gate::ALL.len()],
    is_stopped: Cell<bool>,
    countdown: Cell<u32>,
}

impl<'a, O: Observer> ObservedGroup<'a, O> {
    /// The group of so many workers.
    pub(crate) fn new(observer: &'a mut O, workers: u32) -> Self {
        Self {
            observer: RefCell::new(observer),
            workers,
            arrived: [const { Cell::new(0) }; Gate::ALL.len()],
            is_stopped: Cell::new(false),
            countdown: Cell::new(0),
        }
    }

    /// Tells the observer that all files are there.
    pub(crate) fn laid_out(&self) {
        self.observer.borrow_mut().laid_out();
    }
}

impl<O: Observer> GroupState for ObservedGroup<'_, O> {
    fn arrive(&self, gate: Gate) {
        let cell = &self.arrived[gate as usize];
        cell.set(cell.get() + 1);
        if cell.get() == self.workers {
            let mut observer = self.observer.borrow_mut();
            match gate {
                Gate::Start => observer.starting(),
                Gate::End => observer.ended(),
            }
        }
    }

    fn is_open(&self, gate: Gate) -> bool {
        self.arrived[gate as usize].get() >= self.workers
    }

    fn stop(&self) {
        self.is_stopped.set(true);
    }

    #[inline]
    fn is_stopped(&self) -> bool {
        let left = self.countdown.get();
        if left == 0 {
            self.countdown.set(ASK_EVERY);
            if self.observer.borrow_mut().should_stop() {
                self.is_stopped.set(true);
            }
        } else {
            self.countdown.set(left - 1);
        }
        self.is_stopped.get()
    }
}

/// Runs one phase on a simulated target; the same input gives the same outcome, always.
///
/// # Errors
///
/// A lane that could not be opened or broke, or a model that lost an event.
pub fn run_simulated<T: Target + VirtualTime, O: Observer>(
    target: &T,
    (workload, phase): (&Workload, &Phase),
    directory: &Path,
    observer: &mut O,
) -> Result<PhaseOutcome, Error> {
    needs::check_programs(target, workload, phase)?;
    if phase.tenants.iter().any(|tenant| tenant.kv.is_some()) {
        return run_simulated_kv(target, (workload, phase), directory, observer);
    }
    let stage = stage_of(target, (workload, phase, &Books::default()), directory);
    let seats = seats(workload, phase, stage.as_ref());
    let group = ObservedGroup::new(observer, seats.len() as u32);
    let mut layout = layout_actor(target, (workload, phase), directory, &group)?;
    run_events(core::slice::from_mut(&mut layout), target)?;
    if checked(&layout.worker)? == Laid::Stopped {
        return Ok(nothing(phase, workload.interval_ns));
    }
    if let Some(stage) = &stage {
        let mut actor = stage_actor(target, workload, stage, &group)?;
        run_events(core::slice::from_mut(&mut actor), target)?;
        if staged(&actor.worker)? == Laid::Stopped {
            return Ok(nothing(phase, workload.interval_ns));
        }
    }
    group.laid_out();
    if stage.is_some() || phase.tenants.iter().any(|tenant| tenant.file_set.is_some()) {
        let outcomes = run_mixed(target, (&seats, stage.as_ref()), directory, &group)?;
        return Ok(assemble(phase, outcomes, workload.interval_ns));
    }
    let actors: Result<Vec<_>, Error> =
        seats.iter().map(|seat| seat.actor(target, directory, &group)).collect();
    let mut actors = actors?;
    run_events(&mut actors, target)?;
    let outcome = |(seat, actor): (&super::threads::Seat<'_>, super::events::Actor<_, _>)| {
        let worker: iolab_workload::StreamWorker<_> = actor.worker;
        WorkerOutcome::new(seat.tenant_index, worker.report(), actor.recorder)
    };
    let outcomes = seats.iter().zip(actors).map(outcome).collect();
    Ok(assemble(phase, outcomes, workload.interval_ns))
}

/// Runs a phase in which some tenants have programs or sets of files, and perhaps some are streams.
fn run_mixed<T: Target + VirtualTime, G: GroupState + Copy>(
    target: &T,
    (seats, stage): (&[Seat<'_>], Option<&Stage>),
    directory: &Path,
    group: G,
) -> Result<Vec<WorkerOutcome>, Error> {
    let actor = |seat: &Seat<'_>| -> Result<Actor<T::Lane, Either<'_, G>>, Error> {
        if seat.tenant.file_set.is_some() {
            let Actor { lane, worker, recorder } = seat.files_actor(target, directory, group)?;
            return Ok(Actor { lane, worker: Either::Files(worker), recorder });
        }
        if let (Some(stage), Some(_)) = (stage, &seat.tenant.program) {
            let Actor { lane, worker, recorder } = seat.program_actor(target, stage, group)?;
            return Ok(Actor { lane, worker: Either::Program(worker), recorder });
        }
        let Actor { lane, worker, recorder } = seat.actor(target, directory, group)?;
        Ok(Actor { lane, worker: Either::Stream(worker), recorder })
    };
    let mut actors = seats.iter().map(actor).collect::<Result<Vec<_>, _>>()?;
    run_events(&mut actors, target)?;
    let outcome = |(seat, actor): (&Seat<'_>, Actor<T::Lane, Either<'_, G>>)| {
        let (report, operations) = actor.worker.results();
        WorkerOutcome::new(seat.tenant_index, report, actor.recorder).with(operations)
    };
    Ok(seats.iter().zip(actors).map(outcome).collect())
}
