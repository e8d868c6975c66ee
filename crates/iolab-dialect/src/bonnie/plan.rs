//! Part of a plan that is bonnie++'s own: how results are shown.

use serde::{Deserialize, Serialize};

use super::csv::Line;
use crate::plan::Row;

/// Everything about one command line; it has one row.
pub type Plan = crate::plan::Plan<Show, Row>;

/// Form of the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShownByBonnie")]
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
