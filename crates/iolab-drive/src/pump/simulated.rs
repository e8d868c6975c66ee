//! Workers in virtual time: all on this thread, gates opened by the last to arrive.

use std::cell::{Cell, RefCell};
use std::path::Path;

use iolab_model::seed::Stream;
use iolab_model::{Error, Lane, Target, VirtualTime};
use iolab_workload::program::Stage;
use iolab_workload::verify::phase_index;
use iolab_workload::{Gate, GroupState, LayoutPlan, StreamWorker};

use super::either::Either;
use super::events::Actor;
use super::events::run_events;
use super::layout::{Laid, checked, layout_actor, nothing, stage_actor, staged};
use super::threads::{Part, Seat, seats, stage_of};
use crate::coordinate::{Observer, PhaseOutcome, WorkerOutcome, assemble};
use crate::kv::run_simulated_kv;
use crate::needs;
use crate::verify::{Guard, Guarding, LanePlan, Unguarded};

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
pub fn run_simulated<'a, T: Target + VirtualTime, O: Observer>(
    target: &T,
    part: impl Into<Part<'a>>,
    directory: &Path,
    observer: &mut O,
) -> Result<PhaseOutcome, Error> {
    let part = part.into();
    let Part { workload, phase, .. } = part;
    for tenant in &phase.tenants {
        needs::check_program(target, tenant, workload.verification())?;
    }
    if phase.tenants.iter().any(|tenant| tenant.kv.is_some()) {
        return run_simulated_kv(target, (workload, phase), directory, observer);
    }
    if workload.verification().is_on() {
        run_guarded::<T, O, Guarding>(target, &part, directory, observer)
    } else {
        run_guarded::<T, O, Unguarded>(target, &part, directory, observer)
    }
}

/// Runs one phase with lanes that are checked, or not.
fn run_guarded<T: Target + VirtualTime, O: Observer, C: Guard<T::Lane>>(
    target: &T,
    Part { workload, phase, books }: &Part<'_>,
    directory: &Path,
    observer: &mut O,
) -> Result<PhaseOutcome, Error> {
    let stage = stage_of(target, (workload, phase, books), directory);
    let seats = seats(workload, phase, stage.as_ref());
    let group = ObservedGroup::new(observer, seats.len() as u32);
    let layout = layout_actor(target, (workload, phase), directory, &group)?;
    let mut layout = guarded::<_, _, C>(layout, 1, || {
        let plan = LanePlan::layout(workload, phase, LayoutPlan::of(phase).names())?;
        Some((plan, workload.seed.stream("verify layout", 0)))
    });
    run_events(core::slice::from_mut(&mut layout), target, &group)?;
    if checked(&layout.worker)? == Laid::Stopped {
        return Ok(nothing(phase, workload.interval_ns));
    }
    if let Some(stage) = &stage {
        let actor = stage_actor(target, workload, stage, &group)?;
        let mut actor = guarded::<_, _, C>(actor, 1, || {
            let plan = LanePlan::stage(workload, phase_index(workload, phase), stage, None)?;
            Some((plan, workload.seed.stream("verify layout", 0)))
        });
        run_events(core::slice::from_mut(&mut actor), target, &group)?;
        if staged(&actor.worker)? == Laid::Stopped {
            return Ok(nothing(phase, workload.interval_ns));
        }
    }
    group.laid_out();
    let outcomes =
        if stage.is_some() || phase.tenants.iter().any(|tenant| tenant.file_set.is_some()) {
            run_mixed::<T, _, C>(target, (&seats, stage.as_ref()), directory, &group)?
        } else {
            run_streams::<T, _, C>(target, &seats, directory, &group)?
        };
    Ok(assemble(phase, outcomes, workload.interval_ns))
}

/// An actor with a lane that is checked, or not.
fn guarded<L: Lane, W, C: Guard<L>>(
    Actor { lane, worker, recorder }: Actor<L, W>,
    slots: u32,
    plan: impl FnOnce() -> Option<(LanePlan, Stream)>,
) -> Actor<C::Lane, W> {
    Actor { lane: C::guard(lane, slots, plan), worker, recorder }
}

/// Runs a phase all of whose workers are streams.
fn run_streams<T: Target + VirtualTime, G: GroupState + Copy, C: Guard<T::Lane>>(
    target: &T,
    seats: &[Seat<'_>],
    directory: &Path,
    group: G,
) -> Result<Vec<WorkerOutcome>, Error> {
    let actor = |seat: &Seat<'_>| {
        let actor = seat.actor(target, directory, group)?;
        let slots = seat.slots(target.capabilities().depth_max);
        Ok(guarded::<_, _, C>(actor, slots, || seat.check_of_stream()))
    };
    let mut actors = seats.iter().map(actor).collect::<Result<Vec<_>, Error>>()?;
    run_events(&mut actors, target, &group)?;
    let outcome = |(seat, actor): (&Seat<'_>, Actor<C::Lane, StreamWorker<G>>)| {
        let mut report = actor.worker.report();
        C::report(actor.lane, &mut report);
        WorkerOutcome::new(seat.tenant_index, report, actor.recorder)
    };
    Ok(seats.iter().zip(actors).map(outcome).collect())
}

/// Runs a phase in which some tenants have programs or sets of files, and perhaps some are streams.
fn run_mixed<T: Target + VirtualTime, G: GroupState + Copy, C: Guard<T::Lane>>(
    target: &T,
    (seats, stage): (&[Seat<'_>], Option<&Stage>),
    directory: &Path,
    group: G,
) -> Result<Vec<WorkerOutcome>, Error> {
    let most = target.capabilities().depth_max;
    let actor = |seat: &Seat<'_>| -> Result<Actor<C::Lane, Either<'_, G>>, Error> {
        if seat.tenant.file_set.is_some() {
            let Actor { lane, worker, recorder } = seat.files_actor(target, directory, group)?;
            let actor = Actor { lane, worker: Either::Files(worker), recorder };
            return Ok(guarded::<_, _, C>(actor, 1, || None));
        }
        if let (Some(stage), Some(_)) = (stage, &seat.tenant.program) {
            let Actor { lane, worker, recorder } = seat.program_actor(target, stage, group)?;
            let actor = Actor { lane, worker: Either::Program(worker), recorder };
            let depth = seat.tenant.depth.min(most);
            return Ok(guarded::<_, _, C>(actor, depth, || seat.check_of_program(stage)));
        }
        let Actor { lane, worker, recorder } = seat.actor(target, directory, group)?;
        let actor = Actor { lane, worker: Either::Stream(worker), recorder };
        Ok(guarded::<_, _, C>(actor, seat.slots(most), || seat.check_of_stream()))
    };
    let mut actors = seats.iter().map(actor).collect::<Result<Vec<_>, _>>()?;
    run_events(&mut actors, target, &group)?;
    let outcome = |(seat, actor): (&Seat<'_>, Actor<C::Lane, Either<'_, G>>)| {
        let (mut report, operations) = actor.worker.results();
        C::report(actor.lane, &mut report);
        WorkerOutcome::new(seat.tenant_index, report, actor.recorder).with(operations)
    };
    Ok(seats.iter().zip(actors).map(outcome).collect())
}
