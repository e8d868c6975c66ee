//! The coordinator of a phase: opens the gates, watches, and puts together what the workers
//! counted.
//!
//! Whether the workers are threads or processes is not its business: it sees a [`SharedGroup`] and
//! is told how many workers have disappeared.

use std::sync::Arc;
use std::time::Duration;

use iolab_model::Ns;
use iolab_model::op::Access;
use iolab_workload::kv::KvRecord;
use iolab_workload::operation::{Nature, OperationKind};
use iolab_workload::program::OperationCount;
use iolab_workload::spec::{Phase, Tenant};
use iolab_workload::{Gate, GroupState, StreamReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::monotonic;
use crate::group::SharedGroup;
use crate::interim::Board;
use crate::recorder::{ClassHistograms, Recorder, SubmissionTimes};
use crate::segment::{Segment, merge};
use crate::series::Series;

/// Longest time between two looks at the group: late enough not to disturb the workers, who wake
/// the coordinator when the last of them arrives at a gate.
const WATCH: Duration = Duration::from_millis(2);
/// Between two looks while files are made, at first.
const HURRY: Duration = Duration::from_micros(50);

/// Observer around the timed region, on the coordinator's side.
///
/// The defaults do nothing.
pub trait Observer {
    /// The files exist and nobody has opened them yet: the place to drop or warm caches.
    fn laid_out(&mut self) {}
    /// All are ready: the place to read counters.
    fn starting(&mut self) {}
    /// Called every few milliseconds, also while files are laid out; `true` stops the phase.
    fn should_stop(&mut self) -> bool {
        false
    }
    /// The timed region has just begun.
    fn released(&mut self) {}
    /// Board on which workers tell what they have done so far; asked before they begin.
    fn board(&self) -> Option<Arc<Board>> {
        None
    }
    /// The timed region is over, nobody has flushed or closed: the place to read counters again.
    fn ended(&mut self) {}
}

/// An observer that observes nothing.
#[derive(Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}

/// Result of one worker.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerOutcome {
    /// Index of its tenant in the phase.
    pub tenant: usize,
    /// Counts of the worker.
    pub report: StreamReport,
    /// Service times.
    pub service: ClassHistograms,
    /// Response times from the intended start, under a rate limit.
    pub response: Option<ClassHistograms>,
    /// Times of submission, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submissions: Option<Box<SubmissionTimes>>,
    /// Over time.
    pub series: Series,
    /// Between the cuts of the phase.
    pub segments: Vec<Segment>,
    /// Counts of its program, by operation; empty of a stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationCount>,
}

impl WorkerOutcome {
    /// Joins a worker's report and its recorder.
    pub fn new(tenant: usize, report: StreamReport, mut recorder: Recorder) -> Self {
        recorder.missed(report.missed_ops.unwrap_or(0));
        let Recorder { service, response, submissions, series, segments, late_ops, op_log, .. } =
            recorder;
        let late_ops = response.as_ref().map(|_| late_ops);
        let (mut report, segments) = (StreamReport { late_ops, ..report }, segments.into_parts());
        if let Some(Err(problem)) = op_log.map(|log| log.close()) {
            report.errors += 1;
            report.first_error.get_or_insert(problem);
        }
        let operations = Vec::new();
        Self { tenant, report, service, response, submissions, series, segments, operations }
    }

    /// The same of a worker whose program has operations of its own.
    #[must_use]
    pub fn with(self, operations: Vec<OperationCount>) -> Self {
        Self { operations, ..self }
    }
}

