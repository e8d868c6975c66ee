//! Entries and dnodes: which metadata an operation changes, and what it costs.

use iolab_model::Ns;
use iolab_model::error::Errno;

use super::driver::Zfs;
use super::group::Change;
use super::metadata::MetaKey;
use super::node::ZNode;
use crate::api::block::NodeId;
use crate::api::context::Context;
use crate::api::file_system::{Entry, NodeKind, Touch};

/// Work of making a file: a dnode, an entry, their transaction. [assume]
const CREATE_WORK: Ns = Ns(100_000);
/// Work of removing a name, and of freeing a file. [assume]
const UNLINK_WORK: Ns = Ns(25_000);
const EVICT_WORK: Ns = Ns(15_000);
/// Work of a look at a name or at attributes. [assume]
const LOOK_WORK: Ns = Ns(3_000);

impl Zfs {
    pub(super) fn create_node(
        &mut self,
        cx: &mut Context,
        entry: Entry<'_>,
        kind: NodeKind,
    ) -> Result<NodeId, Errno> {
        if self.slabs.free() <= self.reserve() / 2 {
            return Err(Errno::ENOSPC);
        }
        let number = self.next_node;
        self.next_node += 1;
        let links = if kind == NodeKind::Directory { 2 } else { 1 };
        let mut node = ZNode::default();
        node.state.links = links;
        self.nodes.insert(number, node);
        self.change(cx, Change::Links(number, links));
        self.touch_metadata(cx, MetaKey::dnode(number));
        self.change_entry(cx, entry, 1);
        cx.spends(CREATE_WORK);
        Ok(NodeId(number))
    }

    /// An entry comes or goes.
    fn change_entry(&mut self, cx: &mut Context, entry: Entry<'_>, by: i64) {
        let number = entry.directory.0;
        let Some(directory) = self.nodes.get_mut(&number) else { return };
        directory.state.entries = directory.state.entries.saturating_add_signed(by);
        let entries = directory.state.entries;
        let leaf = MetaKey::leaf(number, entry.name, entries);
        self.look_at(cx, leaf);
        self.change(cx, Change::Entries(number, entries));
        self.touch_metadata(cx, leaf);
        self.touch_metadata(cx, MetaKey::dnode(number));
    }

    fn change_links(&mut self, cx: &mut Context, node: NodeId, by: i32) {
        let Some(state) = self.nodes.get_mut(&node.0) else { return };
        state.state.links = state.state.links.saturating_add_signed(by);
        let links = state.state.links;
        self.change(cx, Change::Links(node.0, links));
        self.touch_metadata(cx, MetaKey::dnode(node.0));
    }

    pub(super) fn link_node(&mut self, cx: &mut Context, entry: Entry<'_>, node: NodeId) {
        self.change_entry(cx, entry, 1);
        self.change_links(cx, node, 1);
        cx.spends(UNLINK_WORK);
    }

    pub(super) fn unlink_node(&mut self, cx: &mut Context, entry: Entry<'_>, node: NodeId) {
        self.change_entry(cx, entry, -1);
        self.change_links(cx, node, -1);
        cx.spends(UNLINK_WORK);
    }

    pub(super) fn rename_node(
        &mut self,
        cx: &mut Context,
        moved: (Entry<'_>, NodeId),
        to: Entry<'_>,
        replaced: Option<NodeId>,
    ) {
        self.change_entry(cx, moved.0, -1);
        match replaced {
            Some(old) => self.change_links(cx, old, -1),
            None => self.change_entry(cx, to, 1),
        }
        self.touch_metadata(cx, MetaKey::dnode(moved.1.0));
        cx.spends(UNLINK_WORK);
    }

    /// Leaf with a name, or all of them.
    pub(super) fn search(&self, cx: &mut Context, directory: NodeId, name: Option<&str>) {
        let Some(node) = self.node(directory) else { return };
        if let Some(name) = name {
            self.look_at(cx, MetaKey::leaf(directory.0, name, node.state.entries));
        } else {
            let leaves = MetaKey::Leaf(directory.0, 0)..=MetaKey::Leaf(directory.0, u64::MAX);
            for (&key, _) in self.metadata.range(leaves) {
                self.look_at(cx, key);
            }
        }
        cx.spends(LOOK_WORK);
    }

    pub(super) fn evict_node(&mut self, cx: &mut Context, node: NodeId) {
        if self.node(node).is_none() {
            return;
        }
        self.cut_places(node, 0, u64::MAX);
        self.nodes.remove(&node.0);
        self.forget_metadata(node.0);
        self.change(cx, Change::Gone(node.0));
        self.touch_metadata(cx, MetaKey::dnode(node.0));
        cx.spends(EVICT_WORK);
    }

    pub(super) fn touch_node(&mut self, cx: &mut Context, node: NodeId, touch: Touch) {
        match touch {
            Touch::Look => {
                self.look_at(cx, MetaKey::dnode(node.0));
                cx.spends(LOOK_WORK);
            }
            Touch::Read if self.rules.notes_access => {
                if let Some(state) = self.nodes.get_mut(&node.0) {
                    state.is_accessed = true;
                }
            }
            Touch::Read => {}
            Touch::Written => self.touch_metadata(cx, MetaKey::dnode(node.0)),
        }
    }

    /// The last close writes the time of access.
    pub(super) fn close_node(&mut self, cx: &mut Context, node: NodeId) {
        let state = self.nodes.get_mut(&node.0);
        if state.is_some_and(|state| core::mem::take(&mut state.is_accessed)) {
            self.touch_metadata(cx, MetaKey::dnode(node.0));
        }
    }
}
