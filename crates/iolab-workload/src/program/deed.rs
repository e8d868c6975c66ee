//! Action of a step: one row per kind, with the fields that it takes.

use crate::operation::OperationKind;

iolab_model::registry! {
    /// Action of a node of a program.
    pub enum Deed as "step" {
        /// Read data.
        Read = "read",
        /// Write data.
        Write = "write",
        /// fsync(2).
        Fsync = "fsync",
        /// fdatasync(2).
        Fdatasync = "fdatasync",
        /// `sync_file_range(2)`.
        SyncFileRange = "sync_file_range",
        /// msync(2), waiting.
        Msync = "msync",
        /// msync(2), not waiting.
        MsyncAsync = "msync_async",
        /// fflush(3).
        FlushStream = "flush_stream",
        /// Make the names in a directory durable.
        SyncDirectory = "sync_directory",
        /// sync(2).
        SyncAll = "sync_all",
        /// Open a file that exists.
        Open = "open",
        /// Close a slot.
        Close = "close",
        /// Make a file and open it.
        Create = "create",
        /// Remove a file.
        Unlink = "unlink",
        /// Read a file's attributes.
        Stat = "stat",
        /// Give a file another name.
        Rename = "rename",
        /// Give a file a second name.
        Link = "link",
        /// Make a symbolic link to a file.
        SymbolicLink = "symbolic_link",
        /// List a directory.
        ListDirectory = "list_directory",
        /// Make a directory.
        MakeDirectory = "make_directory",
        /// Remove a directory.
        RemoveDirectory = "remove_directory",
        /// Set a file's length.
        Truncate = "truncate",
        /// Allocate blocks without writing.
        Allocate = "allocate",
        /// Make a range a hole.
        Punch = "punch",
        /// Make a range read as zeros.
        Zero = "zero",
        /// Say that nobody needs a range.
        Discard = "discard",
        /// Copy a range inside the target.
        Copy = "copy",
        /// Read the value of a key.
        Get = "get",
        /// Insert or overwrite the value of a key.
        Put = "put",
        /// Read the value of a key, change it, write it back.
        Modify = "modify",
        /// Delete a key.
        Delete = "delete",
        /// Read the values of several keys that follow each other.
        Scan = "scan",
        /// Pause.
        Think = "think",
        /// Keep the processor busy.
        Burn = "burn",
        /// Add to a semaphore.
        Post = "post",
        /// Take from a semaphore, waiting until there is enough.
        Wait = "wait",
        /// Wait until all workers that come to a barrier have come.
        Barrier = "barrier",
        /// Wait until few enough operations are under way.
        Await = "await",
        /// Take events from a source of a steady rate, waiting until there are enough.
        Limit = "limit",
        /// End the worker, under a condition.
        Finish = "finish",
        /// Its steps, one after the other.
        Sequence = "sequence",
        /// One of its steps, by weight.
        Choose = "choose",
        /// Its steps, so many times, or for ever.
        Repeat = "repeat",
        /// Its steps, with variables of its own and a latency of the whole.
        Composite = "composite",
    }
}

/// Kinds of operations, as triggers and records name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Moves data of a file; `true` writes.
    Transfer(bool),
    /// Makes something durable.
    Sync,
    /// Works on names, lengths and blocks of an open or named file.
    Name,
    /// Works on keys; the first is whether it reads, the second whether it writes.
    KeyValue(bool, bool),
    /// Time that passes.
    Time,
    /// Semaphores, barriers and operations under way.
    Meeting,
    /// Other nodes.
    Control,
}

