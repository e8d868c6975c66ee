//! Inodes in memory, and the changes of each transaction that a crash undoes.

use std::collections::BTreeMap;

use super::directory::Directory;
use crate::api::context::Tid;
use crate::api::file_system::NodeKind;
use crate::fs::extent_map::{ExtentMap, FileExtent};

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

/// A change that a crash undoes.
#[derive(Clone, Debug)]
pub enum Undo {
    /// A range of a file had these extents.
    Blocks(u32, u64, u64, Vec<FileExtent>),
    /// A file had these mapping blocks.
    Maps(u32, Maps),
    /// A file had this length on the device.
    Size(u32, u64),
    /// A node had this many names.
    Links(u32, u32),
    /// A node did not exist.
    Created(u32),
    /// A node existed.
    Evicted(u32, Box<ExtNode>),
    /// A directory had these leaves.
    Leaves(u32, Directory),
}

impl Undo {
    /// Tell whether one is about the length and the other about the blocks of a file.
    pub const fn is_independent_of(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Size(..), Self::Blocks(..)) | (Self::Blocks(..), Self::Size(..))
        )
    }

    /// Takes up a change that continues this one: new blocks of a growing file.
    pub fn absorbs(&mut self, next: &Self) -> bool {
        match (self, next) {
            (Self::Blocks(node, first, count, old), Self::Blocks(of, from, more, newer))
                if *node == *of
                    && *first + *count == *from
                    && old.is_empty()
                    && newer.is_empty() =>
            {
                *count += more;
                true
            }
            (Self::Size(node, _), Self::Size(of, _)) => *node == *of,
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
