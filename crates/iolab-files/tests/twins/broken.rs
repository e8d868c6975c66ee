//! A file system with a fault, around one without.

use iolab_files::api::block::{BlockRun, FileRun, Mapped, NodeId, Place};
use iolab_files::api::context::{Context, Tid};
use iolab_files::api::file_system::{
    ClosedHandle, Entry, Facts, FileSystem, FsJob, JobId, Lock, NodeKind, Promise, Reshape, Space,
    Stoppage, SyncNeed, Touch, Use, Write,
};
use iolab_files::api::own_cache::Admission;
use iolab_model::error::Errno;
use iolab_model::{Bytes, Ns};

/// A fault of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// None.
    Nothing,
    /// A look for the blocks of a file finds those one further.
    Neighbour,
    /// The second 16 blocks of a file are found where the first ones are.
    Twice,
    /// Written blocks are holes.
    Hole,
    /// Blocks that were given and never written are found as data.
    Unwritten,
    /// Blocks that are given back stay.
    Kept,
    /// A file that is cut stays as long as it was on the device.
    Uncut,
}

/// All of them.
pub const FAULTS: [Fault; 6] =
    [Fault::Neighbour, Fault::Twice, Fault::Hole, Fault::Unwritten, Fault::Kept, Fault::Uncut];

pub struct Broken {
    pub inner: Box<dyn FileSystem>,
    pub fault: Fault,
}

impl Broken {
    fn spoilt(&self, run: FileRun, mapped: Mapped) -> Mapped {
        let one = |place| Mapped { place, count: 1 };
        match (self.fault, mapped.place) {
            (Fault::Neighbour, Place::Written(device, block)) if run.first >= 40 => {
                one(Place::Written(device, block + 1))
            }
            (Fault::Twice, Place::Written(..)) if (16..32).contains(&run.first) => {
                let first = FileRun { first: run.first - 16, ..run };
                let there = self.inner.map(first);
                if matches!(there.place, Place::Written(..)) { one(there.place) } else { mapped }
            }
            (Fault::Hole, Place::Written(..)) if run.first.is_multiple_of(9) => one(Place::Hole),
            (Fault::Unwritten, Place::Unwritten(device, block)) => {
                one(Place::Written(device, block))
            }
            _ => mapped,
        }
    }
}

impl FileSystem for Broken {
    fn map(&self, run: FileRun) -> Mapped {
        // Only so many blocks as have one fate.
        let alone = FileRun { count: 1, ..run };
        let mapped = if self.fault == Fault::Nothing { run } else { alone };
        self.spoilt(run, self.inner.map(mapped))
    }

    fn reshape(
        &mut self,
        cx: &mut Context,
        run: FileRun,
        how: Reshape,
        size: Bytes,
    ) -> Result<(), Errno> {
        if self.fault == Fault::Kept && how != Reshape::Allocate {
            return Ok(());
        }
        self.inner.reshape(cx, run, how, size)
    }

    fn truncate(
        &mut self,
        cx: &mut Context,
        node: NodeId,
        from: Bytes,
        to: Bytes,
    ) -> Result<(), Errno> {
        if self.fault == Fault::Uncut && to < from {
            return Ok(());
        }
        self.inner.truncate(cx, node, from, to)
    }

    fn facts(&self) -> Facts {
        self.inner.facts()
    }

    fn space(&self) -> Space {
        self.inner.space()
    }

    fn root(&self) -> NodeId {
        self.inner.root()
    }

    fn create(&mut self, cx: &mut Context, at: Entry<'_>, kind: NodeKind) -> Result<NodeId, Errno> {
        self.inner.create(cx, at, kind)
    }

    fn link(&mut self, cx: &mut Context, at: Entry<'_>, node: NodeId) -> Result<(), Errno> {
        self.inner.link(cx, at, node)
    }

    fn unlink(&mut self, cx: &mut Context, at: Entry<'_>, node: NodeId) -> Result<(), Errno> {
        self.inner.unlink(cx, at, node)
    }

