//! Making a phase's files; their data are written by somebody who is not measured.
//!
//! In real time that is a thread of its own, which has ended before the workers begin: the kernel
//! then keeps no memory of them as writers. Files without data are made on the calling thread: the
//! C library takes every call of a process that ever had a second one for a cancellation point, and
//! every stream for shared, which a cached small read feels as much as the clock. In virtual time
//! it is an actor with a lane of its own.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iolab_model::op::Access;
use iolab_model::seed::Stream;
use iolab_model::target::Content;
use iolab_model::{Erased, Error, LaneRequest, Ns, Seed, Target};
use iolab_workload::program::{MakerShare, Round, Stage, StageWorker};
use iolab_workload::spec::{Phase, Workload};
use iolab_workload::verify::phase_index;
use iolab_workload::{Gate, GroupState, LayoutPlan, LayoutWorker, layout::FILL_BYTES};

use super::events::Actor;
use super::threads::{lane_content, name_of};
use super::worker::drive;
use crate::blend::{BlendingLane, Composer};
use crate::coordinate::{Observer, PhaseOutcome, assemble, watch};
use crate::group::SharedGroup;
use crate::recorder::Recorder;
use crate::verify::{LanePlan, VerifyingLane};

/// End of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Laid {
    /// All files are there.
    Done,
    /// The observer said stop: nothing shall be measured.
    Stopped,
}

/// Makes the files of `phase`, on a thread of its own if data are written, while `observer` is
/// asked whether to stop.
///
/// # Errors
///
/// A file that could not be made, with its name.
pub fn lay_out(
    target: Erased<'_>,
    (workload, phase, stage): (&Workload, &Phase, Option<&Stage>),
    directory: &Path,
    observer: &mut dyn Observer,
) -> Result<Laid, Error> {
    let plan = LayoutPlan::of(phase);
    let laid = if plan.is_empty() {
        Laid::Done
    } else if plan.has_data() {
        let group = &SharedGroup::default();
        std::thread::scope(|scope| {
            let work = || write_files(target, (workload, phase), directory, group);
            let thread = scope.spawn(work);
            watch(group, observer, &|| thread.is_finished());
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?
    } else {
        let group = Asked { observer: RefCell::new(&mut *observer), is_stopped: Cell::new(false) };
        write_files(target, (workload, phase), directory, &group)?
    };
    let laid = match stage {
        Some(stage) if laid == Laid::Done => {
            let group = &SharedGroup::default();
            std::thread::scope(|scope| {
                let work = || set_up_all(target, (workload, phase), stage, group);
                let thread = scope.spawn(work);
                watch(group, observer, &|| thread.is_finished());
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })?
        }
        _ => laid,
    };
    if laid == Laid::Done {
        observer.laid_out();
    }
    Ok(laid)
}

/// Makes what a stage needs, its files by several threads where it says so.
fn set_up_all(
    target: Erased<'_>,
    (workload, phase): (&Workload, &Phase),
    stage: &Stage,
    group: &SharedGroup,
) -> Result<Laid, Error> {
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let makers = StageWorker::<&SharedGroup>::makers(stage).min(cpus);
    let is_verified =
        LanePlan::stage(workload, phase_index(workload, phase), stage, None).is_some();
    if makers < 2 || is_verified || is_composed(workload, stage) {
        return set_up(target, (workload, phase), stage, group);
    }
    let make = |index: u32, of: u32, round: Round| {
        let share = MakerShare { index, of, round };
        let Actor { mut lane, mut worker, mut recorder } =
            shared_actor(&target, workload, stage, (share, group))?;
        drive(&mut lane, &mut worker, &mut recorder, 1)?;
        staged(&worker).map(|laid| (laid, worker))
    };
    make(0, 1, Round::Directories)?;
    let workers = std::thread::scope(|scope| {
        let spawn = |index| scope.spawn(move || make(index, makers, Round::Files));
        let threads: Vec<_> = (0..makers).map(spawn).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<_, Error>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()
    })?;
    if workers.iter().any(|(laid, _)| *laid == Laid::Stopped) {
        return Ok(Laid::Stopped);
    }
    let workers: Vec<_> = workers.into_iter().map(|(_, worker)| worker).collect();
    StageWorker::settle_shared(stage, &workers);
    make(0, 1, Round::Rest).map(|(laid, _)| laid)
}

/// Makes the files of a stage on the calling thread, unless `group` is stopped.
fn set_up(
    target: Erased<'_>,
    (workload, phase): (&Workload, &Phase),
    stage: &Stage,
    group: &dyn GroupState,
) -> Result<Laid, Error> {
    let Actor { mut lane, mut worker, mut recorder } =
        stage_actor(&target, workload, stage, group)?;
    let index = phase_index(workload, phase);
    if let Some(plan) = LanePlan::stage(workload, index, stage, None) {
        let random = workload.seed.stream("verify layout", 0);
        let mut lane = VerifyingLane::new(lane, plan, 1, random);
        drive(&mut lane, &mut worker, &mut recorder, 1)?;
    } else if is_composed(workload, stage) {
        let mut lane = BlendingLane::new(lane, composer_of(workload, stage));
        drive(&mut lane, &mut worker, &mut recorder, 1)?;
    } else {
        drive(&mut lane, &mut worker, &mut recorder, 1)?;
    }
    staged(&worker)
}

/// Worker that makes the files of a stage, with a lane of `target`, ready to run.
pub(super) fn stage_actor<'s, T: Target, G: GroupState>(
    target: &T,
    workload: &Workload,
    stage: &'s Stage,
    group: G,
) -> Result<Actor<T::Lane, StageWorker<'s, G>>, Error> {
    shared_actor(target, workload, stage, (MakerShare::ALL, group))
}

