//! Requests of a trial that its target cannot fulfil, before anything runs.

use std::collections::BTreeMap;

use iolab_drive::needs::{Refusal, refusals};
use iolab_model::op::Access;
use iolab_model::target::Limit;
use iolab_model::{Capabilities, Target as _};
use iolab_protocol::agent::{Cache, IoGroup, KnobChange, Stack};
use iolab_sim::target::SimTarget;
use iolab_workload::Workload;
use pyo3::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::study_error;

/// A trial spec of the agent protocol, as far as targets differ in it.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AskedTrial")]
pub(crate) struct Asked {
    /// Workload to run.
    pub workload: Workload,
    /// Knobs by name.
    #[serde(default)]
    pub(crate) knobs: BTreeMap<String, String>,
    /// A file system that is made.
    #[serde(default)]
    pub(crate) stack: Option<Stack>,
    /// State of the page cache.
    #[serde(default)]
    cache: Option<Cache>,
    /// Memory of the workers.
    #[serde(default)]
    pub(crate) memory_limit_bytes: Option<u64>,
    /// Knobs that change while it runs.
    #[serde(default)]
    changes: Vec<KnobChange>,
    /// Tenants with a weight or limits.
    #[serde(default)]
    io_groups: Vec<IoGroup>,
}

/// Requests that a simulated target with these limits cannot fulfil, phase by phase: each has the
/// files of its engine.
pub(crate) fn refusals_of(target: &SimTarget, limits: &[Limit], asked: &Asked) -> Vec<Refusal> {
    let (can, mut found) = (target.capabilities(), Vec::new());
    for (engine, alone) in phases_alone(&asked.workload) {
        let can = target.with_access(Access::of_engine(engine)).capabilities();
        found.extend(refusals(("simulation", &can, limits), &alone));
    }
    let around = [
        (
            "warm_cache",
            asked.cache == Some(Cache::Warm) && !can.has_plain,
            "begins with a warm cache",
        ),
        (
            "memory_limit",
            asked.memory_limit_bytes.is_some() && !can.has_plain,
            "limits the memory of its workers",
        ),
        ("control_groups", !asked.io_groups.is_empty(), "has control groups"),
        ("changes", !asked.changes.is_empty(), "changes knobs while it runs"),
    ];
    for (code, is_asked, what) in around {
        if let (true, Some(limit)) = (is_asked, limits.iter().find(|limit| limit.code == code)) {
            found.push(Refusal {
                code: limit.code,
                what: what.to_owned(),
                phase: String::new(),
                tenant: String::new(),
                reason: limit.reason.to_owned(),
                hint: limit.hint.to_owned(),
            });
        }
    }
    found
}

/// Each phase as a workload of its own, with its engine.
fn phases_alone(workload: &Workload) -> impl Iterator<Item = (&str, Workload)> {
    let without = Workload { phases: Vec::new(), ..workload.clone() };
    workload.phases.iter().map(move |phase| {
        let engine = phase.engine.as_ref().unwrap_or(&workload.engine);
        (engine.as_str(), Workload { phases: vec![phase.clone()], ..without.clone() })
    })
}

/// Everything in a workload that its engine cannot do, as JSON: a list of refusals.
///
/// `abilities_json` maps names of engines to their abilities, as `iolab-agent names` prints them.
#[pyfunction]
pub fn workload_refusals(
    py: Python<'_>,
    abilities_json: &str,
    workload_json: &str,
) -> PyResult<String> {
    let abilities: BTreeMap<String, Capabilities> =
        serde_json::from_str(abilities_json).map_err(|e| study_error(py, e))?;
    let workload: Workload = serde_json::from_str(workload_json).map_err(|e| study_error(py, e))?;
    let mut found = Vec::new();
    for (engine, alone) in phases_alone(&workload) {
        // Engines without a device (null, memory) are no rows of that list.
        if let Some(can) = abilities.get(engine) {
            found.extend(refusals((engine, can, &[]), &alone));
        }
    }
    serde_json::to_string(&found).map_err(|e| study_error(py, e))
}
