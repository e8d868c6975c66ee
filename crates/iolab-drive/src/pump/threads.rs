//! Workers as threads of this process; a single worker needs no thread of its own.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use iolab_model::op::{Access, OpClass};
use iolab_model::seed::Stream;
use iolab_model::target::Content;
use iolab_model::{Erased, Error, LaneRequest, Ns, Seed, Target};
use iolab_workload::file_set::{FileAction, FileMeans, FileSetPlan, FileSetWorker};
use iolab_workload::program::Stage;
use iolab_workload::spec::{FsyncPolicy, Phase, Tenant, Workload};
use iolab_workload::verify::{Books, phase_index};
use iolab_workload::{GroupState, ProgramWorker, StreamWorker};

use super::events::Actor;
use super::inline::run_inline;
use super::layout::{Laid, lay_out, nothing};
use super::worker::drive;
use super::workplace::Workplace;
use crate::blend::{BlendingLane, Composer};
use crate::coordinate::{Crew, Observer, PhaseOutcome, WorkerOutcome, assemble, coordinate};
use crate::group::{SharedGroup, Waking};
use crate::interim::{Board, Telling};
use crate::needs;
use crate::op_log::OpLog;
use crate::recorded;
use crate::recorder::Recorder;
use crate::run_delay::run_delay_ns;
use crate::thread_use::Noting;
use crate::verify::{LanePlan, VerifyingLane};

/// One worker of a phase, before it runs.
#[derive(Clone, Copy, Debug)]
pub struct Seat<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Index of the tenant in the phase.
    pub tenant_index: usize,
    /// The tenant.
    pub tenant: &'a Tenant,
    /// Ordinal of the worker in its tenant.
    pub index: u32,
    /// Ordinal of the worker in the phase; decides its CPU.
    pub ordinal: u32,
    /// The phase.
    pub phase: &'a Phase,
    /// Ordinal of the phase in the workload; verification knows by it what is older than what.
    pub phase_index: usize,
    /// State that the programs of the phase share, if it has any.
    pub stage: Option<&'a Stage>,
    /// Place where it tells what it has done so far, if somebody wants to know.
    pub board: Option<&'a Board>,
}

/// All workers of a phase.
pub fn seats<'a>(
    workload: &'a Workload,
    phase: &'a Phase,
    stage: Option<&'a Stage>,
) -> Vec<Seat<'a>> {
    let phase_index = phase_index(workload, phase);
    let of_tenant = |(tenant_index, tenant): (usize, &'a Tenant)| {
        (0..tenant.workers).map(move |index| Seat {
            workload,
            tenant_index,
            tenant,
            index,
            ordinal: 0,
            phase,
            phase_index,
            stage,
            board: None,
        })
    };
    let all = phase.tenants.iter().enumerate().flat_map(of_tenant);
    all.zip(0..).map(|(seat, ordinal)| Seat { ordinal, ..seat }).collect()
}

