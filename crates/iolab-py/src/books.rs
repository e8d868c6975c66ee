//! The simulator's open books: profiles, schedulers, scenario files, recordings.

use std::collections::BTreeMap;

use iolab_sim::error::SimError;
use iolab_sim::probe::probe;
use iolab_sim::replay::{Recording, predict, simulate};
use iolab_sim::scenario::{ScenarioFile, judge_all};
use iolab_sim::sched::SchedulerKind;
use iolab_sim::software::CostTable;
use iolab_sim::stack::Stack;
use iolab_sim::{Framework, Hz, Profile, SchedulerContext};
use pyo3::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::study_error;
use crate::simulate::KNOBS;

fn answer<T: Serialize>(py: Python<'_>, result: Result<T, SimError>) -> PyResult<String> {
    let value = result.map_err(|e| study_error(py, e))?;
    serde_json::to_string(&value).map_err(|e| study_error(py, e))
}

/// Names of the built-in profiles.
#[pyfunction]
pub fn sim_profile_names() -> Vec<&'static str> {
    Profile::names().collect()
}

/// One built-in profile with unit, provenance and source of every number, as JSON.
#[pyfunction]
pub fn sim_profile(py: Python<'_>, name: &str) -> PyResult<String> {
    answer(py, Profile::built_in(name))
}

/// Names of the built-in tables of what schedulers cost a processor.
#[pyfunction]
pub fn sim_software_names() -> Vec<&'static str> {
    CostTable::names().collect()
}

/// One of these tables with unit, provenance and source of every number, as JSON.
#[pyfunction]
pub fn sim_software(py: Python<'_>, name: &str) -> PyResult<String> {
    answer(py, CostTable::profile(name))
}

/// A simulated scheduler.
#[derive(Serialize, JsonSchema)]
pub struct SchedulerBook {
    /// Its name.
    name: &'static str,
    /// `legacy` or `blk-mq`.
    framework: &'static str,
    /// Its settings.
    tunables: Vec<iolab_sim::tunable::TunableInfo>,
}

/// Names of the knobs of a simulated queue, tunables of its scheduler aside.
#[pyfunction]
pub fn sim_knob_names() -> Vec<&'static str> {
    KNOBS.to_vec()
}

/// Every simulated scheduler with its tunables, as JSON; defaults are those of a rotational device
/// at HZ = 1000.
#[pyfunction]
pub fn sim_schedulers(py: Python<'_>) -> PyResult<String> {
    let context = SchedulerContext {
        is_rotational: true,
        hz: Hz(1000),
        slots: 256,
        depth: 32,
        cpus: 1,
        attached: iolab_model::Ns(0),
    };
    let book = |&kind: &SchedulerKind| SchedulerBook {
        name: kind.name(),
        framework: match kind.framework() {
            Framework::Legacy => "legacy",
            Framework::MultiQueue => "blk-mq",
        },
        tunables: kind.attach(&context).tunables(),
    };
    answer(py, Ok(SchedulerKind::ALL.iter().map(book).collect::<Vec<_>>()))
}

/// Runs every scenario of a file; the list of judgements as JSON.
#[pyfunction]
pub fn sim_scenarios(py: Python<'_>, subject: &str, text: &str) -> PyResult<String> {
    answer(py, ScenarioFile::parse(subject, text).and_then(|file| judge_all(&file)))
}

/// A recording (its name, events and description), the scheduler to try and its tunables.
type Trial<'a> = (&'a (String, String, String), &'a str, &'a str);

fn with_recording<T: Serialize + Send>(
    py: Python<'_>,
    (recording, scheduler, tunables_json): Trial<'_>,
    run: impl Fn(&Recording, SchedulerKind, &BTreeMap<String, u64>) -> Result<T, SimError> + Sync,
) -> PyResult<String> {
    let kind: SchedulerKind = scheduler.parse().map_err(|e| study_error(py, e))?;
    let tunables = serde_json::from_str(tunables_json).map_err(|e| study_error(py, e))?;
    let result = py.detach(|| {
        let (subject, csv, setup_json) = recording;
        run(&Recording::parse(subject, csv, setup_json)?, kind, &tunables)
    });
    answer(py, result)
}

/// Predicts every issue of a recording (its name, events and description); counts, first misses and
/// the state at issue number `explain` as JSON, or null if this scheduler cannot.
#[pyfunction]
#[pyo3(signature = (recording, scheduler, tunables_json, explain=None))]
pub fn sim_predict(
    py: Python<'_>,
    recording: (String, String, String),
    scheduler: &str,
    tunables_json: &str,
    explain: Option<u64>,
) -> PyResult<String> {
    with_recording(py, (&recording, scheduler, tunables_json), |recording, kind, tunables| {
        predict(recording, kind, tunables, explain)
    })
}

/// Runs the processes of a recording (its name, events and description) in a closed loop; figures
/// real and simulated as JSON.
#[pyfunction]
pub fn sim_replay(
    py: Python<'_>,
    recording: (String, String, String),
    scheduler: &str,
    tunables_json: &str,
) -> PyResult<String> {
    with_recording(py, (&recording, scheduler, tunables_json), |recording, kind, tunables| {
        simulate(recording, kind, tunables, 0.0)
    })
}

/// Probes what a stack (as JSON) has below its first queue: sweeps over size, depth and distance.
#[pyfunction]
pub fn sim_probe(py: Python<'_>, stack_json: &str, seed: u64) -> PyResult<String> {
    let stack: Stack = serde_json::from_str(stack_json).map_err(|e| study_error(py, e))?;
    answer(py, py.detach(|| probe(&stack, iolab_model::Seed(seed))))
}
