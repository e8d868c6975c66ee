//! Groups of blocks: what is free in each, built when it is first looked at.
//!
//! Groups of one layout that nobody changed share what they have: large devices take little memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::fs::buddy::Buddy;
use crate::fs::ext::geometry::Geometry;

/// State of one group.
#[derive(Clone, Debug)]
struct Group {
    /// Free blocks and chunks, without windows; built when something is taken or given.
    buddy: Option<Arc<Buddy>>,
    /// Free blocks.
    free: u32,
    /// The kernel has built its buddies (`!EXT4_MB_GRP_NEED_INIT`).
    is_known: bool,
    /// Nothing but fixed metadata was ever in it: its bitmap need not be read (`BLOCK_UNINIT`).
    is_untouched: bool,
    /// List of its largest chunk.
    largest: Option<u32>,
    /// List of its mean fragment.
    fragment: Option<u32>,
}

/// Length of a group, and the ranges that mkfs uses.
type Layout = (u32, Vec<(u32, u32)>);

/// Every group of a file system.
#[derive(Clone, Debug)]
pub struct BlockGroups {
    all: Vec<Group>,
    /// Groups as mkfs leaves them, by their length and by what it uses of them.
    fresh: BTreeMap<Layout, Arc<Buddy>>,
    orders: u32,
    by_largest: Vec<BTreeSet<u32>>,
    by_fragment: Vec<BTreeSet<u32>>,
    keeps_lists: bool,
}

impl BlockGroups {
    /// Groups of a fresh file system.
    pub fn new(geometry: &Geometry, keeps_lists: bool) -> Self {
        let groups = (0..geometry.groups)
            .map(|group| Group {
                buddy: None,
                free: geometry.blocks_of(group) - geometry.fixed_blocks(group),
                is_known: false,
                is_untouched: geometry.is_untouched(group),
                largest: None,
                fragment: None,
            })
            .collect();
        // Linux fs/ext4/mballoc.h: MB_NUM_ORDERS.
        let orders = geometry.block_bytes.ilog2() + 2;
        let lists = || vec![BTreeSet::new(); orders as usize];
        let fresh = BTreeMap::new();
        Self { all: groups, fresh, orders, by_largest: lists(), by_fragment: lists(), keeps_lists }
    }

    /// Number of groups.
    pub const fn count(&self) -> u32 {
        self.all.len() as u32
    }

    /// Number of orders of chunks.
    pub const fn orders(&self) -> u32 {
        self.orders
    }

    /// Free blocks of a group.
    pub fn free(&self, group: u32) -> u32 {
        self.all[group as usize].free
    }

    /// Tell whether the kernel has looked at a group.
    pub fn is_known(&self, group: u32) -> bool {
        self.all[group as usize].is_known
    }

    /// Tell whether looking at a group costs no read.
    pub fn is_untouched(&self, group: u32) -> bool {
        self.all[group as usize].is_untouched
    }

    /// Looks at a group.
    pub fn learn(&mut self, geometry: &Geometry, group: u32) {
        if !self.all[group as usize].is_known {
            self.build(geometry, group);
            self.all[group as usize].is_known = true;
            self.list(group);
        }
    }

    /// Free blocks and chunks of a group.
    pub fn buddy(&mut self, geometry: &Geometry, group: u32) -> &Buddy {
        self.build(geometry, group)
    }

    /// Free blocks and chunks of a known group.
    pub fn known(&self, group: u32) -> Option<&Buddy> {
        let group = &self.all[group as usize];
        group.buddy.as_deref().filter(|_| group.is_known)
    }

    /// Takes a run inside a group.
    pub fn take(&mut self, geometry: &Geometry, group: u32, first: u32, count: u32) {
        self.learn(geometry, group);
        Arc::make_mut(self.build(geometry, group)).take(first, count);
        let state = &mut self.all[group as usize];
        state.free -= count;
        state.is_untouched = false;
        self.list(group);
    }

    /// Gives a run inside a group back.
    pub fn give(&mut self, geometry: &Geometry, group: u32, first: u32, count: u32) {
        self.learn(geometry, group);
        Arc::make_mut(self.build(geometry, group)).give(first, count);
        self.all[group as usize].free += count;
        self.list(group);
    }