impl Seat<'_> {
    /// Runs this worker to its end on a lane of `target`, on the calling thread.
    pub(super) fn run<T: Target + Sync, G: GroupState>(
        &self,
        target: &T,
        directory: &Path,
        group: &G,
    ) -> Result<WorkerOutcome, Error> {
        let noting = Noting::new(group);
        let group = &noting;
        let before = run_delay_ns();
        let mut outcome = if self.is_plain_stream() {
            let Actor { mut lane, mut worker, mut recorder } =
                self.actor(target, directory, group)?;
            let depth = self.tenant.depth.min(target.capabilities().depth_max);
            drive(&mut lane, &mut worker, &mut recorder, depth)?;
            WorkerOutcome::new(self.tenant_index, worker.report(), recorder)
        } else {
            self.run_otherwise(Erased::new(target), directory, group)?
        };
        let both = before.zip(run_delay_ns());
        outcome.report.run_delay_ns = both.map(|(before, after)| after.saturating_sub(before));
        outcome.report.used = noting.noted();
        Ok(outcome)
    }

    /// Tell whether it is a stream whose data nobody composes or checks op by op.
    fn is_plain_stream(&self) -> bool {
        let is_program = self.stage.is_some() && self.tenant.program.is_some();
        let is_prepared = self.lane_content() == Content::Prepared;
        !is_program && !is_prepared && self.tenant.file_set.is_none()
    }

    /// Runs a worker that is not a plain stream.
    fn run_otherwise(
        &self,
        target: Erased<'_>,
        directory: &Path,
        group: &dyn GroupState,
    ) -> Result<WorkerOutcome, Error> {
        if let (Some(stage), Some(_)) = (self.stage, &self.tenant.program) {
            return self.run_program(target, stage, group);
        }
        if self.tenant.file_set.is_some() {
            let actor = self.files_actor(&target, directory, group)?;
            let Actor { mut lane, mut worker, mut recorder } = actor;
            if let Some(composer) = self.unique_bytes().or_else(|| self.composer(None)) {
                let mut lane = BlendingLane::new(lane, composer);
                drive(&mut lane, &mut worker, &mut recorder, 1)?;
            } else {
                drive(&mut lane, &mut worker, &mut recorder, 1)?;
            }
            return Ok(WorkerOutcome::new(self.tenant_index, worker.report(), recorder));
        }
        let Actor { mut lane, mut worker, mut recorder } = self.actor(&target, directory, group)?;
        let depth = self.tenant.depth.min(target.capabilities().depth_max);
        let slots = self.slots(target.capabilities().depth_max);
        if let Some(composer) = self.composer(None) {
            let mut lane = BlendingLane::new(lane, composer);
            drive(&mut lane, &mut worker, &mut recorder, depth)?;
            return Ok(WorkerOutcome::new(self.tenant_index, worker.report(), recorder));
        }
        let Some((plan, random)) = self.check_of_stream() else {
            drive(&mut lane, &mut worker, &mut recorder, depth)?;
            return Ok(WorkerOutcome::new(self.tenant_index, worker.report(), recorder));
        };
        let mut lane = VerifyingLane::new(lane, plan, slots, random);
        drive(&mut lane, &mut worker, &mut recorder, depth)?;
        let mut report = worker.report();
        lane.into_findings().report(&mut report);
        Ok(WorkerOutcome::new(self.tenant_index, report, recorder))
    }

    /// Runs a program to its end.
    fn run_program(
        &self,
        target: Erased<'_>,
        stage: &Stage,
        group: &dyn GroupState,
    ) -> Result<WorkerOutcome, Error> {
        let actor = self.program_actor(&target, stage, group)?;
        let Actor { mut lane, mut worker, mut recorder } = actor;
        let depth = self.tenant.depth.min(target.capabilities().depth_max);
        let report = if let Some((plan, random)) = self.check_of_program(stage) {
            let mut lane = VerifyingLane::new(lane, plan, depth, random);
            drive(&mut lane, &mut worker, &mut recorder, depth)?;
            let mut report = worker.report();
            lane.into_findings().report(&mut report);
            report
        } else if let Some(composer) = self.composer(Some(stage)) {
            let mut lane = BlendingLane::new(lane, composer);
            drive(&mut lane, &mut worker, &mut recorder, depth)?;
            worker.report()
        } else {
            drive(&mut lane, &mut worker, &mut recorder, depth)?;
            worker.report()
        };
        let outcome = WorkerOutcome::new(self.tenant_index, report, recorder);
        Ok(outcome.with(worker.operations()))
    }

    /// The worker of a program with a lane of `target`, ready to run.
    pub(super) fn program_actor<'s, T: Target, G: GroupState>(
        &self,
        target: &T,
        stage: &'s Stage,
        group: G,
    ) -> Result<Actor<T::Lane, ProgramWorker<'s, G>>, Error> {
        let depth = self.tenant.depth.min(target.capabilities().depth_max);
        let lane = target.open(&LaneRequest {
            worker: self.ordinal,
            depth,
            buffer_bytes: stage.buffer_bytes(self.tenant_index),
            content: self.lane_content(),
            seed: Seed(self.workload.seed.stream("content", u64::from(self.ordinal)).next_u64()),
            priority: self.tenant.priority,
            submitter_cpu: self.tenant.manner.submitter_cpu,
            paths: stage.paths(),
        })?;
        let who = (self.phase, self.tenant_index);
        let seed = (self.workload.seed, depth);
        let stream = self.tenant.program.as_ref().and_then(|own| own.recorded.as_ref());
        let worker = ProgramWorker::new(who, self.index, seed, stage, group)
            .with_recorded(stream.map(recorded::opener));
        let classes = [OpClass::Read, OpClass::Write, OpClass::Sync];
        let recorder = Recorder::new(depth, self.workload.interval_ns, None)
            .cut_at(self.tenant.cuts_of(self.phase, self.index))
            .logged_to(self.op_log(depth)?)
            .told_by(self.telling())
            .with_submissions(self.tenant.manner.submission_group)
            .ready_for(&classes);
        Ok(Actor { lane, worker, recorder })
    }

    /// Composer of bytes that are nowhere twice, for a file that is extended: it stays, and whoever
    /// compresses it looks further than a buffer reaches.
    fn unique_bytes(&self) -> Option<Composer> {
        let work = self.tenant.file_set.as_ref()?;
        let is_random = self.workload.content_of(self.tenant) == Content::Incompressible;
        (work.action == FileAction::Extend && is_random).then(|| {
            let seed = self.workload.seed;
            let unique = seed.stream("unique", u64::from(self.ordinal));
            Composer::alike(&Content::Incompressible, unique)
        })
    }

    /// The worker of a set of files with a lane of `target`, ready to run.
    pub(super) fn files_actor<T: Target, G: GroupState>(
        &self,
        target: &T,
        directory: &Path,
        group: G,
    ) -> Result<Actor<T::Lane, FileSetWorker<G>>, Error> {
        needs::check(target, self.tenant, self.workload.verification())?;
        let can = target.capabilities();
        let plan = FileSetPlan::of(
            self.tenant,
            self.index,
            (self.workload.seed, directory),
            target.preferred_bytes(directory),
        );
        let plan = plan.expect("only tenants with sets of files come here");
        let access = match (can.has_plain, can.has_direct) {
            (true, _) => Access::Plain,
            (false, true) => Access::Direct,
            (false, false) => can.default_access,
        };
        let lane = target.open(&LaneRequest {
            worker: self.ordinal,
            depth: 1,
            buffer_bytes: plan.buffer_bytes(),
            content: match self.unique_bytes() {
                Some(_) => Content::Prepared,
                None => self.lane_content(),
            },
            seed: Seed(self.workload.seed.stream("content", u64::from(self.ordinal)).next_u64()),
            priority: self.tenant.priority,
            submitter_cpu: self.tenant.manner.submitter_cpu,
            paths: plan.paths(),
        })?;
        let means = FileMeans {
            access,
            keeps_nothing: can.keeps_nothing,
            is_stonewalled: self.phase.is_stonewalled,
        };
        let worker = FileSetWorker::new(plan, self.index, means, group);
        let classes = [OpClass::Read, OpClass::Write];
        let recorder = Recorder::new(1, self.workload.interval_ns, None).ready_for(&classes);
        Ok(Actor { lane, worker, recorder })
    }

    /// Slots of its lane, on a target of this depth.
    pub(super) fn slots(&self, depth_max: u32) -> u32 {
        self.tenant.slots().max(self.tenant.depth.min(depth_max))
    }

    /// Plan of what the lane of a stream checks, and what its buffers hold at first; absent if
    /// nothing is verified.
    pub(super) fn check_of_stream(&self) -> Option<(LanePlan, Stream)> {
        let who = (self.tenant_index, self.index, self.ordinal);
        let name = self.tenant.file_name(self.index);
        let plan = LanePlan::worker(self.workload, self.phase_index, &name, who)?;
        Some((plan, self.random_of_check()))
    }

    /// The same of a program.
    pub(super) fn check_of_program(&self, stage: &Stage) -> Option<(LanePlan, Stream)> {
        let who = Some(self.ordinal);
        let plan = LanePlan::stage(self.workload, self.phase_index, stage, who)?;
        Some((plan, self.random_of_check()))
    }

    fn random_of_check(&self) -> Stream {
        self.workload.seed.stream("verify", u64::from(self.ordinal))
    }

    /// Content that its lane gives its buffers.
    fn lane_content(&self) -> Content {
        lane_content(self.workload, self.workload.content_of(self.tenant))
    }

    /// Composer of its data, if the lane makes none: of a stream, a set of files, or the program
    /// of a stage.
    fn composer(&self, stage: Option<&Stage>) -> Option<Composer> {
        let content = self.workload.content_of(self.tenant);
        let Content::Blend(blend) = &content else { return None };
        let number = ((self.phase_index as u64) << 32) + u64::from(self.ordinal);
        let unique = Seed(self.workload.seed.0 ^ u64::from(blend.skew)).stream("unique", number);
        Some(match stage {
            Some(stage) => {
                let paths = stage.paths();
                Composer::new(paths.iter().map(|path| (name_of(path), content)), unique)
            }
            None if self.tenant.file_set.is_some() => Composer::alike(&content, unique),
            None => {
                let name = self.tenant.file_name(self.index);
                Composer::new(core::iter::once((name, content)), unique)
            }
        })
    }

    /// The log of its ops for a lane of so many slots, if one is wanted.
    fn op_log(&self, slots: u32) -> Result<Option<OpLog>, Error> {
        let manner = &self.tenant.manner;
        let Some(folder) = &manner.op_log else { return Ok(None) };
        let log = OpLog::create(folder, &self.phase.name, self.ordinal, slots)?;
        let log = log.with_submissions(manner.submission_group > 0);
        Ok(Some(log.in_windows(manner.op_log_window_ns)))
    }

    /// The way to tell what it has done so far, if somebody wants to know.
    fn telling(&self) -> Option<Telling> {
        self.board.and_then(|board| board.telling(self.ordinal, self.tenant_index))
    }

    /// This worker with a lane of `target`, ready to run.
    pub fn actor<T: Target, G: GroupState>(
        &self,
        target: &T,
        directory: &Path,
        group: G,
    ) -> Result<Actor<T::Lane, StreamWorker<G>>, Error> {
        let capabilities = target.capabilities();
        let depth = self.tenant.depth.min(capabilities.depth_max);
        let access = match self.tenant.access {
            Access::Plain => capabilities.default_access,
            other => other,
        };
        let tenant = Tenant { depth, access, ..self.tenant.clone() };
        let slots = tenant.slots();
        needs::check(target, &tenant, self.workload.verification())?;
        let path: PathBuf = directory.join(tenant.file_name(self.index));
        let request = LaneRequest {
            worker: self.ordinal,
            depth: slots,
            buffer_bytes: tenant.io_size_bytes,
            content: self.lane_content(),
            seed: Seed(self.workload.seed.stream("content", u64::from(self.ordinal)).next_u64()),
            priority: tenant.priority,
            submitter_cpu: self.tenant.manner.submitter_cpu,
            paths: Arc::from([path]),
        };
        let lane = target.open(&request)?;
        let (index, seed) = (self.index, self.workload.seed);
        let worker = StreamWorker::new(&tenant, index, self.phase.is_stonewalled, seed, group);
        let period = tenant.period_ns().map(|ns| Ns(ns as u64));
        let log = self.op_log(slots)?;
        let recorder = Recorder::new(slots, self.workload.interval_ns, period)
            .cut_at(tenant.cuts_of(self.phase, index))
            .logged_to(log)
            .told_by(self.telling())
            .with_submissions(tenant.manner.submission_group)
            .ready_for(&timed_classes(&tenant));
        Ok(Actor { lane, worker, recorder })
    }
}

