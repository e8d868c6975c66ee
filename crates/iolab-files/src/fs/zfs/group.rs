//! Transaction groups: the one that is open, one that is closed, one that is being written.

use std::collections::{BTreeMap, BTreeSet};

use iolab_model::Ns;

use super::metadata::MetaKey;
use super::node::NodeState;
use crate::api::block::{FileRun, Place};
use crate::api::context::Tid;
use crate::api::file_system::JobId;

/// Calls that wrote neighbouring data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// Bytes of each.
    pub bytes: u64,
    /// Their number.
    pub count: u64,
}

/// A change of a node.
#[derive(Clone, Debug)]
pub enum Change {
    /// There is a node with so many names.
    Links(u32, u32),
    /// A directory has so many entries.
    Entries(u32, u64),
    /// A file has another length; its blocks from one on are gone.
    Cut(u32, u64, u64),
    /// Blocks of a file are gone.
    Hole(FileRun),
    /// Data were written, and the file is at least so long.
    Write(FileRun, Calls, u64),
    /// Blocks of a file have a place.
    Place(FileRun, Place),
    /// A node is gone.
    Gone(u32),
}

impl Change {
    /// Tell whether the intent log can hold it.
    pub const fn is_logged(&self) -> bool {
        !matches!(self, Self::Place(..) | Self::Gone(_))
    }

    /// Carries it out.
    pub fn apply(&self, nodes: &mut BTreeMap<u32, NodeState>) {
        match self {
            Self::Links(number, links) => nodes.entry(*number).or_default().links = *links,
            Self::Entries(number, entries) => nodes.entry(*number).or_default().entries = *entries,
            Self::Cut(number, size, keeps) => {
                if let Some(node) = nodes.get_mut(number) {
                    node.size = *size;
                    node.places.clear(*keeps, u64::MAX - *keeps);
                }
            }
            Self::Hole(run) => {
                if let Some(node) = nodes.get_mut(&run.node.0) {
                    node.places.clear(run.first, run.count);
                }
            }
            Self::Write(run, _, size) => {
                if let Some(node) = nodes.get_mut(&run.node.0) {
                    node.size = node.size.max(*size);
                }
            }
            Self::Place(run, place) => {
                if let Some(node) = nodes.get_mut(&run.node.0) {
                    node.places.set(run.first, run.count, *place);
                }
            }
            Self::Gone(number) => {
                nodes.remove(number);
            }
        }
    }
}

/// State of a change in the intent log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InLog {
    /// Not there.
    No,
    /// On its way; true: it names the places of data.
    Going(JobId, bool),
    /// There; of a write also the places of the data that the log only names.
    Done(Vec<(FileRun, Place)>),
}

/// A change with its number.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number.
    pub tid: Tid,
    /// The change.
    pub change: Change,
    /// State of it in the intent log.
    pub log: InLog,
}

/// A transaction group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Time of its first change.
    pub since: Option<Ns>,
    /// The last change in it.
    pub last: Tid,
    /// Bytes of records that it has to write.
    pub bytes: u64,
    /// Records to be written, by file.
    pub dirty: BTreeMap<u32, BTreeSet<u64>>,
    /// Everything that it changed, in order.
    pub entries: Vec<Entry>,
    /// Entries before this one need no record in the log any more.
    pub logged: usize,
    /// Metadata that it changed, but for those that lead to its records.
    pub metadata: BTreeSet<MetaKey>,
    /// Metadata that it has written, with their places.
    pub written: Vec<(MetaKey, Vec<u64>)>,
    /// Blocks that are free once it is durable.
    pub freed: Vec<(u64, u64)>,
}

impl Group {
    /// Tell whether nothing was changed.
    pub const fn is_empty(&self) -> bool {
        self.since.is_none()
    }

    /// Entries of which some may need a record in the log.
    pub fn unlogged(&mut self) -> &mut [Entry] {
        &mut self.entries[self.logged..]
    }

    /// Passes over entries that need no record in the log any more.
    pub fn note_logged(&mut self) {
        let is_done =
            |entry: &Entry| matches!(entry.log, InLog::Done(_)) || !entry.change.is_logged();
        while self.entries.get(self.logged).is_some_and(is_done) {
            self.logged += 1;
        }
    }
}

/// Part of a group's writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Data.
    Data,
    /// Metadata.
    Metadata,
    /// The label that makes it durable.
    Label,
}

/// A group that is being written.
#[derive(Clone, Debug)]
pub struct Syncing {
    /// The group.
    pub group: Group,
    /// The part that is on its way, or next if there is no job.
    pub stage: Stage,
    /// The job of that part.
    pub job: Option<JobId>,
    /// Time at which its writing began.
    pub since: Ns,
    /// Bytes of it that have not reached the device.
    pub left: u64,
}
