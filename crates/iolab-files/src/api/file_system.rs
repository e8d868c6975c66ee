//! `FileSystem`: a decider of names, space and durability.
//!
//! The machine keeps the names (the tree of directories), the pages and the data; a file system
//! decides where blocks go, which metadata an operation touches, and what must be written in which
//! order before something counts as durable. It sees block numbers, sizes and times. It never sees
//! the cache, the queue, the devices or the content of files.
//!
//! A call that fails has changed nothing.

use iolab_model::error::Errno;
use iolab_model::{Bytes, Ns, Sector};

use super::block::{BlockRun, DeviceId, FileRun, Mapped, NodeId};
use super::context::{Context, Tid};
use super::own_cache::{Admission, OwnCache};

/// Sort of a new node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, with the length of its text.
    Link(u32),
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The directory.
    pub directory: NodeId,
    /// The name in it.
    pub name: &'a str,
}

/// A write that is about to change the cache, or a direct one that is about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Blocks that it touches, the first and the last one perhaps in part.
    pub run: FileRun,
    /// Length of the file before it.
    pub size: Bytes,
    /// First byte of it.
    pub start: Bytes,
    /// First byte after it.
    pub end: Bytes,
    /// Past the cache: blocks are needed now.
    pub is_direct: bool,
}

/// Circumstances of a last close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedHandle {
    /// The handle could write.
    pub was_writer: bool,
    /// Handles that can write and remain.
    pub writers: u32,
    /// Handles that remain.
    pub handles: u32,
    /// Blocks of the file that are dirty in the cache.
    pub dirty_blocks: u64,
}

/// Something that reads or writes an inode's attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// stat(2) or open(2): the inode must be in memory.
    Look,
    /// Data were read (access time).
    Read,
    /// Data were written (modification time).
    Written,
}

/// Kind of a change of space that is no write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reshape {
    /// Blocks are given to the range (fallocate(2), mode 0).
    Allocate,
    /// The range becomes a hole.
    Punch,
    /// The range keeps or gets blocks that read as zeros.
    Zero,
}

/// Promise that a call makes when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// fsync(2), `O_SYNC`: data and all metadata of the file.
    Full,
    /// fdatasync(2), `O_DSYNC`: data, and the metadata needed to find them.
    Data,
}

/// Steps that remain for a promise after the file's own data were written and waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncNeed {
    /// None.
    Nothing,
    /// A flush of the device's write cache.
    Flush(DeviceId),
    /// Wait until this transaction is durable; [`FileSystem::poll`] gives the jobs for it.
    Commit(Tid),
}

/// Name of a job; unique among those not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub u64);

/// Process whose name a job's requests carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsAs {
    /// The process whose call asked for it (the last one that waits).
    Caller,
    /// A thread of the file system's own, by its number (one journal thread per file system, log
    /// workers, transaction group threads).
    Thread(u8),
}

/// Work that leads to something durable: steps in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsJob {
    /// Its name, for [`FileSystem::job_done`].
    pub id: JobId,
    /// Process whose name its requests carry.
    pub runs_as: RunsAs,
    /// True if somebody waits for it: its requests are marked so.
    pub is_sync: bool,
    /// Its steps. Those without a [`Step::Wait`] between them are on their way together.
    pub steps: Vec<Step>,
}

/// One step of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write the dirty pages of a range of a file; blocks without a place get one from
    /// [`FileSystem::allocate`] (copy on write: all of them get a new one).
    Data(FileRun),
    /// Write the content of a range of a file, as it is in the cache now, somewhere else (data in
    /// a journal); the pages stay dirty.
    Copy(FileRun, BlockRun),
    /// Write metadata or a journal.
    Write(BlockRun, WriteFlags),
    /// Write a log whose records are not whole blocks: device, first sector, sectors.
    WriteSectors(DeviceId, Sector, u32, WriteFlags),
    /// Write pages of the device that [`super::context::Effects::dirtied`] has named, if dirty
    /// (checkpoint).
    Dirtied(BlockRun),
    /// Flush the device's write cache.
    Flush(DeviceId),
    /// Wait for everything before.
    Wait,
    /// Wait until everything that was sent, by whomever, for the data of a file is written.
    WaitData(NodeId),
    /// Work of a processor.
    Spend(Ns),
}

