//! Trials on simulated stacks, in this process; the record is that of the agent protocol, with a
//! section `simulation` for what only a simulation knows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use iolab_drive::coordinate::Observer;
use iolab_drive::pump::{Part, run_simulated};
use iolab_drive::record::{
    CounterSeries, DeviceRecord, PhaseRecord, PlacedFiles, RequestCounters, Warning,
};
use iolab_drive::submission::{as_submitted, default_access, waiting};
use iolab_drive::verify::told::{Culprit, mismatches, verifying};
use iolab_model::op::FlagName;
use iolab_model::target::Limit;
use iolab_model::{Bytes, Error, Ns, Sector, Seed, Target, VirtualTime as _};
use iolab_protocol::agent::{
    Cache, Record, Simulation as Inside, Stack as FileSystem, StackRecord, Status, TraceOfTrial,
    TrialTrace,
};
use iolab_sim::api::layer::Incident;
use iolab_sim::device::faulty::FAULTS_INJECTED;
use iolab_sim::error::SimError;
use iolab_sim::files::{FilesMade, NO_FILE_SYSTEM, VM_KNOBS};
use iolab_sim::limits::{ALIKE, Alike, LEVELS, LIMITS, Possible};
use iolab_sim::queue::QueueParameters;
use iolab_sim::replay::to_csv;
use iolab_sim::sched::SchedulerKind;
use iolab_sim::stack::{QueueOverrides, Stack};
use iolab_sim::target::{CAPABILITIES, DIRECTORY, ReadingsTaken, SimTarget, Simulation};
use iolab_sim::{Hz, SchedulerContext};
use iolab_trace::source::Facts;
use iolab_workload::Workload;
use iolab_workload::spec::{Phase, Tenant};
use iolab_workload::verify::Books;
use pyo3::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Crosses, Told, study_error};
use crate::mechanism::mechanism;
use crate::refusals::{Asked, refusals_of};
use crate::simulated_data::{allowed_bytes, target_of};
use crate::simulated_trace::SimulatedTrace;

/// The trial spec of the agent protocol, as far as a simulation has a use for it.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "SimulatedTrial")]
pub struct TrialSpec {
    /// Name of the trial.
    trial: String,
    /// A file system that is made for the trial.
    stack: Option<FileSystem>,
    /// Knobs by name.
    knobs: BTreeMap<String, String>,
    /// Workload to run.
    workload: Workload,
    /// Recorder of block events, if they are recorded.
    #[serde(default)]
    trace: Option<TrialTrace>,
    /// State of the page cache before the timed region.
    #[serde(default)]
    cache: Option<Cache>,
    /// Memory of the workers, which is that for pages of files.
    #[serde(default)]
    memory_limit_bytes: Option<u64>,
    /// Distance of the readings of counters, exactly; absent: few enough to be kept.
    #[serde(default)]
    readings_every_ns: Option<u64>,
}

/// A stack, before anything runs on it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SimulatedStack")]
pub struct Description {
    /// Its name.
    name: String,
    /// One line for people.
    title: String,
    /// Size of its device.
    capacity_bytes: u64,
    /// True if that has a head that moves.
    is_rotational: bool,
    /// Scheduler of its queue.
    scheduler: &'static str,
    /// Facts that a trial on it stores.
    facts: BTreeMap<String, String>,
    /// Number of parameters of its profiles from each kind of source, by tag.
    provenance: BTreeMap<String, usize>,
}

/// Abilities that no simulated stack has, and settings that change nothing on one.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SimulatedLimits")]
pub struct WhatIsPossible {
    /// Factors whose levels are all the same.
    alike: &'static [Alike],
    /// Flags that mean something.
    flags: Vec<FlagName>,
    /// Factors of which not every level is possible.
    levels: &'static [Possible],
    /// Reasons, by code.
    limits: &'static [Limit],
}

/// Parses a stack file; answers with its canonical JSON.
#[pyfunction]
pub fn sim_stack(py: Python<'_>, subject: &str, text: &str) -> PyResult<String> {
    let stack = Stack::parse(subject, text).map_err(|e| study_error(py, e))?;
    checked(py, &stack)
}