/// The same with a share of the work.
fn shared_actor<'s, T: Target, G: GroupState>(
    target: &T,
    workload: &Workload,
    stage: &'s Stage,
    (share, group): (MakerShare, G),
) -> Result<Actor<T::Lane, StageWorker<'s, G>>, Error> {
    let lane = target.open(&LaneRequest {
        worker: u32::MAX - share.index,
        depth: 1,
        buffer_bytes: StageWorker::<G>::buffer_bytes(stage),
        content: content_of_all(workload, stage.contents(workload.content)),
        seed: Seed(workload.seed.stream("layout", 0).next_u64()),
        priority: None,
        submitter_cpu: None,
        paths: stage.paths(),
    })?;
    let access = if target.capabilities().has_plain { Access::Plain } else { Access::Direct };
    let worker = StageWorker::sharing(stage, workload.seed, (access, share), group);
    Ok(Actor { lane, worker, recorder: Recorder::new(1, workload.interval_ns, None) })
}

/// Content that a lane gives its buffers which makes files of these contents: of one content it
/// makes the data itself, unless they are composed.
fn content_of_all(workload: &Workload, mut contents: impl Iterator<Item = Content>) -> Content {
    let first = contents.next().unwrap_or(workload.content);
    let is_one = contents.all(|content| content == first);
    if is_one { lane_content(workload, first) } else { Content::Prepared }
}

/// Data that nobody else writes, for files that are laid out.
fn unique(workload: &Workload) -> Stream {
    let skew = if let Content::Blend(blend) = &workload.content { blend.skew } else { 0 };
    workload.seed.stream("unique layout", u64::from(skew))
}

/// Tell whether somebody makes the data of a stage's files whose lane makes none.
fn is_composed(workload: &Workload, stage: &Stage) -> bool {
    content_of_all(workload, stage.contents(workload.content)) == Content::Prepared
}

/// Composer of the files of a stage.
fn composer_of(workload: &Workload, stage: &Stage) -> Composer {
    let paths = stage.paths();
    let names = paths.iter().map(|path| name_of(path));
    Composer::new(names.zip(stage.contents(workload.content)), unique(workload))
}