impl Deed {
    /// Group that it belongs to.
    pub const fn group(self) -> Group {
        match self {
            Self::Read => Group::Transfer(false),
            Self::Write | Self::Copy => Group::Transfer(true),
            Self::Fsync
            | Self::Fdatasync
            | Self::SyncFileRange
            | Self::Msync
            | Self::MsyncAsync
            | Self::FlushStream
            | Self::SyncDirectory
            | Self::SyncAll => Group::Sync,
            Self::Open
            | Self::Close
            | Self::Create
            | Self::Unlink
            | Self::Stat
            | Self::Rename
            | Self::Link
            | Self::SymbolicLink
            | Self::ListDirectory
            | Self::MakeDirectory
            | Self::RemoveDirectory
            | Self::Truncate
            | Self::Allocate
            | Self::Punch
            | Self::Zero
            | Self::Discard => Group::Name,
            Self::Get | Self::Scan => Group::KeyValue(true, false),
            Self::Put | Self::Delete => Group::KeyValue(false, true),
            Self::Modify => Group::KeyValue(true, true),
            Self::Think | Self::Burn => Group::Time,
            Self::Post | Self::Wait | Self::Barrier | Self::Await | Self::Limit | Self::Finish => {
                Group::Meeting
            }
            Self::Sequence | Self::Choose | Self::Repeat | Self::Composite => Group::Control,
        }
    }

    /// Tell whether it changes what a file holds, or takes the file or its name away: data, length
    /// and blocks, and also blocks that only stop being kept. Of what works on names, all does but
    /// what is listed.
    pub const fn changes_files(self) -> bool {
        match self.group() {
            Group::Transfer(writes) | Group::KeyValue(_, writes) => writes,
            Group::Name => !matches!(
                self,
                Self::Open
                    | Self::Close
                    | Self::Stat
                    | Self::Link
                    | Self::SymbolicLink
                    | Self::ListDirectory
                    | Self::MakeDirectory
                    | Self::RemoveDirectory
            ),
            Group::Sync | Group::Time | Group::Meeting | Group::Control => false,
        }
    }

    /// Tell whether it holds other nodes.
    pub fn is_control(self) -> bool {
        self.group() == Group::Control
    }

    /// Tell whether it is an operation of its own in the record, with a latency.
    pub fn is_operation(self) -> bool {
        !matches!(self.group(), Group::Time | Group::Meeting | Group::Control)
            || self == Self::Composite
    }

    /// Its kind in the record.
    pub fn kind(self) -> OperationKind {
        match self.group() {
            Group::Transfer(false) => OperationKind::Read,
            Group::Transfer(true) => OperationKind::Write,
            Group::Sync => OperationKind::Sync,
            Group::Name => OperationKind::Name,
            Group::KeyValue(..) => OperationKind::KeyValue,
            Group::Time | Group::Meeting | Group::Control => OperationKind::Other,
        }
    }

    /// Tell whether it works on an open file.
    pub(super) fn uses_handle(self) -> bool {
        matches!(
            self,
            Self::Read
                | Self::Write
                | Self::Fsync
                | Self::Fdatasync
                | Self::SyncFileRange
                | Self::Msync
                | Self::MsyncAsync
                | Self::FlushStream
                | Self::Truncate
                | Self::Allocate
                | Self::Punch
                | Self::Zero
                | Self::Discard
                | Self::Copy
        )
    }

    /// Tell whether it opens a file.
    pub(super) fn opens(self) -> bool {
        matches!(self, Self::Open | Self::Create)
    }

    /// Tell whether it works on a file by name.
    pub(super) fn uses_name(self) -> bool {
        matches!(
            self,
            Self::Unlink
                | Self::Stat
                | Self::Rename
                | Self::Link
                | Self::SymbolicLink
                | Self::ListDirectory
                | Self::MakeDirectory
                | Self::RemoveDirectory
                | Self::SyncDirectory
        )
    }

    /// Tell whether the names are those of directories.
    pub(super) fn is_of_directories(self) -> bool {
        matches!(
            self,
            Self::ListDirectory | Self::MakeDirectory | Self::RemoveDirectory | Self::SyncDirectory
        )
    }

    /// Tell whether it needs a second name.
    pub(super) fn has_second_file(self) -> bool {
        matches!(self, Self::Rename | Self::Link | Self::SymbolicLink)
    }

    /// Tell whether it is about a range of a file.
    pub(super) fn has_range(self) -> bool {
        matches!(
            self,
            Self::Read
                | Self::Write
                | Self::SyncFileRange
                | Self::Msync
                | Self::MsyncAsync
                | Self::Allocate
                | Self::Punch
                | Self::Zero
                | Self::Discard
                | Self::Copy
        )
    }
}
