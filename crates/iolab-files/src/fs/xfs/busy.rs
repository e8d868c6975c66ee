//! `BusyBlocks`: blocks that are free and may not be used for data yet.
//!
//! They were freed by a checkpoint that is not durable: a power cut would give them back to their
//! former owner. The kernel keeps them in a red-black tree and walks it once from its root, so that
//! which of them it meets depends on the tree's shape. The same tree stands here (Linux
//! `fs/xfs/xfs_extent_busy.c`, lib/rbtree.c).

use super::space::FreeSpan;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    run: FreeSpan,
    children: [u32; 2],
    parent: u32,
    is_red: bool,
}

/// Busy blocks of a group.
#[derive(Clone, Debug)]
pub struct BusyBlocks {
    /// In the order in which they were freed.
    entries: Vec<Entry>,
    root: u32,
}

impl Default for BusyBlocks {
    fn default() -> Self {
        Self { entries: Vec::new(), root: NONE }
    }
}

impl BusyBlocks {
    /// Tell whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn side(&self, node: u32) -> usize {
        let parent = self.entries[node as usize].parent;
        usize::from(self.entries[parent as usize].children[1] == node)
    }

    fn is_red(&self, node: u32) -> bool {
        node != NONE && self.entries[node as usize].is_red
    }

    fn paint(&mut self, node: u32, is_red: bool) {
        self.entries[node as usize].is_red = is_red;
    }

    /// Puts the child on the other side of `side` in the place of `node`.
    fn rotate(&mut self, node: u32, side: usize) {
        let up = self.entries[node as usize].children[1 - side];
        let moved = self.entries[up as usize].children[side];
        self.entries[node as usize].children[1 - side] = moved;
        if moved != NONE {
            self.entries[moved as usize].parent = node;
        }
        let parent = self.entries[node as usize].parent;
        self.entries[up as usize].parent = parent;
        if parent == NONE {
            self.root = up;
        } else {
            let place = self.side(node);
            self.entries[parent as usize].children[place] = up;
        }
        self.entries[up as usize].children[side] = node;
        self.entries[node as usize].parent = up;
    }

    /// Adds blocks.
    pub fn insert(&mut self, run: FreeSpan) {
        let new = self.entries.len() as u32;
        let (mut parent, mut at, mut side) = (NONE, self.root, 0);
        while at != NONE {
            parent = at;
            side = usize::from(run.first >= self.entries[at as usize].run.first);
            at = self.entries[at as usize].children[side];
        }
        self.entries.push(Entry { run, children: [NONE; 2], parent, is_red: true });
        if parent == NONE {
            self.root = new;
        } else {
            self.entries[parent as usize].children[side] = new;
        }
        self.balance(new);
    }

    fn balance(&mut self, new: u32) {
        let mut node = new;
        loop {
            let mut parent = self.entries[node as usize].parent;
            if !self.is_red(parent) {
                break;
            }
            let grand = self.entries[parent as usize].parent;
            let side = self.side(parent);
            let uncle = self.entries[grand as usize].children[1 - side];
            if self.is_red(uncle) {
                self.paint(parent, false);
                self.paint(uncle, false);
                self.paint(grand, true);
                node = grand;
                continue;
            }
            if self.side(node) != side {
                self.rotate(parent, side);
                core::mem::swap(&mut node, &mut parent);
            }
            self.paint(parent, false);
            self.paint(grand, true);
            self.rotate(grand, 1 - side);
            break;
        }
        self.paint(self.root, false);
    }

    /// Blocks are busy no longer where a test says so.
    pub fn drop_where(&mut self, test: impl Fn(FreeSpan) -> bool) {
        if !self.entries.iter().any(|entry| test(entry.run)) {
            return;
        }
        let old = core::mem::take(self);
        for entry in old.entries.into_iter().filter(|entry| !test(entry.run)) {
            self.insert(entry.run);
        }
    }

    /// Part of a free run for `min` to `max` blocks without those busy ones that a walk from the
    /// root meets, and whether it met any.
    pub fn trim(&self, run: FreeSpan, min: u32, max: u32) -> (FreeSpan, bool) {
        let nothing = FreeSpan { first: run.first, count: 0 };
        let (mut first, mut end, mut met) = (run.first, run.end(), false);
        let mut at = self.root;
        while at != NONE && end - first >= min {
            let entry = &self.entries[at as usize];
            let busy = entry.run;
            if end <= busy.first {
                at = entry.children[0];
            } else if first >= busy.end() {
                at = entry.children[1];
            } else {
                met = true;
                if busy.first <= first {
                    if end <= busy.end() {
                        return (nothing, true);
                    }
                    first = busy.end();
                } else if busy.end() >= end || busy.first - first >= max {
                    end = busy.first;
                } else if end - busy.end() >= max.saturating_mul(4) {
                    first = busy.end();
                } else if busy.first - first >= min {
                    end = busy.first;
                } else {
                    return (nothing, true);
                }
            }
        }
        (FreeSpan { first, count: end - first }, met)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::seed::Seed;

    /// Checks order and colours below a node; answers the number of black ones on each way.
    fn black_height(busy: &BusyBlocks, node: u32, range: (u32, u32)) -> u32 {
        if node == NONE {
            return 1;
        }
        let entry = busy.entries[node as usize];
        assert!((range.0..range.1).contains(&entry.run.first));
        assert!(!entry.is_red || entry.children.iter().all(|child| !busy.is_red(*child)));
        let left = black_height(busy, entry.children[0], (range.0, entry.run.first));
        let right = black_height(busy, entry.children[1], (entry.run.first + 1, range.1));
        assert_eq!(left, right);
        left + u32::from(!entry.is_red)
    }

    #[test]
    fn stays_a_red_black_tree() {
        let mut random = Seed(2).stream("busy", 0);
        let mut busy = BusyBlocks::default();
        for _ in 0..2_000 {
            let first = random.below(1 << 20) as u32 * 4;
            if busy.entries.iter().all(|entry| entry.run.first != first) {
                busy.insert(FreeSpan { first, count: 3 });
            }
            if random.below(20) == 0 {
                let limit = random.below(1 << 22) as u32;
                busy.drop_where(|run| run.first.abs_diff(limit) < 100_000);
            }
        }
        black_height(&busy, busy.root, (0, u32::MAX));
        assert!(busy.entries.len() > 200);
    }

    #[test]
    fn a_walk_meets_what_lies_on_its_way() {
        let mut busy = BusyBlocks::default();
        for first in [40, 20, 60] {
            busy.insert(FreeSpan { first, count: 5 });
        }
        let run = FreeSpan { first: 0, count: 100 };
        assert_eq!(busy.trim(run, 10, 10), (FreeSpan { first: 0, count: 20 }, true));
        // To the left of the root there is not enough, and the walk does not come back.
        assert_eq!(busy.trim(run, 30, 30).0.count, 0);
        assert_eq!(busy.trim(run, 1, 9), (FreeSpan { first: 0, count: 20 }, true));
        assert_eq!(busy.trim(FreeSpan { first: 21, count: 3 }, 1, 1).0.count, 0);
        assert!(!busy.trim(FreeSpan { first: 70, count: 9 }, 1, 4).1);
    }
}