/// The stack of a built-in profile: a queue in front of the device; canonical JSON.
#[pyfunction]
pub fn sim_profile_stack(py: Python<'_>, profile: &str) -> PyResult<String> {
    let stack = Stack::of_profile(profile).map_err(|e| study_error(py, e))?;
    checked(py, &stack)
}

fn checked(py: Python<'_>, stack: &Stack) -> PyResult<String> {
    stack.check_memory(allowed_bytes()).map_err(|e| study_error(py, e))?;
    let built = stack.build(&QueueOverrides::default(), Seed(0));
    built.map_err(|e| study_error(py, e))?;
    serde_json::to_string(stack).map_err(|e| study_error(py, e))
}

/// Size, title, facts and provenance of the parameters of a stack, as JSON.
#[pyfunction]
pub fn sim_describe(py: Python<'_>, stack_json: &str) -> PyResult<String> {
    let stack: Stack = serde_json::from_str(stack_json).map_err(|e| study_error(py, e))?;
    let description = describe(&stack).map_err(|e| study_error(py, e))?;
    serde_json::to_string(&description).map_err(|e| study_error(py, e))
}

fn describe(stack: &Stack) -> Result<Description, SimError> {
    let simulation = stack.build(&QueueOverrides::default(), Seed(0))?;
    let mut provenance = BTreeMap::new();
    for profile in stack.profiles()? {
        for (tag, count) in profile.provenance() {
            *provenance.entry(tag).or_insert(0) += count;
        }
    }
    Ok(Description {
        name: stack.name.clone(),
        title: stack.title.clone(),
        capacity_bytes: simulation.info().capacity.0 * Sector::SIZE.0,
        is_rotational: simulation.info().is_rotational,
        scheduler: stack.queue.as_ref().map_or(SchedulerKind::None, |q| q.scheduler).name(),
        facts: stack.facts()?.into_iter().collect(),
        provenance,
    })
}

/// Checks knobs against a stack; answers with what a trial would read back, as JSON.
#[pyfunction]
pub fn sim_knobs(py: Python<'_>, stack_json: &str, knobs_json: &str) -> PyResult<String> {
    let stack: Stack = serde_json::from_str(stack_json).map_err(|e| study_error(py, e))?;
    let knobs: Knobs = serde_json::from_str(knobs_json).map_err(|e| study_error(py, e))?;
    let simulation = overrides(&knobs).and_then(|o| Ok((stack.build(&o, Seed(0))?, o)));
    let read = simulation.and_then(|(s, o)| read_back(&stack, &knobs, &o, s.info().is_rotational));
    serde_json::to_string(&read.map_err(|e| study_error(py, e))?).map_err(|e| study_error(py, e))
}

/// Runs one trial on a stack; `should_stop` is asked now and then. Answers with the record.
#[pyfunction]
pub fn simulate_trial(
    py: Python<'_>,
    stack_json: &str,
    trial_json: &str,
    should_stop: Option<Py<PyAny>>,
) -> PyResult<String> {
    let stack: Stack = serde_json::from_str(stack_json).map_err(|e| study_error(py, e))?;
    let spec: TrialSpec = serde_json::from_str(trial_json).map_err(|e| study_error(py, e))?;
    let record = py.detach(|| run(&stack, spec, should_stop));
    let record = record.map_err(|e| study_error(py, e))?;
    serde_json::to_string(&record).map_err(|e| study_error(py, e))
}

/// Error of a trial: its workload, or the stack and its knobs.
#[derive(Debug)]
enum TrialError {
    Workload(Error),
    Stack(SimError),
}

impl From<Error> for TrialError {
    fn from(error: Error) -> Self {
        Self::Workload(error)
    }
}

impl From<SimError> for TrialError {
    fn from(error: SimError) -> Self {
        Self::Stack(error)
    }
}

impl Crosses for TrialError {
    fn told(&self) -> Told {
        match self {
            Self::Workload(error) => error.told(),
            Self::Stack(error) => error.told(),
        }
    }
}

