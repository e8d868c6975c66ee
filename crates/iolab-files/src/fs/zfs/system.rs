//! `ZFS` as a decider of the machine.

use iolab_model::error::Errno;
use iolab_model::{Bytes, Ns};

use super::driver::{ROOT, Zfs};
use super::options::BLOCK;
use crate::api::block::{BlockRun, FileRun, Mapped, NodeId};
use crate::api::context::{Context, Tid};
use crate::api::file_system::{
    CacheKind, ClosedHandle, Entry, Facts, FileSystem, FsJob, JobId, Lock, NodeKind, Promise,
    Reshape, Space, Stoppage, SyncNeed, Touch, Use, Write,
};
use crate::api::own_cache::Admission;

impl FileSystem for Zfs {
    fn facts(&self) -> Facts {
        Facts {
            block_bytes: BLOCK as u32,
            cache_unit_bytes: self.rules.record_bytes as u32,
            cache: CacheKind::Own(self.rules.cache),
            has_large_folios: false,
            writes_large_folios: false,
            allocate_blocks_max: u64::MAX,
            sends_each_allocation: false,
            is_delayed: true,
            discards: false,
            // Pages are numbered with 32 bits.
            file_bytes_max: BLOCK << 32,
            buffers_direct: false,
            clusters: None,
        }
    }

    fn space(&self) -> Space {
        Space {
            total: self.geometry.blocks,
            free: self.free_blocks().saturating_sub(self.reserve()),
            delayed: self.dirty_bytes() / BLOCK,
        }
    }

    fn root(&self) -> NodeId {
        NodeId(ROOT)
    }

    fn create(
        &mut self,
        cx: &mut Context,
        entry: Entry<'_>,
        kind: NodeKind,
    ) -> Result<NodeId, Errno> {
        self.create_node(cx, entry, kind)
    }

    fn link(&mut self, cx: &mut Context, entry: Entry<'_>, node: NodeId) -> Result<(), Errno> {
        self.link_node(cx, entry, node);
        Ok(())
    }

    fn unlink(&mut self, cx: &mut Context, entry: Entry<'_>, node: NodeId) -> Result<(), Errno> {
        self.unlink_node(cx, entry, node);
        Ok(())
    }

