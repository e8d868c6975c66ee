//! Trials on simulated stacks, in this process; the record is that of the agent protocol.

use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use iolab_drive::coordinate::Observer;
use iolab_drive::pump::run_simulated;
use iolab_drive::record::{DeviceRecord, PhaseRecord};
use iolab_model::{Error, Seed};
use iolab_sim::sched::SchedulerKind;
use iolab_sim::stack::{QueueOverrides, Stack};
use iolab_sim::target::SimTarget;
use iolab_workload::Workload;
use iolab_workload::spec::Phase;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::study_error;

/// Where the files of a simulated device live.
const DIRECTORY: &str = "/simulated";

/// The trial spec of the agent protocol, as far as a simulation has a use for it.
#[derive(Debug, Deserialize)]
struct TrialSpec {
    trial: String,
    stack: Option<Value>,
    knobs: std::collections::BTreeMap<String, String>,
    workload: Workload,
}

#[derive(Debug, Serialize)]
struct Record {
    trial: String,
    status: &'static str,
    error: Option<String>,
    started_at_unix_ns: u64,
    elapsed_ns: u64,
    engine: String,
    knobs: std::collections::BTreeMap<String, String>,
    stack: Option<Value>,
    facts: std::collections::BTreeMap<String, String>,
    warnings: Vec<Value>,
    actions: Vec<Value>,
    phases: Vec<PhaseRecord>,
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
    let built = stack.build(&QueueOverrides::default(), Seed(0));
    built.map_err(|e| study_error(py, e))?;
    serde_json::to_string(stack).map_err(|e| study_error(py, e))
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

fn run(stack: &Stack, spec: TrialSpec, should_stop: Option<Py<PyAny>>) -> Result<Record, Error> {
    let wrong =
        |problem: String, remedy: &str| Error::BadWorkload { problem, remedy: remedy.to_owned() };
    if spec.stack.is_some() {
        return Err(wrong(
            "a simulated stack has no file systems yet".into(),
            "leave out fs, mkfs_options and mount_options",
        ));
    }
    spec.workload.check()?;
    let overrides = overrides(&spec.knobs)?;
    let (started, wall) = (Instant::now(), SystemTime::now());
    let simulation = stack
        .build(&overrides, spec.workload.seed)
        .map_err(|e| wrong(e.to_string(), "correct the study or the stack file"))?;
    let facts = stack.facts().map_err(|e| wrong(e.to_string(), "correct the stack file"))?;
    let target = SimTarget::new(simulation, facts.clone());
    let mut observer = Watch { target: &target, should_stop, marks: Vec::new(), is_stopped: false };
    let mut phases = Vec::new();
    for phase in &spec.workload.phases {
        phases.push(run_phase(&target, (&spec.workload, phase), &mut observer)?);
        if observer.is_stopped {
            break;
        }
    }
    let mut facts: std::collections::BTreeMap<_, _> = facts.into_iter().collect();
    facts.insert("sim.event_hash".into(), target.inspect(|s| format!("{:016x}", s.event_hash())));
    for (name, value) in target.inspect(iolab_sim::target::Simulation::counters) {
        facts.entry(format!("sim.counter.{name}")).or_insert_with(|| value.to_string());
    }
    Ok(Record {
        trial: spec.trial,
        status: if observer.is_stopped { "interrupted" } else { "ok" },
        error: None,
        started_at_unix_ns: wall.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64),
        elapsed_ns: started.elapsed().as_nanos() as u64,
        engine: spec.workload.engine.clone(),
        knobs: spec.knobs,
        stack: None,
        facts,
        warnings: Vec::new(),
        actions: Vec::new(),
        phases,
    })
}

