//! Part of a plan that is fio's own: how results are shown.

use serde::{Deserialize, Serialize};

use super::command::Format;
use super::eta::When;
use super::logs::LogShow;
use super::rules::RulesShow;
use super::verify_state::StateShow;
use crate::plan::Row;

/// Everything about one command line; it has one row.
pub type Plan = crate::plan::Plan<Show, Row>;

/// Form of the results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShownByFio")]
pub struct Show {
    /// File of the results; absent: standard output.
    pub output: Option<String>,
    /// Forms of the results, in order.
    pub formats: Vec<Format>,
    /// 2 to 5.
    pub terse_version: u32,
    /// Options of the global sections that have a value.
    pub globals: Vec<(String, String)>,
    /// Clones are threads.
    pub are_threads: bool,
    /// The lines that describe jobs before they run.
    pub heads: Vec<Head>,
    /// Jobs and clones whose results are told, in order.
    pub units: Vec<UnitShow>,
    /// Logs that are written, in order.
    pub logs: Vec<LogShow>,
    /// Commands that run before the first job and after the last one, in order.
    #[serde(default)]
    pub commands: Vec<Command>,
    /// I/O scheduler of the device, if one is asked for.
    #[serde(default)]
    pub scheduler: Option<String>,
    /// Time between two results while jobs run; 0: only at the end.
    #[serde(default)]
    pub status_ns: u64,
    /// Wrong blocks are saved.
    #[serde(default)]
    pub are_dumped: bool,
    /// Files that say how far jobs have written.
    #[serde(default)]
    pub states: Vec<StateShow>,
    /// Occasion on which a line of progress is shown.
    #[serde(default)]
    pub eta: When,
    /// Time after which a line of progress stays, and the next one is written below; 0: never.
    #[serde(default)]
    pub eta_newline_ns: u64,
}

/// A command of a job, which the user has allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FioCommand")]
pub struct Command {
    /// Name of the job.
    pub job: String,
    /// True if it runs before the jobs, otherwise after them.
    pub is_before: bool,
    /// Line for the shell.
    pub line: String,
    /// File of its output.
    pub file: String,
    /// So many clones of the job run it, one after the other.
    pub times: u64,
}

/// A job before it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FioHead")]
pub struct Head {
    /// Its name.
    pub name: String,
    /// Group of results.
    pub group: u32,
    /// Directions.
    pub rw: String,
    /// Smallest and largest transfers that read, write, trim.
    pub sizes: [(u64, u64); 3],
    /// Name of the engine.
    pub engine: String,
    /// As typed.
    pub depth: u64,
    /// Number of clones.
    pub clones: u64,
}

/// Results of clones that are told together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
#[schemars(rename = "FioUnit")]
pub struct UnitShow {
    /// Name of the job.
    pub name: String,
    /// Group of results.
    pub group: u32,
    /// Number of clones.
    pub clones: u64,
    /// Added to the unit before it.
    pub is_joined: bool,
    /// Letter of its work in a line of progress.
    #[serde(default)]
    pub letter: String,
    /// Its options that have a value.
    pub options: Vec<(String, String)>,
    /// description.
    pub description: Option<String>,
    /// Phase and tenant that do its work.
    pub place: (usize, usize),
    /// Phase and tenant that read what it has written.
    pub verified: Option<(usize, usize)>,
    /// Before this nothing is counted.
    pub ramp_ns: u64,
    /// Reads and writes told together.
    pub is_unified: bool,
    /// ... and each for itself as well.
    pub is_told_twice: bool,
    /// Transfers under way at once.
    pub depth: u32,
    /// Way in which its rules are told.
    #[serde(default)]
    pub rules: RulesShow,
    /// True if it is not told at all.
    #[serde(default)]
    pub is_untold: bool,
    /// The engine touches no files.
    pub is_null: bool,
    /// Operations on names count as reads of so many bytes; 0: data are moved.
    pub name_bytes: u64,
    /// Trims count as so many bytes; 0: there are none.
    pub trim_bytes: u64,
    /// Bytes of a read and of a write that move no data; 0: they do.
    pub space_bytes: [u64; 2],
    /// Percentiles of slat, clat, lat.
    pub percentiles: [bool; 3],
    /// Percentiles to tell.
    pub percentile_list: Vec<f64>,
    /// Numbers that are not told: slat, clat, lat, bandwidth.
    pub disabled: [bool; 4],
}