/// All workers of a tenant together.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantOutcome {
    /// Its name.
    pub name: String,
    /// Kind of its operations.
    pub kind: OperationKind,
    /// Bytes per operation; absent: operations of several sizes, or of none.
    pub io_size_bytes: Option<u64>,
    /// The way to the data, as performed; absent: several ways, or none.
    pub access: Option<Access>,
    /// From the beginning of the phase's timed region to that of its own, where its series starts.
    #[serde(default)]
    pub began_ns: u64,
    /// Index of the first tenant of the phase that does the same; its own, if none before does.
    #[serde(default)]
    pub alike: usize,
    /// See [`iolab_workload::spec::Tenant::share`].
    #[serde(default)]
    pub share: Option<f64>,
    /// Ops that each worker was to do, if that is what ends it.
    #[serde(default)]
    pub asked_ops: Option<u64>,
    /// In order of their ordinals.
    pub workers: Vec<StreamReport>,
    /// Service times of all workers.
    pub service: ClassHistograms,
    /// Response times of all workers.
    pub response: Option<ClassHistograms>,
    /// Times of submission of all workers, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submissions: Option<Box<SubmissionTimes>>,
    /// All workers added up.
    pub series: Series,
    /// Between the cuts of the phase, if it has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Segment>,
    /// Counts of its program, by operation: the user's word for it, its kind, size and access, and
    /// what was counted of it; empty of a stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationCount>,
    /// Counts of clients of a store, as its reports take them, and what the store tells of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv: Option<KvRecord>,
    /// Of studies in slices only; the front end adds it before it stores the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<SlicesOfTenant>,
    /// Ops in flight on average: the sum of all service times over the elapsed time (Little's law).
    pub depth_reached_mean: f64,
}

/// The slices of a tenant in one balanced unit, column by column.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlicesOfTenant {
    /// From the beginning of the session's first unit.
    pub begin_ns: Vec<u64>,
    /// Counted time, on average over the workers.
    pub length_ns: Vec<u64>,
    /// Operations.
    pub ops: Vec<u64>,
    /// Bytes.
    pub bytes: Vec<u64>,
    /// The longest operation.
    pub longest_ns: Vec<u64>,
    /// Index of the device, of those made alike; empty: there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub place: Vec<u32>,
}

/// Result of a phase.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseOutcome {
    /// Its name.
    pub name: String,
    /// First release, on the monotonic clock.
    pub started_ns: u64,
    /// From the release to the end of the last worker's timed region.
    pub elapsed_ns: u64,
    /// From the release of the workers until they have ended, with all that they do after the timed
    /// region; unknown where time is simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_ns: Option<u64>,
    /// Workers that disappeared without a report.
    pub lost_workers: u32,
    /// End of the first of them, where that is known: by a signal, with an exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_by: Option<String>,
    /// In the order of the phase.
    pub tenants: Vec<TenantOutcome>,
}

/// Lets everybody watch while the files are made: asks `observer` until `is_over`.
pub(crate) fn watch(group: &SharedGroup, observer: &mut dyn Observer, is_over: &dyn Fn() -> bool) {
    let mut nap = HURRY;
    while !is_over() {
        if observer.should_stop() {
            group.stop();
        }
        std::thread::sleep(nap);
        nap = (nap * 2).min(WATCH);
    }
}

/// The workers of a phase, as their coordinator sees them.
pub trait Crew {
    /// Number of workers that have ended without a trace (a killed process).
    fn lost(&mut self) -> u32;
    /// Rests until the last worker has arrived at a gate, but not for longer than this.
    fn rest(&mut self, longest: Duration);
}

/// The clock of who waits for the workers: from their release until they have gone. It stands still
/// while counters are read between the gates, when nobody works.
#[derive(Clone, Copy, Debug)]
pub struct ParentClock {
    elapsed: Ns,
    since: Ns,
}

impl ParentClock {
    /// The workers are released.
    pub fn start() -> Self {
        Self { elapsed: Ns(0), since: monotonic() }
    }

    /// All wait for the reading of counters.
    pub fn pause(&mut self) {
        self.elapsed = Ns(self.read());
    }

    /// Let the workers go on.
    pub fn resume(&mut self) {
        self.since = monotonic();
    }

    /// Nanoseconds so far; it is running.
    pub fn read(&self) -> u64 {
        self.elapsed.0 + monotonic().since(self.since).0
    }
}

/// Leads the workers of a phase through its gates; returns when the timed region is over, with the
/// clock that still runs.
pub fn coordinate(
    group: &SharedGroup,
    workers: u32,
    observer: &mut dyn Observer,
    crew: &mut dyn Crew,
) -> ParentClock {
    while group.arrived(Gate::Start) < workers {
        if observer.should_stop() {
            group.stop();
        }
        if crew.lost() > 0 {
            break;
        }
        crew.rest(WATCH);
    }
    observer.starting();
    group.open(Gate::Start);
    let mut clock = ParentClock::start();
    observer.released();
    while group.arrived(Gate::End) < workers {
        if observer.should_stop() {
            group.stop();
        }
        let lost = crew.lost();
        if lost > 0 {
            group.stop();
            if group.arrived(Gate::End) + lost >= workers {
                break;
            }
        }
        crew.rest(WATCH);
    }
    clock.pause();
    observer.ended();
    group.open(Gate::End);
    clock.resume();
    clock
}

