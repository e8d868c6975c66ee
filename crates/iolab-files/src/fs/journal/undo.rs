//! `UndoLog`: former states of inodes and entries, by transaction, and places that are free later.
//!
//! A crash undoes whole transactions, from the last one back to the one that is durable; what a
//! durable one freed may be used again. Of the map of a file the ranges that change are kept, so
//! that a transaction costs what it changes, however many extents the file has.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use crate::api::context::Tid;
use crate::fs::directory::PieceDirectory;
use crate::fs::extent_map::{ExtentMap, FormerRange};

/// An inode with a map. A copy of everything else is cheap.
pub trait MappedNode: Clone {
    /// Its map.
    fn map(&mut self) -> &mut ExtentMap;
}

/// An inode from before changes: the ranges of its map that change, and the rest of it.
#[derive(Clone, Debug)]
pub struct FormerNode<Node> {
    rest: Node,
    /// The last change last.
    ranges: Vec<FormerRange>,
}

impl<Node: MappedNode> FormerNode<Node> {
    /// An inode from before changes of anything but its map.
    pub fn new(node: &mut Node) -> Self {
        let map = core::mem::take(node.map());
        let rest = node.clone();
        *node.map() = map;
        Self { rest, ranges: Vec::new() }
    }

    /// Keeps a range of its map from before a change.
    pub fn keep(&mut self, map: &ExtentMap, (first, count): (u64, u64)) {
        self.note(map.former(first, count));
    }

    fn note(&mut self, range: FormerRange) {
        let is_empty = range.count == 0;
        if !is_empty && !self.ranges.last_mut().is_some_and(|last| last.absorbs(&range)) {
            self.ranges.push(range);
        }
    }

    /// The inode from before the changes, whose map is this one after them.
    fn undone(mut self, mut map: ExtentMap) -> Node {
        self.ranges.iter().rev().for_each(|range| map.restore(range));
        *self.rest.map() = map;
        self.rest
    }

    /// Undoes the changes.
    pub fn undo(self, node: &mut Node) {
        let map = core::mem::take(node.map());
        *node = self.undone(map);
    }
}

/// Former states of everything that a transaction changes.
#[derive(Clone, Debug)]
struct Changes<Node> {
    tid: Tid,
    /// Inodes; none: there was none.
    nodes: BTreeMap<u32, Option<Box<FormerNode<Node>>>>,
    /// Entries of directories, the last one last: the piece that held the name before.
    entries: Vec<(u32, Box<str>, Option<u32>)>,
    /// Places that are free once it is durable.
    freed: Vec<(u64, u64)>,
}

/// Changes of transactions that are not durable, the oldest first.
#[derive(Clone, Debug)]
pub struct UndoLog<Node> {
    changes: VecDeque<Changes<Node>>,
}

impl<Node> Default for UndoLog<Node> {
    fn default() -> Self {
        Self { changes: VecDeque::new() }
    }
}

impl<Node: MappedNode> UndoLog<Node> {
    fn of(&mut self, tid: Tid) -> &mut Changes<Node> {
        if self.changes.back().is_none_or(|last| last.tid != tid) {
            self.changes.push_back(Changes {
                tid,
                nodes: BTreeMap::new(),
                entries: Vec::new(),
                freed: Vec::new(),
            });
        }
        self.changes.back_mut().expect("one was just added")
    }

    /// Keeps the state of an inode, but for its map, from before its first change in a transaction;
    /// answers with it, unless there was no such inode.
    pub fn keep(
        &mut self,
        tid: Tid,
        number: u32,
        nodes: &mut BTreeMap<u32, Node>,
    ) -> Option<&mut FormerNode<Node>> {
        let old = || nodes.get_mut(&number).map(|node| Box::new(FormerNode::new(node)));
        self.of(tid).nodes.entry(number).or_insert_with(old).as_deref_mut()
    }

    /// Keeps a range of the map of an inode, too, from before its change in a transaction.
    pub fn keep_range(
        &mut self,
        tid: Tid,
        number: u32,
        range: (u64, u64),
        nodes: &mut BTreeMap<u32, Node>,
    ) {
        // Nothing comes back of an inode that the transaction has made.
        let Some(old) = self.keep(tid, number, nodes) else { return };
        if let Some(node) = nodes.get_mut(&number) {
            old.keep(node.map(), range);
        }
    }

    /// Notes an inode from before changes that are made by now.
    pub fn note(&mut self, tid: Tid, number: u32, old: FormerNode<Node>) {
        match self.of(tid).nodes.entry(number) {
            Entry::Vacant(place) => {
                place.insert(Some(Box::new(old)));
            }
            Entry::Occupied(known) => {
                if let Some(known) = known.into_mut() {
                    old.ranges.into_iter().for_each(|range| known.note(range));
                }
            }
        }
    }

    /// Keeps the piece of a directory that held a name before, or that none did.
    pub fn keep_entry(&mut self, tid: Tid, directory: u32, name: &str, old: Option<u32>) {
        self.of(tid).entries.push((directory, name.into(), old));
    }

    /// Notes places that are free once a transaction is durable.
    pub fn free(&mut self, tid: Tid, first: u64, count: u64) {
        self.of(tid).freed.push((first, count));
    }

    /// Number of frees in a transaction so far.
    pub fn frees(&mut self, tid: Tid) -> usize {
        self.of(tid).freed.len()
    }

