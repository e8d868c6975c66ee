//! The only place where Rust errors become Python exceptions.
//!
//! Every error says itself as an [`ExtensionError`]; Python makes the exception of it
//! (`iolab.errors.error_of_extension`).

use std::collections::BTreeMap;

use iolab_dialect::solaris::LineFault;
use iolab_dialect::workload_file::FileProblem;
use iolab_dialect::{Diagnostic, Problem, RenderError};
use iolab_protocol::extension::ExtensionErrorCode as Code;
use iolab_protocol::extension::{ErrorBranch, ErrorPlace, ExtensionError};
use iolab_sim::error::SimError;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

static MAKE: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Error without the exception that it becomes.
pub struct Told {
    code: Code,
    values: BTreeMap<String, String>,
    message: String,
    between: String,
    hint: String,
    place: Option<ErrorPlace>,
}

impl Told {
    /// An error whose text is all message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            values: BTreeMap::new(),
            message: message.into(),
            between: String::new(),
            hint: String::new(),
            place: None,
        }
    }

    fn hint(mut self, between: impl Into<String>, hint: impl Into<String>) -> Self {
        (self.between, self.hint) = (between.into(), hint.into());
        self
    }

    fn value(mut self, name: &str, value: impl ToString) -> Self {
        self.values.insert(name.to_owned(), value.to_string());
        self
    }

    fn source(mut self, source: impl Into<String>) -> Self {
        self.place = Some(ErrorPlace { source: source.into(), ..ErrorPlace::default() });
        self
    }
}

/// An error that crosses: its parts, which one after the other are its text.
pub trait Crosses {
    /// Its parts.
    fn told(&self) -> Told;
}

impl Crosses for Told {
    fn told(&self) -> Told {
        Self {
            values: self.values.clone(),
            message: self.message.clone(),
            between: self.between.clone(),
            hint: self.hint.clone(),
            place: self.place.clone(),
            ..*self
        }
    }
}

impl<T: Crosses> Crosses for &T {
    fn told(&self) -> Told {
        (*self).told()
    }
}

impl Crosses for serde_json::Error {
    fn told(&self) -> Told {
        Told::new(Code::Border, self.to_string())
    }
}

/// A text in two parts: what stands behind the last `separator` is the hint.
fn split(code: Code, text: &str, separator: &str) -> Told {
    match text.rsplit_once(separator) {
        Some((message, hint)) => Told::new(code, message).hint(separator, hint),
        None => Told::new(code, text),
    }
}

impl Crosses for iolab_model::Error {
    fn told(&self) -> Told {
        let text = self.to_string();
        match self {
            Self::BadSize { text: typed } => split(Code::Value, &text, ": ").value("text", typed),
            Self::UnknownName { kind, name, .. } => {
                split(Code::UnknownName, &text, "; ").value("kind", kind).value("name", name)
            }
            Self::System { call, subject, errno } => Told::new(Code::System, text)
                .value("call", call)
                .value("errno", errno.0)
                .source(subject),
            Self::Unsupported { target, what } => {
                Told::new(Code::Unsupported, text).value("target", target).value("what", what)
            }
            Self::BadWorkload { problem, remedy } => {
                Told::new(Code::Contradiction, format!("workload: {problem}")).hint("; ", remedy)
            }
            Self::Internal { .. } => split(Code::Internal, &text, "; "),
            _ => Told::new(Code::Value, text),
        }
    }
}

impl Crosses for SimError {
    fn told(&self) -> Told {
        let text = self.to_string();
        match self {
            Self::UnknownName { kind, name, .. } => {
                split(Code::UnknownName, &text, "; ").value("kind", kind).value("name", name)
            }
            Self::OutOfRange { name, value, min, max, .. } => Told::new(Code::Value, text)
                .value("name", name)
                .value("value", value)
                .value("min", min)
                .value("max", max),
            Self::BadParameter { profile, name, .. } => {
                Told::new(Code::Value, text).value("name", name).source(profile)
            }
            Self::Inconsistent { subject, problem, remedy } => {
                let told = Told::new(Code::Contradiction, format!("{subject}: {problem}"));
                told.hint("; ", remedy).source(subject)
            }
            Self::Syntax { subject, .. } => Told::new(Code::Syntax, text).source(subject),
            _ => Told::new(Code::Value, text),
        }
    }
}