    fn rename(
        &mut self,
        cx: &mut Context,
        moved: (Entry<'_>, NodeId),
        to: Entry<'_>,
        replaced: Option<NodeId>,
    ) -> Result<(), Errno> {
        self.rename_node(cx, moved, to, replaced);
        Ok(())
    }

    fn look_up(&mut self, cx: &mut Context, entry: Entry<'_>) {
        self.search(cx, entry.directory, Some(entry.name));
    }

    fn list(&mut self, cx: &mut Context, directory: NodeId) {
        self.search(cx, directory, None);
        self.touch_node(cx, directory, Touch::Read);
    }

    fn evict(&mut self, cx: &mut Context, node: NodeId) {
        self.evict_node(cx, node);
    }

    fn touch(&mut self, cx: &mut Context, node: NodeId, touch: Touch) {
        self.touch_node(cx, node, touch);
    }

    fn map(&self, run: FileRun) -> Mapped {
        self.place_of(run)
    }

    fn map_cost(&mut self, cx: &mut Context, run: FileRun) {
        self.look_for_pointers(cx, run);
    }

    fn prepare(&mut self, cx: &mut Context, write: Write) -> Result<(), Errno> {
        self.prepare_write(cx, write)
    }

    fn admit(&mut self, now: Ns, bytes: Bytes, has_slept: bool) -> Admission {
        self.admit_write(now, bytes.0, has_slept)
    }

    fn allocate(&mut self, _: &mut Context, run: FileRun) -> Result<Mapped, Errno> {
        self.allocate_run(run)
    }

    fn written(&mut self, _: &mut Context, run: FileRun, _: Bytes) {
        self.note_written(run);
    }

    fn abandon(&mut self, _: &mut Context, _: FileRun) {}

    fn truncate(
        &mut self,
        cx: &mut Context,
        node: NodeId,
        _: Bytes,
        to: Bytes,
    ) -> Result<(), Errno> {
        self.resize(cx, node, to.0);
        Ok(())
    }

    fn reshape(
        &mut self,
        cx: &mut Context,
        run: FileRun,
        _: Reshape,
        _: Bytes,
    ) -> Result<(), Errno> {
        self.reshape_run(cx, run);
        Ok(())
    }

    fn can_reshape(&self, how: Reshape) -> bool {
        how == Reshape::Punch
    }

    fn opened(&mut self, cx: &mut Context, node: NodeId, _: bool) {
        self.touch_node(cx, node, Touch::Look);
    }

    fn closed(&mut self, cx: &mut Context, node: NodeId, closed: ClosedHandle) {
        if closed.handles == 0 {
            self.close_node(cx, node);
        }
    }

    fn promise(&self, asked: Option<Promise>) -> Option<Promise> {
        self.rules.promise(asked)
    }

    fn lock(&self, _: Use) -> Lock {
        // Ranges of a file are locked, not the file.
        Lock::Free
    }

    fn sync(&mut self, _: &mut Context, node: NodeId, _: Promise) -> SyncNeed {
        if self.rules.sync == "disabled" { SyncNeed::Nothing } else { self.need_of(node) }
    }

    fn sync_all(&mut self, _: &mut Context) -> SyncNeed {
        let in_flight = self.closed.is_some() || self.syncing.is_some();
        if self.open.is_empty() && !in_flight {
            return SyncNeed::Nothing;
        }
        if !self.open.is_empty() {
            self.last = Tid(self.last.0 + 1);
            self.open.last = self.last;
            (self.asked, self.is_open_asked) = (self.last, true);
            return SyncNeed::Commit(self.last);
        }
        let closed = self.closed.as_ref().map(|group| group.last);
        let syncing = self.syncing.as_ref().map(|syncing| syncing.group.last);
        let last = closed.max(syncing).unwrap_or(self.synced);
        self.asked = self.asked.max(last);
        SyncNeed::Commit(last)
    }

    fn durable(&self) -> Tid {
        // Whoever waits for a group does not go on because of a later commit of the log.
        let limit = if self.asked > self.synced { Tid(self.asked.0 - 1) } else { Tid(u64::MAX) };
        self.synced.max(self.log.durable().min(limit))
    }

    fn next_timer(&self) -> Ns {
        self.timer()
    }

    fn poll(&mut self, cx: &mut Context) -> Option<FsJob> {
        self.next_job(cx)
    }

    fn job_done(&mut self, cx: &mut Context, job: JobId) {
        self.end_job(cx.now, job);
    }

    fn metadata_written(&mut self, _: &mut Context, _: BlockRun) {}

    fn job_failed(&mut self, _: JobId) -> Option<Tid> {
        self.is_suspended = true;
        None
    }

    fn metadata_failed(&mut self, _: BlockRun) {
        // Metadata are written by jobs alone.
    }

    fn stop(&self) -> Option<Stoppage> {
        self.is_suspended.then_some(Stoppage::SUSPENDED)
    }

    fn crash(&mut self) -> Tid {
        self.power_cut()
    }

    fn size_on_disk(&self, node: NodeId) -> Bytes {
        Bytes(self.image.get(&node.0).map_or(0, |state| state.size))
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let extents: usize = self.nodes.values().map(|node| node.state.places.len()).sum();
        let (commits, bytes) = self.log.counts();
        [
            ("extents", extents as f64),
            ("txgs", self.groups as f64),
            ("zil_commits", commits as f64),
            ("zil_bytes", bytes as f64),
            ("open_bytes", self.open.bytes as f64),
            ("write_limit_bytes", self.throttle.limit() as f64),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}
