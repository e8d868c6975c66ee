//! Inodes in memory, and the changes of each transaction that a crash undoes.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;

use super::directory::Directory;
use crate::api::context::Tid;
use crate::api::file_system::NodeKind;
use crate::fs::extent_map::{ExtentMap, FormerRange};

/// Blocks that map the blocks of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps {
    /// Leaves of an extent tree: first block of the file, place, records. Empty: all records are in
    /// the inode.
    pub leaves: Vec<Leaf>,
    /// Index blocks above the leaves, without the inode itself.
    pub indexes: Vec<u64>,
    /// Indirect blocks of a file without extents, by depth and number.
    pub indirect: BTreeMap<(u8, u64), u64>,
}

/// A leaf of an extent tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// First block of the file that it maps.
    pub first: u64,
    /// Its place.
    pub place: u64,
    /// Records in it.
    pub records: u64,
}

impl Maps {
    /// Places of all of them.
    pub fn places(&self) -> impl Iterator<Item = u64> + '_ {
        let leaves = self.leaves.iter().map(|leaf| leaf.place);
        leaves.chain(self.indexes.iter().copied()).chain(self.indirect.values().copied())
    }
}

/// An inode.
#[derive(Clone, Debug)]
pub struct ExtNode {
    /// Sort.
    pub kind: NodeKind,
    /// Group of the inode.
    pub group: u32,
    /// Blocks with a place.
    pub blocks: ExtentMap,
    /// Blocks whose place is chosen later.
    pub delayed: ExtentMap,
    /// Records of the extent tree.
    pub records: u64,
    /// Blocks that map them.
    pub maps: Maps,
    /// Those changed since an fsync last wrote them, without a journal (Linux fs/buffer.c,
    /// `i_private_list`).
    pub unsynced: BTreeSet<u64>,
    /// Length in memory.
    pub size: u64,
    /// Length that the inode on the device has, or will have with its transaction.
    pub size_disk: u64,
    /// Number of names.
    pub links: u32,
    /// Handles that can write.
    pub writers: u32,
    /// Written at the next close, since it was cut to nothing (`auto_da_alloc`).
    pub flushes_at_close: bool,
    /// A flush at close is under way: the file counts as open still.
    pub is_flushing: bool,
    /// Last transaction that changed the inode.
    pub sync_tid: Tid,
    /// Last transaction that changed length or mapping.
    pub data_tid: Tid,
    /// Tick of the last change of the modification time, and of the access time.
    pub modified: u64,
    /// Tick of the last change of the access time.
    pub accessed: u64,
    /// Entries, of a directory.
    pub directory: Option<Directory>,
    /// Group of the last inode made in this directory.
    pub last_group: Option<u32>,
    /// Last block that got a place, and the place (drivers up to 4.2).
    pub last_placed: Option<(u64, u64)>,
}

impl ExtNode {
    /// A node without blocks.
    pub fn new(kind: NodeKind, group: u32) -> Self {
        Self {
            kind,
            group,
            blocks: ExtentMap::default(),
            delayed: ExtentMap::default(),
            records: 0,
            maps: Maps::default(),
            unsynced: BTreeSet::new(),
            size: 0,
            size_disk: 0,
            links: 1,
            writers: 0,
            flushes_at_close: false,
            is_flushing: false,
            sync_tid: Tid(0),
            data_tid: Tid(0),
            modified: 0,
            accessed: 0,
            directory: (kind == NodeKind::Directory).then(Directory::default),
            last_group: None,
            last_placed: None,
        }
    }

    /// Tell whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind == NodeKind::File
    }
}

/// Number of the latest changes among which one is looked for that takes up the next.
const ABSORBED: usize = 8;
/// Number of the latest changes among which a short-lived node is looked for.
const FORGOTTEN: usize = 64;

/// A change that a crash undoes.
#[derive(Clone, Debug)]
pub enum Undo {
    /// A range of a file had these extents.
    Blocks(u32, FormerRange),
    /// A file had these mapping blocks.
    Maps(u32, Box<Maps>),
    /// A file had this length on the device.
    Size(u32, u64),
    /// A node had this many names.
    Links(u32, u32),
    /// A node did not exist.
    Created(u32),
    /// A node existed.
    Evicted(u32, Box<ExtNode>),
    /// A directory had these leaves.
    Leaves(u32, Box<Directory>),
}

impl Undo {
    /// Node that it is about.
    const fn node(&self) -> u32 {
        match self {
            Self::Blocks(node, _)
            | Self::Maps(node, _)
            | Self::Size(node, _)
            | Self::Links(node, _)
            | Self::Created(node)
            | Self::Evicted(node, _)
            | Self::Leaves(node, _) => *node,
        }
    }

    /// Brings the former state back.
    pub fn carry_out(self, nodes: &mut BTreeMap<u32, ExtNode>) {
        let number = self.node();
        match self {
            Self::Created(_) => {
                nodes.remove(&number);
            }
            Self::Evicted(_, state) => {
                nodes.insert(number, *state);
            }
            part => {
                if let Some(node) = nodes.get_mut(&number) {
                    part.carry_out_in(node);
                }
            }
        }
    }

