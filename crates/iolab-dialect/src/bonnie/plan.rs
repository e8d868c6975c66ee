//! What a bonnie++ command line means: the phases, and how results are shown.

use iolab_workload::Workload;
use serde::{Deserialize, Serialize};

use super::csv::Line;
use crate::option::Common;

/// Everything about one command line; what the front end reads of it is the same in all dialects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// `bonnie++`.
    pub dialect: String,
    /// What iolab adds.
    pub common: Common,
    /// Only this text is wanted; nothing is measured.
    pub only_text: Option<String>,
    /// What the user must know before it begins.
    pub notes: Vec<String>,
    /// Directory of the files.
    pub directory: String,
    /// Names of the files and directories.
    pub files: Vec<String>,
    /// User and group to work as, as typed; empty: not said.
    pub user: (String, String),
    /// `as_is`.
    pub cache: String,
    /// How it is shown.
    pub show: Show,
    /// What is measured: one row.
    pub rows: Vec<Row>,
}

/// How results are shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// The command line, program's name included.
    pub command: String,
    /// -q: the table goes to standard error, nothing is said of progress.
    pub is_quiet: bool,
    /// -x: only CSV lines.
    pub is_csv_only: bool,
    /// More than one: the header is printed first.
    pub runs: u32,
    /// Size, chunk, concurrency, seeks and seekers, as the table shows them.
    pub size: String,
    /// The result but for what is measured.
    pub line: Line,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// For messages and the store.
    pub name: String,
    /// Size of the large file, or of what the small files hold at most.
    pub file_kb: u64,
    /// Bytes of a transfer, in KiB.
    pub record_kb: u64,
    /// Always 1.
    pub children: u32,
    /// What is measured.
    pub workload: Workload,
}
