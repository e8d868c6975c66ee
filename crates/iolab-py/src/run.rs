//! Trials on targets that need no device, in this process.

use std::path::Path;

use iolab_drive::clock::monotonic;
use iolab_drive::coordinate::NoObserver;
use iolab_drive::kv::{KvMeans, NoStore, run_kv};
use iolab_drive::overhead::harness_ns_per_op;
use iolab_drive::pump::{Part, run_threads};
use iolab_drive::record::PhaseRecord;
use iolab_drive::target::{Memory, Null};
use iolab_model::op::Access;
use iolab_model::{Error, Target};
use iolab_workload::Workload;
use iolab_workload::spec::Phase;
use iolab_workload::verify::Books;
use pyo3::prelude::*;

use crate::error::study_error;

/// Runs a workload on the `null` or `memory` target; answers with the list of phase records as
/// JSON.
#[pyfunction]
pub fn run_in_process(py: Python<'_>, workload_json: &str) -> PyResult<String> {
    let workload: Workload = serde_json::from_str(workload_json).map_err(|e| study_error(py, e))?;
    let phases = py.detach(|| match workload.engine.as_str() {
        "null" => run(&Null, &workload),
        "memory" => run(&Memory::default(), &workload),
        other => Err(Error::UnknownName {
            kind: "in-process engine",
            name: other.to_owned(),
            known: "null, memory (others run in iolab-agent)".into(),
        }),
    });
    let phases = phases.map_err(|e| study_error(py, e))?;
    serde_json::to_string(&phases).map_err(|e| study_error(py, e))
}

fn run<T: Target + Sync>(target: &T, workload: &Workload) -> Result<Vec<PhaseRecord>, Error> {
    workload.check()?;
    let books = Books::default();
    let run_phase = |phase: &Phase| {
        if phase.tenants.iter().any(|tenant| tenant.kv.is_some()) {
            return run_clients(workload, phase);
        }
        let directory = Path::new("/memory");
        let part = Part { workload, phase, books: books.clone() };
        let outcome = run_threads(target, part, directory, |_| {}, &mut NoObserver)?;
        let mut record = PhaseRecord::new(outcome, phase, target.capabilities().default_access);
        let has_program = phase.tenants.iter().any(|tenant| tenant.program.is_some());
        if workload.is_calibrated && !has_program {
            record.harness_ns_per_op =
                Some(harness_ns_per_op(target, workload, &phase.tenants[0])?);
        }
        Ok(record)
    };
    workload.phases.iter().map(run_phase).collect()
}

/// Clients of a store that keeps nothing: their own cost.
fn run_clients(workload: &Workload, phase: &Phase) -> Result<PhaseRecord, Error> {
    let means = KvMeans { now: monotonic, tell: &|_| {}, prepare: &|_| {} };
    let open = || Ok(NoStore::default());
    let outcome = run_kv(open, (workload, phase), means, &mut NoObserver)?;
    Ok(PhaseRecord::new(outcome, phase, Access::Plain))
}
