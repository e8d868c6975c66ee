//! Access patterns: glue around `iolab-pattern`.

use std::io::{self, Read};

use iolab_pattern::analysis::PatternAnalysis;
use iolab_pattern::calls::names;
use iolab_pattern::emit::{PatternForm, emit};
use iolab_pattern::report::PatternReport;
use iolab_pattern::show;
use iolab_trace::Error;
use iolab_trace::source::Input;
use pyo3::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::trace_error;
use crate::trace::{Answer, Given, Raised, inputs_of};

/// Wishes of who asks for patterns.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PatternQuestion {
    /// Only files whose names have this in them; an empty text is in all.
    only: String,
    /// Files that are listed at most, those with the most bytes; null: all.
    files_max: Option<usize>,
    /// True if the text has pictures.
    has_pictures: bool,
    /// Form of the workload that is wanted, too: `study`, `fio` or `iozone`.
    form: Option<String>,
}

/// Patterns as text and data.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PatternFound")]
pub struct Found {
    /// For people.
    text: String,
    /// All figures.
    report: PatternReport,
    /// The workload; null if none is wanted, or if it could have none of the files.
    workload: Option<String>,
    /// A line for each thing that the workload does not keep.
    losses: Vec<String>,
}

/// Bytes of a file, until a signal comes.
struct Interrupted {
    inner: Box<dyn Read + Send>,
    raised: Raised,
}

impl Read for Interrupted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The method's own path is not general enough in its lifetime for `attach`.
        #[allow(clippy::redundant_closure_for_method_calls)]
        Python::attach(|py| py.check_signals()).map_err(|error| self.raised.keep(error))?;
        self.inner.read(buffer)
    }
}

/// Access patterns of a trace of system calls or blocks; the interpreter is free meanwhile.
#[pyfunction]
pub fn pattern_of(py: Python<'_>, inputs: Given, question_json: &str) -> PyResult<String> {
    let question: PatternQuestion =
        serde_json::from_str(question_json).map_err(|e| trace_error(py, e))?;
    let form: Option<PatternForm> = match &question.form {
        Some(name) => Some(name.parse().map_err(|e: iolab_model::Error| trace_error(py, e))?),
        None => None,
    };
    let raised = Raised::default();
    let done = py.detach(|| {
        let (files, devices, part) = inputs.parts();
        if part.is_some() {
            return Err(Error::Option("patterns are those of a whole trace".to_owned()));
        }
        let watched = |input: Input| {
            let inner = Interrupted { inner: input.content, raised: raised.clone() };
            Input::new(input.name, inner)
        };
        let inputs = inputs_of(files, &raised)?.into_iter().map(watched).collect();
        let analysis = PatternAnalysis::of(inputs, &devices)?;
        let report = PatternReport::of(&analysis, &question.only, question.files_max);
        let text = show::text(&report, question.has_pictures);
        let made = form.map(|form| emit(&report, form)).unwrap_or_default();
        let workload = (made.files > 0).then_some(made.text);
        let found = Found { text, report, workload, losses: made.losses };
        let answer = Answer::new(&analysis.format, &analysis.caveats, found);
        serde_json::to_string(&answer).map_err(|error| Error::Write(error.into()))
    });
    done.map_err(|error: Error| raised.exception(py, &error))
}

/// Names of the system calls that are understood, as JSON.
#[pyfunction]
pub fn pattern_calls() -> String {
    serde_json::to_string(&names().collect::<Vec<_>>()).unwrap_or_default()
}
