//! `Op`: one call a worker makes, complete for every dialect.
//!
//! An op names an opened *handle*, never a file name or a descriptor; how the file is accessed
//! (plain, direct, mapped, stdio, append) belongs to the handle ([`OpenHow`]), so one lane can hold
//! several kinds at once. Data never travels in an op: a lane owns its buffers, one per queue slot.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Ns};

/// Index of an opened file in a lane's table; chosen by the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub u32);

/// Index of a path in the file set that the lane was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId(pub u32);

/// Queue slot of a submission: unique among the ops in flight on a lane, below its depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u32);

/// Begin of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// At this byte (pread, pwrite, or lseek and read).
    At(Bytes),
    /// At the handle's own file position, which the transfer advances (read, write).
    Current,
    /// A write goes to the end of the file, wherever that is by then (`RWF_APPEND`).
    End,
}

/// Per-transfer flags, the RWF family of preadv2(2) and pwritev2(2).
///
/// In descriptions of workloads they are a list of [`FlagName`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Vec<FlagName>", into = "Vec<FlagName>")]
pub struct TransferFlags(pub u16);

impl TransferFlags {
    /// Nothing special.
    pub const NONE: Self = Self(0);
    /// Every flag.
    pub const ALL: Self = Self(31);
    /// Poll for the completion (`RWF_HIPRI`).
    pub const HIGH_PRIORITY: Self = Self(1);
    /// This write is durable when it returns, data only (`RWF_DSYNC`).
    pub const DATA_SYNC: Self = Self(2);
    /// This write is durable when it returns (`RWF_SYNC`).
    pub const SYNC: Self = Self(4);
    /// Fail rather than block (`RWF_NOWAIT`).
    pub const NO_WAIT: Self = Self(8);
    /// Do not leave the pages in the cache (`RWF_DONTCACHE`).
    pub const DO_NOT_CACHE: Self = Self(16);

    /// Tell whether all of `other`'s bits are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of flags.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Tell whether nothing special is asked for.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl From<TransferFlags> for Vec<FlagName> {
    fn from(flags: TransferFlags) -> Self {
        FlagName::ALL.iter().copied().filter(|name| flags.contains(name.flag())).collect()
    }
}

impl From<Vec<FlagName>> for TransferFlags {
    fn from(names: Vec<FlagName>) -> Self {
        names.into_iter().fold(Self::NONE, |flags, name| flags.with(name.flag()))
    }
}

crate::registry! {
    /// A transfer flag by the second half of its name in the kernel's headers.
    pub enum FlagName as "transfer flag" {
        /// `RWF_HIPRI`.
        HighPriority = "hipri",
        /// `RWF_DSYNC`.
        DataSync = "dsync",
        /// `RWF_SYNC`.
        Sync = "sync",
        /// `RWF_NOWAIT`.
        NoWait = "nowait",
        /// `RWF_DONTCACHE`.
        DoNotCache = "dontcache",
    }
}

impl FlagName {
    const fn flag(self) -> TransferFlags {
        match self {
            Self::HighPriority => TransferFlags::HIGH_PRIORITY,
            Self::DataSync => TransferFlags::DATA_SYNC,
            Self::Sync => TransferFlags::SYNC,
            Self::NoWait => TransferFlags::NO_WAIT,
            Self::DoNotCache => TransferFlags::DO_NOT_CACHE,
        }
    }
}

/// A read or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// The opened file.
    pub handle: Handle,
    /// Begin of the transfer.
    pub at: Position,
    /// Number of bytes; a lane repeats short transfers until done or end of file.
    pub length: Bytes,
    /// Number of equal parts of a vectored call; 0 or 1 is a plain call.
    pub vectors: u16,
    /// Per-call flags.
    pub flags: TransferFlags,
    /// Most bytes of one system call; 0: all in one. A transfer of several calls is one op.
    pub call_bytes: u32,
    /// Data of this read are not compared with what was written, where others are.
    pub is_unchecked: bool,
    /// A thread of the kernel does it, whether it would have to wait or not (`IOSQE_ASYNC`).
    pub is_of_kernel_thread: bool,
}

/// Way from a handle to its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Through the page cache.
    #[default]
    Plain,
    /// `O_DIRECT`: past the page cache, aligned.
    Direct,
    /// Appending (`O_APPEND`).
    Append,
    /// Memory mapped.
    Mapped,
    /// A stdio stream with its own buffer.
    Stdio,
}

impl Access {
    /// Files of an engine of this name, unless a worker asks for something else. Every target has
    /// the engines, the simulated one as well.
    pub fn of_engine(name: &str) -> Self {
        match name {
            "mmap" => Self::Mapped,
            "stdio" => Self::Stdio,
            _ => Self::Plain,
        }
    }
}

/// Promise of a write that returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Durability {
    /// Nothing.
    #[default]
    #[serde(rename = "none")]
    None,
    /// `O_SYNC`: data and metadata are durable.
    #[serde(rename = "sync")]
    Sync,
    /// `O_DSYNC`: data and what is needed to read it are durable.
    #[serde(rename = "dsync")]
    DataSync,
}