/// Classes of the ops in the timed region of a tenant.
fn timed_classes(tenant: &Tenant) -> Vec<OpClass> {
    let is_flushed = matches!(
        tenant.fsync,
        FsyncPolicy::Timed | FsyncPolicy::Every { .. } | FsyncPolicy::Between { ops: 1.., .. }
    );
    let all = [
        (tenant.reads() || tenant.manner.read_back.is_some(), OpClass::Read),
        (tenant.writes(), OpClass::Write),
        (is_flushed, OpClass::Sync),
    ];
    all.into_iter().filter(|(occurs, _)| *occurs).map(|(_, class)| class).collect()
}

/// Name that tells the files of a stage apart in any directory: that of a file, in its own.
pub(super) fn name_of(path: &Path) -> String {
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let (own, parent) = (last(path).unwrap_or_default(), path.parent().and_then(last));
    format!("{}/{own}", parent.unwrap_or_default())
}

/// Content that lanes of a workload give their buffers, where this one is written.
pub(super) fn lane_content(workload: &Workload, content: Content) -> Content {
    match content {
        _ if workload.verification().is_on() => Content::Prepared,
        Content::Blend(_) => Content::Prepared,
        content => content,
    }
}

/// Raises everybody's gates if its worker ends early (an error or a panic), so that nobody waits
/// for it.
struct Departure<'a>(&'a SharedGroup, &'a AtomicU32);

