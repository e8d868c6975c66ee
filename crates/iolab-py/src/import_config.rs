//! Lines that an administrator typed, as a stack file.

use iolab_dialect::solaris::{ImportOptions, import};
use pyo3::prelude::*;

use crate::error::study_error;

/// Reads files (name and text); answers with a row for each line and the text of a stack file.
#[pyfunction]
pub fn sim_import_config(
    py: Python<'_>,
    files: Vec<(String, String)>,
    options_json: &str,
) -> PyResult<String> {
    let options: ImportOptions =
        serde_json::from_str(options_json).map_err(|e| study_error(py, e))?;
    let imported = import(&files, &options).map_err(|e| study_error(py, e))?;
    serde_json::to_string(&imported).map_err(|e| study_error(py, e))
}
