//! Entities ordered by finish time, searchable for the first one whose start time has come.
//!
//! A treap whose nodes know the least start time below them, so that the eligible entity with the
//! least finish time is found in logarithmic time. Equal finish times keep insertion order. The
//! shape depends on a fixed sequence of pseudo-random priorities; the answers do not depend on it.
//!
//! Source: the search is that of I. Stoica, H. Abdel-Wahab, "Earliest Eligible Virtual Deadline
//! First", 1995; treaps: R. Seidel, C. Aragon, Algorithmica 16, 1996.

/// No node.
const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    left: u32,
    right: u32,
    priority: u64,
    finish: u64,
    sequence: u64,
    start: u64,
    least_start: u64,
}

/// Numbered things (node `i` is thing `i`) in order of finish time.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    root: u32,
    sequence: u64,
}

impl Default for Tree {
    fn default() -> Self {
        Self { nodes: Vec::new(), root: NIL, sequence: 0 }
    }
}

impl Tree {
    /// Adds a thing, after those with the same finish time.
    pub(super) fn insert(&mut self, id: u32, start: u64, finish: u64) {
        if self.nodes.len() <= id as usize {
            self.nodes.resize(id as usize + 1, Node::default());
        }
        self.sequence += 1;
        let priority = scramble(self.sequence);
        let sequence = self.sequence;
        self.nodes[id as usize] =
            Node { left: NIL, right: NIL, priority, finish, sequence, start, least_start: start };
        let (low, high) = self.split(self.root, finish);
        let low = self.join(low, id);
        self.root = self.join(low, high);
    }

    /// Removes a thing that is here.
    pub(super) fn remove(&mut self, id: u32) {
        let key = (self.node(id).finish, self.node(id).sequence);
        self.root = self.remove_below(self.root, key);
    }

    /// Tell whether nothing is here.
    pub(super) const fn is_empty(&self) -> bool {
        self.root == NIL
    }

    /// The least start time.
    pub(super) fn least_start(&self) -> Option<u64> {
        (self.root != NIL).then(|| self.node(self.root).least_start)
    }

    /// The one with the least finish time among those whose start time is not after `time`.
    pub(super) fn first_eligible(&self, time: u64) -> Option<u32> {
        if self.least_below(self.root) > time || self.root == NIL {
            return None;
        }
        let mut at = self.root;
        loop {
            let node = self.node(at);
            if node.left != NIL && self.least_below(node.left) <= time {
                at = node.left;
            } else if node.start <= time {
                return Some(at);
            } else {
                at = node.right;
            }
        }
    }

    /// The one with the least finish time, and that time.
    pub(super) fn first(&self) -> Option<(u32, u64)> {
        self.outermost(|node| node.left)
    }

    /// The one with the greatest finish time, and that time.
    pub(super) fn last(&self) -> Option<(u32, u64)> {
        self.outermost(|node| node.right)
    }

    fn outermost(&self, towards: impl Fn(&Node) -> u32) -> Option<(u32, u64)> {
        let mut at = self.root;
        if at == NIL {
            return None;
        }
        while towards(self.node(at)) != NIL {
            at = towards(self.node(at));
        }
        Some((at, self.node(at).finish))
    }

    fn node(&self, id: u32) -> &Node {
        &self.nodes[id as usize]
    }

    fn least_below(&self, id: u32) -> u64 {
        if id == NIL { u64::MAX } else { self.node(id).least_start }
    }

    /// Recomputes a node after its children changed.
    fn refresh(&mut self, id: u32) {
        let node = *self.node(id);
        let below = self.least_below(node.left).min(self.least_below(node.right));
        self.nodes[id as usize].least_start = node.start.min(below);
    }

    /// Those that finish no later than `finish`, and the rest.
    fn split(&mut self, id: u32, finish: u64) -> (u32, u32) {
        if id == NIL {
            return (NIL, NIL);
        }
        if self.node(id).finish <= finish {
            let (low, high) = self.split(self.node(id).right, finish);
            self.nodes[id as usize].right = low;
            self.refresh(id);
            (id, high)
        } else {
            let (low, high) = self.split(self.node(id).left, finish);
            self.nodes[id as usize].left = high;
            self.refresh(id);
            (low, id)
        }
    }

    /// One tree of two, all of `low` before all of `high`.
    fn join(&mut self, low: u32, high: u32) -> u32 {
        if low == NIL {
            return high;
        }
        if high == NIL {
            return low;
        }
        if self.node(low).priority >= self.node(high).priority {
            let right = self.join(self.node(low).right, high);
            self.nodes[low as usize].right = right;
            self.refresh(low);
            low
        } else {
            let left = self.join(low, self.node(high).left);
            self.nodes[high as usize].left = left;
            self.refresh(high);
            high
        }
    }

    fn remove_below(&mut self, id: u32, key: (u64, u64)) -> u32 {
        assert!(id != NIL, "only what is in the tree is removed");
        let node = *self.node(id);
        let here = (node.finish, node.sequence);
        if key == here {
            return self.join(node.left, node.right);
        }
        if key < here {
            self.nodes[id as usize].left = self.remove_below(node.left, key);
        } else {
            self.nodes[id as usize].right = self.remove_below(node.right, key);
        }
        self.refresh(id);
        id
    }
}

/// A fixed sequence of well mixed numbers (the finaliser of `SplitMix64`).
const fn scramble(counter: u64) -> u64 {
    let z = counter.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