    /// First known group with this largest chunk, from one on and before another.
    pub fn of_largest(&self, order: u32, from: u32, to: u32) -> Option<u32> {
        self.by_largest[order as usize].range(from..to).next().copied()
    }

    /// First known group with this mean fragment, from one on and before another.
    pub fn of_fragment(&self, order: u32, from: u32, to: u32) -> Option<u32> {
        self.by_fragment[order as usize].range(from..to).next().copied()
    }

    fn build(&mut self, geometry: &Geometry, group: u32) -> &mut Arc<Buddy> {
        let (fresh, orders) = (&mut self.fresh, self.orders);
        self.all[group as usize].buddy.get_or_insert_with(|| {
            let (blocks, fixed) = (geometry.blocks_of(group), geometry.fixed(group));
            let key = (blocks, fixed.iter().map(|run| (run.start, run.end)).collect());
            // A bitmap has a bit per block of a full group; what lies behind a short one is used.
            let made = || Arc::new(buddy_of(geometry.blocks_per_group, blocks, fixed, orders));
            Arc::clone(fresh.entry(key).or_insert_with(made))
        })
    }

    /// Puts a group into the lists that it belongs to.
    fn list(&mut self, group: u32) {
        let state = &mut self.all[group as usize];
        if !self.keeps_lists || !state.is_known {
            return;
        }
        let Some(buddy) = state.buddy.as_deref() else { return };
        let largest = buddy.largest_order();
        let fragment = buddy.free().checked_div(buddy.fragments());
        let fragment = fragment.map(|mean| fragment_order(mean, self.orders));
        move_to(&mut self.by_largest, group, &mut state.largest, largest);
        move_to(&mut self.by_fragment, group, &mut state.fragment, fragment);
    }
}

fn buddy_of(bits: u32, blocks: u32, fixed: &[Range<u32>], orders: u32) -> Buddy {
    let mut buddy = Buddy::full(bits, orders);
    let mut at = 0;
    for fixed in fixed {
        if fixed.start > at {
            buddy.give(at, fixed.start - at);
        }
        at = fixed.end;
    }
    if blocks > at {
        buddy.give(at, blocks - at);
    }
    buddy
}

fn move_to(lists: &mut [BTreeSet<u32>], group: u32, at: &mut Option<u32>, to: Option<u32>) {
    if *at == to {
        return;
    }
    if let Some(old) = *at {
        lists[old as usize].remove(&group);
    }
    if let Some(new) = to {
        lists[new as usize].insert(group);
    }
    *at = to;
}

/// List of a mean fragment (`mb_avg_fragment_size_order`): one less than its power of two.
pub fn fragment_order(blocks: u32, orders: u32) -> u32 {
    let bits = u32::BITS - blocks.leading_zeros();
    bits.saturating_sub(2).min(orders - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::options::FsOptions;
    use crate::fs::ext::options::order_from;

    /// All groups of 16 TiB are known, and few differ; a change of one is its own.
    #[test]
    fn groups_that_nobody_changed_share_what_they_have() {
        let order = order_from("ext4", &FsOptions::default(), 16 << 40).unwrap();
        let geometry = Geometry::new(&order).unwrap();
        let mut groups = BlockGroups::new(&geometry, true);
        (0..groups.count()).for_each(|group| groups.learn(&geometry, group));
        assert_eq!(groups.count(), 1 << 17);
        assert!(groups.fresh.len() < 64, "{} layouts", groups.fresh.len());
        let (one, other) = (groups.count() - 3, groups.count() - 2);
        let shared = |groups: &BlockGroups| {
            let [one, other] = [one, other].map(|group| groups.all[group as usize].buddy.clone());
            Arc::ptr_eq(&one.unwrap(), &other.unwrap())
        };
        assert!(shared(&groups));
        let free = groups.free(other);
        groups.take(&geometry, one, 0, 8);
        assert!(!shared(&groups));
        assert_eq!(groups.free(one), free - 8);
        assert_eq!(groups.buddy(&geometry, other).free(), free);
    }
}