/// Everything in a trial that the stack cannot do, as JSON: a list of
/// [`iolab_drive::needs::Refusal`].
#[pyfunction]
pub fn sim_refusals(py: Python<'_>, stack_json: &str, trial_json: &str) -> PyResult<String> {
    let stack: Stack = serde_json::from_str(stack_json).map_err(|e| study_error(py, e))?;
    let asked: Asked = serde_json::from_str(trial_json).map_err(|e| study_error(py, e))?;
    let overrides = overrides(&asked.knobs)
        .and_then(|o| with_made(o, (asked.stack.as_ref(), asked.memory_limit_bytes)));
    let overrides = overrides.map_err(|e| study_error(py, e))?;
    let simulation = stack.build(&overrides, Seed(0)).map_err(|e| study_error(py, e))?;
    let target = target_of(simulation, Vec::new(), &asked.workload);
    let target = target.map_err(|e| study_error(py, e))?;
    let found = refusals_of(&target, LIMITS, &asked);
    serde_json::to_string(&found).map_err(|e| study_error(py, e))
}

/// Abilities that no simulated stack has and settings that change nothing on one, as JSON.
#[pyfunction]
pub fn sim_limits(py: Python<'_>) -> PyResult<String> {
    let flags = Vec::<FlagName>::from(CAPABILITIES.flags);
    let table = WhatIsPossible { limits: LIMITS, levels: LEVELS, alike: ALIKE, flags };
    serde_json::to_string(&table).map_err(|e| study_error(py, e))
}

/// The trace events of a trial as CSV, its timed regions and what lies around them.
#[pyfunction]
pub fn sim_trace(py: Python<'_>, stack_json: &str, trial_json: &str) -> PyResult<String> {
    let stack: Stack = serde_json::from_str(stack_json).map_err(|e| study_error(py, e))?;
    let spec: TrialSpec = serde_json::from_str(trial_json).map_err(|e| study_error(py, e))?;
    py.detach(|| trace(&stack, &spec)).map_err(|e| study_error(py, e))
}

fn trace(stack: &Stack, spec: &TrialSpec) -> Result<String, TrialError> {
    spec.workload.check()?;
    let overrides =
        with_made(overrides(&spec.knobs)?, (spec.stack.as_ref(), spec.memory_limit_bytes))?;
    let mut simulation = stack.build(&overrides, spec.workload.seed)?;
    simulation.record_events();
    let (target, books) = (target_of(simulation, Vec::new(), &spec.workload)?, Books::default());
    let mut observer = Watch { cache: spec.cache, ..Watch::new(&target) };
    for phase in &spec.workload.phases {
        run_phase(&target, (&spec.workload, phase, &books), &mut observer)?;
    }
    Ok(to_csv(&target.take_events()))
}

fn run(stack: &Stack, spec: TrialSpec, stop: Option<Py<PyAny>>) -> Result<Record, TrialError> {
    spec.workload.check()?;
    let overrides =
        with_made(overrides(&spec.knobs)?, (spec.stack.as_ref(), spec.memory_limit_bytes))?;
    let files = overrides.files.apply(&stack.files);
    let mount_options = files.mount_options.clone();
    let (started, wall) = (Instant::now(), SystemTime::now());
    let mut simulation = stack.build(&overrides, spec.workload.seed)?;
    let knobs = read_back(stack, &spec.knobs, &overrides, simulation.info().is_rotational)?;
    let mut facts = stack.facts()?;
    let own = files.facts()?;
    facts.retain(|(name, _)| own.iter().all(|(other, _)| other != name));
    facts.extend(own);
    let trace = begin_trace(&spec, &facts, &mut simulation)?;
    let target = target_of(simulation, facts.clone(), &spec.workload)?;
    let mut observer = Watch { should_stop: stop, trace, ..Watch::of(&target, &spec) };
    let (mut phases, mut error, books) = (Vec::new(), None, Books::default());
    for (index, phase) in spec.workload.phases.iter().enumerate() {
        let failed = match run_phase(&target, (&spec.workload, phase, &books), &mut observer) {
            Ok(record) => {
                let why = record.first_error().map(str::to_owned);
                phases.push(record);
                why
            }
            Err(error) => failure(error, observer.is_stopped)?,
        };
        let has_record = phases.len() > index;
        let goes_on = failed.is_none() || has_record && spec.workload.goes_on_after_failure;
        error = error.or(failed.map(|why| format!("{}: {why}", phase.name)));
        if observer.is_stopped || !goes_on {
            break;
        }
    }
    let mut warnings = target.inspect(|simulation| warnings(simulation, &phases));
    let (trace, ends_early) = observer.end_trace().unzip();
    warnings.extend(ends_early.flatten());
    let mut facts: BTreeMap<String, String> = facts.into_iter().collect();
    let elapsed = target.now().since(Simulation::EPOCH);
    let told = target.inspect(|s| mechanism(&s.counters(), elapsed));
    facts.extend(told.map(|text| ("sim.mechanism".to_owned(), text)));
    let simulation = Inside {
        event_hash: target.inspect(|s| format!("{:016x}", s.event_hash())),
        counters: target.inspect(Simulation::counters).into_iter().collect(),
    };
    Ok(Record {
        trial: spec.trial,
        status: match &error {
            Some(_) => Status::Failed,
            None if observer.is_stopped => Status::Interrupted,
            None => Status::Ok,
        },
        error,
        started_at_unix_ns: wall.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64),
        elapsed_ns: started.elapsed().as_nanos() as u64,
        engine: spec.workload.engine.clone(),
        knobs,
        stack: made_stack(spec.stack.as_ref(), &mount_options),
        facts,
        warnings,
        actions: Vec::new(),
        phases,
        pairs: None,
        made: BTreeMap::new(),
        trace,
        simulation: Some(simulation),
        host_writes: None,
        images: Vec::new(),
        session: None,
    })
}

