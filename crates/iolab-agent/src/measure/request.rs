//! Question to the child and its answer; one JSON line each.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use iolab_workload::Workload;
use serde::Deserialize;

pub use crate::protocol::{
    FileBirth, FileMark, FileRules, Interim, MeasureResult as Answer, PairsSpec, RawDevice, RunAs,
    Status, Waits,
};

/// One trial's work.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Name of the trial, for progress events.
    pub trial: String,
    /// Directory of the files; owned by iolab.
    pub directory: PathBuf,
    /// Directories on the twins of its device, for alternating slices.
    #[serde(default)]
    pub twins: Vec<PathBuf>,
    /// Content of its token file, if others can reach the directory.
    #[serde(default)]
    pub token: Option<String>,
    /// True for files of iolab's own: files have plain names.
    #[serde(default)]
    pub is_ours: bool,
    /// The device whose slices stand for files, if there is no file system.
    #[serde(default)]
    pub device: Option<RawDevice>,
    /// Devices whose counters tell what reached them.
    #[serde(default)]
    pub counters: Vec<Counter>,
    /// Control groups of the tenants that have some.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// State of the page cache before each phase that reads.
    #[serde(default)]
    pub cache: CacheState,
    /// The machine's page cache may be dropped (root).
    #[serde(default)]
    pub may_drop_caches: bool,
    /// The phase is stopped when less than this is free.
    #[serde(default)]
    pub reserve_bytes: u64,
    /// The same of other places, by their names in the directory.
    #[serde(default)]
    pub place_reserves: BTreeMap<String, u64>,
    /// The phase is stopped when the trial has lasted this long; 0 = no limit.
    #[serde(default)]
    pub time_limit_ns: u64,
    /// Condition that is awaited before each phase.
    #[serde(default)]
    pub waits: Option<Waits>,
    /// Interim results that are wanted.
    #[serde(default)]
    pub interim: Option<Interim>,
    /// User that the process becomes before any file is opened.
    #[serde(default)]
    pub run_as: Option<RunAs>,
    /// True if that is done before the directory is entered: it is reached with that user's rights.
    #[serde(default)]
    pub enters_as_user: bool,
    /// The directory is the user's: what may become of files in it.
    #[serde(default)]
    pub files: Option<FileRules>,
    /// Alternating slices, in place of running the workload once.
    #[serde(default)]
    pub pairs: Option<PairsSpec>,
    /// Workload to run.
    pub workload: Workload,
}

/// A device's counters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counter {
    /// Kernel name.
    pub name: String,
    /// Its `stat` file in sysfs.
    pub stat_path: PathBuf,
}

/// A control group for the workers of a tenant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The tenant.
    pub tenant: String,
    /// File that takes the ids of processes.
    pub procs: PathBuf,
    /// The same, opened before the rights to do so are given up.
    #[serde(skip)]
    pub opened: Option<Arc<File>>,
}

/// State of the page cache before each phase that reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// State that the phases before left.
    #[default]
    AsIs,
    /// Written back and dropped.
    Cold,
    /// Read once.
    Warm,
}

impl CacheState {
    /// Name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AsIs => "as_is",
            Self::Cold => "cold",
            Self::Warm => "warm",
        }
    }
}