/// Adds what one worker counted; all workers of a tenant have the same operations.
fn add_operations(sum: &mut Vec<OperationCount>, one: &[OperationCount]) {
    if sum.is_empty() {
        sum.extend_from_slice(one);
        return;
    }
    for (mine, theirs) in sum.iter_mut().zip(one) {
        mine.merge(theirs);
    }
}

/// From the beginning of the phase's timed region to that of a tenant: as asked, or as it came
/// about where it waits for another tenant.
fn began_ns<'a>(
    tenant: &Tenant,
    started_ns: u64,
    mine: impl Iterator<Item = &'a WorkerOutcome>,
) -> u64 {
    let waits = tenant.program.as_ref().is_some_and(|program| program.begins_after.is_some());
    if !waits {
        return tenant.begins_ns.0;
    }
    let began = mine.map(|outcome| outcome.report.started_ns).filter(|began| *began > 0).min();
    began.unwrap_or(started_ns).saturating_sub(started_ns)
}

/// Puts the workers' outcomes together, tenant by tenant.
pub fn assemble(phase: &Phase, mut outcomes: Vec<WorkerOutcome>, interval: Ns) -> PhaseOutcome {
    outcomes.sort_by_key(|outcome| (outcome.tenant, outcome.report.worker));
    let expected: u32 = phase.tenants.iter().map(|tenant| tenant.workers).sum();
    let begun = outcomes.iter().filter(|o| o.report.started_ns > 0);
    let started_ns = begun.clone().map(|o| o.report.started_ns).min().unwrap_or(monotonic().0);
    let ended_ns = begun.map(|o| o.report.started_ns + o.report.elapsed_ns).max();
    let lost_workers = expected.saturating_sub(outcomes.len() as u32);
    let tenant = |(index, tenant): (usize, &Tenant)| {
        let mine = outcomes.iter_mut().filter(|outcome| outcome.tenant == index);
        let mine: Vec<&mut WorkerOutcome> = mine.collect();
        let nature = Nature::of_tenant(tenant);
        let mut total = TenantOutcome {
            name: tenant.name.clone(),
            kind: nature.kind,
            io_size_bytes: nature.io_size_bytes,
            access: nature.access,
            began_ns: began_ns(tenant, started_ns, mine.iter().map(|outcome| &**outcome)),
            alike: phase.tenants.iter().position(|other| other.is_like(tenant)).unwrap_or(index),
            share: tenant.share,
            asked_ops: tenant.asked_ops(),
            workers: Vec::new(),
            service: ClassHistograms::default(),
            response: tenant.rate_ops_per_s.map(|_| ClassHistograms::default()),
            submissions: None,
            series: Series::new(interval),
            segments: Vec::new(),
            operations: Vec::new(),
            kv: None,
            slices: None,
            depth_reached_mean: 0.0,
        };
        for outcome in mine {
            total.workers.push(outcome.report.clone());
            total.service.absorb(std::mem::take(&mut outcome.service));
            if let (Some(sum), Some(one)) = (total.response.as_mut(), outcome.response.as_ref()) {
                sum.merge(one);
            }
            if let Some(one) = &outcome.submissions {
                total.submissions.get_or_insert_default().merge(one);
            }
            total.series.merge(outcome.series.clone());
            merge(&mut total.segments, &outcome.segments);
            add_operations(&mut total.operations, &outcome.operations);
        }
        let elapsed = total.workers.iter().map(|w| w.elapsed_ns).max().unwrap_or(0);
        if elapsed > 0 {
            total.depth_reached_mean = total.service.sum_ns() / elapsed as f64;
        }
        total
    };
    PhaseOutcome {
        name: phase.name.clone(),
        started_ns,
        elapsed_ns: ended_ns.unwrap_or(started_ns).saturating_sub(started_ns),
        parent_ns: None,
        lost_workers,
        lost_by: None,
        tenants: phase.tenants.iter().enumerate().map(tenant).collect(),
    }
}