/// Failure of a trial whose phase has ended with an error; none: it was stopped. A call that failed
/// while files were made is the trial's failure, as on the kernel.
fn failure(error: Error, is_stopped: bool) -> Result<Option<String>, TrialError> {
    match error {
        Error::System { .. } => Ok(Some(error.to_string())),
        Error::Stopped if is_stopped => Ok(None),
        error => Err(error.into()),
    }
}

/// The trace that a trial asks for, of all queues of its stack.
fn begin_trace(
    spec: &TrialSpec,
    facts: &[(String, String)],
    simulation: &mut Simulation,
) -> Result<Option<SimulatedTrace>, TrialError> {
    let Some(asked) = &spec.trace else { return Ok(None) };
    let refused = |(problem, remedy): (String, &str)| {
        TrialError::Workload(Error::BadWorkload { problem, remedy: remedy.into() })
    };
    let queues = simulation.record_events();
    if queues == 0 {
        let problem = "the stack has no queue whose events could be recorded".to_owned();
        return Err(refused((
            problem,
            "leave the trace out, or write [queue] into the stack file",
        )));
    }
    let mut facts: Facts = facts.iter().cloned().collect();
    let own = [
        ("trial", spec.trial.clone()),
        ("recorder", format!("iolab {}", env!("CARGO_PKG_VERSION"))),
        ("backend", "simulation: what its queues did".to_owned()),
        ("clock", format!("virtual; a simulation begins at {} ns", Simulation::EPOCH.0)),
    ];
    facts.extend(own.map(|(name, value)| (name.to_owned(), value)));
    let begun = SimulatedTrace::begin(asked, &facts, queues);
    begun.map(Some).map_err(|problem| refused((problem, "see who writes there")))
}

/// Failures inside the stack, with their times, and data that came back wrong, as caveats of the
/// record.
fn warnings(simulation: &Simulation, phases: &[PhaseRecord]) -> Vec<Warning> {
    let warning = |incident: Incident| {
        let seconds = incident.at.since(Simulation::EPOCH).as_seconds();
        let message = format!("{} ({seconds:.6} s after the beginning)", incident.message);
        Warning::new(incident.code, message, incident.hint)
    };
    let incidents = simulation.incidents();
    let is_injected = incidents.iter().any(|incident| incident.code == FAULTS_INJECTED);
    let culprit = if is_injected { Culprit::InjectedFaults } else { Culprit::Simulator };
    let wrong = phases.iter().flat_map(|record| mismatches(record, culprit));
    incidents.into_iter().map(warning).chain(wrong).collect()
}

