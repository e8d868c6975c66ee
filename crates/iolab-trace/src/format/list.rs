//! The list of formats.

use super::text::TextReader;
use super::{blkparse, blktrace, disksim, events_csv, ftrace, iolog, msr};
use crate::error::Error;
use crate::native;
use crate::source::{Input, Source, Window, shown};

/// Lines at the beginning of a text by which its format is known.
const LINES_LOOKED_AT: usize = 40;
/// Bytes that are looked at.
const HEAD_BYTES: usize = 1 << 14;

/// Opens files that begin as the format says.
type Open = fn(Vec<Window>) -> Result<Box<dyn Source>, Error>;

/// One format.
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// Description of the format.
    pub about: &'static str,
    /// Tell whether a file that begins so is of this format.
    pub knows: fn(&[u8]) -> bool,
    /// True if several files are one trace.
    pub takes_several: bool,
    open: Open,
}

fn has_line(head: &[u8], is_line: fn(&[u8]) -> bool) -> bool {
    let lines = head.split(|byte| *byte == b'\n').take(LINES_LOOKED_AT);
    lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).any(is_line)
}

fn first_line(head: &[u8]) -> &[u8] {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The first line that is neither empty nor a comment.
fn first_row(head: &[u8]) -> &[u8] {
    let mut lines = head.split(|byte| *byte == b'\n');
    let row = lines.find(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#"));
    row.map_or(b"", |line| line.strip_suffix(b"\r").unwrap_or(line))
}

macro_rules! text_format {
    ($type:ty) => {
        |windows| {
            let mut windows = windows.into_iter();
            let Some(window) = windows.next() else { return Err(Error::Option("no file".into())) };
            Ok(Box::new(TextReader::new(<$type>::default(), window)))
        }
    };
}

/// All formats, in the order in which they are tried.
pub const FORMATS: &[Format] = &[
    Format {
        name: "iolab",
        about: "our own compact file, see docs/reference/trace-file.md",
        knows: native::is_file,
        takes_several: false,
        open: |windows| {
            let mut windows = windows.into_iter();
            let Some(window) = windows.next() else { return Err(Error::Option("no file".into())) };
            Ok(Box::new(native::Reader::open(window)?))
        },
    },
    Format {
        name: "blktrace",
        about: "binary files of blktrace(8), one per CPU, in either byte order",
        knows: |head| blktrace::is_swapped(head).is_some(),
        takes_several: true,
        open: |windows| Ok(Box::new(blktrace::Reader::open(windows)?)),
    },
    Format {
        name: "iolog",
        about: "fio's iolog, versions 2 and 3",
        knows: |head| iolog::is_line(first_line(head)),
        takes_several: false,
        open: text_format!(iolog::Iolog),
    },
    Format {
        name: "csv",
        about: "events as CSV, as `iolab sim trace` and `iolab trace convert` write them",
        knows: |head| events_csv::is_line(first_line(head)),
        takes_several: false,
        open: text_format!(events_csv::EventsCsv),
    },
    Format {
        name: "msr",
        about: "CSV of the MSR Cambridge traces (SNIA)",
        knows: |head| msr::is_line(first_row(head)),
        takes_several: false,
        open: text_format!(msr::Msr),
    },
    Format {
        name: "disksim",
        about: "ASCII trace of DiskSim",
        knows: |head| disksim::is_line(first_row(head)),
        takes_several: false,
        open: text_format!(disksim::Disksim),
    },
    Format {
        name: "ftrace",
        about: "text of the kernel's block events: tracefs, trace-cmd report, perf script",
        knows: |head| has_line(head, ftrace::is_line),
        takes_several: false,
        open: text_format!(ftrace::Ftrace),
    },
    Format {
        name: "blkparse",
        about: "default text of blkparse(1)",
        knows: |head| has_line(head, blkparse::is_line),
        takes_several: false,
        open: text_format!(blkparse::Blkparse),
    },
];

/// Opens a trace in one file or several, whatever its format.
///
/// # Errors
/// [`Error::Unknown`] if it is none, [`Error::Option`] if several files are no trace together,
/// [`Error::Read`] if a file cannot be read, [`Error::Damaged`] if it is damaged from its
/// beginning.
pub fn open(inputs: Vec<Input>) -> Result<(&'static Format, Box<dyn Source>), Error> {
    open_windows(inputs.into_iter().map(Window::new).collect())
}

/// Opens a trace of which the beginning may have been looked at, see [`open`].
///
/// # Errors
/// As for [`open`].
pub fn open_windows(given: Vec<Window>) -> Result<(&'static Format, Box<dyn Source>), Error> {
    let mut windows = Vec::new();
    let mut found: Option<&'static Format> = None;
    for mut window in given {
        window.ensure(HEAD_BYTES)?;
        let head = window.bytes();
        if head.is_empty() {
            // blktrace leaves empty files of CPUs on which nothing happened.
            windows.push(window);
            continue;
        }
        let head = &head[..head.len().min(HEAD_BYTES)];
        let Some(format) = FORMATS.iter().find(|format| (format.knows)(head)) else {
            let what = format!("it begins with {}", shown(head));
            return Err(unknown(&window, what));
        };
        if found.is_some_and(|found| found.name != format.name) {
            return Err(unknown(
                &window,
                format!("it is {}, the files before are not", format.name),
            ));
        }
        found = Some(format);
        windows.push(window);
    }
    let Some(format) = found else {
        return Err(match windows.first() {
            Some(window) => unknown(window, "it is empty".into()),
            None => Error::Option("name a file".into()),
        });
    };
    if windows.len() > 1 && !format.takes_several {
        let name = format.name;
        return Err(Error::Option(format!(
            "several {name} files are no trace together; name one of them (`plot` takes a second \
             one behind --beside)"
        )));
    }
    Ok((format, (format.open)(windows)?))
}

fn unknown(window: &Window, what: String) -> Error {
    let formats: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    Error::Unknown { name: window.name().to_owned(), what, formats: formats.join(", ") }
}
