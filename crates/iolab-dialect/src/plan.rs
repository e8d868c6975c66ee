//! Meaning of a command line, as it crosses to the front end and comes back for rendering: the part
//! that is the same in all dialects. How results are shown and what a row is, is each one's own.

use iolab_workload::Workload;
use iolab_workload::waits::Waits;
use serde::{Deserialize, Serialize};

use crate::option::Common;

/// Everything about one command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CommandPlan{Show}")]
pub struct Plan<Show, Row> {
    /// Name of the dialect.
    pub dialect: String,
    /// Options that iolab adds.
    pub common: Common,
    /// Only this text is wanted; nothing is measured.
    pub only_text: Option<String>,
    /// Notes for the user before it begins.
    pub notes: Vec<String>,
    /// Directory of the files; empty: the current one.
    pub directory: String,
    /// Names of the files and directories.
    pub files: Vec<String>,
    /// `as_is` or `cold`.
    pub cache: String,
    /// Further requests to the front end.
    #[serde(default)]
    pub asked: Asked,
    /// Form of the results.
    pub show: Show,
    /// Rows to measure, in this order.
    pub rows: Vec<Row>,
}

/// Workload that is measured at once, where there is no more to say about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CommandRow")]
pub struct Row {
    /// For messages and the store.
    pub name: String,
    /// Size of the file, or of what many files hold at most; at least a transfer.
    pub file_kb: u64,
    /// Bytes of a transfer, in KiB.
    pub record_kb: u64,
    /// Always 1.
    pub children: u32,
    /// Workload that is measured.
    pub workload: Workload,
    /// Control groups of its tenants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control_groups: Vec<ControlGroup>,
}

/// A control group of some tenants of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControlGroup {
    /// The tenants, who share it.
    pub tenants: Vec<String>,
    /// Share of the device relative to other groups; absent: as the kernel has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Requests of a command line to the front end beside measuring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CommandExtras")]
pub struct Asked {
    /// User and group to work as, as typed; empty: not said.
    pub user: (String, String),
    /// The files are only scratch: whatever happens, they are removed.
    pub is_scratch: bool,
    /// Random numbers come from this file, not from a seed.
    pub random_file: Option<String>,
    /// Devices that are named, and for which files of the testbed stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices_not_used: Vec<String>,
    /// Condition that is awaited before each phase.
    pub waits: Option<Waits>,
    /// CPU of the first child; children are pinned to it and the following ones.
    pub first_cpu: Option<u32>,
    /// Path of the workbook to write.
    pub workbook: Option<String>,
    /// Files are those of others: nothing is written.
    pub is_read_only: bool,
    /// Nothing is measured; the semaphores are made for so many copies, or removed (-1).
    pub semaphores: Option<i32>,
}
