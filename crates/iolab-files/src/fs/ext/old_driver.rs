//! Placement as the drivers of ext2 and ext3 had it up to 4.2: block by block, with windows.
//!
//! Source: Linux 4.2 fs/ext3/inode.c (`ext3_find_goal`, `ext3_alloc_branch`, `ext3_alloc_blocks`).

use core::ops::Range;

use iolab_model::error::Errno;

use super::driver::ExtFs;
use super::mapping::{Wish, blocks_to_border, indirect_path};
use super::mballoc::allocator::Allocator;
use super::reservation::FreeLookup;
use crate::api::context::Context;

impl FreeLookup for Allocator {
    fn first_free(&mut self, range: Range<u64>) -> Option<u64> {
        self.next_free_in(range)
    }

    fn group(&self, block: u64) -> Range<u64> {
        let (group, _) = self.geometry().group_of(block);
        let start = self.geometry().block_at(group, 0);
        start..start + u64::from(self.geometry().blocks_of(group))
    }

    fn free_in_group(&self, block: u64) -> u64 {
        u64::from(self.free_in(self.geometry().group_of(block).0))
    }

    fn all(&self) -> Range<u64> {
        self.geometry().first_block..self.geometry().blocks
    }
}

impl ExtFs {
    /// Missing indirect blocks and data in one stream.
    pub(super) fn place_old(
        &mut self,
        cx: &mut Context,
        wish: &Wish,
        count: u64,
    ) -> Result<(u64, u32), Errno> {
        let per_block = self.block_bytes() / 4;
        let path = indirect_path(wish.first, per_block);
        let count = count.min(blocks_to_border(wish.first, per_block));
        let mut goal = self.old_goal(cx, wish, &path);
        for &key in &path {
            if !self.nodes[&wish.node].maps.indirect.contains_key(&key) {
                let (block, _) = self.take_old(cx, wish.node, goal, 1)?;
                self.change_map_block(cx, wish.node, block);
                self.change_maps(cx, wish.node, |maps| {
                    maps.indirect.insert(key, block);
                });
                goal = block + 1;
            }
        }
        if let Some(key) = path.last() {
            let block = self.nodes[&wish.node].maps.indirect[key];
            self.change_map_block(cx, wish.node, block);
        }
        let (first, count) = self.take_old(cx, wish.node, goal, count)?;
        if let Some(node) = self.nodes.get_mut(&wish.node) {
            node.last_placed =
                Some((wish.first + u64::from(count) - 1, first + u64::from(count) - 1));
        }
        Ok((first, count))
    }

    fn old_goal(&self, cx: &Context, wish: &Wish, path: &[(u8, u64)]) -> u64 {
        let node = &self.nodes[&wish.node];
        let last = node.last_placed.filter(|(logical, _)| logical + 1 == wish.first);
        last.map_or_else(|| self.near_goal(cx, wish, path), |(_, physical)| physical + 1)
    }

    fn take_old(
        &mut self,
        cx: &mut Context,
        node: u32,
        goal: u64,
        count: u64,
    ) -> Result<(u64, u32), Errno> {
        let mut windows = self.windows.take().ok_or(Errno::EINVAL)?;
        let is_file = self.nodes.get(&node).is_some_and(super::node::ExtNode::is_file);
        let found = if is_file {
            windows.find(&mut self.allocator, node, goal, count)
        } else {
            super::reservation::Reservations::off().find(&mut self.allocator, node, goal, count)
        };
        self.windows = Some(windows);
        let (first, count) = found.ok_or(Errno::ENOSPC)?;
        self.allocator.occupy(first, count);
        self.free -= count;
        self.change_bitmaps(cx, first, count);
        Ok((first, count as u32))
    }
}