/// Lifetime that the data of a file are said to have (`F_SET_RW_HINT`, fcntl(2)): devices may put
/// together what dies together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteLife {
    /// Nothing is said: what was said before stays.
    #[default]
    Unsaid,
    /// No lifetime (`RWH_WRITE_LIFE_NONE`).
    None,
    /// `RWH_WRITE_LIFE_SHORT`.
    Short,
    /// `RWH_WRITE_LIFE_MEDIUM`.
    Medium,
    /// `RWH_WRITE_LIFE_LONG`.
    Long,
    /// `RWH_WRITE_LIFE_EXTREME`.
    Extreme,
}

/// Permissions of a file that is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Permissions {
    /// 0640, as `IOzone` has it.
    #[default]
    Group,
    /// 0600.
    Owner,
    /// 01600: a file to swap to (mkfile of Solaris and illumos).
    OwnerSticky,
}

impl Permissions {
    /// As open(2) takes them.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Group => 0o640,
            Self::Owner => 0o600,
            Self::OwnerSticky => 0o1600,
        }
    }
}

/// Way of opening a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct OpenHow {
    /// Page cache, direct, mapped ...
    pub access: Access,
    /// Meaning of a returning write.
    pub durability: Durability,
    /// Opened for reading.
    pub is_readable: bool,
    /// Opened for writing.
    pub is_writable: bool,
    /// Cut to length zero on opening.
    pub is_truncating: bool,
    /// Buffer of a stdio stream (setvbuf(3)); 0 leaves the library's own.
    pub stream_buffer_bytes: Bytes,
    /// Permissions of a file that it makes.
    pub permissions: Permissions,
    /// Lifetime of what is written into it.
    pub write_life: WriteLife,
    /// The process keeps in mind, for as long as it lives, that it made the file.
    pub is_remembered: bool,
}

/// Kind of a byte-range lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// Many readers.
    Shared,
    /// One writer.
    Exclusive,
    /// Give it back.
    Release,
}

crate::registry! {
    /// Use of a mapping or an open file to come, by the second half of its name in the kernel's
    /// headers.
    pub enum Advice as "advice" {
        /// `MADV_NORMAL`, `POSIX_FADV_NORMAL`: an open file takes its device's read-ahead.
        Normal = "normal",
        /// `MADV_RANDOM`.
        Random = "random",
        /// `MADV_SEQUENTIAL`.
        Sequential = "sequential",
        /// `MADV_DONTNEED`.
        DontNeed = "dontneed",
        /// `MADV_WILLNEED`.
        WillNeed = "willneed",
    }
}

/// Way in which a range of a file gives its blocks back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deallocation {
    /// The range becomes a hole (fallocate(2), `PUNCH_HOLE`).
    Punch,
    /// The range reads as zeros and keeps its blocks (fallocate(2), `ZERO_RANGE`).
    Zero,
    /// The device is told that nobody needs the range (`BLKDISCARD`); in a file it becomes a hole,
    /// which a file system mounted with `discard` passes on.
    Discard,
}

/// Parts of a `sync_file_range(2)`; usually all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RangeSync {
    /// Waits first for what is being written already (`WAIT_BEFORE`).
    pub waits_before: bool,
    /// Begins to write what is dirty (`WRITE`).
    pub writes: bool,
    /// Waits at the end until all of it is written (`WAIT_AFTER`).
    pub waits_after: bool,
}

impl Default for RangeSync {
    fn default() -> Self {
        Self { waits_before: true, writes: true, waits_after: true }
    }
}

/// A request to a key-value store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyValueKind {
    /// Read the value of a key.
    Get,
    /// Insert or overwrite.
    Put,
    /// Read, change, write back.
    Modify,
    /// Delete a key.
    Delete,
    /// Read this many keys from a key on.
    Scan {
        /// Number of records.
        count: u32,
    },
}