/// A stage's failure as an error of the phase.
pub(super) fn staged<G: GroupState>(worker: &StageWorker<'_, G>) -> Result<Laid, Error> {
    if let Some(failure) = worker.failure() {
        let (subject, errno) = (failure.file.clone(), failure.errno);
        return Err(Error::System { call: failure.what, subject, errno });
    }
    Ok(if worker.is_stopped() { Laid::Stopped } else { Laid::Done })
}

/// The group of a layout on the observer's own thread: between two ops the observer is asked.
struct Asked<'a> {
    observer: RefCell<&'a mut dyn Observer>,
    is_stopped: Cell<bool>,
}

impl GroupState for Asked<'_> {
    fn arrive(&self, _: Gate) {}

    fn is_open(&self, _: Gate) -> bool {
        true
    }

    fn stop(&self) {
        self.is_stopped.set(true);
    }

    fn is_stopped(&self) -> bool {
        if !self.is_stopped.get() && self.observer.borrow_mut().should_stop() {
            self.stop();
        }
        self.is_stopped.get()
    }
}

/// Makes the files of `phase` on the calling thread, unless `group` is stopped.
fn write_files(
    target: Erased<'_>,
    (workload, phase): (&Workload, &Phase),
    directory: &Path,
    group: &dyn GroupState,
) -> Result<Laid, Error> {
    let actor = layout_actor(&target, (workload, phase), directory, group)?;
    let Actor { mut lane, mut worker, mut recorder } = actor;
    let plan = LayoutPlan::of(phase);
    if let Some(plan) = LanePlan::layout(workload, phase, plan.names()) {
        let random = workload.seed.stream("verify layout", 0);
        let mut lane = VerifyingLane::new(lane, plan, 1, random);
        drive(&mut lane, &mut worker, &mut recorder, 1)?;
    } else if content_of_all(workload, plan.contents(workload.content)) == Content::Prepared {
        let files = plan.names().zip(plan.contents(workload.content));
        let mut lane = BlendingLane::new(lane, Composer::new(files, unique(workload)));
        drive(&mut lane, &mut worker, &mut recorder, 1)?;
    } else {
        drive(&mut lane, &mut worker, &mut recorder, 1)?;
    }
    checked(&worker)
}

/// The layout of `phase` with a lane of `target`, ready to run.
pub(super) fn layout_actor<T: Target, G: GroupState>(
    target: &T,
    (workload, phase): (&Workload, &Phase),
    directory: &Path,
    group: G,
) -> Result<Actor<T::Lane, LayoutWorker<G>>, Error> {
    let plan = LayoutPlan::of(phase);
    let paths: Vec<PathBuf> = plan.names().map(|name| directory.join(name)).collect();
    let lane = target.open(&LaneRequest {
        worker: u32::MAX,
        depth: 1,
        buffer_bytes: FILL_BYTES,
        content: content_of_all(workload, plan.contents(workload.content)),
        seed: Seed(workload.seed.stream("layout", 0).next_u64()),
        priority: None,
        submitter_cpu: None,
        paths: Arc::from(paths),
    })?;
    let recorder = Recorder::new(1, workload.interval_ns, None);
    Ok(Actor { lane, worker: LayoutWorker::new(plan, group), recorder })
}

/// The layout's failure as an error of the phase.
pub(super) fn checked<G: GroupState>(worker: &LayoutWorker<G>) -> Result<Laid, Error> {
    if let Some(failure) = worker.failure() {
        let (subject, errno) = (format!("the file {}", failure.file), failure.errno);
        return Err(Error::System { call: failure.what, subject, errno });
    }
    Ok(if worker.is_stopped() { Laid::Stopped } else { Laid::Done })
}

/// The outcome of a phase that was stopped before anything was measured.
pub(super) fn nothing(phase: &Phase, interval: Ns) -> PhaseOutcome {
    PhaseOutcome { lost_workers: 0, ..assemble(phase, Vec::new(), interval) }
}
