//! The family as a decider of the machine.

use iolab_model::error::Errno;
use iolab_model::{Bytes, Ns};

use super::driver::{ExtFs, ROOT};
use super::mode::DataMode;
use super::space::WRITE_BACK_BLOCKS;
use crate::api::block::{BlockRun, FileRun, Mapped, NodeId};
use crate::api::context::{Context, Tid};
use crate::api::file_system::{
    CacheKind, ClosedHandle, Entry, Facts, FileSystem, FsJob, JobId, Lock, NodeKind, Promise,
    Reshape, Space, Stoppage, SyncNeed, Touch, Use, Write,
};

impl FileSystem for ExtFs {
    fn facts(&self) -> Facts {
        Facts {
            block_bytes: self.geometry().block_bytes,
            cache_unit_bytes: 4096,
            cache: CacheKind::Pages,
            has_large_folios: self.mode.has_large_folios,
            writes_large_folios: self.mode.has_large_folios,
            allocate_blocks_max: WRITE_BACK_BLOCKS,
            // Linux fs/ext4/inode.c, ext4_do_writepages: ext4_io_submit() after each extent.
            sends_each_allocation: true,
            is_delayed: self.is_delayed,
            discards: false,
            file_bytes_max: self.blocks_max() * self.block_bytes(),
            // Linux fs/ext4/inode.c, ext4_dio_alignment: none where data are in the journal.
            buffers_direct: self.mode.data == DataMode::Journal,
            clusters: None,
        }
    }

    fn space(&self) -> Space {
        let total = self.geometry().blocks;
        Space { total, free: self.free.saturating_sub(self.delayed), delayed: self.delayed }
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
        self.link_node(cx, entry, node)
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
        self.rename_node(cx, moved, to, replaced)
    }

    fn look_up(&mut self, cx: &mut Context, entry: Entry<'_>) {
        self.look_up_name(cx, entry);
    }

    fn list(&mut self, cx: &mut Context, directory: NodeId) {
        self.list_directory(cx, directory);
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
        self.map_reads(cx, run);
    }

    fn prepare(&mut self, cx: &mut Context, write: Write) -> Result<(), Errno> {
        self.prepare_write(cx, write)
    }

    fn allocate(&mut self, cx: &mut Context, run: FileRun) -> Result<Mapped, Errno> {
        self.allocate_run(cx, run)
    }

    fn written(&mut self, cx: &mut Context, run: FileRun, size: Bytes) {
        self.data_written(cx, run, size);
    }

    fn abandon(&mut self, _: &mut Context, run: FileRun) {
        self.abandon_run(run);
    }

    fn truncate(
        &mut self,
        cx: &mut Context,
        node: NodeId,
        _: Bytes,
        to: Bytes,
    ) -> Result<(), Errno> {
        self.truncate_to(cx, node, to);
        Ok(())
    }

    fn reshape(
        &mut self,
        cx: &mut Context,
        run: FileRun,
        how: Reshape,
        size: Bytes,
    ) -> Result<(), Errno> {
        self.reshape_run(cx, run, how, size)
    }

    fn opened(&mut self, cx: &mut Context, node: NodeId, is_writer: bool) {
        self.open_handle(cx, node, is_writer);
    }

    fn closed(&mut self, cx: &mut Context, node: NodeId, closed: ClosedHandle) {
        self.close_handle(cx, node, closed);
    }

    /// The drivers of their own of ext2 and ext3 know no `fallocate` at all; unwritten blocks need
    /// extents. (Linux fs/ext4/extents.c, fs/ext4/inode.c: `ext4_punch_hole`.)
    fn can_reshape(&self, how: Reshape) -> bool {
        match how {
            Reshape::Punch => !self.mode.own_driver,
            Reshape::Allocate | Reshape::Zero => self.has_extents,
        }
    }

    fn lock(&self, usage: Use) -> Lock {
        // Linux fs/ext4/file.c: reads share nothing, direct reads and overwrites share the lock.
        match usage {
            Use::Read => Lock::Free,
            Use::DirectRead => Lock::Shared,
            Use::DirectOverwrite if self.mode.shares_direct => Lock::Shared,
            Use::Write | Use::DirectOverwrite | Use::DirectWrite => Lock::Exclusive,
        }
    }

    fn sync(&mut self, _: &mut Context, node: NodeId, promise: Promise) -> SyncNeed {
        self.sync_node(node, promise)
    }

    fn sync_all(&mut self, _: &mut Context) -> SyncNeed {
        self.sync_everything()
    }

    fn durable(&self) -> Tid {
        self.last_durable()
    }

    fn next_timer(&self) -> Ns {
        self.timer()
    }

    fn poll(&mut self, cx: &mut Context) -> Option<FsJob> {
        self.next_job(cx)
    }

    fn job_done(&mut self, cx: &mut Context, job: JobId) {
        self.end_job(cx, job);
    }

    fn metadata_written(&mut self, _: &mut Context, run: BlockRun) {
        if let super::driver::DurableLog::Journal(journal) = &mut self.log {
            journal.written(run);
        }
    }

    fn job_failed(&mut self, job: JobId) -> Option<Tid> {
        self.end_failed_job(job)
    }

    fn metadata_failed(&mut self, run: BlockRun) {
        self.metadata_lost(run);
    }

    fn stop(&self) -> Option<Stoppage> {
        self.ended()
    }

    fn crash(&mut self) -> Tid {
        self.crash_and_mount()
    }

    fn size_on_disk(&self, node: NodeId) -> Bytes {
        Bytes(self.node(node).map_or(0, |state| state.size_disk))
    }

    fn counters(&self) -> Vec<(String, f64)> {
        self.counted()
    }
}
