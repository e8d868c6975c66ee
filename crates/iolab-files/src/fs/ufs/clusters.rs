//! Clusters of writes: what waits until it is worth a request, and who has to wait for that.

use iolab_model::Bytes;

use super::driver::UfsFs;
use super::geometry::Geometry;
use crate::api::block::{FileRun, NodeId};
use crate::api::context::{Context, HoldBack};
use crate::fs::write_behind::gather;

impl UfsFs {
    /// Writers of a file sleep while too much of it is on its way; looked at once for each
    /// write(2).
    pub(super) fn hold_back(&self, cx: &mut Context, node: NodeId) {
        if let Some(marks) = self.rules.throttle {
            cx.effects.throttle =
                Some(HoldBack { node, above: Bytes(marks.high), until: Bytes(marks.low) });
        }
    }

    /// Data were copied into the cache: every block whose end was written joins the run that waits,
    /// or sends it off and begins another one.
    pub(super) fn gather_blocks(
        &mut self,
        cx: &mut Context,
        node: NodeId,
        (start, end): (u64, u64),
    ) {
        let sizes = (self.rules.cluster_bytes, Geometry::BLOCK);
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        gather(&mut state.delayed, sizes, (start, end), |(from, length)| {
            cx.effects.push.push(run(node, from, length));
        });
    }

    /// Sends off what waits.
    pub(super) fn push_delayed(&mut self, cx: &mut Context, node: NodeId) {
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        let (from, length) = core::mem::take(&mut state.delayed);
        if length > 0 {
            cx.effects.push.push(run(node, from, length));
        }
    }

    /// Nothing waits any more: all of it was asked for.
    pub(super) fn forget_delayed(&mut self, node: NodeId) {
        if let Some(state) = self.nodes.get_mut(&node.0) {
            state.delayed = (0, 0);
        }
    }
}

const fn run(node: NodeId, from: u64, length: u64) -> FileRun {
    FileRun { node, first: from / Geometry::FRAGMENT, count: length / Geometry::FRAGMENT }
}
