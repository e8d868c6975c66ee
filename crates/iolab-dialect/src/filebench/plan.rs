//! Part of a plan that is Filebench's own: how results are shown.

use serde::{Deserialize, Serialize};

use super::words::CountedAs;
use crate::plan::Row;

/// Everything about one command line; it has one row.
pub type Plan = crate::plan::Plan<Show, Row>;

/// Form of the results.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FilebenchFormat")]
pub enum Format {
    /// The report of 1.5.
    #[default]
    Text,
    /// The same with the summary of 1.4.9.
    Old,
    /// JSON.
    Json,
}

/// Form of the results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShownByFilebench")]
pub struct Show {
    /// Form of the results.
    pub format: Format,
    /// File of the results; absent: standard output.
    #[serde(default)]
    pub output: Option<String>,
    /// Lines before the run.
    pub said: Vec<String>,
    /// Commands that the user has allowed.
    #[serde(default)]
    pub commands: Vec<Command>,
    /// Filesets in the order of their definitions.
    pub files: Vec<FilesShow>,
    /// Name and instances of each process, in the order of their definitions.
    pub processes: Vec<(String, u64)>,
    /// Flow operations in the order of their definitions.
    pub flowops: Vec<FlowopShow>,
    /// The report has histograms.
    pub has_histograms: bool,
    /// Seconds between reports; 0: one report at the end.
    pub period_s: u64,
    /// `CountedAs` are set back after each report.
    pub is_set_back: bool,
    /// A thread that has nothing more to do spoils the run.
    pub is_timeout: bool,
}

/// A command that runs before the run, as `system` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FilebenchCommand")]
pub struct Command {
    /// Line for the shell.
    pub line: String,
}

/// A fileset as it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FilebenchFiles")]
pub struct FilesShow {
    /// Its name.
    pub name: String,
    /// A single file: told with fewer words.
    pub is_file: bool,
    /// Number of its files.
    pub entries: u64,
    /// Mean width of its directories.
    pub width: u64,
    /// Mean depth that follows from it.
    pub depth: f64,
    /// Number of its leaf directories.
    pub leafs: u64,
    /// Bytes of all its files.
    pub bytes: u64,
}

/// A flow operation as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FilebenchFlowop")]
pub struct FlowopShow {
    /// Its name.
    pub name: String,
    /// Group that it is counted in.
    pub counts: ToldAs,
    /// Operations of the record that are added: tenant and index among its operations' ids.
    pub parts: Vec<(usize, String)>,
}

/// Group that a flow operation is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FilebenchCounts")]
pub enum ToldAs {
    /// An operation on files.
    Operation,
    /// A read.
    Read,
    /// A write.
    Write,
    /// Control: not in the summary.
    Control,
}

impl From<CountedAs> for ToldAs {
    fn from(counts: CountedAs) -> Self {
        match counts {
            CountedAs::Operation => Self::Operation,
            CountedAs::Read => Self::Read,
            CountedAs::Write => Self::Write,
            CountedAs::Control => Self::Control,
        }
    }
}
