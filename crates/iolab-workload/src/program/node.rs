//! A node of a program's tree: a step, or control over other nodes.

use iolab_model::Bytes;
use iolab_model::op::{Access, Advice, Durability, RangeSync, TransferFlags, WriteLife};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::choice::{FileChoice, KeyChoice};
use super::deed::Deed;
use super::events::{Events, Until};
use super::place::Place;
use crate::verify::Verify;

/// A node. What it does decides which fields mean something; a field that means nothing is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Node {
    /// The user's word for it, in records; absent: the name of what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Action of the node.
    pub does: Deed,
    /// Weight of the node, among the steps of a choice.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: f64,
    /// Number of repetitions in a row; absent: once (a repeat: for ever).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Amount>,
    /// Number of operations after which it is done once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Every>,
    /// Its own nodes (sequence, choose, repeat, composite).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Node>,
    /// Variables that are chosen anew each time it begins (composite).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locals: Vec<Local>,
    /// Name of a handle slot of the worker; absent: the slot `0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// Number of slots that such steps of the worker take in turn, the last one first: `0`, `1` and
    /// so on; 0: its own slot alone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rotates: u16,
    /// Slot that is copied from; slot of the file whose size is written (a whole file).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_slot: Option<String>,
    /// Choice of the file; for a step on an open file: whichever it is, it is kept open; with a
    /// slot beside it, the slot's file, which is chosen and opened where the slot is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileChoice>,
    /// Name that the file gets (rename, link, symbolic link).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_file: Option<FileChoice>,
    /// Place in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Place>,
    /// Bytes of the operation; of each part of it, if it is about a whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<Amount>,
    /// True if it is about the whole file: read until its end, written in its full size.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_whole: bool,
    /// Begin of a transfer; absent: `at` where a place is given, else `current`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Positioned>,
    /// Path to the data of a file that it opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<DataPath>,
    /// Promise of a write that returned, of a file that it opens.
    #[serde(default, skip_serializing_if = "is_default")]
    pub durability: Durability,
    /// A file that it opens becomes empty.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_truncating: bool,
    /// A file that it opens is only read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_read_only: bool,
    /// A file that it opens is only written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_write_only: bool,
    /// Advice to the kernel about a file that it opens (`posix_fadvise(2)`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// Lifetime that data written into a file that it opens are said to have (`F_SET_RW_HINT`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_life: WriteLife,
    /// Parts of the call (`sync_file_range`); absent: all of them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub range_sync: RangeSync,
    /// The file stays as long as it is where blocks are allocated (`FALLOC_FL_KEEP_SIZE`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub keeps_length: bool,
    /// Flags of each transfer (preadv2(2), pwritev2(2)).
    #[serde(default, skip_serializing_if = "is_default")]
    pub flags: TransferFlags,
    /// Parts of each transfer, for calls that take several buffers; 0 or 1 is a plain call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub vectors: u16,
    /// Comparison of what the step reads with what was written; absent: as the workload says
    /// (read).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// The next step begins without waiting for its end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_submitted_only: bool,
    /// Number of operations that may still be under way (await).
    #[serde(default, skip_serializing_if = "is_default")]
    pub under_way: u32,
    /// The same as a share of those that were when it began, rounded down (await).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_way_percent: Option<u8>,
    /// An operation of the record also where it only passes time or waits, and where it moves
    /// nothing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_counted: bool,
    /// Events that it takes, waiting until there are enough (limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Events>,
    /// Condition under which it ends the worker (finish).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Choice of the key (get, put, modify, delete, scan).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyChoice>,
    /// Keys of a scan; how much is added to or taken from a semaphore; absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Amount>,
    /// Length of the step (think, burn).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<Amount>,
    /// Name of the semaphore (post, wait).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semaphore: Option<String>,
    /// A post lets everybody go on who waits at that moment, and is lost if nobody does (post,
    /// wait).
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_broadcast: bool,
    /// Left out where its slot is closed (fsync).
    #[serde(default, skip_serializing_if = "is_default")]
    pub skips_closed: bool,
    /// Number above which a post waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_water: Option<u64>,
    /// Name of the barrier (barrier).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barrier: Option<String>,
}

