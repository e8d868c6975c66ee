//! Part of a plan that is `IOzone`'s own: rows of several tests, and how they are shown.

use iolab_workload::Workload;
use iolab_workload::preset::IozoneTest;
use serde::{Deserialize, Serialize};

use super::side::Side;
use super::typed::Unit;

/// Everything about one command line.
pub type Plan = crate::plan::Plan<Show, Row>;

/// Form of the results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[schemars(rename = "ShownByIozone")]
pub struct Show {
    /// Lines of the banner.
    pub banner: Vec<String>,
    /// The command line, program's name included.
    pub command: String,
    /// Unit of the results.
    pub unit: Unit,
    /// -R.
    pub has_report: bool,
    /// -C.
    pub has_children: bool,
    /// -+u.
    pub has_cpu: bool,
    /// -M.
    pub has_machine: bool,
    /// Lines about compute time.
    pub time_lines: Vec<String>,
    /// Tests with pauses: their rates are those of the time inside the calls.
    pub paused: Vec<IozoneTest>,
    /// -d.
    pub start_delay_ns: u64,
    /// Lines after those that the original always prints.
    pub last_lines: Vec<String>,
    /// -S.
    pub cache_kb: u64,
    /// -L.
    pub cache_line: u64,
    /// -j.
    pub stride: u64,
    /// Columns of the table.
    pub columns: Columns,
    /// Throughput mode, if it is that.
    pub throughput: Option<Throughput>,
    /// Files beside the report.
    pub side: Side,
}

/// Choice of columns of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a group of columns")]
#[schemars(rename = "IozoneColumns")]
pub struct Columns {
    /// Only write to reread (-A).
    pub is_short: bool,
    /// fwrite to freread; they are blank with mapped files and asynchronous I/O.
    pub has_streams: bool,
    /// With mapped files and asynchronous I/O the original leaves room for fwrite all the same, if
    /// that was not selected.
    pub is_fwrite_blank: bool,
    /// pwrite to repread (-E).
    pub has_positioned: bool,
    /// pwritev and preadv, which the original's builds have not.
    pub has_vectored: bool,
    /// Columns of second passes show 0.
    pub has_no_retest: bool,
}

/// Throughput mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "IozoneThroughput")]
pub struct Throughput {
    /// `process` or `thread`.
    pub child: String,
    /// -l and -u, if given.
    pub range: Option<(u32, u32)>,
    /// Children that the head line names.
    pub children: u32,
}

/// One row of the table, or one table of throughput mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "IozoneRow")]
pub struct Row {
    /// For messages and the store: `64k/4k` or `64k/4k/3`.
    pub name: String,
    /// File size.
    pub file_kb: u64,
    /// Record size.
    pub record_kb: u64,
    /// Children; 1 without throughput mode.
    pub children: u32,
    /// Its tests, one phase each.
    pub tests: Vec<IozoneTest>,
    /// Workload that is measured.
    pub workload: Workload,
}
