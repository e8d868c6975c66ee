//! Requests of a trial that its target cannot fulfil, before anything runs.

use std::collections::BTreeMap;

use iolab_drive::needs::{Refusal, refusals};
use iolab_model::op::Access;
use iolab_model::target::Limit;
use iolab_model::{Capabilities, Target as _};
use iolab_protocol::agent::{Cache, IoGroup, KnobChange, Stack};
use iolab_sim::target::SimTarget;
use iolab_workload::Workload;
use iolab_workload::spec::{Phase, Tenant};
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
    for (engine, alone) in engines_alone(&asked.workload) {
        let can = target.with_access(Access::of_engine(engine)).capabilities();
        found.extend(refusals(("simulation", &can, limits), &alone));
        found.extend(of_nothing(engine, &alone));
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

/// Refusal of transfers that an engine does not make: no simulated stack would see them.
fn of_nothing(engine: &str, workload: &Workload) -> Option<Refusal> {
    let moves = |tenant: &&Tenant| tenant.kv.is_none() && (tenant.reads() || tenant.writes());
    let phase = workload.phases.first().filter(|_| engine == "null")?;
    phase.tenants.iter().find(moves).map(|tenant| Refusal {
        code: "engine",
        what: "uses the engine null".into(),
        phase: phase.name.clone(),
        tenant: tenant.name.clone(),
        reason: "nothing is transferred by it, whatever the stack".into(),
        hint: "leave --on out, or use another engine".into(),
    })
}

/// Tenants of each phase and engine as a workload of their own.
fn engines_alone(workload: &Workload) -> impl Iterator<Item = (&str, Workload)> {
    let without = Workload { phases: Vec::new(), ..workload.clone() };
    workload.phases.iter().flat_map(move |phase| {
        let without = without.clone();
        workload.engines_of(phase).into_iter().map(move |engine| {
            let is_its = |tenant: &&Tenant| workload.engine_of_tenant(phase, tenant) == engine;
            let tenants = phase.tenants.iter().filter(is_its).cloned().collect();
            let alone = Phase { tenants, ..phase.clone() };
            (engine, Workload { phases: vec![alone], ..without.clone() })
        })
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
    for (engine, alone) in engines_alone(&workload) {
        // Engines without a device (null, memory) are no rows of that list.
        if let Some(can) = abilities.get(engine) {
            found.extend(refusals((engine, can, &[]), &alone));
        }
    }
    serde_json::to_string(&found).map_err(|e| study_error(py, e))
}
