//! Block traces: glue around `iolab-trace`. Files are read, and pieces of output handed over, while
//! the interpreter is free.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use iolab_trace::choice::Chosen;
use iolab_trace::convert::{self, Output};
use iolab_trace::error::Caveat;
use iolab_trace::event::Device;
use iolab_trace::format::events_csv::Column;
use iolab_trace::format::{self, FORMATS};
use iolab_trace::part::{Part, Times};
use iolab_trace::plot::TracePlot;
use iolab_trace::show::{Show, show};
use iolab_trace::source::{Facts, Input};
use iolab_trace::stages::{By, Pairing, Report, Rules, btt, compare, text};
use iolab_trace::write::blkparse::{Format, Options, mask_of};
use iolab_trace::write::columns;
use iolab_trace::{Error, Event, Source};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::trace_error;

/// Events between two questions to the interpreter whether it has to stop.
const EVENTS_PER_QUESTION: u32 = 1 << 16;

/// A file by name, or something that gives bytes when it is asked for so many.
pub type GivenFile = (String, Option<Py<PyAny>>);

/// Files of a trace, the devices that are wanted of it (none: all), and the part that is wanted:
/// from one time after its beginning on, before another one, in ns.
#[derive(FromPyObject)]
pub enum Given {
    /// All of it.
    Whole(Vec<GivenFile>, Vec<String>),
    /// A part.
    Part(Vec<GivenFile>, Vec<String>, Option<(u64, u64)>),
}

impl Given {
    /// Files, devices and part.
    pub fn parts(self) -> (Vec<GivenFile>, Vec<String>, Option<(u64, u64)>) {
        match self {
            Self::Whole(files, devices) => (files, devices, None),
            Self::Part(files, devices, part) => (files, devices, part),
        }
    }
}

/// The exception of Python that ended the work, if one did.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Keeps an exception; the error that ends the work.
    pub fn keep(&self, error: PyErr) -> io::Error {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        io::Error::other("ended by the caller")
    }

    /// The exception, or the error as one.
    pub fn exception(&self, py: Python<'_>, error: &Error) -> PyErr {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.unwrap_or_else(|| trace_error(py, error))
    }
}

/// Bytes that Python gives.
struct Asked {
    read: Py<PyAny>,
    raised: Raised,
}

impl Read for Asked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let given = self.read.call1(py, (buffer.len(),)).map_err(|e| self.raised.keep(e))?;
            let bytes = given.extract::<&[u8]>(py).map_err(|e| self.raised.keep(e.into()))?;
            let length = bytes.len().min(buffer.len());
            buffer[..length].copy_from_slice(&bytes[..length]);
            Ok(length)
        })
    }
}

/// A source that is left when a signal came.
struct Watched {
    inner: Box<dyn Source>,
    raised: Raised,
    count: u32,
}

impl Watched {
    /// The same without the events of other times on the trace's clock.
    fn within(self, span_ns: Option<(u64, u64)>) -> Self {
        let Some((begin, end)) = span_ns else { return self };
        let inner = Box::new(Part::new(self.inner, Times::OnClock(begin..end)));
        Self { inner, ..self }
    }
}

impl Source for Watched {
    fn next(&mut self, event: &mut Event) -> Result<bool, Error> {
        self.count = self.count.wrapping_add(1);
        if self.count.is_multiple_of(EVENTS_PER_QUESTION) {
            // The method's own path is not general enough in its lifetime for `attach`.
            #[allow(clippy::redundant_closure_for_method_calls)]
            Python::attach(|py| py.check_signals())
                .map_err(|e| Error::Write(self.raised.keep(e)))?;
        }
        self.inner.next(event)
    }

    fn begin_ns(&self) -> Option<u64> {
        self.inner.begin_ns()
    }

    fn bounds_ns(&self) -> Option<(u64, u64)> {
        self.inner.bounds_ns()
    }

    fn titles(&self) -> Vec<(Device, String)> {
        self.inner.titles()
    }

    fn caveats(&self) -> &[Caveat] {
        self.inner.caveats()
    }

