//! Values with which a testbed is opened; each kind has a type of its own.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Stack;

/// Parameters of `open_testbed`: the kind, and what belongs to it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TestbedSpec {
    /// A private loop device over an image file that iolab makes (class B).
    Loop(LoopSpec),
    /// A directory on a live file system (class A; as root A+).
    Directory(DirectorySpec),
    /// A whole block device of the user (class C).
    Device(DeviceSpec),
    /// Several at once: one for the files, others for sets of files that name their places.
    Places(PlacesSpec),
}

/// A testbed with several places.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacesSpec {
    /// Place of all files that name none; file system and knobs of a trial are its own.
    pub main: Box<TestbedSpec>,
    /// The other places, in the order in which they are opened.
    pub others: Vec<PlaceSpec>,
}

/// A place of its own: a private loop device, or a directory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaceSpec {
    /// Its name, as sets of files have it.
    pub name: String,
    /// Testbed below it.
    pub testbed: TestbedSpec,
    /// The file system that is made there, the same in all trials; null for a directory.
    pub stack: Option<Stack>,
}

/// A private loop device.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopSpec {
    /// Size of the image: a multiple of 4096, 64 MiB at least.
    pub size_bytes: u64,
    /// Directory of the image, an absolute path.
    pub image_dir: PathBuf,
    /// 1, or 2 for an external journal.
    pub device_count: u32,
    /// 512, 1024, 2048 or 4096.
    pub logical_block_bytes: u32,
    /// Devices made alike, each with an image and a file system of its own, for alternating slices
    /// whose treatments differ in knobs; 1 without such.
    #[serde(default = "one")]
    pub twin_count: u32,
}

const fn one() -> u32 {
    1
}

/// A directory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectorySpec {
    /// An absolute path.
    pub path: PathBuf,
    /// Devices whose knobs may change although the system uses them.
    pub allow_knobs_on: Vec<String>,
    /// True to work in the directory itself, not in a sub-directory of ours: files have the names
    /// that the workload gives them, and nothing else is touched or removed.
    #[serde(default)]
    pub in_place: bool,
    /// Block devices that are only read, by whole paths: counters and knobs are theirs as well as
    /// those of the disk below the directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<PathBuf>,
}

/// A whole block device.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// Its node, or a link to it.
    pub path: PathBuf,
    /// Its serial number, which says that it may be erased; null: its marker says so, which is
    /// younger than a day and of the same `study`.
    pub erase_serial: Option<String>,
    /// Digest of the plan; only the same one may go on without asking.
    pub study: Option<String>,
    /// Paths that must not lie on it.
    pub protected: Vec<PathBuf>,
    /// Preparation before the first trial.
    pub precondition: Precondition,
    /// Length of a round of random writes.
    pub precondition_round_ns: u64,
}

/// Preparation of a device before the first trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Precondition {
    /// Nothing: the drive stays as it is.
    #[default]
    None,
    /// All of it once, in order.
    Fill,
    /// All of it twice, in order.
    Fill2x,
    /// Twice in order, then random writes until they are steady.
    Random,
}

impl Precondition {
    /// Name in specs and facts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fill => "fill",
            Self::Fill2x => "fill2x",
            Self::Random => "random",
        }
    }

    /// Times that all of the device is written in order.
    pub const fn passes(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Fill => 1,
            Self::Fill2x | Self::Random => 2,
        }
    }
}

impl TestbedSpec {
    /// Names of the kinds.
    pub const KINDS: &[&str] = &["loop", "directory", "device", "places"];
}
