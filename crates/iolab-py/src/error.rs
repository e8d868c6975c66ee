//! The only place where Rust errors become Python exceptions.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

static STUDY_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DIALECT_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static TRACE_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// `iolab.errors.StudyError` with this message.
pub fn study_error(py: Python<'_>, message: impl std::fmt::Display) -> PyErr {
    error(py, &STUDY_ERROR, "StudyError", &message)
}

/// `iolab.errors.DialectError` with this message.
pub fn dialect_error(py: Python<'_>, message: impl std::fmt::Display) -> PyErr {
    error(py, &DIALECT_ERROR, "DialectError", &message)
}

/// `iolab.errors.TraceError` with this message.
pub fn trace_error(py: Python<'_>, message: impl std::fmt::Display) -> PyErr {
    error(py, &TRACE_ERROR, "TraceError", &message)
}

fn error(
    py: Python<'_>,
    class: &PyOnceLock<Py<PyType>>,
    name: &str,
    message: &dyn std::fmt::Display,
) -> PyErr {
    match class.import(py, "iolab.errors", name) {
        Ok(class) => PyErr::from_type(class.clone(), message.to_string()),
        Err(_) => PyException::new_err(message.to_string()),
    }
}