/// End of a file system that a failure has stopped: nothing becomes durable any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stoppage {
    /// Answer to those who wait for something to become durable when it happens.
    pub waiting: Errno,
    /// Answer to calls that change or flush something, from then on.
    pub changes: Errno,
    /// Answer to calls that read something; none: they go on.
    pub reads: Option<Errno>,
}

impl Stoppage {
    /// Everything fails from now on (Linux xfs: forced shutdown).
    pub const SHUT_DOWN: Self =
        Self { waiting: Errno::EIO, changes: Errno::EIO, reads: Some(Errno::EIO) };
    /// Reads go on (Linux ext4: aborted journal, EROFS of asm-generic/errno-base.h).
    pub const READ_ONLY: Self = Self { waiting: Errno::EIO, changes: Errno(30), reads: None };
    /// Reads go on, everything else fails (`ZFS`: a suspended pool with `failmode=continue`).
    pub const SUSPENDED: Self = Self { waiting: Errno::EIO, changes: Errno::EIO, reads: None };
}

/// Flags of a write of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteFlags {
    /// Flush the device's write cache first.
    pub is_preflush: bool,
    /// Durable when done.
    pub is_fua: bool,
}

/// Ways of using a file that may exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// read(2) through the cache.
    Read,
    /// write(2) through the cache.
    Write,
    /// A direct read.
    DirectRead,
    /// A direct write inside the file, aligned to its blocks.
    DirectOverwrite,
    /// Any other direct write.
    DirectWrite,
}

/// Lock on the inode that a use takes, for the whole call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// None.
    Free,
    /// Together with others that share it.
    Shared,
    /// Alone.
    Exclusive,
}

/// Cache that a file system's data go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKind {
    /// The machine's page cache.
    Pages,
    /// A cache of the file system's own, with its share of memory.
    Own(OwnCache),
    /// None.
    Bypass,
}

/// Constant properties of a made and mounted file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Facts {
    /// Size of a block.
    pub block_bytes: u32,
    /// Unit of its cache: 4 KiB pages, larger pages, or records.
    pub cache_unit_bytes: u32,
    /// Cache that data go through.
    pub cache: CacheKind,
    /// Pages of a window come in folios of several pages.
    pub has_large_folios: bool,
    /// Pages that a write makes come in folios of several pages.
    pub writes_large_folios: bool,
    /// Most blocks that one call of [`FileSystem::allocate`] is asked for.
    pub allocate_blocks_max: u64,
    /// Data that one call of it gave a place leave at once: what follows does not join them.
    pub sends_each_allocation: bool,
    /// Blocks are chosen at write-back, not at write(2).
    pub is_delayed: bool,
    /// Discards of freed blocks are passed on.
    pub discards: bool,
    /// Longest file.
    pub file_bytes_max: u64,
    /// Direct I/O goes through the cache all the same, without a word.
    pub buffers_direct: bool,
    /// Reads and writes travel in clusters that the file system decides; none: the rules of the
    /// kernel's page cache.
    pub clusters: Option<Clusters>,
}

/// Fate of pages that a sequential reader has left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeBehind {
    /// Staying (`freebehind = 0`).
    Never,
    /// Given up when memory is short (up to Solaris 8).
    WhenShort,
    /// Given up far behind the beginning of a file, whether memory is short or not.
    Large,
}

/// Clusters of a file system that decides itself what travels together (Solaris).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clusters {
    /// Bytes that are read ahead of a sequential reader at once.
    pub bytes: u64,
    /// Requests that they are read in; none: one, as long as the device takes it, and no more is
    /// read ahead.
    pub read_bytes: Option<u64>,
    /// Bytes that a fault on a mapped file fetches when faults follow each other.
    pub map_bytes: u64,
    /// Fate of pages behind a sequential reader.
    pub frees_behind: FreeBehind,
    /// Reads and writes of whole sectors that go past the cache unasked.
    pub bypass: Bypass,
    /// Longest request of a transfer past the cache.
    pub direct_bytes: u64,
    /// Longest request of any kind that the volume manager passes on.
    pub request_bytes: u64,
    /// The last block of a file is shorter than others, and moves when the file goes on behind it.
    pub moves_tails: bool,
}