    /// Takes back all frees in a transaction but the first ones: the call that made them fails.
    pub fn take_back(&mut self, tid: Tid, first: usize) {
        self.of(tid).freed.truncate(first);
    }

    /// Places that wait to be free.
    pub fn waiting(&self) -> u64 {
        self.changes.iter().flat_map(|changes| &changes.freed).map(|(_, count)| count).sum()
    }

    /// Forgets what is durable; places that are free by it, in the order of their freeing.
    pub fn settle(&mut self, durable: Tid) -> Vec<(u64, u64)> {
        let count = self.changes.partition_point(|changes| changes.tid <= durable);
        self.changes.drain(..count).flat_map(|changes| changes.freed).collect()
    }

    /// Undoes everything after a transaction, the last change first, and forgets all.
    pub fn go_back(
        &mut self,
        durable: Tid,
        nodes: &mut BTreeMap<u32, Node>,
        directories: &mut BTreeMap<u32, PieceDirectory>,
    ) {
        let undone = core::mem::take(&mut self.changes).into_iter().rev();
        for changes in undone.take_while(|changes| changes.tid > durable) {
            for (directory, name, old) in changes.entries.into_iter().rev() {
                directories.entry(directory).or_default().put(&name, old);
            }
            for (number, old) in changes.nodes {
                let now = nodes.remove(&number);
                if let Some(old) = old {
                    let map = now.map(|mut node| core::mem::take(node.map())).unwrap_or_default();
                    nodes.insert(number, old.undone(map));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use iolab_model::Seed;
    use iolab_model::seed::Stream;

    use super::*;
    use crate::api::block::{DeviceId, Place};

    #[derive(Clone, Debug, Default, PartialEq)]
    struct File {
        size: u64,
        extents: ExtentMap,
    }

    impl MappedNode for File {
        fn map(&mut self) -> &mut ExtentMap {
            &mut self.extents
        }
    }

    type Files = BTreeMap<u32, File>;

    /// Changes the places of a few blocks by chance.
    fn change(random: &mut Stream, map: &mut ExtentMap, (first, count): (u64, u64)) {
        let value = random.next_u64();
        match value % 4 {
            0 => map.clear(first, count),
            1 => map.mark_written(first, count),
            2 => map.set(first, count, Place::Unwritten(DeviceId::MAIN, value >> 32)),
            // Neighbours of the blocks before: extents grow together.
            _ => map.set(first, count, Place::Written(DeviceId::MAIN, 1_000 + first)),
        }
    }

    /// One change in a transaction: of a file, of all its blocks before it goes, or of a new file.
    fn step(random: &mut Stream, (undo, files): (&mut UndoLog<File>, &mut Files), tid: Tid) {
        let value = random.next_u64();
        let (number, range) = ((value & 3) as u32, (value >> 8 & 31, 1 + (value >> 16 & 7)));
        let Some(file) = files.get_mut(&number) else {
            undo.keep(tid, number, files);
            files.insert(number, File::default());
            return;
        };
        match value >> 24 & 7 {
            0 => {
                undo.keep_range(tid, number, (0, u64::MAX), files);
                files.remove(&number);
            }
            1 => {
                undo.keep(tid, number, files);
                files.get_mut(&number).unwrap().size = value;
            }
            kind @ 2..=4 => {
                let (mut old, before) = (FormerNode::new(file), file.clone());
                old.keep(&file.extents, range);
                (0..3).for_each(|_| change(random, &mut file.extents, range));
                file.size += 1;
                if kind == 2 {
                    old.undo(file);
                    assert_eq!(*file, before, "a call that fails changes nothing");
                } else {
                    undo.note(tid, number, old);
                }
            }
            _ => {
                undo.keep_range(tid, number, range, files);
                change(random, &mut files.get_mut(&number).unwrap().extents, range);
            }
        }
    }

    /// A crash leaves what whole copies of all files would have left.
    #[test]
    fn whole_copies_agree() {
        for seed in 0..2_000 {
            let mut random = Seed(seed).stream("undo-log", 0);
            let (mut undo, mut files) = (UndoLog::default(), Files::new());
            let mut copies = vec![files.clone()];
            for tid in 1..6 {
                for _ in 0..random.next_u64() % 12 {
                    step(&mut random, (&mut undo, &mut files), Tid(tid));
                }
                copies.push(files.clone());
            }
            let settled = random.next_u64() % 6;
            undo.settle(Tid(settled));
            let durable = settled + random.next_u64() % (6 - settled);
            undo.go_back(Tid(durable), &mut files, &mut BTreeMap::new());
            assert_eq!(files, copies[durable as usize], "seed {seed}");
        }
    }

    /// A transaction keeps as much of a file with many extents as of one with few.
    #[test]
    fn a_transaction_keeps_what_it_changes() {
        let (mut undo, mut file) = (UndoLog::default(), File::default());
        for block in 0..10_000 {
            file.extents.set(block, 1, Place::Written(DeviceId::MAIN, 2 * block));
        }
        let mut files = Files::from([(7, file)]);
        undo.keep_range(Tid(1), 7, (5_000, 2), &mut files);
        let kept = undo.changes[0].nodes[&7].as_ref().unwrap();
        assert_eq!(kept.rest.extents.len(), 0);
        assert_eq!(kept.ranges.iter().map(|range| range.extents.len()).sum::<usize>(), 2);
    }
}
