//! Typed builders of workload descriptions: JSON in, JSON out.

use iolab_model::Error;
use iolab_workload::Workload;
use iolab_workload::operation::operations;
use iolab_workload::preset::{IozoneTest, PatternName, iozone, mixed};
use iolab_workload::program::demand;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

use crate::error::{dialect_error, study_error};

fn build<R: DeserializeOwned>(
    py: Python<'_>,
    text: &str,
    builder: impl Fn(&R) -> Result<Workload, Error>,
) -> PyResult<String> {
    let request: R = serde_json::from_str(text).map_err(|e| study_error(py, e))?;
    let workload = builder(&request).map_err(|e| study_error(py, e))?;
    serde_json::to_string(&workload).map_err(|e| study_error(py, e))
}

/// `IOzone`'s tests as a workload description.
#[pyfunction]
pub fn iozone_workload(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    build(py, spec_json, iozone)
}

/// Competing streams as a workload description.
#[pyfunction]
pub fn mixed_workload(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    build(py, spec_json, mixed)
}

/// Operations of a workload description: id, engine, kind, size and way to the data of each, as a
/// JSON list.
#[pyfunction]
pub fn workload_operations(py: Python<'_>, workload_json: &str) -> PyResult<String> {
    let workload: Workload = serde_json::from_str(workload_json).map_err(|e| study_error(py, e))?;
    serde_json::to_string(&operations(&workload)).map_err(|e| study_error(py, e))
}

/// Uses of the files of a workload, as a JSON list.
#[pyfunction]
pub fn workload_file_uses(py: Python<'_>, workload_json: &str) -> PyResult<String> {
    let workload: Workload = serde_json::from_str(workload_json).map_err(|e| study_error(py, e))?;
    serde_json::to_string(&workload.file_uses()).map_err(|e| study_error(py, e))
}

/// Names of `IOzone`'s tests that exist here, in the order in which they run.
#[pyfunction]
pub fn iozone_tests() -> Vec<&'static str> {
    IozoneTest::ALL.iter().map(|test| test.name()).collect()
}

/// Names of the access patterns.
#[pyfunction]
pub fn patterns() -> Vec<&'static str> {
    PatternName::ALL.iter().map(|pattern| pattern.name()).collect()
}

/// A workload file (TOML) as the description of its workload, in JSON; `subject` names the file in
/// messages.
#[pyfunction]
pub fn workload_file(py: Python<'_>, subject: &str, text: &str) -> PyResult<String> {
    let file = iolab_dialect::workload_file::read(subject, text);
    let file = file.map_err(|problem| dialect_error(py, problem))?;
    serde_json::to_string(&file.workload).map_err(|error| study_error(py, error))
}

/// A workload file's text with whole names of its recorded streams, which are named from `folder`
/// on.
#[pyfunction]
pub fn workload_file_anchored(folder: &str, text: &str) -> String {
    iolab_dialect::workload_file::anchored(text, std::path::Path::new(folder))
}

/// Size and digest of the file of a recorded stream, as JSON.
#[pyfunction]
pub fn recording_identity(py: Python<'_>, path: &str) -> PyResult<String> {
    let found = iolab_dialect::workload_file::identity(std::path::Path::new(path));
    let found = found.map_err(|problem| {
        let remedy = "name an ordinary file that you may read".into();
        study_error(py, Error::BadWorkload { problem, remedy })
    })?;
    serde_json::to_string(&found).map_err(|error| study_error(py, error))
}

/// Disk space that the programs of a workload description may take, as JSON; null if it has none.
#[pyfunction]
pub fn workload_demand(py: Python<'_>, workload_json: &str) -> PyResult<String> {
    let workload: Workload = serde_json::from_str(workload_json).map_err(|e| study_error(py, e))?;
    serde_json::to_string(&demand(&workload)).map_err(|e| study_error(py, e))
}