fn run_phase(
    target: &SimTarget,
    (workload, phase, books): (&Workload, &Phase, &Books),
    observer: &mut Watch<'_>,
) -> Result<PhaseRecord, Error> {
    let target = &target.with_access(default_access(workload, phase));
    let phase = &*as_submitted(workload, phase);
    observer.marks.clear();
    observer.readings = None;
    let directory = Path::new(DIRECTORY);
    let part = Part { workload, phase, books: books.clone() };
    let outcome = run_simulated(target, part, directory, observer)?;
    let mut record = PhaseRecord::new(outcome, phase, target.capabilities().default_access);
    record.warnings.extend(verifying(workload.verification(), true));
    record.warnings.extend(waiting(workload, phase));
    let has_files = target.inspect(|simulation| simulation.machine().is_some());
    let method = if has_files { "simulated" } else { "none" };
    method.clone_into(&mut record.cache.method);
    if !has_files && phase.tenants.iter().any(|tenant| tenant.file_set.is_some()) {
        record.warnings.push(Warning::new(
            "names_cost_nothing",
            "the simulated stack has no file system: making, finding and removing names takes no \
             time, data are written past the page cache in whole sectors",
            "compare what is read and written; for names use --on loop:1g",
        ));
    }
    if let [Some(before), Some(after)] = [observer.marks.first(), observer.marks.get(1)] {
        let series = observer.readings.take();
        let series = series.map(|taken| CounterSeries {
            at_ns: taken.at_ns,
            counters: taken.counters,
            host: taken.host,
        });
        record.devices.push(DeviceRecord { series, ..between(before, after, "") });
        let placed = workload.sets_of(phase).filter_map(|set| set.place.as_ref());
        for place in placed.collect::<BTreeSet<_>>() {
            let prefix = format!("place.{place}.");
            if before.iter().any(|(name, _)| name.starts_with(&prefix)) {
                record.devices.push(between(before, after, &prefix));
            }
        }
    }
    let names = phase.tenants.iter().flat_map(Tenant::file_names);
    let sets = workload.sets_of(phase).flat_map(|set| set.drawn(workload.seed).files);
    let paths: Vec<PathBuf> = names.chain(sets).map(|name| directory.join(name)).collect();
    record.placed = PlacedFiles::of(paths.iter().filter_map(|path| target.extents(path)));
    if !phase.keeps_files {
        for path in &paths {
            target.forget(path);
        }
    }
    Ok(record)
}

/// Reads the device's counters at both ends of the timed region, asks Python whether to stop, and
/// takes the events so far into the trace, if there is one.
struct Watch<'a> {
    target: &'a SimTarget,
    should_stop: Option<Py<PyAny>>,
    marks: Vec<Vec<(String, f64)>>,
    /// Counters over time: of phases that are no slices.
    readings: Option<ReadingsTaken>,
    /// Their distance, if somebody asked for one.
    every: Option<Ns>,
    is_stopped: bool,
    trace: Option<SimulatedTrace>,
    cache: Option<Cache>,
}

impl<'a> Watch<'a> {
    const fn new(target: &'a SimTarget) -> Self {
        let (should_stop, trace, cache) = (None, None, None);
        Self {
            target,
            should_stop,
            marks: Vec::new(),
            readings: None,
            every: None,
            is_stopped: false,
            trace,
            cache,
        }
    }

    /// Of a trial, without its trace.
    fn of(target: &'a SimTarget, spec: &TrialSpec) -> Self {
        let every = spec.readings_every_ns.map(Ns);
        Self { cache: spec.cache, every, ..Self::new(target) }
    }

    fn drain(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.add(&self.target.take_events());
        }
    }

    /// Summary of the trace, and its fault.
    fn end_trace(&mut self) -> Option<(TraceOfTrial, Option<Warning>)> {
        self.drain();
        let elapsed = self.target.now().since(Simulation::EPOCH);
        self.trace.take().map(|trace| trace.finish(elapsed.0))
    }
}

impl Observer for Watch<'_> {
    fn laid_out(&mut self) {
        match self.cache {
            Some(Cache::Cold) => self.target.prepare_cache(false),
            Some(Cache::Warm) => self.target.prepare_cache(true),
            Some(Cache::AsIs) | None => {}
        }
    }

    fn starting(&mut self) {
        self.marks.push(self.target.inspect(Simulation::counters));
        self.target.begin_readings(self.every);
    }

    fn should_stop(&mut self) -> bool {
        self.drain();
        let Some(ask) = &self.should_stop else { return false };
        self.is_stopped = Python::attach(|py| {
            py.check_signals().is_err()
                || ask.call0(py).and_then(|answer| answer.extract::<bool>(py)).unwrap_or(true)
        });
        self.is_stopped
    }

    fn ended(&mut self) {
        self.readings = self.target.end_readings();
        self.marks.push(self.target.inspect(Simulation::counters));
    }
}

