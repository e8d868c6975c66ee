//! Other programs' command lines: words in, plans out; events in, their own output out.

use iolab_dialect::Dialect;
use iolab_protocol::extension::ExtensionErrorCode as Code;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{Told, dialect_error, study_error};

fn named(py: Python<'_>, name: &str) -> PyResult<&'static dyn Dialect> {
    let missing = || Told::new(Code::UnknownName, format!("there is no dialect '{name}'"));
    iolab_dialect::find(name).ok_or_else(|| study_error(py, missing()))
}

/// Names of the dialects.
#[pyfunction]
pub fn dialects() -> Vec<&'static str> {
    iolab_dialect::DIALECTS.iter().map(|dialect| dialect.name()).collect()
}

/// A command line (without the program's name) as a plan.
#[pyfunction]
pub fn dialect_parse(py: Python<'_>, dialect: &str, words: Vec<String>) -> PyResult<String> {
    named(py, dialect)?.parse(&words).map_err(|error| dialect_error(py, error))
}

/// Text that the dialect prints at an event.
#[pyfunction]
pub fn dialect_render(py: Python<'_>, dialect: &str, plan: &str, event: &str) -> PyResult<String> {
    named(py, dialect)?.render(plan, event).map_err(|error| dialect_error(py, error))
}

/// A file that the dialect writes.
#[pyfunction]
pub fn dialect_file<'py>(
    py: Python<'py>,
    dialect: &str,
    plan: &str,
    event: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let file = named(py, dialect)?.file(plan, event).map_err(|error| dialect_error(py, error))?;
    Ok(PyBytes::new(py, &file))
}

/// The text of the dialect's --help.
#[pyfunction]
pub fn dialect_help(py: Python<'_>, dialect: &str) -> PyResult<String> {
    Ok(named(py, dialect)?.help())
}

/// The tables of the dialect's options, in Markdown.
#[pyfunction]
pub fn dialect_reference(py: Python<'_>, dialect: &str) -> PyResult<String> {
    Ok(named(py, dialect)?.reference())
}