/// Transfers of whole sectors that go past the cache, though nobody asked for direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
pub struct Bypass {
    /// All of them (`forcedirectio`).
    pub all: bool,
    /// Those of files that were opened for synchronous writing.
    pub promised: bool,
    /// Longer ones than this.
    pub above: Bytes,
    /// Writes behind the end of a file and into holes, too; else these go through the cache, also
    /// those that ask for direct I/O.
    pub extends: bool,
    /// Changes of the inode by a write are durable when it returns.
    pub commits: bool,
}

impl Bypass {
    /// Nothing goes past the cache unasked.
    pub const NONE: Self = Self {
        all: false,
        promised: false,
        above: Bytes(u64::MAX),
        extends: false,
        commits: false,
    };

    /// Tell whether a transfer goes past the cache.
    pub fn takes(&self, length: Bytes, is_promised: bool) -> bool {
        self.all || self.promised && is_promised || length > self.above
    }
}

/// Space of a file system, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Blocks of the device.
    pub total: u64,
    /// Free, and not promised to anybody.
    pub free: u64,
    /// Promised to dirty data that have no place yet.
    pub delayed: u64,
}

/// A decider of names, space and durability. All of it is deterministic.
pub trait FileSystem {
    /// Constant properties.
    fn facts(&self) -> Facts;

    /// Space now.
    fn space(&self) -> Space;

    /// The root directory.
    fn root(&self) -> NodeId;

    // --- Names ---

    /// A new node with this entry.
    fn create(
        &mut self,
        cx: &mut Context,
        entry: Entry<'_>,
        kind: NodeKind,
    ) -> Result<NodeId, Errno>;

