//! Actions of other programs around their measuring, for trials of their command lines.

use std::collections::BTreeMap;

pub use iolab_workload::waits::{WaitFor, Waits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Permissions for files that are there already: to be removed, made anew or written; any other
/// stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRules {
    /// By name, as in the workload.
    #[serde(default)]
    pub replaceable: BTreeMap<String, Replaceable>,
}

/// Reason why a file may be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replaceable {
    /// The user named it.
    Named,
    /// File that an earlier trial left, unchanged.
    Made(FileMark),
    /// Made by an earlier trial, which was killed.
    Begun(FileBirth),
}

/// A file that was made and not closed yet; a copy has another inode, a successor another birth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileBirth {
    /// Device number.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Time at which the inode was made.
    pub born_ns: i64,
}

/// A file as it was when iolab had closed it; another inode or a later change is somebody else's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileMark {
    /// Device number.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Size.
    pub size_bytes: u64,
    /// Last change of the data.
    pub modified_ns: i64,
    /// Last change of the inode.
    pub changed_ns: i64,
}

/// The user that the measuring child becomes before it opens any file; only root can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunAs {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}
