//! A recorded stream as the program of a tenant: its file, the files it works on, what it holds.
//!
//! The stream stays in its file: a description holds a summary ([`RecordedContent`]), by which
//! everything is checked before anything is touched, and the worker takes operations from a
//! [`RecordedStream`] as it goes. Left out: operations on names, lengths and keys; streams of
//! several workers.

use core::num::NonZeroU64;
use std::path::PathBuf;

use iolab_model::{Bytes, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::{Amount, Spread};
use super::choice::{FileBy, FileChoice, WhenNone};
use super::deed::Deed;
use super::description::Program;
use super::node::{DataPath, Node};
use super::place::Place;
use super::recorded_identity::RecordedIdentity;

/// Deeds that an operation of a recorded stream can do.
pub const RECORDED_DEEDS: [Deed; 5] =
    [Deed::Read, Deed::Write, Deed::Fsync, Deed::Fdatasync, Deed::Discard];

iolab_model::registry! {
    /// Format of the file of a recorded stream.
    pub enum RecordedFormat as "format of a recorded stream" {
        /// iolab's own text: `TIME DOES FILE [AT LENGTH] [after NUMBER ...]`.
        Iolab = "iolab",
        /// fio's iolog, version 2 or 3.
        Iolog = "iolog",
        /// blktrace(8) of one or more devices, in the order of time: `blkparse -d FILE`.
        Blktrace = "blktrace",
    }
}

/// A recorded stream that a worker does again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The file; a whole path. In a workload file also one from that file's directory on.
    pub file: PathBuf,
    /// Its format.
    #[serde(default = "own_format")]
    pub format: RecordedFormat,
    /// Set of files that it works on; file 0 of the stream is the first of the set.
    pub set: String,
    /// Operations that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<Deed>,
    /// Number by which places are divided; lengths stay.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub at_divisor: NonZeroU64,
    /// Unit to whose multiples places are rounded down.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub at_unit_bytes: NonZeroU64,
    /// True if operations on all of its files are done on the first one.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_one_file: bool,
    /// Path by which its files are reached, where a step does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<DataPath>,
    /// Contents of the file in numbers; the reader of the workload file adds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<RecordedContent>,
}

fn own_format() -> RecordedFormat {
    RecordedFormat::Iolab
}

const fn one() -> NonZeroU64 {
    NonZeroU64::MIN
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_one(number: &NonZeroU64) -> bool {
    *number == NonZeroU64::MIN
}

impl Recorded {
    /// A recording whose operations are all done as they stand there, on the files of a set.
    pub fn plain(file: PathBuf, format: RecordedFormat, set: &str) -> Self {
        Self {
            file,
            format,
            set: set.to_owned(),
            skip: Vec::new(),
            at_divisor: one(),
            at_unit_bytes: one(),
            is_one_file: false,
            path: None,
            content: None,
        }
    }
}

/// Contents of a recorded stream in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedContent {
    /// Operations.
    pub ops: u64,
    /// Files that it names; the largest number and one.
    pub files: u64,
    /// Bytes that are read.
    pub read_bytes: Bytes,
    /// Bytes that are written.
    pub written_bytes: Bytes,
    /// Length of the shortest read, write or discard; 0 if there is none.
    pub least_bytes: Bytes,
    /// Length of the longest one.
    pub most_bytes: Bytes,
    /// Largest number that divides all places and lengths; 0 if there are none.
    pub grain_bytes: Bytes,
    /// End of the range that reaches furthest into its file.
    pub end_bytes: Bytes,
    /// Time of the last operation, from the beginning on.
    pub duration_ns: Ns,
    /// Deeds of its operations.
    pub does: Vec<Deed>,
    /// Size and digest of the file.
    pub identity: RecordedIdentity,
}

impl RecordedContent {
    /// Sizes of its reads, writes and discards.
    fn sizes(&self) -> Amount {
        if self.least_bytes == self.most_bytes {
            return Amount::Constant(self.most_bytes.0);
        }
        let (from, to) = (self.least_bytes.0, self.most_bytes.0);
        Amount::Drawn(Spread::Uniform { from, to, step: self.grain_bytes.0 })
    }
}

impl Program {
    /// Adds to the steps of a recorded program what follows from the recording: a step for each
    /// kind of operation if there are no steps, and files, places and sizes that they do not say.
    pub fn complete_recorded(&mut self) {
        let Some(recorded) = &self.recorded else { return };
        let content = recorded.content.clone().unwrap_or_default();
        if self.steps.is_empty() {
            let occurs = |does: &Deed| content.does.contains(does);
            self.steps = RECORDED_DEEDS.into_iter().filter(occurs).map(Node::new).collect();
        }
        for step in &mut self.steps {
            step.file.get_or_insert_with(|| FileChoice {
                by: FileBy::Existing,
                set: Some(recorded.set.clone()),
                pick: None,
                slot: None,
                step: None,
                local: None,
                stay: 0,
                is_own: false,
                when_none: WhenNone::Fail,
            });
            step.path = step.path.or(recorded.path);
            if step.does.has_range() {
                step.at.get_or_insert_with(Place::default);
                step.size_bytes.get_or_insert_with(|| content.sizes());
            }
        }
    }
}