    fn carry_out_in(self, node: &mut ExtNode) {
        match self {
            Self::Blocks(_, old) => node.blocks.restore(&old),
            Self::Maps(_, old) => node.maps = *old,
            Self::Size(_, old) => node.size_disk = old,
            Self::Links(_, old) => node.links = old,
            Self::Leaves(_, old) => node.directory = Some(*old),
            Self::Created(_) | Self::Evicted(..) => {}
        }
    }

    /// Tell whether two of one node may be undone in any order: they are about different parts of a
    /// node that exists before and after them.
    fn is_independent_of(&self, other: &Self) -> bool {
        let is_part = |undo: &Self| !matches!(undo, Self::Created(_) | Self::Evicted(..));
        is_part(self) && is_part(other) && discriminant(self) != discriminant(other)
    }

    /// Takes up a later change of the same node: what was there before both is known already.
    fn absorbs(&mut self, next: &Self) -> bool {
        match (self, next) {
            (Self::Blocks(_, old), Self::Blocks(_, newer)) => old.absorbs(newer),
            (Self::Size(..), Self::Size(..))
            | (Self::Maps(..), Self::Maps(..))
            | (Self::Links(..), Self::Links(..))
            | (Self::Leaves(..), Self::Leaves(..)) => true,
            _ => false,
        }
    }
}

/// Everything that one transaction changed.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The transaction.
    pub tid: Tid,
    /// Blocks that are free once it is durable.
    pub freed: Vec<(u64, u64)>,
    /// Former states, oldest first.
    pub undo: Vec<Undo>,
}

impl Changes {
    /// Notes a former state.
    pub fn note(&mut self, undo: Undo) {
        let node = undo.node();
        // Lengths, blocks and names of a few files come in turn.
        for earlier in self.undo.iter_mut().rev().take(ABSORBED).filter(|old| old.node() == node) {
            if earlier.absorbs(&undo) {
                return;
            }
            if !earlier.is_independent_of(&undo) {
                break;
            }
        }
        self.undo.push(undo);
    }

    /// Forgets a node that this transaction made and removes: nothing of it ever was on the device.
    /// Tells whether it was found among the latest changes.
    pub fn forget(&mut self, node: u32) -> bool {
        let start = self.undo.len().saturating_sub(FORGOTTEN);
        let made = self.undo[start..]
            .iter()
            .rposition(|undo| matches!(undo, Undo::Created(of) if *of == node));
        let Some(made) = made else { return false };
        let later = self.undo.split_off(start + made);
        self.undo.extend(later.into_iter().filter(|undo| undo.node() != node));
        true
    }
}

#[cfg(test)]
mod tests {
    use iolab_model::Seed;
    use iolab_model::seed::Stream;

    use super::*;
    use crate::api::block::{DeviceId, Place};
    use crate::fs::extent_map::FileExtent;

    type Nodes = BTreeMap<u32, ExtNode>;

    /// Changes a part of a node by chance; what undoes it.
    fn change(random: &mut Stream, number: u32, node: &mut ExtNode) -> Undo {
        let value = random.next_u64();
        match value % 4 {
            0 => Undo::Size(number, std::mem::replace(&mut node.size_disk, value)),
            1 => Undo::Links(number, std::mem::replace(&mut node.links, value as u32)),
            _ => {
                let (first, count) = (value >> 8 & 7, 1 + (value >> 16 & 3));
                let place = match value >> 24 & 1 {
                    0 => Place::Hole,
                    _ => Place::Written(DeviceId::MAIN, value >> 32),
                };
                let old = node.blocks.former(first, count);
                node.blocks.clear(first, count);
                if place != Place::Hole {
                    node.blocks.set(first, count, place);
                }
                Undo::Blocks(number, old)
            }
        }
    }

    fn shown(nodes: &Nodes) -> Vec<(u32, u64, u32, Vec<FileExtent>)> {
        let parts = |node: &ExtNode| (node.size_disk, node.links, node.blocks.iter().collect());
        nodes
            .iter()
            .map(|(number, node)| {
                let (size, links, blocks) = parts(node);
                (*number, size, links, blocks)
            })
            .collect()
    }

    /// A transaction is undone as a list of all changes would be, whatever it put together.
    #[test]
    fn a_plain_list_agrees() {
        for seed in 0..2_000 {
            let mut random = Seed(seed).stream("undo", 0);
            let mut nodes = Nodes::new();
            for number in 0..2 {
                let mut node = ExtNode::new(NodeKind::File, 0);
                (0..6).for_each(|_| drop(change(&mut random, number, &mut node)));
                nodes.insert(number, node);
            }
            let (before, mut changes) = (shown(&nodes), Changes::default());
            for _ in 0..random.next_u64() % 40 {
                let number = (random.next_u64() % 4) as u32;
                let Some(node) = nodes.get_mut(&number) else {
                    nodes.insert(number, ExtNode::new(NodeKind::File, 0));
                    changes.note(Undo::Created(number));
                    continue;
                };
                if random.next_u64().is_multiple_of(6) {
                    let gone = nodes.remove(&number).unwrap();
                    if !changes.forget(number) {
                        changes.note(Undo::Evicted(number, Box::new(gone)));
                    }
                } else {
                    changes.note(change(&mut random, number, node));
                }
            }
            for undo in changes.undo.into_iter().rev() {
                undo.carry_out(&mut nodes);
            }
            assert_eq!(shown(&nodes), before, "seed {seed}");
        }
    }
}