/// Work that passed through the device whose counters have this prefix.
fn between(before: &[(String, f64)], after: &[(String, f64)], prefix: &str) -> DeviceRecord {
    let value = |marks: &[(String, f64)], name: &str| {
        let found = marks.iter().find(|(known, _)| known.strip_prefix(prefix) == Some(name));
        found.map_or(0.0, |(_, value)| *value)
    };
    let passed = |name: &str| (value(after, name) - value(before, name)) as u64;
    let (read_ticks_ns, write_ticks_ns) = (passed("read_ticks_ns"), passed("write_ticks_ns"));
    DeviceRecord {
        name: format!("{prefix}simulated"),
        read_bytes: passed("read_bytes"),
        write_bytes: passed("write_bytes"),
        flushed_write_bytes: 0,
        reads: passed("read_requests"),
        writes: passed("write_requests"),
        io_ticks_ns: passed("busy_ns"),
        requests: Some(RequestCounters {
            read_merges: passed("read_merges"),
            write_merges: passed("write_merges"),
            read_ticks_ns,
            write_ticks_ns,
            in_queue_ns: read_ticks_ns + write_ticks_ns,
        }),
        series: None,
    }
}

/// Knobs of a study, by name.
type Knobs = BTreeMap<String, String>;

/// Knobs of a study, under the names of the agent, as settings of every queue.
///
/// A tunable of a scheduler other than the trial's own has nobody to take it.
fn overrides(knobs: &Knobs) -> Result<QueueOverrides, TrialError> {
    let mut overrides = QueueOverrides::default();
    if let Some(name) = knobs.get("scheduler") {
        overrides.scheduler = Some(name.parse()?);
    }
    for (name, text) in knobs {
        let small = || number(name, text, u64::from(u32::MAX)).map(|value| value as u32);
        match name.as_str() {
            "scheduler" => {}
            "nr_requests" => overrides.nr_requests = Some(small()?),
            "driver_queue_depth" => overrides.queue_depth = Some(small()?),
            "max_sectors_kb" => overrides.max_sectors_kb = Some(small()?),
            "wbt_lat_usec" => overrides.wbt_lat_usec = Some(throttling(text)?),
            "nomerges" => overrides.nomerges = Some(number(name, text, 2)? as u8),
            "read_ahead_kb" => {
                // Linux include/linux/pagemap.h: pages are counted in 32 bits; 1 GiB is plenty.
                overrides.files.read_ahead_kb = Some(number(name, text, 1 << 20)?);
            }
            _ if vm_knob(name).is_some() => {
                let knob = vm_knob(name).unwrap_or_default();
                let most = if knob.ends_with("ratio") { 100 } else { u64::MAX };
                let value = number(name, text, most)?;
                // Linux mm/page-writeback.c, dirty_bytes_min: two pages; 0 means the ratio.
                if knob == "dirty_bytes" && (1..2 * 4096).contains(&value) {
                    return Err(TrialError::Stack(SimError::Inconsistent {
                        subject: format!("{name} = {value}"),
                        problem: "is less than two pages, which the kernel refuses".into(),
                        remedy: "write 8192 or more, or 0 for vm.dirty_ratio".into(),
                    }));
                }
                overrides.files.vm.insert(knob.to_owned(), value);
            }
            _ => {
                let Some((scheduler, tunable)) = name.split_once('.') else {
                    return Err(TrialError::Stack(SimError::UnknownName {
                        kind: "knob of a simulated queue",
                        name: name.clone(),
                        known: KNOBS.map(str::to_owned).into(),
                    }));
                };
                let owner: SchedulerKind = scheduler.parse()?;
                if overrides.scheduler == Some(owner) {
                    overrides.tunables.insert(tunable.to_owned(), number(name, text, u64::MAX)?);
                }
            }
        }
    }
    Ok(overrides)
}

/// Setting of write-back that a knob stands for.
fn vm_knob(name: &str) -> Option<&str> {
    name.strip_prefix("vm.").filter(|knob| VM_KNOBS.contains(knob))
}

