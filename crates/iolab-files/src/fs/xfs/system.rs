//! The interface of a file system, for [`Xfs`].

use iolab_model::error::Errno;
use iolab_model::{Bytes, Ns};

use crate::api::block::{BlockRun, DeviceId, FileRun, Mapped, NodeId};
use crate::api::context::{Context, Tid};
use crate::api::file_system::{
    CacheKind, ClosedHandle, Entry, Facts, FileSystem, FsJob, JobId, Lock, NodeKind, Promise,
    Reshape, Space, Stoppage, SyncNeed, Touch, Use, Write,
};

use super::data::TRIM_INTERVAL;
use super::fork::EXTENT_BLOCKS_MAX;
use super::geometry::BLOCK_BYTES;
use super::volume::{ROOT, Xfs};

/// Granule of times: they are those of the last tick (HZ 250).
const TICK: u64 = 4_000_000;

impl FileSystem for Xfs {
    fn facts(&self) -> Facts {
        Facts {
            block_bytes: BLOCK_BYTES as u32,
            cache_unit_bytes: BLOCK_BYTES as u32,
            cache: CacheKind::Pages,
            // Linux 5.18, fs/xfs/xfs_icache.c: mapping_set_large_folios.
            has_large_folios: self.mounted.kernel >= crate::api::make::Kernel::new(5, 18),
            // Linux 6.6, fs/iomap/buffered-io.c: iomap_get_folio asks for the length of the write.
            writes_large_folios: self.mounted.kernel >= crate::api::make::Kernel::new(6, 6),
            allocate_blocks_max: EXTENT_BLOCKS_MAX,
            sends_each_allocation: false,
            is_delayed: true,
            discards: false,
            file_bytes_max: (1 << 63) - 1,
            buffers_direct: false,
            clusters: None,
        }
    }

    fn space(&self) -> Space {
        Space { total: self.geometry.blocks, free: self.unpromised(), delayed: self.delayed }
    }

    fn root(&self) -> NodeId {
        ROOT
    }

    fn create(
        &mut self,
        cx: &mut Context,
        entry: Entry<'_>,
        kind: NodeKind,
    ) -> Result<NodeId, Errno> {
        self.new_node(cx, entry, kind)
    }

    fn link(&mut self, cx: &mut Context, entry: Entry<'_>, node: NodeId) -> Result<(), Errno> {
        self.read_entry(cx, entry.directory);
        self.add_entry(cx, entry.directory, entry.name)?;
        self.node_mut(node).inode.links += 1;
        self.log_node(cx, node, true);
        Ok(())
    }

    fn unlink(&mut self, cx: &mut Context, entry: Entry<'_>, node: NodeId) -> Result<(), Errno> {
        self.read_entry(cx, entry.directory);
        self.remove_entry(cx, entry.directory, entry.name);
        self.drop_link(cx, node);
        Ok(())
    }