    /// A further entry of a file.
    fn link(&mut self, cx: &mut Context, entry: Entry<'_>, node: NodeId) -> Result<(), Errno>;

    /// An entry goes; the node lives on until [`FileSystem::evict`].
    fn unlink(&mut self, cx: &mut Context, entry: Entry<'_>, node: NodeId) -> Result<(), Errno>;

    /// An entry becomes another one, which replaces a node if there was one.
    fn rename(
        &mut self,
        cx: &mut Context,
        moved: (Entry<'_>, NodeId),
        to: Entry<'_>,
        replaced: Option<NodeId>,
    ) -> Result<(), Errno>;

    /// A search for a name that the machine does not remember.
    fn look_up(&mut self, cx: &mut Context, entry: Entry<'_>);

    /// A listing of a directory.
    fn list(&mut self, cx: &mut Context, directory: NodeId);

    /// A node without names and handles: its space is free again.
    fn evict(&mut self, cx: &mut Context, node: NodeId);

    /// A look at the attributes of a node, or a change of its times.
    fn touch(&mut self, cx: &mut Context, node: NodeId, touch: Touch);

    // --- Space ---

    /// Place of the blocks from `run.first` on.
    fn map(&self, run: FileRun) -> Mapped;

    /// Metadata that are looked at to find a place ([`FileSystem::map`] itself says nothing of
    /// what it cost).
    fn map_cost(&mut self, cx: &mut Context, run: FileRun);

    /// A write is about to happen: give or promise space, or refuse. Called once per system call
    /// (a file system that works page by page does so inside).
    fn prepare(&mut self, cx: &mut Context, write: Write) -> Result<(), Errno>;

    /// A writer is about to change so many bytes in a cache of the file system's own; `has_slept`:
    /// it was told to sleep before.
    fn admit(&mut self, _: Ns, _: Bytes, _has_slept: bool) -> Admission {
        Admission::Go
    }

    /// Data were copied into the cache; asked only of file systems with [`Clusters`], which say
    /// here what is to be written now.
    fn copied(&mut self, _: &mut Context, _: NodeId, _: Bytes, _: Bytes) {}

    /// Dirty data are about to be written: a place for blocks from `run.first` on, at most
    /// `run.count`. Called again for the rest. Copy on write always answers new blocks.
    fn allocate(&mut self, cx: &mut Context, run: FileRun) -> Result<Mapped, Errno>;

    /// Data have reached the device: unwritten blocks are written ones now; the size on the device
    /// grows to `size`.
    fn written(&mut self, cx: &mut Context, run: FileRun, size: Bytes);

    /// Dirty data of a range were thrown away before they had a place (truncate, unlink).
    fn abandon(&mut self, cx: &mut Context, run: FileRun);

    /// A file gets another length.
    fn truncate(
        &mut self,
        cx: &mut Context,
        node: NodeId,
        from: Bytes,
        to: Bytes,
    ) -> Result<(), Errno>;

    /// Blocks are given to a range, or taken from it.
    fn reshape(
        &mut self,
        cx: &mut Context,
        run: FileRun,
        how: Reshape,
        size: Bytes,
    ) -> Result<(), Errno>;

    /// Tell whether it does so at all; [`FileSystem::reshape`] is never asked for what it does not.
    fn can_reshape(&self, _: Reshape) -> bool {
        true
    }

    /// A handle was opened.
    fn opened(&mut self, cx: &mut Context, node: NodeId, is_writer: bool);

    /// A handle was closed.
    fn closed(&mut self, cx: &mut Context, node: NodeId, closed: ClosedHandle);

    /// Promise that a write keeps whose caller asked for this one.
    fn promise(&self, asked: Option<Promise>) -> Option<Promise> {
        asked
    }

    /// Lock that a use of a file takes.
    fn lock(&self, usage: Use) -> Lock;

    // --- Durability ---

    /// Steps that remain for a promise about a file whose data were written and waited for.
    fn sync(&mut self, cx: &mut Context, node: NodeId, promise: Promise) -> SyncNeed;

    /// Steps that remain for sync(2), after the data of all files were written and waited for.
    fn sync_all(&mut self, cx: &mut Context) -> SyncNeed;

    /// The last transaction that would survive a crash now.
    fn durable(&self) -> Tid;

    /// Time of the next thing that its own daemons do; [`Ns::MAX`] if never.
    fn next_timer(&self) -> Ns;

    /// The next job, if there is one to start now. Called after every call that may have asked for
    /// one and at [`FileSystem::next_timer`], until there is none.
    fn poll(&mut self, cx: &mut Context) -> Option<FsJob>;

    /// A job has ended: what it wrote is durable as far as its flags and flushes go.
    fn job_done(&mut self, cx: &mut Context, job: JobId);

    /// Pages of the device that [`super::context::Effects::dirtied`] has named were written by
    /// their age.
    fn metadata_written(&mut self, cx: &mut Context, run: BlockRun);

    /// A job has failed: some of it may have reached the device. Answers the transaction up to
    /// which those who wait are told; none: the file system does the work again, and nobody is.
    fn job_failed(&mut self, job: JobId) -> Option<Tid>;

    /// Pages of the device that [`super::context::Effects::dirtied`] has named could not be
    /// written. They are clean in memory all the same.
    fn metadata_failed(&mut self, run: BlockRun);

    /// End of the file system, if a failure has stopped it; asked for after each of these, and
    /// after [`FileSystem::job_done`]. It is asked for no more jobs then.
    fn stop(&self) -> Option<Stoppage>;

    /// A power cut and a mount: everything after the last durable transaction is undone, jobs are
    /// forgotten. Returns that transaction; the machine undoes names and lengths after it.
    fn crash(&mut self) -> Tid;

    /// Length of a file as the last durable transaction knows it; asked for after a crash.
    fn size_on_disk(&self, node: NodeId) -> Bytes;

    /// Flat names and values of what was counted (commits, journal bytes, extents), for the record;
    /// names as the real testbeds use them where those can measure it.
    fn counters(&self) -> Vec<(String, f64)>;
}
