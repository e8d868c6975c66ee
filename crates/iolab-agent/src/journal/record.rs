//! Content of a journal: changes, how far each has come, and how the lines are read.
//!
//! Left out: the form of a line, which is `lines`'; where journals lie.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::lines;
use crate::disk::Erased;
use crate::error::{Error, Result};
use crate::machine::DeviceIdentity;

/// Of what is written in a journal.
pub(super) const VERSION: u32 = 1;

/// Something that must be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// A knob gets another value, itself or as a consequence of another knob (`new` is null).
    Knob {
        /// Name in the list of knobs.
        knob: String,
        /// Its file, checked again before it is written.
        path: PathBuf,
        /// The value to write back.
        old: String,
        /// The value that it gets.
        new: Option<String>,
        /// The device, none for a setting of the whole machine.
        device: Option<DeviceIdentity>,
    },
    /// A loop number that did not exist.
    LoopAdded {
        /// `8` of `loop8`.
        number: u32,
    },
    /// An image file; it is unlinked as soon as it is attached.
    ImageCreated {
        /// Contains the run.
        path: PathBuf,
    },
    /// A directory for the data of trials.
    DirectoryCreated {
        /// Ends with the token.
        path: PathBuf,
        /// Also inside, in a file.
        token: String,
    },
    /// An empty directory to mount on.
    MountPointCreated {
        /// Contains the run.
        path: PathBuf,
    },
    /// A memory cgroup.
    CgroupCreated {
        /// Contains the run.
        path: PathBuf,
    },
    /// A tracing instance of its own.
    TraceInstance {
        /// Name; contains the run.
        name: String,
    },
    /// A whole device was erased, as its serial was typed.
    DeviceErased {
        /// The device.
        device: DeviceIdentity,
        /// State in which it is to be left.
        erased: Erased,
    },
    /// The page cache of everybody was dropped; nothing to undo, but somebody may wonder.
    CachesDropped {
        /// Trial that asked.
        trial: String,
    },
}

impl Change {
    /// Path that it made, if that is a file or a folder.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::ImageCreated { path }
            | Self::DirectoryCreated { path, .. }
            | Self::MountPointCreated { path }
            | Self::CgroupCreated { path } => Some(path),
            _ => None,
        }
    }

    /// The file of the kernel that it changes, if that is a setting which others may change, too.
    pub(super) fn setting(&self) -> Option<&Path> {
        match self {
            Self::Knob { path, .. } => Some(path),
            _ => None,
        }
    }

    /// True if a reboot undoes it.
    pub fn is_volatile(&self) -> bool {
        match self {
            // A mount point lies in /run, which need not be a tmpfs.
            Self::DirectoryCreated { .. }
            | Self::ImageCreated { .. }
            | Self::MountPointCreated { .. } => false,
            Self::Knob { .. }
            | Self::LoopAdded { .. }
            | Self::CgroupCreated { .. }
            | Self::TraceInstance { .. }
            // After a reboot a name or number says nothing: the device is looked at like any other.
            | Self::DeviceErased { .. }
            | Self::CachesDropped { .. } => true,
        }
    }
}

/// Progress of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// May have been done.
    Intent,
    /// Was done.
    Applied,
    /// Was undone and verified.
    Restored,
    /// Needs no undoing any more.
    Obsolete,
}

/// A change in a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number in this journal.
    pub id: u64,
    /// The change that must be undone.
    pub change: Change,
    /// Progress of the change.
    pub state: State,
}

impl Entry {
    /// True if it still must be undone.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Intent | State::Applied)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) run: String,
    pub(super) boot_id: String,
    /// The user for whom root made the changes; absent: root itself, or the owner of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) uid: Option<u32>,
}

impl Header {
    pub(super) fn of(run: &str, boot_id: &str) -> Self {
        Self { version: VERSION, run: run.to_owned(), boot_id: boot_id.to_owned(), uid: None }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    Open {
        version: u32,
        run: String,
        boot_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uid: Option<u32>,
        /// Version of the iolab that wrote it.
        #[serde(default)]
        iolab: String,
    },
    Intent {
        id: u64,
        change: Change,
    },
    State {
        id: u64,
        state: State,
    },
}

/// Content of a journal.
pub(super) struct Parsed {
    /// Header; none if it cannot be read, or was never written.
    pub(super) header: Option<Header>,
    pub(super) entries: BTreeMap<u64, Entry>,
    pub(super) lines: lines::Found,
}

pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Parsed> {
    let text = String::from_utf8_lossy(bytes);
    let mut found = lines::take_apart(&text, |line| {
        serde_json::from_str::<Line>(line).is_ok() || other_version(line).is_some()
    });
    if found.torn_bytes > 0 {
        found.torn_bytes = bytes.len() - whole_bytes(bytes); // Of the file, not of its text.
    }
    let mut header = None;
    let mut entries = BTreeMap::new();
    for (_, line) in &found.whole {
        if let Some((version, iolab)) = other_version(line) {
            return Err(Error::refused(
                format!(
                    "the journal {} has version {version}, written by {iolab}; this one, {}, knows \
                     version {VERSION}: nothing in it was touched",
                    path.display(),
                    env!("CARGO_PKG_VERSION")
                ),
                "run `iolab restore` of the one that wrote it",
            ));
        }
        match serde_json::from_str(line) {
            Ok(Line::Open { version, run, boot_id, uid, .. }) => {
                header = Some(Header { version, run, boot_id, uid });
            }
            Ok(Line::Intent { id, change }) => {
                entries.insert(id, Entry { id, change, state: State::Intent });
            }
            Ok(Line::State { id, state }) => {
                if let Some(entry) = entries.get_mut(&id) {
                    entry.state = state;
                }
            }
            Err(_) => {}
        }
    }
    Ok(Parsed { header, entries, lines: found })
}

/// Version and writer of a journal that is not ours to understand.
fn other_version(line: &str) -> Option<(u64, String)> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let version = line.get("version")?.as_u64()?;
    let is_other = line.get("line")?.as_str()? == "open" && version != u64::from(VERSION);
    let iolab =
        line.get("iolab").and_then(serde_json::Value::as_str).unwrap_or("of unknown version");
    let iolab: String = iolab.chars().filter(|sign| !sign.is_control()).take(40).collect();
    is_other.then(|| (version, format!("iolab {iolab}")))
}

/// Length without a torn end.
fn whole_bytes(text: &[u8]) -> usize {
    text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}