    fn rename(
        &mut self,
        cx: &mut Context,
        moved: (Entry<'_>, NodeId),
        to: Entry<'_>,
        replaced: Option<NodeId>,
    ) -> Result<(), Errno> {
        self.read_entry(cx, moved.0.directory);
        self.read_entry(cx, to.directory);
        match replaced {
            Some(replaced) => {
                self.drop_link(cx, replaced);
                self.log_node(cx, to.directory, true);
            }
            None => self.add_entry(cx, to.directory, to.name)?,
        }
        self.remove_entry(cx, moved.0.directory, moved.0.name);
        self.log_node(cx, moved.1, true);
        Ok(())
    }

    fn look_up(&mut self, cx: &mut Context, entry: Entry<'_>) {
        self.read_entry(cx, entry.directory);
    }

    fn list(&mut self, cx: &mut Context, directory: NodeId) {
        self.read_listing(cx, directory);
    }

    fn evict(&mut self, cx: &mut Context, node: NodeId) {
        self.drop_node(cx, node);
    }

    fn touch(&mut self, cx: &mut Context, node: NodeId, touch: Touch) {
        let tick = cx.now.0 / TICK + 1;
        let has_no_atime = self.mounted.has_no_atime;
        let file = self.node_mut(node);
        match touch {
            Touch::Look => {
                let block = self.inode_block(node);
                Self::read_block(cx, block);
            }
            Touch::Read if has_no_atime || file.read_tick > file.written_tick => {}
            Touch::Read => {
                file.read_tick = tick;
                if !self.mounted.is_lazy {
                    self.log_node(cx, node, false);
                }
            }
            Touch::Written if file.written_tick == tick => {}
            Touch::Written => {
                file.written_tick = tick;
                if !self.mounted.is_lazy {
                    self.log_node(cx, node, false);
                }
            }
        }
    }

    fn map(&self, run: FileRun) -> Mapped {
        self.mapped(run)
    }

    fn map_cost(&mut self, cx: &mut Context, run: FileRun) {
        if core::mem::replace(&mut self.node_mut(run.node).is_map_read, true) {
            return;
        }
        for block in self.node(run.node).inode.map_blocks.clone() {
            Self::read_block(cx, block);
        }
    }

    fn prepare(&mut self, cx: &mut Context, write: Write) -> Result<(), Errno> {
        self.prepare_write(cx, write)
    }

    fn allocate(&mut self, cx: &mut Context, run: FileRun) -> Result<Mapped, Errno> {
        self.place_dirty(cx, run)
    }

    fn written(&mut self, cx: &mut Context, run: FileRun, size: Bytes) {
        self.data_written(cx, run, size);
    }

    fn abandon(&mut self, _: &mut Context, _: FileRun) {
        // Promises go with the map: `truncate` and `evict` have given them back.
    }

    fn truncate(
        &mut self,
        cx: &mut Context,
        node: NodeId,
        from: Bytes,
        to: Bytes,
    ) -> Result<(), Errno> {
        self.set_length(cx, node, from.0, to.0)
    }

    fn reshape(
        &mut self,
        cx: &mut Context,
        run: FileRun,
        how: Reshape,
        size: Bytes,
    ) -> Result<(), Errno> {
        self.change_space(cx, run, how, size)
    }

    fn opened(&mut self, cx: &mut Context, node: NodeId, _: bool) {
        self.touch(cx, node, Touch::Look);
    }

    fn closed(&mut self, cx: &mut Context, node: NodeId, closed: ClosedHandle) {
        self.close_handle(cx, node, closed);
    }

    fn lock(&self, usage: Use) -> Lock {
        match usage {
            Use::Read | Use::DirectRead | Use::DirectOverwrite => Lock::Shared,
            Use::Write | Use::DirectWrite => Lock::Exclusive,
        }
    }

    fn sync(&mut self, _: &mut Context, node: NodeId, sync: Promise) -> SyncNeed {
        let file = self.node(node);
        let tid = match sync {
            Promise::Full => Tid(file.any_change),
            Promise::Data => Tid(file.data_change),
        };
        if tid <= self.log.durable() {
            return SyncNeed::Flush(DeviceId::MAIN);
        }
        self.log.force(tid);
        SyncNeed::Commit(tid)
    }

    fn sync_all(&mut self, _: &mut Context) -> SyncNeed {
        let tid = self.log.last_changed();
        if tid <= self.log.durable() {
            return SyncNeed::Flush(DeviceId::MAIN);
        }
        self.log.force(tid);
        SyncNeed::Commit(tid)
    }

    fn durable(&self) -> Tid {
        self.log.durable()
    }

    fn next_timer(&self) -> Ns {
        self.log.next_timer().min(self.next_trim)
    }

    fn poll(&mut self, cx: &mut Context) -> Option<FsJob> {
        if self.beyond.is_empty() {
            self.next_trim = Ns::MAX;
        } else if self.next_trim == Ns::MAX {
            self.next_trim = cx.now + TRIM_INTERVAL;
        } else if cx.now >= self.next_trim {
            self.next_trim = cx.now + TRIM_INTERVAL;
            self.trim_all(cx);
        }
        self.log.tick(cx.now);
        let closing = self.log.current();
        let (job, is_checkpoint) = self.log.poll()?;
        if is_checkpoint {
            self.close_checkpoint(closing.0);
        }
        Some(job)
    }

    fn job_done(&mut self, _: &mut Context, job: JobId) {
        let durable = self.log.done(job);
        self.settle(durable.0);
    }

    fn job_failed(&mut self, job: JobId) -> Option<Tid> {
        self.log.failed(job);
        None
    }

    fn metadata_failed(&mut self, _: BlockRun) {
        // Nothing is changed outside the log.
    }

    fn stop(&self) -> Option<Stoppage> {
        self.log.is_shut_down().then_some(Stoppage::SHUT_DOWN)
    }

    fn metadata_written(&mut self, _: &mut Context, _: BlockRun) {
        // Nothing is changed outside the log.
    }

    fn crash(&mut self) -> Tid {
        let durable = self.log.crash();
        self.remount();
        durable
    }

    fn size_on_disk(&self, node: NodeId) -> Bytes {
        Bytes(self.stored.get(&node).map_or(0, |stored| stored.inode.size))
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let runs: usize = self.groups.iter().map(|group| group.space.runs()).sum();
        [
            ("journal_commits", self.log.checkpoints as f64),
            ("journal_bytes", self.log.log_bytes as f64),
            ("extents_allocated", self.counts.placed as f64),
            ("blocks_allocated", self.counts.placed_blocks as f64),
            ("blocks_trimmed", self.counts.trimmed_blocks as f64),
            ("inode_chunks", self.counts.chunks as f64),
            ("free_runs", runs as f64),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}
