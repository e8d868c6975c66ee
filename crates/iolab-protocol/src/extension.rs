//! Errors of the extension: one form for all of them, whatever crate they come from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// Exception of Python that an error becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorBranch {
    /// `StudyError`.
    Study,
    /// `DialectError`.
    Dialect,
    /// `TraceError`.
    Trace,
}

/// Kind of an error of the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExtensionErrorCode {
    /// A JSON text does not have the type that was agreed on.
    Border,
    /// A name that is in no list.
    UnknownName,
    /// A value that cannot be one: a size, a number outside its range, a parameter.
    Value,
    /// A text that cannot be read: a file, a command line, an option.
    Syntax,
    /// Parts that contradict each other.
    Contradiction,
    /// A target or format that cannot do what is needed.
    Unsupported,
    /// A call of the operating system failed.
    System,
    /// A trace that is damaged, or of no known format.
    Damaged,
    /// A fault of iolab itself.
    Internal,
}

/// Place of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ErrorPlace {
    /// File, profile or stack; `FILE:LINE:COLUMN` where that is known; empty for a command line.
    pub source: String,
    /// The line as it was typed; empty if nothing can be pointed at.
    pub line: String,
    /// First wrong character of that line.
    pub begin: usize,
    /// First character behind the wrong ones; not above `begin`: all of the line.
    pub end: usize,
}

/// An error of the extension.
///
/// For people it reads `message`, `between`, `hint`, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExtensionError {
    /// Exception that it becomes.
    pub branch: ErrorBranch,
    /// Kind of the error.
    pub code: ExtensionErrorCode,
    /// Values that it is about, by name.
    pub values: BTreeMap<String, String>,
    /// Action that failed, and its object.
    pub message: String,
    /// Text between message and hint: punctuation, or the line with a mark below it.
    pub between: String,
    /// Advice: the next thing to do; may be empty.
    pub hint: String,
    /// Place of the error, if that is known.
    pub place: Option<ErrorPlace>,
}
