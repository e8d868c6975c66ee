//! QFS as a decider of the machine.

use iolab_model::error::Errno;
use iolab_model::{Bytes, Ns};

use super::driver::{QfsFs, ROOT};
use super::geometry::Geometry;
use crate::api::block::{BlockRun, FileRun, Mapped, NodeId};
use crate::api::context::{Context, Tid};
use crate::api::file_system::{
    CacheKind, ClosedHandle, Clusters, Entry, Facts, FileSystem, FreeBehind, FsJob, JobId, Lock,
    NodeKind, Promise, Reshape, Space, Stoppage, SyncNeed, Touch, Use, Write,
};

/// Bytes that a fault on a mapped file reads, whatever the cluster is (the segment driver). [doc]
const MAP_BYTES: u64 = 64 << 10;

impl FileSystem for QfsFs {
    fn facts(&self) -> Facts {
        let lengths = self.rules.lengths;
        Facts {
            block_bytes: Geometry::UNIT as u32,
            cache_unit_bytes: Geometry::CACHE_UNIT as u32,
            cache: CacheKind::Pages,
            has_large_folios: false,
            writes_large_folios: false,
            allocate_blocks_max: u64::MAX,
            sends_each_allocation: false,
            is_delayed: false,
            discards: false,
            file_bytes_max: Geometry::FILE_MAX,
            buffers_direct: false,
            clusters: Some(Clusters {
                bytes: lengths.read,
                read_bytes: (!lengths.is_one_read).then_some(lengths.read),
                map_bytes: MAP_BYTES,
                frees_behind: FreeBehind::Never,
                bypass: self.rules.bypass,
                direct_bytes: u64::MAX,
                request_bytes: u64::MAX,
                moves_tails: false,
            }),
        }
    }

    fn space(&self) -> Space {
        Space { total: self.geometry.units, free: self.free_units(), delayed: 0 }
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
        self.map_reads(cx, run);
    }

    fn prepare(&mut self, cx: &mut Context, write: Write) -> Result<(), Errno> {
        self.prepare_write(cx, write)
    }

    fn copied(&mut self, cx: &mut Context, node: NodeId, start: Bytes, end: Bytes) {
        self.gather_pages(cx, node, (start.0, end.0));
    }

    fn allocate(&mut self, _: &mut Context, run: FileRun) -> Result<Mapped, Errno> {
        self.place_of(run).to_write()
    }

    fn written(&mut self, _: &mut Context, run: FileRun, _: Bytes) {
        self.mark_written(run);
    }

    fn abandon(&mut self, _: &mut Context, run: FileRun) {
        self.forget_behind(run.node);
    }

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
        self.close_handle(cx, node, closed);
    }

    fn lock(&self, usage: Use) -> Lock {
        match usage {
            Use::Read | Use::DirectRead => Lock::Shared,
            Use::Write | Use::DirectWrite | Use::DirectOverwrite if self.rules.shares_writing => {
                Lock::Shared
            }
            Use::Write | Use::DirectWrite | Use::DirectOverwrite => Lock::Exclusive,
        }
    }

    fn sync(&mut self, _: &mut Context, node: NodeId, promise: Promise) -> SyncNeed {
        self.forget_behind(node);
        let Some(state) = self.node(node) else { return SyncNeed::Nothing };
        let tid = match promise {
            Promise::Full => state.sync_tid,
            Promise::Data => state.data_tid,
        };
        let blocks = self.blocks_of(node);
        if tid <= self.log.durable() {
            return SyncNeed::Nothing;
        }
        SyncNeed::Commit(self.log.request(blocks))
    }

    fn sync_all(&mut self, cx: &mut Context) -> SyncNeed {
        self.transaction(cx);
        SyncNeed::Commit(self.log.request([]))
    }

    fn durable(&self) -> Tid {
        self.log.durable()
    }

    fn next_timer(&self) -> Ns {
        Ns::MAX
    }

    fn poll(&mut self, _: &mut Context) -> Option<FsJob> {
        self.log.poll(false)
    }

    fn job_done(&mut self, _: &mut Context, job: JobId) {
        self.log.done(job);
        self.settle();
    }

    fn metadata_written(&mut self, _: &mut Context, _: BlockRun) {}

    fn job_failed(&mut self, job: JobId) -> Option<Tid> {
        self.log.failed(job)
    }

    fn metadata_failed(&mut self, run: BlockRun) {
        self.log.lost(run);
    }

    fn stop(&self) -> Option<Stoppage> {
        None
    }

    fn crash(&mut self) -> Tid {
        let durable = self.log.crash();
        self.go_back(durable);
        durable
    }

    fn size_on_disk(&self, node: NodeId) -> Bytes {
        Bytes(self.node(node).map_or(0, |state| state.size))
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let extents: usize = self.nodes.values().map(|node| node.extents.len()).sum();
        vec![("extents".to_owned(), extents as f64)]
    }
}