    fn devices(&self) -> Vec<(Device, String)> {
        self.inner.devices()
    }

    fn facts(&self) -> Facts {
        self.inner.facts()
    }
}

/// Files that are read when they are needed.
pub fn inputs_of(files: Vec<GivenFile>, raised: &Raised) -> Result<Vec<Input>, Error> {
    let mut inputs = Vec::new();
    for (name, read) in files {
        inputs.push(match read {
            Some(read) => Input::new(name, Asked { read, raised: raised.clone() }),
            None if name == "-" => Input::new("standard input", io::stdin()),
            None => {
                let file = File::open(&name).and_then(|file| {
                    if file.metadata()?.is_dir() {
                        return Err(io::ErrorKind::IsADirectory.into());
                    }
                    Ok(file)
                });
                Input::new(&name, file.map_err(|error| Error::Read { name: name.clone(), error })?)
            }
        });
    }
    Ok(inputs)
}

fn open(given: Given, raised: &Raised) -> Result<(&'static str, Watched), Error> {
    let (files, devices, part) = given.parts();
    let (format, mut inner) = format::open(inputs_of(files, raised)?)?;
    // Times count from the first event of any device.
    if let Some((begin, end)) = part {
        inner = Box::new(Part::new(inner, Times::SinceBegin(begin..end)));
    }
    if !devices.is_empty() {
        inner = Box::new(Chosen::new(inner, &devices));
    }
    Ok((format.name, Watched { inner, raised: raised.clone(), count: 0 }))
}

/// Part of every answer beside its content.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}Answer")]
pub struct Answer<T> {
    /// Format of the files.
    format: String,
    /// Findings beside events.
    caveats: Vec<TraceCaveat>,
    /// The content.
    #[serde(flatten)]
    content: T,
}

/// Something in a trace that did not keep it from being read.
#[derive(Serialize, JsonSchema)]
pub struct TraceCaveat {
    /// Place and fault.
    text: String,
    /// True if the rest of the file was not used because its content is wrong.
    is_damage: bool,
}

/// No content.
#[derive(Serialize, JsonSchema)]
pub struct OnlyRead {}

impl<T> Answer<T> {
    /// The content with the format and what was found beside it.
    pub fn new(format: &str, caveats: &[Caveat], content: T) -> Self {
        let tell =
            |caveat: &Caveat| TraceCaveat { text: caveat.to_string(), is_damage: caveat.is_damage };
        Self { format: format.to_owned(), caveats: caveats.iter().map(tell).collect(), content }
    }
}

fn answered<T: Serialize>(format: &'static str, source: &Watched, content: T) -> Answer<T> {
    Answer::new(format, source.caveats(), content)
}

fn answer<T: Serialize>(format: &'static str, source: &Watched, content: T) -> String {
    serde_json::to_string(&answered(format, source, content)).unwrap_or_default()
}

fn hand_over(sink: &Py<PyAny>, raised: &Raised, piece: &[u8]) -> Result<(), Error> {
    if piece.is_empty() {
        return Ok(());
    }
    Python::attach(|py| {
        let done = sink.call1(py, (PyBytes::new(py, piece),));
        done.map(drop).map_err(|error| Error::Write(raised.keep(error)))
    })
}

/// A format of traces.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TraceFormat")]
pub struct FormatRow {
    /// Its name.
    name: &'static str,
    /// One sentence.
    about: &'static str,
    /// True if it can be read.
    is_read: bool,
    /// True if it can be written.
    is_written: bool,
}

/// Formats that are read and written, as JSON.
#[pyfunction]
pub fn trace_formats() -> String {
    let written = |name: &str| Output::ALL.iter().any(|output| output.name() == name);
    let rows = FORMATS.iter().map(|format| FormatRow {
        name: format.name,
        about: format.about,
        is_read: true,
        is_written: written(format.name),
    });
    serde_json::to_string(&rows.collect::<Vec<_>>()).unwrap_or_default()
}

