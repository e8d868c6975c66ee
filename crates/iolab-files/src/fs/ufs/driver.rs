//! `UfsFs`: state of a mounted UFS, and what its parts share.

use std::collections::{BTreeMap, BTreeSet};

use super::geometry::{Geometry, run_of};
use super::groups::Groups;
use super::node::UfsNode;
use super::options::UfsRules;
use crate::api::block::{BlockRun, DeviceId, NodeId, Place};
use crate::api::context::{Context, Tid};
use crate::api::file_system::NodeKind;
use crate::api::make::MakeSpec;
use crate::error::FilesError;
use crate::fs::directory::{PIECE, PieceDirectory};
use crate::fs::journal::{DeltaLog, FormerNode, LogArea, Persistence, PlainLog, UndoLog};

/// Inode number of the root directory (`UFSROOTINO`).
pub const ROOT: u32 = 2;
/// First inode that files get: behind the root's, `lost+found` has the one before.
const FIRST_INODE: u32 = 4;

/// Bytes of a change in the log: of an inode, of a group's maps, of an entry, of a pointer.
/// [assume]
pub const INODE_BYTES: u64 = 128 + 32;
const GROUP_BYTES: u64 = 96;
pub const ENTRY_BYTES: u64 = 64;
pub const POINTER_BYTES: u64 = 40;

/// Free inodes of a group.
#[derive(Clone, Debug, Default)]
struct InodeGroup {
    next: u32,
    freed: BTreeSet<u32>,
    used: u32,
    directories: u32,
}

/// A mounted UFS.
#[derive(Clone, Debug)]
pub struct UfsFs {
    pub(super) rules: UfsRules,
    pub(super) geometry: Geometry,
    pub(super) groups: Groups,
    pub(super) nodes: BTreeMap<u32, UfsNode>,
    pub(super) directories: BTreeMap<u32, PieceDirectory>,
    pub(super) log: Persistence,
    inodes: Vec<InodeGroup>,
    pub(super) undo: UndoLog<UfsNode>,
}

impl UfsFs {
    /// A fresh file system.
    pub fn make(spec: &MakeSpec) -> Result<Self, FilesError> {
        let (rules, geometry) = UfsRules::new(spec)?;
        let mut groups = Groups::new(&geometry);
        let first = groups.take_fragments(geometry.data_start(0), 1);
        let first = first.ok_or_else(|| FilesError::Inconsistent {
            subject: "ufs".into(),
            problem: "has no room for its root directory".into(),
            remedy: "use a larger device".into(),
        })?;
        let mut root = UfsNode::new(NodeKind::Directory, 0);
        root.blocks.set(0, 1, Place::Written(DeviceId::MAIN, first));
        (root.size, root.size_disk) = (PIECE, PIECE);
        let mut inodes = vec![InodeGroup::default(); geometry.groups as usize];
        inodes[0] = InodeGroup {
            next: FIRST_INODE,
            used: FIRST_INODE,
            directories: 2,
            ..inodes[0].clone()
        };
        Ok(Self {
            log: durability(&rules, &geometry),
            rules,
            geometry,
            groups,
            nodes: BTreeMap::from([(ROOT, root)]),
            directories: BTreeMap::from([(ROOT, PieceDirectory::made())]),
            inodes,
            undo: UndoLog::default(),
        })
    }

    // --- Changes ---

    /// The transaction that changes belong to now.
    pub(super) fn transaction(&mut self, cx: &mut Context) -> Tid {
        let tid = self.log.begin(cx.now);
        cx.changes(tid);
        if matches!(self.log, Persistence::Plain(_)) {
            self.settle();
        }
        tid
    }

    /// Keeps the state of an inode, but for its map, from before its first change in the running
    /// transaction.
    pub(super) fn keep(&mut self, cx: &mut Context, number: u32) {
        let tid = self.transaction(cx);
        self.undo.keep(tid, number, &mut self.nodes);
    }

    /// Keeps a range of the map of an inode, too, from before its change in the running
    /// transaction.
    pub(super) fn keep_range(&mut self, cx: &mut Context, number: u32, range: (u64, u64)) {
        let tid = self.transaction(cx);
        self.undo.keep_range(tid, number, range, &mut self.nodes);
    }

    /// Notes an inode from before changes that are made by now.
    pub(super) fn note(&mut self, cx: &mut Context, number: u32, old: FormerNode<UfsNode>) {
        let tid = self.transaction(cx);
        self.undo.note(tid, number, old);
    }

    /// Lets a name lie in a piece of a directory, or nowhere; a crash undoes it.
    pub(super) fn keep_entry(
        &mut self,
        cx: &mut Context,
        directory: u32,
        name: &str,
        old: Option<u32>,
    ) {
        let tid = self.transaction(cx);
        self.undo.keep_entry(tid, directory, name, old);
    }

    /// Notes a changed block of metadata.
    pub(super) fn change(&mut self, cx: &mut Context, block: BlockRun, bytes: u64) {
        self.transaction(cx);
        if self.log.change(block, bytes) {
            cx.dirties(block);
        }
    }

    /// Notes a changed inode; `is_data`: what is needed to find its data.
    pub(super) fn change_inode(&mut self, cx: &mut Context, number: u32, is_data: bool) {
        self.keep(cx, number);
        let block = self.geometry.inode_block(number);
        self.change(cx, block, INODE_BYTES);
        let tid = self.transaction(cx);
        if let Some(node) = self.nodes.get_mut(&number) {
            node.sync_tid = tid;
            if is_data {
                node.data_tid = tid;
            }
        }
    }