/// One call a worker makes. Complete from the start, so that no dialect has to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are described by their types")]
pub enum Op {
    /// Read data.
    Read(Transfer),
    /// Write data.
    Write(Transfer),
    /// fsync(2).
    Fsync { handle: Handle },
    /// fdatasync(2).
    Fdatasync { handle: Handle },
    /// msync(2) of a mapped handle.
    Msync { handle: Handle, at: Bytes, length: Bytes, is_async: bool },
    /// `sync_file_range(2)`: start write-back of a range, wait for it, or both.
    SyncFileRange { handle: Handle, at: Bytes, length: Bytes, how: RangeSync },
    /// Create a file that must not exist, and open it.
    Create { path: PathId, handle: Handle, how: OpenHow },
    /// Open an existing file.
    Open { path: PathId, handle: Handle, how: OpenHow },
    /// Close a handle.
    Close { handle: Handle },
    /// Remove a file.
    Unlink { path: PathId },
    /// Rename a file.
    Rename { from: PathId, to: PathId },
    /// Read a file's attributes.
    Stat { path: PathId },
    /// Read the attributes of the file that a name leads to, through symbolic links.
    StatTarget { path: PathId },
    /// List a directory.
    ReadDirectory { path: PathId },
    /// Read on in a directory: up to `count` names, from its beginning unless the op before was one
    /// of the same directory and found that many. The names are the paths behind those of the
    /// lane's table until the next op of this kind; the answer is how many there are.
    NextNames { path: PathId, count: u32 },
    /// Create a directory.
    MakeDirectory { path: PathId },
    /// Remove an empty directory.
    RemoveDirectory { path: PathId },
    /// Set a file's length.
    Truncate { handle: Handle, length: Bytes },
    /// Allocate blocks without writing (fallocate(2)): the file becomes as long as they reach, or
    /// keeps its length (`KEEP_SIZE`).
    Allocate { handle: Handle, at: Bytes, length: Bytes, keeps_length: bool },
    /// Give the blocks of a range back.
    Deallocate { handle: Handle, at: Bytes, length: Bytes, how: Deallocation },
    /// Copy a range from one file to another inside the target (`copy_file_range(2)`).
    Copy { from: Handle, from_at: Bytes, to: Handle, to_at: Bytes, length: Bytes },
    /// Give a file a second name, or make a symbolic link to it.
    Link { from: PathId, to: PathId, is_symbolic: bool },
    /// Make the names in a directory durable: open, fsync(2), close.
    SyncDirectory { path: PathId },
    /// Make everything durable (sync(2)).
    SyncAll,
    /// Map a file's first bytes into memory.
    Map { handle: Handle, length: Bytes },
    /// Undo the mapping.
    Unmap { handle: Handle },
    /// Tell the kernel how a mapping or an open file will be used (madvise(2), `posix_fadvise(2)`).
    Advise { handle: Handle, advice: Advice },
    /// Copy from or to mapped memory.
    Touch { handle: Handle, at: Bytes, length: Bytes, is_write: bool },
    /// Read from a stdio stream at its position.
    StreamRead { handle: Handle, length: Bytes },
    /// Write to a stdio stream at its position.
    StreamWrite { handle: Handle, length: Bytes },
    /// fflush(3).
    StreamFlush { handle: Handle },
    /// Take or give back a byte-range lock.
    Lock { handle: Handle, kind: LockKind, at: Bytes, length: Bytes },
    /// A request to the lane's key-value store. The key is a number: what its bytes are is the
    /// store's business, and numbers that are larger come later in a scan.
    KeyValue { kind: KeyValueKind, key: u64, length: Bytes },
    /// Do nothing for a while; in real time the lane blocks its own worker.
    Think { duration: Ns },
    /// Keep the worker's processor busy for a while.
    Burn { duration: Ns },
}

/// Histogram that an op's latency goes into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OpClass {
    /// Reads of any kind.
    Read = 0,
    /// Writes of any kind.
    Write = 1,
    /// Flushes of any kind.
    Sync = 2,
    /// Everything else.
    Other = 3,
}

impl Op {
    /// Histogram that this op's latency goes into.
    #[inline]
    pub const fn class(&self) -> OpClass {
        match self {
            Self::Read(_)
            | Self::StreamRead { .. }
            | Self::Touch { is_write: false, .. }
            | Self::KeyValue { kind: KeyValueKind::Get | KeyValueKind::Scan { .. }, .. } => {
                OpClass::Read
            }
            Self::Write(_)
            | Self::StreamWrite { .. }
            | Self::Touch { is_write: true, .. }
            | Self::Copy { .. }
            | Self::KeyValue { .. } => OpClass::Write,
            Self::Fsync { .. }
            | Self::Fdatasync { .. }
            | Self::Msync { .. }
            | Self::SyncFileRange { .. }
            | Self::SyncDirectory { .. }
            | Self::SyncAll
            | Self::StreamFlush { .. } => OpClass::Sync,
            _ => OpClass::Other,
        }
    }

    /// A plain read of `length` bytes at byte `at`.
    #[inline]
    pub const fn read(handle: Handle, at: Bytes, length: Bytes) -> Self {
        Self::Read(Transfer::plain(handle, Position::At(at), length))
    }

    /// A plain write of `length` bytes at byte `at`.
    #[inline]
    pub const fn write(handle: Handle, at: Bytes, length: Bytes) -> Self {
        Self::Write(Transfer::plain(handle, Position::At(at), length))
    }
}

impl Transfer {
    /// One buffer, no flags.
    #[inline]
    pub const fn plain(handle: Handle, at: Position, length: Bytes) -> Self {
        Self {
            handle,
            at,
            length,
            vectors: 1,
            flags: TransferFlags::NONE,
            call_bytes: 0,
            is_unchecked: false,
            is_of_kernel_thread: false,
        }
    }
}

/// An op on its way to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Queue slot; its buffer holds the data.
    pub token: Token,
    /// Time at which the worker meant to start it: under a rate limit the planned instant,
    /// otherwise now.
    pub intended: Ns,
    /// Inside the timed region: counts, and its latency is recorded.
    pub is_timed: bool,
    /// Op to carry out.
    pub op: Op,
}
