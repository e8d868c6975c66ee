//! `Leaves`: how the records of a free-space tree lie in its leaf blocks.
//!
//! Two decisions of the allocator look at the tree and not at the space: whether a search ends in
//! the last leaf of the tree by size, and how many blocks of the group's own list the trees need.
//! Rules of filling, shifting, splitting and joining: Linux `fs/xfs/libxfs/xfs_btree.c`.

/// Key of a record; trees order by it.
pub type Key = (u32, u32);

/// A leaf: its first key and its number of records.
type Leaf = (Key, u32);

/// Leaves of one tree, in order.
#[derive(Clone, Debug)]
pub struct Leaves {
    leaves: Vec<Leaf>,
    max: u32,
}

/// The records that the leaves hold, as far as they have to be looked at.
pub trait LeafKeys {
    /// The greatest key below.
    fn before(&self, key: Key) -> Option<Key>;
    /// The least key above.
    fn after(&self, key: Key) -> Option<Key>;
}

impl Leaves {
    /// No record yet, in leaves of at most `max`.
    pub fn new(max: u32) -> Self {
        Self { leaves: vec![((0, 0), 0)], max }
    }

    /// One leaf with so many records.
    pub fn of(max: u32, first: Key, count: u32) -> Self {
        Self { leaves: vec![(first, count)], max }
    }

    /// Number of leaves.
    pub fn leaves(&self) -> u32 {
        self.leaves.len() as u32
    }

    /// First key of the last leaf; a search that finds a key from there on is in that leaf.
    pub fn last_first(&self) -> Key {
        if self.leaves.len() == 1 { (0, 0) } else { self.leaves[self.leaves.len() - 1].0 }
    }

    /// Levels of the tree.
    pub fn levels(&self) -> u32 {
        if self.leaves.len() == 1 { 1 } else { 2 }
    }

    /// Blocks of the tree.
    pub fn blocks(&self) -> u32 {
        self.leaves.len() as u32 + self.levels() - 1
    }

    fn position(&self, key: Key) -> usize {
        self.leaves.partition_point(|(first, _)| *first <= key).saturating_sub(1)
    }

    /// Adds a key that `records` does not hold yet.
    pub fn insert(&mut self, key: Key, records: &impl LeafKeys) {
        let mut at = self.position(key);
        if self.leaves[at].1 == self.max {
            self.make_room(at, records);
            at = self.position(key);
        }
        let leaf = &mut self.leaves[at];
        leaf.1 += 1;
        if at > 0 || leaf.1 > 1 {
            leaf.0 = leaf.0.min(key);
        } else {
            leaf.0 = key;
        }
    }

    fn make_room(&mut self, at: usize, records: &impl LeafKeys) {
        if self.leaves.get(at + 1).is_some_and(|right| right.1 < self.max) {
            if let Some(moved) = records.before(self.leaves[at + 1].0) {
                self.leaves[at + 1] = (moved, self.leaves[at + 1].1 + 1);
                self.leaves[at].1 -= 1;
            }
            return;
        }
        if at > 0 && self.leaves[at - 1].1 < self.max {
            if let Some(next) = records.after(self.leaves[at].0) {
                self.leaves[at - 1].1 += 1;
                self.leaves[at] = (next, self.leaves[at].1 - 1);
            }
            return;
        }
        let kept = self.max - self.max / 2;
        let mut first = self.leaves[at].0;
        for _ in 0..kept {
            first = records.after(first).unwrap_or(first);
        }
        self.leaves[at].1 = kept;
        self.leaves.insert(at + 1, (first, self.max - kept));
    }

    /// Takes a key out that `records` does not hold any more.
    pub fn remove(&mut self, key: Key, records: &impl LeafKeys) {
        let at = self.position(key);
        let leaf = &mut self.leaves[at];
        debug_assert!(leaf.1 > 0, "a leaf that holds a key has a record");
        leaf.1 = leaf.1.saturating_sub(1);
        if leaf.0 == key {
            leaf.0 = records.after(key).unwrap_or(key);
        }
        if leaf.1 < self.max / 2 && self.leaves.len() > 1 {
            self.fill(at, records);
        }
    }

    /// Moves a record into a leaf that has too few, or joins it with a neighbour.
    fn fill(&mut self, at: usize, records: &impl LeafKeys) {
        let min = self.max / 2;
        let mine = self.leaves[at].1;
        if let Some(right) = self.leaves.get(at + 1).copied()
            && right.1 > min
        {
            if let Some(next) = records.after(right.0) {
                self.leaves[at + 1] = (next, right.1 - 1);
                self.leaves[at].1 += 1;
            }
            return;
        }
        if at > 0 && self.leaves[at - 1].1 > min {
            if let Some(moved) = records.before(self.leaves[at].0) {
                self.leaves[at - 1].1 -= 1;
                self.leaves[at] = (moved, mine + 1);
            }
            return;
        }
        if at > 0 && self.leaves[at - 1].1 + mine <= self.max {
            self.leaves[at - 1].1 += mine;
            self.leaves.remove(at);
        } else if self.leaves.get(at + 1).is_some_and(|right| right.1 + mine <= self.max) {
            let right = self.leaves.remove(at + 1);
            self.leaves[at].1 += right.1;
        }
    }
}