    fn rename(
        &mut self,
        cx: &mut Context,
        moved: (Entry<'_>, NodeId),
        to: Entry<'_>,
        replaced: Option<NodeId>,
    ) -> Result<(), Errno> {
        self.inner.rename(cx, moved, to, replaced)
    }

    fn look_up(&mut self, cx: &mut Context, entry: Entry<'_>) {
        self.inner.look_up(cx, entry);
    }

    fn list(&mut self, cx: &mut Context, directory: NodeId) {
        self.inner.list(cx, directory);
    }

    fn evict(&mut self, cx: &mut Context, node: NodeId) {
        self.inner.evict(cx, node);
    }

    fn touch(&mut self, cx: &mut Context, node: NodeId, touch: Touch) {
        self.inner.touch(cx, node, touch);
    }

    fn map_cost(&mut self, cx: &mut Context, run: FileRun) {
        self.inner.map_cost(cx, run);
    }

    fn prepare(&mut self, cx: &mut Context, write: Write) -> Result<(), Errno> {
        self.inner.prepare(cx, write)
    }

    fn admit(&mut self, now: Ns, bytes: Bytes, has_slept: bool) -> Admission {
        self.inner.admit(now, bytes, has_slept)
    }

    fn copied(&mut self, cx: &mut Context, node: NodeId, from: Bytes, to: Bytes) {
        self.inner.copied(cx, node, from, to);
    }

    fn allocate(&mut self, cx: &mut Context, run: FileRun) -> Result<Mapped, Errno> {
        self.inner.allocate(cx, run)
    }

    fn written(&mut self, cx: &mut Context, run: FileRun, size: Bytes) {
        self.inner.written(cx, run, size);
    }

    fn abandon(&mut self, cx: &mut Context, run: FileRun) {
        self.inner.abandon(cx, run);
    }

    fn can_reshape(&self, how: Reshape) -> bool {
        self.inner.can_reshape(how)
    }

    fn opened(&mut self, cx: &mut Context, node: NodeId, is_writer: bool) {
        self.inner.opened(cx, node, is_writer);
    }

    fn closed(&mut self, cx: &mut Context, node: NodeId, closed: ClosedHandle) {
        self.inner.closed(cx, node, closed);
    }

    fn promise(&self, asked: Option<Promise>) -> Option<Promise> {
        self.inner.promise(asked)
    }

    fn lock(&self, usage: Use) -> Lock {
        self.inner.lock(usage)
    }

    fn sync(&mut self, cx: &mut Context, node: NodeId, promise: Promise) -> SyncNeed {
        self.inner.sync(cx, node, promise)
    }

    fn sync_all(&mut self, cx: &mut Context) -> SyncNeed {
        self.inner.sync_all(cx)
    }

    fn durable(&self) -> Tid {
        self.inner.durable()
    }

    fn next_timer(&self) -> Ns {
        self.inner.next_timer()
    }

    fn poll(&mut self, cx: &mut Context) -> Option<FsJob> {
        self.inner.poll(cx)
    }

    fn job_done(&mut self, cx: &mut Context, job: JobId) {
        self.inner.job_done(cx, job);
    }

    fn metadata_written(&mut self, cx: &mut Context, run: BlockRun) {
        self.inner.metadata_written(cx, run);
    }

    fn job_failed(&mut self, job: JobId) -> Option<Tid> {
        self.inner.job_failed(job)
    }

    fn metadata_failed(&mut self, run: BlockRun) {
        self.inner.metadata_failed(run);
    }

    fn stop(&self) -> Option<Stoppage> {
        self.inner.stop()
    }

    fn crash(&mut self) -> Tid {
        self.inner.crash()
    }

    fn size_on_disk(&self, node: NodeId) -> Bytes {
        self.inner.size_on_disk(node)
    }

    fn counters(&self) -> Vec<(String, f64)> {
        self.inner.counters()
    }
}
