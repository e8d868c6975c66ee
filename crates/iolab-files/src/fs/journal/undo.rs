//! `UndoLog`: former states of inodes and entries, by transaction, and places that are free later.
//!
//! A crash undoes whole transactions, from the last one back to the one that is durable; what a
//! durable one freed may be used again. For file systems whose inodes are small enough to be kept
//! whole.

use std::collections::{BTreeMap, VecDeque};

use crate::api::context::Tid;
use crate::fs::directory::PieceDirectory;

/// Former states of everything that a transaction changes.
#[derive(Clone, Debug)]
struct Changes<Node> {
    tid: Tid,
    /// Inodes; none: there was none.
    nodes: BTreeMap<u32, Option<Box<Node>>>,
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

impl<Node: Clone> UndoLog<Node> {
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

    /// Keeps the state of an inode from before its first change in a transaction.
    pub fn keep(&mut self, tid: Tid, number: u32, nodes: &BTreeMap<u32, Node>) {
        let old = || nodes.get(&number).cloned().map(Box::new);
        self.of(tid).nodes.entry(number).or_insert_with(old);
    }

    /// Keeps the piece of a directory that held a name before, or that none did.
    pub fn keep_entry(&mut self, tid: Tid, directory: u32, name: &str, old: Option<u32>) {
        self.of(tid).entries.push((directory, name.into(), old));
    }

    /// Notes places that are free once a transaction is durable.
    pub fn free(&mut self, tid: Tid, first: u64, count: u64) {
        self.of(tid).freed.push((first, count));
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
                match old {
                    Some(node) => nodes.insert(number, *node),
                    None => nodes.remove(&number),
                };
            }
        }
    }
}