impl Drop for Departure<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
            self.1.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// Beginning of every crew: the files are made, and the workers to be started are answered, or the
/// outcome of a phase that was stopped before.
///
/// # Errors
///
/// A file that could not be made, with its name.
pub fn get_ready<'a>(
    place: &dyn Workplace,
    (workload, phase, stage): (&'a Workload, &'a Phase, Option<&'a Stage>),
    directory: &Path,
    observer: &mut dyn Observer,
) -> Result<ControlFlow<PhaseOutcome, Vec<Seat<'a>>>, Error> {
    for (index, tenant) in phase.tenants.iter().enumerate() {
        needs::check_program(&place.of_tenant(index), tenant, workload.verification())?;
    }
    Ok(match lay_out(place.erased(), (workload, phase, stage), directory, observer)? {
        Laid::Stopped => ControlFlow::Break(nothing(phase, workload.interval_ns)),
        Laid::Done => ControlFlow::Continue(seats(workload, phase, stage)),
    })
}

/// State that the programs of a phase share on `target`; `None` if it has no programs.
pub(super) fn stage_of<T: Target>(
    target: &T,
    (workload, phase, books): (&Workload, &Phase, &Books),
    directory: &Path,
) -> Option<Stage> {
    let stage = Stage::of(workload, phase, directory)?;
    let stage = stage.on(target.capabilities().keeps_nothing);
    Some(stage.known_by(books, (workload, phase), directory))
}