/// Options of `trace_show`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TraceShowOptions")]
pub struct ShowOptions {
    /// Format of a line, as blkparse takes it; null: its usual ones.
    format: Option<String>,
    /// Kinds of events that are shown; null: all.
    kinds: Option<String>,
    /// True if stages are timed at the end of a line.
    has_times: bool,
    /// True if only the totals are wanted.
    is_quiet: bool,
    /// True if there are totals of each program.
    has_programs: bool,
}

impl ShowOptions {
    fn understand(&self) -> Result<Show, Error> {
        let mut lines = Options { tracks: self.has_times, ..Options::default() };
        lines.format = self.format.as_deref().map(Format::parse).transpose()?;
        if let Some(kinds) = &self.kinds {
            lines.mask = mask_of(kinds)?;
        }
        Ok(Show { lines, is_quiet: self.is_quiet, has_programs: self.has_programs })
    }
}

/// Summary of what was shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TraceShown")]
pub struct Shown {
    /// Number of events.
    events: u64,
}

/// Hands a trace as text to `sink`, piece by piece.
#[pyfunction]
pub fn trace_show(
    py: Python<'_>,
    inputs: Given,
    options_json: &str,
    sink: Py<PyAny>,
) -> PyResult<String> {
    let options: ShowOptions =
        serde_json::from_str(options_json).map_err(|e| trace_error(py, e))?;
    let raised = Raised::default();
    let done = py.detach(|| {
        let options = options.understand()?;
        let (format, mut source) = open(inputs, &raised)?;
        let mut write = |piece: &[u8]| hand_over(&sink, &raised, piece);
        let events = show(&mut source, &options, &mut write)?;
        Ok(answer(format, &source, Shown { events }))
    });
    done.map_err(|error: Error| raised.exception(py, &error))
}

/// Summary of what was written in another format.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TraceConverted")]
pub struct Converted {
    /// The format.
    output: &'static str,
    /// Events that were written.
    written: u64,
    /// Events that the format cannot hold.
    left_out: u64,
}

/// Hands a trace in another format to `sink`, piece by piece.
#[pyfunction]
pub fn trace_convert(
    py: Python<'_>,
    inputs: Given,
    output: &str,
    facts_json: &str,
    sink: Py<PyAny>,
) -> PyResult<String> {
    let output: Output = output.parse().map_err(|e: iolab_model::Error| trace_error(py, e))?;
    let facts: Facts = serde_json::from_str(facts_json).map_err(|e| trace_error(py, e))?;
    let raised = Raised::default();
    let done = py.detach(|| {
        let (format, mut source) = open(inputs, &raised)?;
        let mut write = |piece: &[u8]| hand_over(&sink, &raised, piece);
        let done = convert::convert(&mut source, output, &facts, &mut write)?;
        let (written, left_out) = (done.written, done.left_out);
        let content = Converted { output: output.name(), written, left_out };
        Ok(answer(format, &source, content))
    });
    done.map_err(|error: Error| raised.exception(py, &error))
}

#[derive(Serialize)]
struct ColumnRow {
    name: &'static str,
    kind: &'static str,
}

/// Columns that `trace_columns` hands over, with the names of their types in Arrow, as JSON.
#[pyfunction]
pub fn trace_column_kinds() -> String {
    let row =
        |column: &Column| ColumnRow { name: column.name(), kind: columns::kind_of(*column).name() };
    serde_json::to_string(&Column::ALL.iter().map(row).collect::<Vec<_>>()).unwrap_or_default()
}

#[derive(Serialize)]
struct Written {
    written: u64,
}

/// Buffers of one column: validity, offsets, data; empty where the column has none.
type PyColumn<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Hands a trace to `sink` in batches: the number of events, and a tuple of buffers per column.
#[pyfunction]
pub fn trace_columns(py: Python<'_>, inputs: Given, sink: Py<PyAny>) -> PyResult<String> {
    let raised = Raised::default();
    let done = py.detach(|| {
        let (format, mut source) = open(inputs, &raised)?;
        let mut write = |rows: usize, batch: &[columns::ColumnBuffers]| {
            Python::attach(|py| {
                let bytes = |buffer: &Vec<u8>| PyBytes::new(py, buffer);
                let of = |it: &columns::ColumnBuffers| {
                    (bytes(&it.validity), bytes(&it.offsets), bytes(&it.data))
                };
                let all: Vec<PyColumn<'_>> = batch.iter().map(of).collect();
                let done = sink.call1(py, (rows, all));
                done.map(drop).map_err(|error| Error::Write(raised.keep(error)))
            })
        };
        let written = columns::batches(&mut source, &mut write)?;
        Ok(answer(format, &source, Written { written }))
    });
    done.map_err(|error: Error| raised.exception(py, &error))
}

