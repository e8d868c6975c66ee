//! Times of writing: flush-behind in parallel requests, synchronous extension, the queue of a file
//! that holds its writers back.

use iolab_model::Bytes;

use super::driver::VxFs;
use super::geometry::Geometry;
use super::options::Mode;
use crate::api::block::{FileRun, NodeId};
use crate::api::context::{Context, HoldBack};
use crate::api::file_system::ClosedHandle;

const CACHE_UNIT: u64 = Geometry::CACHE_UNIT;

impl VxFs {
    /// Data were copied into the cache.
    pub(super) fn send_behind(&mut self, cx: &mut Context, node: NodeId, (start, end): (u64, u64)) {
        let is_growing = self.node(node).is_some_and(|state| state.is_growing);
        let is_logged = self.rules.mode == Mode::Log && is_growing;
        if is_logged && self.rules.flushes_first {
            self.send_now(cx, node, (start, end));
        } else {
            self.gather(cx, node, (start, end));
        }
        if is_logged {
            // One record for each preferred write of extension. [assume]
            let preferred = self.rules.write.0;
            let Some(state) = self.nodes.get_mut(&node.0) else { return };
            state.unlogged += end - start;
            if state.unlogged >= preferred {
                state.unlogged = 0;
                self.commit(cx);
            }
        }
    }

    /// A write that makes the file longer waits for its data, in requests of the buffers' size.
    fn send_now(&mut self, cx: &mut Context, node: NodeId, (start, end): (u64, u64)) {
        let bytes = self.rules.sync_bytes;
        for at in (start / bytes * bytes..end).step_by(bytes as usize) {
            cx.effects.push.push(run(node, (at.max(start / CACHE_UNIT * CACHE_UNIT), at + bytes)));
        }
        cx.effects.throttle = Some(HoldBack { node, above: Bytes(0), until: Bytes(0) });
        if let Some(state) = self.nodes.get_mut(&node.0) {
            (state.behind, state.unsent) = ((0, 0), 0);
        }
    }

    /// A writer that goes on where it was fills one flush after the other.
    fn gather(&mut self, cx: &mut Context, node: NodeId, (start, end): (u64, u64)) {
        let (flush, (each, _)) = (self.rules.flush_bytes(), self.rules.write);
        let dirty_most = self.rules.dirty_bytes.unwrap_or(u64::MAX);
        let queue = Bytes(self.rules.queue_bytes - 1);
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        let (from, length) = state.behind;
        state.behind = if from + length == start && length > 0 {
            (from, length + end - start)
        } else {
            (start, end - start)
        };
        state.unsent += end - start;
        let mut sent = 0;
        while state.behind.1 >= flush {
            let (from, length) = state.behind;
            let first = from / CACHE_UNIT * CACHE_UNIT;
            for at in (first..from + flush).step_by(each as usize) {
                cx.effects.push.push(run(node, (at, (at + each).min(from + flush))));
            }
            state.behind = (from + flush, length - flush);
            sent += flush;
        }
        state.unsent = state.unsent.saturating_sub(sent);
        if state.unsent > dirty_most {
            cx.effects.push.push(FileRun { node, first: 0, count: state.size.div_ceil(1024) });
            (state.behind, state.unsent, sent) = ((end, 0), 0, 1);
        }
        if sent > 0 {
            // Less than `max_diskq` on its way, and the writer goes on.
            cx.effects.throttle = Some(HoldBack { node, above: queue, until: queue });
        }
    }

    pub(super) fn close_handle(&mut self, cx: &mut Context, node: NodeId, closed: ClosedHandle) {
        if !closed.was_writer || closed.writers > 0 {
            return;
        }
        let Some(state) = self.node(node) else { return };
        let size = state.size;
        self.trim(cx, node, size);
        if self.rules.syncs_at_close {
            cx.effects.push.push(FileRun { node, first: 0, count: size.div_ceil(1024) });
            cx.effects.throttle = Some(HoldBack { node, above: Bytes(0), until: Bytes(0) });
            let tid = self.transaction(cx);
            let blocks = self.blocks_of(node);
            cx.effects.wait = cx.effects.wait.max(Some(self.log.request(tid, blocks)));
        }
        if let Some(state) = self.nodes.get_mut(&node.0) {
            (state.behind, state.is_growing) = ((0, 0), false);
        }
    }
}

const fn run(node: NodeId, (from, end): (u64, u64)) -> FileRun {
    let first = from / Geometry::UNIT;
    FileRun { node, first, count: end.div_ceil(Geometry::UNIT) - first }
}