/// A phase of a workload, and what is known of the files of its programs.
#[derive(Debug)]
pub struct Part<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// One of its phases.
    pub phase: &'a Phase,
    /// Blocks that earlier phases have written, where they are verified.
    pub books: Books,
}

impl<'a> From<(&'a Workload, &'a Phase)> for Part<'a> {
    fn from((workload, phase): (&'a Workload, &'a Phase)) -> Self {
        Self { workload, phase, books: Books::default() }
    }
}

/// Threads, as their coordinator sees them.
struct Threads<'a>(&'a AtomicU32);

impl Crew for Threads<'_> {
    fn lost(&mut self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    fn rest(&mut self, longest: Duration) {
        std::thread::park_timeout(longest);
    }
}

/// Runs one phase with a thread per worker (a single worker on the calling thread); `prepare` runs
/// on each thread first (CPU affinity).
///
/// # Errors
///
/// The first lane that could not be opened or broke.
pub fn run_threads<'a>(
    target: &dyn Workplace,
    part: impl Into<Part<'a>>,
    directory: &Path,
    prepare: impl Fn(&Seat<'_>) + Sync,
    observer: &mut dyn Observer,
) -> Result<PhaseOutcome, Error> {
    run_part(target, part.into(), directory, &prepare, observer)
}

fn run_part(
    target: &dyn Workplace,
    Part { workload, phase, books }: Part<'_>,
    directory: &Path,
    prepare: &(dyn Fn(&Seat<'_>) + Sync),
    observer: &mut dyn Observer,
) -> Result<PhaseOutcome, Error> {
    let stage = stage_of(&target.erased(), (workload, phase, &books), directory);
    let parts = (workload, phase, stage.as_ref());
    let mut seats = match get_ready(target, parts, directory, observer)? {
        ControlFlow::Continue(seats) => seats,
        ControlFlow::Break(nothing) => return Ok(nothing),
    };
    let board = observer.board();
    for seat in &mut seats {
        seat.board = board.as_deref();
    }
    if let [seat] = &seats[..] {
        prepare(seat);
        let (outcome, parent_ns) = run_inline(seat, target, directory, observer)?;
        let outcome = assemble(phase, vec![outcome], workload.interval_ns);
        return Ok(PhaseOutcome { parent_ns, ..outcome });
    }
    let (group, departed) = (&SharedGroup::default(), &AtomicU32::new(0));
    let coordinator = std::thread::current();
    let wake = || coordinator.unpark();
    let waking = &Waking::new(group, seats.len(), &wake);
    let (joined, parent_ns): (Vec<Result<_, Error>>, _) = std::thread::scope(|scope| {
        let spawn = |seat| {
            scope.spawn(move || {
                let _departure = Departure(group, departed);
                prepare(&seat);
                let outcome = target.work_among(&seat, directory, waking);
                if outcome.is_err() {
                    group.stop();
                    departed.fetch_add(1, Ordering::AcqRel);
                }
                outcome
            })
        };
        let threads: Vec<_> = seats.iter().copied().map(spawn).collect();
        let clock = coordinate(group, seats.len() as u32, observer, &mut Threads(departed));
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let joined = threads.into_iter().map(join).collect();
        (joined, Some(clock.read()))
    });
    let outcomes = joined.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(PhaseOutcome { parent_ns, ..assemble(phase, outcomes, workload.interval_ns) })
}