fn run_phase(
    target: &SimTarget,
    (workload, phase): (&Workload, &Phase),
    observer: &mut Watch<'_>,
) -> Result<PhaseRecord, Error> {
    observer.marks.clear();
    let directory = Path::new(DIRECTORY);
    let outcome = run_simulated(target, (workload, phase), directory, observer)?;
    let mut record = PhaseRecord::new(outcome, phase.tenants[0].io_size_bytes.0);
    "none".clone_into(&mut record.cache.method);
    if let [Some(before), Some(after)] = [observer.marks.first(), observer.marks.get(1)] {
        record.devices.push(between(before, after));
    }
    if !phase.keeps_files {
        for tenant in &phase.tenants {
            for index in 0..tenant.workers {
                target.forget(&directory.join(tenant.file_name(index)));
            }
        }
    }
    Ok(record)
}

/// Reads the device's counters at both ends of the timed region, and asks Python whether to stop.
struct Watch<'a> {
    target: &'a SimTarget,
    should_stop: Option<Py<PyAny>>,
    marks: Vec<Vec<(String, f64)>>,
    is_stopped: bool,
}

impl Observer for Watch<'_> {
    fn starting(&mut self) {
        self.marks.push(self.target.inspect(iolab_sim::target::Simulation::counters));
    }

    fn should_stop(&mut self) -> bool {
        let Some(ask) = &self.should_stop else { return false };
        self.is_stopped = Python::attach(|py| {
            py.check_signals().is_err()
                || ask.call0(py).and_then(|answer| answer.extract::<bool>(py)).unwrap_or(true)
        });
        self.is_stopped
    }

    fn ended(&mut self) {
        self.marks.push(self.target.inspect(iolab_sim::target::Simulation::counters));
    }
}

fn between(before: &[(String, f64)], after: &[(String, f64)]) -> DeviceRecord {
    let value = |marks: &[(String, f64)], name: &str| {
        marks.iter().find(|(known, _)| known == name).map_or(0.0, |(_, value)| *value)
    };
    let passed = |name: &str| (value(after, name) - value(before, name)) as u64;
    DeviceRecord {
        name: "simulated".into(),
        read_bytes: passed("read_bytes"),
        write_bytes: passed("write_bytes"),
        flushed_write_bytes: 0,
        reads: passed("read_requests"),
        writes: passed("write_requests"),
        io_ticks_ns: passed("busy_ns"),
    }
}

/// Knobs of a study, under the names of the agent, as settings of every queue.
fn overrides(knobs: &std::collections::BTreeMap<String, String>) -> Result<QueueOverrides, Error> {
    let number = |name: &str, text: &str| {
        text.parse::<u64>().map_err(|_| Error::BadWorkload {
            problem: format!("{name} = {text}"),
            remedy: "give a whole number".into(),
        })
    };
    let mut overrides = QueueOverrides::default();
    if let Some(name) = knobs.get("scheduler") {
        overrides.scheduler = Some(name.parse()?);
    }
    for (name, text) in knobs {
        let small = || number(name, text).map(|value| value.min(u64::from(u32::MAX)) as u32);
        match name.as_str() {
            "scheduler" => {}
            "nr_requests" => overrides.nr_requests = Some(small()?),
            "driver_queue_depth" => overrides.queue_depth = Some(small()?),
            "max_sectors_kb" => overrides.max_sectors_kb = Some(small()?),
            "nomerges" => overrides.nomerges = Some(small()?.min(2) as u8),
            _ => {
                let Some((scheduler, tunable)) = name.split_once('.') else {
                    return Err(Error::UnknownName {
                        kind: "knob of a simulated queue",
                        name: name.clone(),
                        known: "scheduler, nr_requests, driver_queue_depth, max_sectors_kb, \
                                nomerges, SCHEDULER.TUNABLE"
                            .into(),
                    });
                };
                let owner: SchedulerKind = scheduler.parse()?;
                if overrides.scheduler == Some(owner) {
                    overrides.tunables.insert(tunable.to_owned(), number(name, text)?);
                }
            }
        }
    }
    Ok(overrides)
}