/// Name of the output format that a file name's ending stands for.
#[pyfunction]
pub fn trace_output_of(name: &str) -> Option<&'static str> {
    Output::of_ending(name).map(Output::name)
}

/// Measures as text and data.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TraceMeasured")]
pub struct Measured {
    /// For people.
    text: String,
    /// All figures.
    report: Report,
}

fn measure(inputs: Given, by: By, raised: &Raised) -> Result<(Report, Answer<OnlyRead>), Error> {
    let (format, mut source) = open(inputs, raised)?;
    let mut report = Report::of(&Pairing::of(&mut source, Rules::Own, by)?);
    report.name_devices(&source.titles());
    let told = answered(format, &source, OnlyRead {});
    Ok((report, told))
}

/// Stages of a trace; `style` is `stages`, `summary`, `btt` or `btt-short`.
#[pyfunction]
#[pyo3(signature = (inputs, by, style, span_ns=None))]
pub fn trace_stages(
    py: Python<'_>,
    inputs: Given,
    by: &str,
    style: &str,
    span_ns: Option<(u64, u64)>,
) -> PyResult<String> {
    let by: By = by.parse().map_err(|e: iolab_model::Error| trace_error(py, e))?;
    let raised = Raised::default();
    let done = py.detach(|| {
        let (format, source) = open(inputs, &raised)?;
        let mut source = source.within(span_ns);
        let rules = if style.starts_with("btt") { Rules::Btt } else { Rules::Own };
        let pairing = Pairing::of(&mut source, rules, by)?;
        let mut report = Report::of(&pairing);
        report.name_devices(&source.titles());
        let text = match style {
            "btt" => btt::text(&pairing, true),
            "btt-short" => btt::text(&pairing, false),
            "summary" => text::summary(&report),
            _ => text::stages(&report),
        };
        Ok(answer(format, &source, Measured { text, report }))
    });
    done.map_err(|error: Error| raised.exception(py, &error))
}

/// Pictures of the devices of a trace, as data; of what happened between two times, if they are
/// given.
#[pyfunction]
#[pyo3(signature = (inputs, span_ns = None))]
pub fn trace_plot(py: Python<'_>, inputs: Given, span_ns: Option<(u64, u64)>) -> PyResult<String> {
    let raised = Raised::default();
    let done = py.detach(|| {
        let (format, source) = open(inputs, &raised)?;
        let mut source = source.within(span_ns);
        let plot = TracePlot::of(&mut source)?;
        Ok(answer(format, &source, plot))
    });
    done.map_err(|error: Error| raised.exception(py, &error))
}

/// Figures of two traces beside each other.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TracesCompared")]
pub struct Compared {
    /// For people.
    text: String,
    /// Figures that one of them has.
    pairs: Vec<compare::Pair>,
    /// Contents of each.
    traces: Vec<Answer<OnlyRead>>,
}

/// Figures of two traces beside each other.
#[pyfunction]
pub fn trace_diff(py: Python<'_>, first: Given, second: Given) -> PyResult<String> {
    let raised = Raised::default();
    let done = py.detach(|| {
        let (first, first_told) = measure(first, By::Device, &raised)?;
        let (second, second_told) = measure(second, By::Device, &raised)?;
        let compared = Compared {
            text: compare::text(&first, &second),
            pairs: compare::compare(&first, &second),
            traces: vec![first_told, second_told],
        };
        serde_json::to_string(&compared).map_err(|error| Error::Write(error.into()))
    });
    done.map_err(|error: Error| raised.exception(py, &error))
}