    /// Notes the maps of the group of a block.
    pub(super) fn change_group(&mut self, cx: &mut Context, block: u64) {
        let group = self.geometry.group_of(block);
        let run = self.geometry.group_block(group);
        self.change(cx, run, GROUP_BYTES);
    }

    /// Changes of names are on the device before the call returns, one after the other; a log needs
    /// no such order.
    pub(super) fn order(&mut self, cx: &mut Context, blocks: &[BlockRun]) {
        if let Persistence::Plain(ordered) = &mut self.log {
            let tid = ordered.request(blocks.iter().copied());
            cx.effects.wait = cx.effects.wait.max(Some(tid));
        }
    }

    /// Frees fragments: they may be used again once the change is durable.
    pub(super) fn free(&mut self, cx: &mut Context, first: u64, count: u64) {
        self.change_group(cx, first / Geometry::PER_BLOCK);
        let tid = self.transaction(cx);
        self.undo.free(tid, first, count);
    }

    /// Fragments that are free now or will be.
    pub(super) fn free_fragments(&self) -> u64 {
        self.groups.free_fragments() + self.undo.waiting()
    }

    /// Everything up to the durable transaction is kept: its freed fragments are free.
    pub(super) fn settle(&mut self) {
        for (first, count) in self.undo.settle(self.log.durable()) {
            self.groups.give(first, count);
        }
    }

    // --- Inodes ---

    /// A new inode: of a file in the group of its directory, of a directory in the group with the
    /// fewest directories among those with at least the mean number of free inodes.
    pub(super) fn take_inode(&mut self, kind: NodeKind, parent_group: u32) -> Option<u32> {
        let per_group = self.geometry.group_inodes;
        let count = self.inodes.len() as u32;
        let is_directory = kind == NodeKind::Directory;
        let start = if is_directory {
            let used: u64 = self.inodes.iter().map(|group| u64::from(group.used)).sum();
            let mean = used / u64::from(count);
            (0..count)
                .filter(|&group| u64::from(self.inodes[group as usize].used) <= mean)
                .min_by_key(|&group| self.inodes[group as usize].directories)
                .unwrap_or(parent_group)
        } else {
            parent_group
        };
        let group = (0..count)
            .map(|step| (start + step) % count)
            .find(|&group| self.inodes[group as usize].used < per_group)?;
        let state = &mut self.inodes[group as usize];
        let within = state.freed.pop_first().unwrap_or_else(|| {
            state.next += 1;
            state.next - 1
        });
        state.used += 1;
        state.directories += u32::from(is_directory);
        Some(group * per_group + within)
    }

    pub(super) fn give_inode(&mut self, number: u32, is_directory: bool) {
        let group = &mut self.inodes[self.geometry.inode_group(number) as usize];
        group.freed.insert(number % self.geometry.group_inodes);
        group.used -= 1;
        group.directories -= u32::from(is_directory);
    }

    pub(super) fn node(&self, node: NodeId) -> Option<&UfsNode> {
        self.nodes.get(&node.0)
    }

    // --- After a crash ---

    /// Undoes everything after a transaction and mounts again.
    pub(super) fn go_back(&mut self, durable: Tid) {
        self.undo.go_back(durable, &mut self.nodes, &mut self.directories);
        self.remount();
    }

    /// Maps of free space from the inodes, as `fsck` or the log leave them.
    fn remount(&mut self) {
        self.nodes.retain(|_, node| node.links > 0);
        self.groups = Groups::new(&self.geometry);
        self.inodes = vec![InodeGroup::default(); self.geometry.groups as usize];
        self.inodes[0].next = FIRST_INODE;
        (self.inodes[0].used, self.inodes[0].directories) = (FIRST_INODE, 1);
        let per_group = self.geometry.group_inodes;
        for (&number, node) in &mut self.nodes {
            node.size = node.size_disk;
            node.delayed = (0, 0);
            // The data were copied to the new place before the inode named it; here they still lie
            // in the old one.
            for old in core::mem::take(&mut node.former).iter() {
                node.blocks.set(old.first, old.count, old.place);
            }
            for extent in node.blocks.iter() {
                if let Some((_, first)) = extent.place.block() {
                    self.groups.occupy(first, extent.count);
                }
            }
            for &first in node.indirect.values() {
                self.groups.occupy(first, Geometry::PER_BLOCK);
            }
            let group = &mut self.inodes[(number / per_group) as usize];
            let within = number % per_group;
            group.directories += u32::from(node.is_directory());
            if number != ROOT {
                group.used += 1;
                let skipped = group.next..within;
                group.freed.extend(skipped);
                group.next = group.next.max(within + 1);
            }
        }
        self.directories.retain(|number, _| self.nodes.contains_key(number));
        for (number, directory) in &mut self.directories {
            directory.cut(self.nodes[number].size);
        }
    }

    /// Everything that belongs to a file and must be written for a promise.
    pub(super) fn blocks_of(&self, node: NodeId) -> Vec<BlockRun> {
        let Some(state) = self.node(node) else { return Vec::new() };
        let indirect = state.indirect.values().map(|first| run_of(first / Geometry::PER_BLOCK));
        indirect.chain([self.geometry.inode_block(node.0)]).collect()
    }
}

/// Writes in order, or the log: among the data, or on a device of its own.
fn durability(rules: &UfsRules, geometry: &Geometry) -> Persistence {
    let per_fragment = Geometry::FRAGMENT / 512;
    let beside = geometry.log.map(|(first, fragments)| LogArea {
        device: DeviceId::MAIN,
        first: first * per_fragment,
        sectors: fragments * per_fragment,
    });
    match rules.log_device.or(beside) {
        Some(area) => Persistence::Logged(DeltaLog::new(area, UfsRules::COMMIT)),
        None => Persistence::Plain(PlainLog::ordered()),
    }
}