impl Crosses for iolab_trace::Error {
    fn told(&self) -> Told {
        let text = self.to_string();
        match self {
            Self::Read { name, .. } => Told::new(Code::System, text).source(name),
            Self::Write(_) => Told::new(Code::System, text),
            Self::Unknown { name, .. } => split(Code::Damaged, &text, "; ").source(name),
            Self::Damaged { name, place, .. } => {
                Told::new(Code::Damaged, text).source(name).value("place", place)
            }
            Self::OtherDevice { name, .. } => {
                split(Code::UnknownName, &text, "; ").value("name", name)
            }
            Self::OtherTime { .. } => split(Code::Syntax, &text, "; "),
            Self::Unfit { format, what } => {
                Told::new(Code::Unsupported, text).value("format", format).value("what", what)
            }
            _ => Told::new(Code::Syntax, text),
        }
    }
}

impl Crosses for Diagnostic {
    fn told(&self) -> Told {
        let Problem { what, remedy } = &self.problem;
        let text = self.to_string();
        let begin = if self.place.is_empty() { 0 } else { self.place.len() + 2 };
        let message = &text[..begin + what.len()];
        let between = &text[message.len()..text.len() - remedy.len()];
        let mut told = Told::new(Code::Syntax, message).hint(between, remedy);
        told.place = Some(ErrorPlace {
            source: self.place.clone(),
            line: self.line.clone(),
            begin: self.marked.start,
            end: self.marked.end,
        });
        told
    }
}

impl Crosses for FileProblem {
    fn told(&self) -> Told {
        let source = format!("{}:{}", self.subject, self.line);
        Told::new(Code::Syntax, self.to_string()).source(source).value("line", self.line)
    }
}

impl Crosses for LineFault {
    fn told(&self) -> Told {
        let place = format!("{}:{}:{}", self.file, self.line, self.at.start + 1);
        let mut told =
            Told::new(Code::Syntax, format!("{place}: `{}`: {}", self.quoted(), self.what));
        told = told.hint(": ", &self.remedy).source(place).value("line", self.line);
        told.place = told.place.map(|place| ErrorPlace {
            line: self.typed.clone(),
            begin: self.at.start,
            end: self.at.end,
            ..place
        });
        told
    }
}

impl Crosses for RenderError {
    fn told(&self) -> Told {
        Told::new(Code::Border, self.to_string()).value("dialect", self.dialect)
    }
}

/// `iolab.errors.StudyError` of an error.
pub fn study_error(py: Python<'_>, error: impl Crosses) -> PyErr {
    exception(py, ErrorBranch::Study, error.told())
}

/// `iolab.errors.DialectError` of an error.
pub fn dialect_error(py: Python<'_>, error: impl Crosses) -> PyErr {
    exception(py, ErrorBranch::Dialect, error.told())
}

/// `iolab.errors.TraceError` of an error.
pub fn trace_error(py: Python<'_>, error: impl Crosses) -> PyErr {
    exception(py, ErrorBranch::Trace, error.told())
}

fn exception(py: Python<'_>, branch: ErrorBranch, told: Told) -> PyErr {
    let Told { code, values, message, between, hint, place } = told;
    let error = ExtensionError { branch, code, values, message, between, hint, place };
    let text = serde_json::to_string(&error).unwrap_or_default();
    let made = MAKE
        .import(py, "iolab.errors", "IolabError")
        .and_then(|class| class.call_method1("of_extension", (text,)));
    match made {
        Ok(made) => PyErr::from_value(made),
        Err(_) => PyException::new_err(error.message + &error.between + &error.hint),
    }
}