/// Overrides with the file system that a trial makes, and with its limit of memory.
fn with_made(
    mut overrides: QueueOverrides,
    (made, memory_bytes): (Option<&FileSystem>, Option<u64>),
) -> Result<QueueOverrides, TrialError> {
    overrides.files.memory = memory_bytes.map(Bytes);
    let Some(made) = made else { return Ok(overrides) };
    if made.has_external_journal {
        return Err(TrialError::Stack(SimError::Inconsistent {
            subject: format!("fs {}", made.fs),
            problem: "has an external journal, which is not simulated yet".into(),
            remedy: "leave external_journal out".into(),
        }));
    }
    overrides.files.made = Some(FilesMade {
        fs: made.fs.clone(),
        mkfs_options: made.mkfs_options.clone(),
        mount_options: made.mount_options.clone(),
    });
    Ok(overrides)
}

/// The file system of a trial as its record has it.
fn made_stack(made: Option<&FileSystem>, mount_options: &[String]) -> Option<StackRecord> {
    made.filter(|made| made.fs != NO_FILE_SYSTEM).map(|made| StackRecord {
        asked: made.clone(),
        effective_mount_options: mount_options.join(","),
        parameters: Vec::new(),
    })
}

/// Knobs that a simulated stack has, tunables of its scheduler aside.
pub const KNOBS: [&str; 13] = [
    "scheduler",
    "nr_requests",
    "driver_queue_depth",
    "max_sectors_kb",
    "nomerges",
    "wbt_lat_usec",
    "read_ahead_kb",
    "vm.dirty_ratio",
    "vm.dirty_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_background_bytes",
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
];

/// Target of write-back throttling; -1 is the kernel's default.
fn throttling(text: &str) -> Result<i32, SimError> {
    match text.parse::<i32>() {
        Ok(value) if value >= -1 => Ok(value),
        _ => Err(SimError::Inconsistent {
            subject: format!("wbt_lat_usec = {text}"),
            problem: format!("not a whole number from -1 to {}", i32::MAX),
            remedy: "give another one".into(),
        }),
    }
}

fn number(name: &str, text: &str, max: u64) -> Result<u64, SimError> {
    match text.parse::<u64>() {
        Ok(value) if value <= max => Ok(value),
        _ => Err(SimError::Inconsistent {
            subject: format!("{name} = {text}"),
            problem: format!("not a whole number from 0 to {max}"),
            remedy: "give another one".into(),
        }),
    }
}

/// The knobs as they stand once set: a scheduler truncates its tunables as the kernel does.
fn read_back(
    stack: &Stack,
    knobs: &Knobs,
    overrides: &QueueOverrides,
    is_rotational: bool,
) -> Result<Knobs, TrialError> {
    let mut read: Knobs =
        knobs.iter().filter(|(name, _)| KNOBS.contains(&name.as_str())).map(owned).collect();
    let queue = stack.queue.clone().unwrap_or_default();
    let is_rotational = queue.rotational.unwrap_or(is_rotational);
    if let Some(wbt_lat_usec) = overrides.wbt_lat_usec {
        let scheduler = overrides.scheduler.unwrap_or(queue.scheduler);
        let set = QueueParameters { wbt_lat_usec: Some(wbt_lat_usec), scheduler, ..queue.clone() };
        let target_us = set.throttling_target(is_rotational).map_or(0, |target| target.0 / 1_000);
        read.insert("wbt_lat_usec".into(), target_us.to_string());
    }
    let Some(kind) = overrides.scheduler else { return Ok(read) };
    let context = SchedulerContext {
        is_rotational,
        hz: Hz(queue.hz),
        slots: overrides.nr_requests.or(queue.nr_requests).unwrap_or(256),
        depth: overrides.queue_depth.or(queue.queue_depth).unwrap_or(32),
        cpus: queue.cpus,
        attached: Ns(0),
    };
    let mut scheduler = kind.attach(&context);
    for (name, &value) in &overrides.tunables {
        scheduler.tune(name, value)?;
    }
    for name in overrides.tunables.keys() {
        read.insert(format!("{}.{name}", kind.name()), scheduler.tunable(name)?.to_string());
    }
    Ok(read)
}

fn owned((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}
