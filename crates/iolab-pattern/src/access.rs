//! Accesses of programs to files: the form that system calls and block events share.

use schemars::JsonSchema;
use serde::Serialize;

/// Number of a file in the list of files.
pub type FileId = usize;

/// A stream of accesses: those through one open file description, whichever tasks share it. The
/// kernel keeps one state of read-ahead for each (`f_ra` of `struct file`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccessStream {
    /// File.
    pub file: FileId,
    /// Open file description; 0 of block events.
    pub description: usize,
}

/// One transfer.
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAccess {
    /// Stream.
    pub stream: AccessStream,
    /// Thread; of block events the process.
    pub task: u32,
    /// True of a write.
    pub is_write: bool,
    /// First byte; None at the end of a file whose size is not known.
    pub offset: Option<u64>,
    /// Bytes that were transferred.
    pub bytes: u64,
    /// Bytes that were asked for.
    pub requested: u64,
    /// Beginning, if it is known.
    pub begin_ns: Option<u64>,
    /// End, if it is known.
    pub end_ns: Option<u64>,
    /// True if the position was set by a call of its own just before.
    pub is_sought: bool,
    /// True if it goes around the page cache.
    pub is_direct: bool,
    /// Time of its task in other calls about files since its last access.
    pub aside_ns: u64,
    /// True if the call itself told the place: tasks that do so share no position.
    pub is_placed: bool,
}

/// Way in which a program waits for stable storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StableWait {
    /// fsync(2) and its like: the file with all that is known of it.
    Fsync,
    /// fdatasync(2): what is needed to read its data again.
    Fdatasync,
    /// Request of a block trace that empties the cache of the device.
    Flush,
    /// A write that returns when the data are there: `O_DSYNC`, `RWF_DSYNC`.
    DataWrite,
    /// A write that returns when all is there: `O_SYNC`, `RWF_SYNC`.
    Write,
    /// `sync_file_range(2)`, which empties no cache of a device: no wait for stable storage.
    Range,
}

/// Numbers of waits for stable storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StableWaits {
    /// Calls of fsync(2) and its like.
    pub fsync: u64,
    /// Calls of fdatasync(2).
    pub fdatasync: u64,
    /// Requests of a block trace that empty the cache of the device.
    pub flushes: u64,
    /// Writes with `O_DSYNC`.
    pub dsync_writes: u64,
    /// Writes with `O_SYNC`.
    pub sync_writes: u64,
    /// Calls of `sync_file_range(2)`, which are no waits for stable storage.
    pub ranges: u64,
}

impl StableWaits {
    /// Adds one.
    pub const fn add(&mut self, wait: StableWait) {
        *match wait {
            StableWait::Fsync => &mut self.fsync,
            StableWait::Fdatasync => &mut self.fdatasync,
            StableWait::Flush => &mut self.flushes,
            StableWait::DataWrite => &mut self.dsync_writes,
            StableWait::Write => &mut self.sync_writes,
            StableWait::Range => &mut self.ranges,
        } += 1;
    }

    /// These but for `others`, which are some of them.
    #[must_use]
    pub const fn without(&self, others: &Self) -> Self {
        Self {
            fsync: self.fsync.saturating_sub(others.fsync),
            fdatasync: self.fdatasync.saturating_sub(others.fdatasync),
            flushes: self.flushes.saturating_sub(others.flushes),
            dsync_writes: self.dsync_writes.saturating_sub(others.dsync_writes),
            sync_writes: self.sync_writes.saturating_sub(others.sync_writes),
            ranges: self.ranges.saturating_sub(others.ranges),
        }
    }

    /// Number of all waits for stable storage.
    pub const fn total(&self) -> u64 {
        self.calls() + self.writes()
    }

    /// Number of calls of their own.
    pub const fn calls(&self) -> u64 {
        self.fsync + self.fdatasync + self.flushes
    }

    /// Number of writes that wait.
    pub const fn writes(&self) -> u64 {
        self.dsync_writes + self.sync_writes
    }
}

/// Numbers of calls of `fallocate(2)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Allocations {
    /// Calls that allocate room and make the file as long as that reaches.
    pub extending: u64,
    /// Calls that allocate room and leave the length as it is (`FALLOC_FL_KEEP_SIZE`).
    pub keeping: u64,
    /// Calls that clear a range, or take one out or in: holes, zeroes.
    pub clearing: u64,
}

impl Allocations {
    /// Bits of include/uapi/linux/falloc.h for anything but plain room: `PUNCH_HOLE`,
    /// `COLLAPSE_RANGE`, `ZERO_RANGE`, `INSERT_RANGE`, `WRITE_ZEROES`.
    pub const CLEARING: i64 = 0x02 | 0x08 | 0x10 | 0x20 | 0x80;
    /// The same as names are printed.
    pub const CLEARING_NAMES: [&[u8]; 4] = [b"PUNCH_HOLE", b"COLLAPSE", b"ZERO", b"INSERT"];
    /// `KEEP_SIZE` of the same header.
    pub const KEEPING: i64 = 0x01;
    /// The same as its name is printed.
    pub const KEEPING_NAME: &[u8] = b"KEEP_SIZE";

    /// Number of calls that allocate room.
    pub const fn of_room(&self) -> u64 {
        self.extending + self.keeping
    }
}

/// Something that happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A transfer.
    Access(FileAccess),
    /// The file was asked to be on stable storage: `fsync` and its like, or a write that waits.
    Synced(FileId, StableWait),
    /// All that was written was asked to be on stable storage: sync(2).
    AllSynced,
    /// Its content was thrown away: cut to nothing, or removed.
    Emptied(FileId),
    /// The position was set and not used before the next time it was set, or the end.
    SoughtInVain(FileId),
    /// The last descriptor of a stream was closed: nothing more comes of it.
    Closed(AccessStream),
    /// Requests of a queue that are under way at once.
    Depth(FileId, u64),
    /// So many nanoseconds of a task in a call about files that moves nothing: no pause.
    Busy(u32, u64),
}

/// A file, or a device.
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Path, or words if nobody knows it; any bytes.
    pub name: Vec<u8>,
    /// True if nobody knows its path.
    pub is_unnamed: bool,
    /// Names that it was given beside its first one.
    pub other_names: u32,
    /// Size, as far as the calls tell it.
    pub size: Option<u64>,
    /// True if no call opened it: offsets count from where it was.
    pub is_opened_before: bool,
    /// Room that was allocated before it was written, and ranges that were cleared.
    pub allocations: Allocations,
    /// Accesses of several buffers at once (`readv` and its like).
    pub vectored: u64,
    /// Bytes of the largest part of it that was mapped into memory.
    pub mapped_bytes: u64,
    /// True if it was mapped into memory.
    pub is_mapped: bool,
    /// True if it was mapped as code: a program or a library.
    pub is_code: bool,
}