/// "Every so many operations of a kind."
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Every {
    /// Number of ops of this worker.
    pub ops: u64,
    /// A kind (read, write, sync, name, `key_value`), or the id of a step.
    pub of: String,
    /// True if the step is done again as long as the number of those that have begun is such a
    /// multiple.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_repeated: bool,
}

/// A variable of a composite: chosen when it begins, the same until it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Local {
    /// Its name.
    pub name: String,
    /// A file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileChoice>,
    /// A key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyChoice>,
}

/// Begin of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Positioned {
    /// At the place of `at`.
    At,
    /// At the handle's own position.
    Current,
    /// At the end of the file.
    Append,
}

/// Path to the data of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DataPath {
    /// Through the page cache.
    #[default]
    Cached,
    /// Past it (`O_DIRECT`).
    Direct,
    /// Mapped into memory.
    Mapped,
    /// As a stdio stream.
    Stdio,
}

impl DataPath {
    /// As handles know it.
    pub const fn access(self) -> Access {
        match self {
            Self::Cached => Access::Plain,
            Self::Direct => Access::Direct,
            Self::Mapped => Access::Mapped,
            Self::Stdio => Access::Stdio,
        }
    }
}

impl Node {
    /// A node that does this, with no field set.
    pub fn new(does: Deed) -> Self {
        Self {
            id: None,
            does,
            weight: 1.0,
            times: None,
            every: None,
            steps: Vec::new(),
            locals: Vec::new(),
            slot: None,
            rotates: 0,
            from_slot: None,
            file: None,
            to_file: None,
            at: None,
            size_bytes: None,
            is_whole: false,
            position: None,
            path: None,
            durability: Durability::None,
            is_truncating: false,
            is_read_only: false,
            is_write_only: false,
            advice: None,
            write_life: WriteLife::Unsaid,
            range_sync: RangeSync::default(),
            keeps_length: false,
            flags: TransferFlags::NONE,
            vectors: 0,
            verify: None,
            is_submitted_only: false,
            under_way: 0,
            under_way_percent: None,
            is_counted: false,
            events: None,
            until: None,
            key: None,
            count: None,
            duration_ns: None,
            semaphore: None,
            is_broadcast: false,
            skips_closed: false,
            high_water: None,
            barrier: None,
        }
    }

    /// Tell whether it works on an open file.
    pub fn uses_handle(&self) -> bool {
        self.does.uses_handle()
    }

    /// Tell whether the slot's file is chosen and opened where the slot is closed.
    pub(super) fn opens_its_slot(&self) -> bool {
        self.uses_handle() && self.slot.is_some() && self.file.is_some()
    }

    /// Tell whether it is an operation of its own in the record, with a latency.
    pub(super) fn is_operation(&self) -> bool {
        self.does.is_operation() || self.is_counted
    }

    /// Step whose operations its condition or its events are about; absent: those of all workers.
    pub(super) fn counted_step(&self) -> Option<&str> {
        let events = self.events.as_ref().and_then(|events| events.of.as_deref());
        events.or_else(|| self.until.as_ref().and_then(|until| until.of.as_deref()))
    }

    /// Its name in records.
    pub fn name(&self) -> &str {
        self.id.as_deref().unwrap_or(self.does.name())
    }

    /// Begin of its transfers.
    pub fn positioned(&self) -> Positioned {
        let is_transfer = matches!(self.does, Deed::Read | Deed::Write);
        let goes_on = is_transfer && self.at.is_none();
        self.position.unwrap_or(if goes_on { Positioned::Current } else { Positioned::At })
    }

    /// Bytes of the largest buffer that it needs.
    pub(super) fn buffer_bytes(&self) -> Bytes {
        let moves = matches!(self.does, Deed::Read | Deed::Write);
        let is_value = matches!(self.does, Deed::Get | Deed::Put | Deed::Modify);
        let size = self.size_bytes.as_ref().map(Amount::most);
        match size {
            Some(size) if moves || is_value => Bytes(size),
            None if moves && self.is_whole => WHOLE_PIECE,
            _ => Bytes(0),
        }
    }
}

/// Bytes of a part of a whole file, where no size is given.
pub const WHOLE_PIECE: Bytes = Bytes(1 << 20);

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn one() -> f64 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(weight: &f64) -> bool {
    (*weight - 1.0).abs() < f64::EPSILON
}
