//! Mapping of a file's blocks: extents with their tree, or indirect blocks.
//!
//! Source: Linux fs/ext4/extents.c (`ext4_ext_map_blocks`, `ext4_ext_find_goal`,
//! `ext4_ext_insert_extent`), fs/ext4/indirect.c (`ext4_ind_map_blocks`).

use iolab_model::error::Errno;

use super::driver::ExtFs;
use super::mballoc::allocator::{BlockRequest, Neighbour};
use super::node::{ExtNode, Leaf, Undo};
use crate::api::block::{DeviceId, Mapped, Place};
use crate::api::context::Context;
use crate::fs::extent_map::{ExtentMap, FileExtent};

/// Records of an inode, and of a leaf per block byte (12 bytes each behind a header of 12).
const ROOT_RECORDS: u64 = 4;
const RECORD_BYTES: u32 = 12;
/// Blocks of a written and of an unwritten record (`EXT_INIT_MAX_LEN`).
const WRITTEN_MAX: u64 = 32768;
const UNWRITTEN_MAX: u64 = 32767;
/// Blocks that an inode without extents maps itself.
pub const DIRECT_BLOCKS: u64 = 12;

/// A wish for places of blocks that have none.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Inode number.
    pub node: u32,
    /// First block of the file.
    pub first: u64,
    /// Number of blocks.
    pub count: u64,
    /// Length of the file in bytes, as the allocator sees it.
    pub size: u64,
    /// New extents are unwritten.
    pub is_unwritten: bool,
    /// As many as asked for, without windows.
    pub is_exact: bool,
}

impl ExtFs {
    /// Gives places to the first blocks of a wish, which must be a hole or delayed. The caller
    /// notes the changed inode.
    pub(super) fn place(&mut self, cx: &mut Context, wish: Wish) -> Result<Mapped, Errno> {
        let node = self.nodes.get(&wish.node).ok_or(Errno::EINVAL)?;
        let hole = node.blocks.mapped(wish.first, wish.count);
        debug_assert_eq!(hole.place, Place::Hole, "blocks are placed twice");
        let most = if wish.is_unwritten { UNWRITTEN_MAX } else { WRITTEN_MAX };
        let count = hole.count.min(most);
        let (physical, count) = if self.windows.is_some() {
            self.place_old(cx, &wish, count)?
        } else if self.has_extents {
            let request = self.extent_request(cx, &wish, count);
            self.take(cx, &request)?
        } else {
            self.indirect(cx, &wish, count)?
        };
        let place = if wish.is_unwritten {
            Place::Unwritten(DeviceId::MAIN, physical)
        } else {
            Place::Written(DeviceId::MAIN, physical)
        };
        let extent = FileExtent { first: wish.first, count: u64::from(count), place };
        self.record(cx, wish.node, extent)?;
        Ok(Mapped { place, count: u64::from(count) })
    }

    /// Changes the places of a range, with the tree above them and what a crash undoes.
    pub(super) fn record(
        &mut self,
        cx: &mut Context,
        node: u32,
        extent: FileExtent,
    ) -> Result<(), Errno> {
        let FileExtent { first, count, place } = extent;
        let Some(state) = self.nodes.get_mut(&node) else { return Ok(()) };
        let old = state.blocks.former(first, count);
        if !self.has_extents {
            state.blocks.set(first, count, place);
            self.undo(cx, Undo::Blocks(node, old));
            return Ok(());
        }
        let before = records_near(&state.blocks, first, count);
        state.blocks.set(first, count, place);
        let after = records_near(&state.blocks, first, count);
        state.records = (state.records + after).saturating_sub(before);
        self.undo(cx, Undo::Blocks(node, old));
        self.grow_tree(cx, node, first, (before, after))
    }

    /// Takes blocks and notes the bitmaps that change.
    pub(super) fn take(
        &mut self,
        cx: &mut Context,
        request: &BlockRequest,
    ) -> Result<(u64, u32), Errno> {
        let (physical, count) = self.allocator.allocate(request).ok_or(Errno::ENOSPC)?;
        self.free -= u64::from(count);
        self.change_bitmaps(cx, physical, u64::from(count));
        Ok((physical, count))
    }

    fn extent_request(&self, cx: &Context, wish: &Wish, count: u64) -> BlockRequest {
        let node = &self.nodes[&wish.node];
        let left = node.blocks.at_or_before(wish.first);
        let right = node.blocks.after(wish.first);
        let physical = |place: Place| place.block().map_or(0, |(_, block)| block);
        let nearest = left.or(right);
        let goal = nearest.map(|extent| {
            // As if the file had no holes, also backwards.
            let distance = wish.first.wrapping_sub(extent.first);
            physical(extent.place).wrapping_add(distance)
        });
        BlockRequest {
            node: wish.node,
            logical: wish.first,
            count: count as u32,
            goal: goal.unwrap_or_else(|| self.inode_goal(cx, node)),
            left: left.map(|extent| Neighbour {
                logical: extent.end() - 1,
                physical: physical(extent.place_of(extent.end() - 1)),
            }),
            right: right.map(|extent| Neighbour {
                logical: extent.first,
                physical: physical(extent.place),
            }),
            is_data: node.is_file(),
            is_exact: wish.is_exact,
            size: wish.size,
            is_open: node.writers > 0 || node.is_flushing,
            cpu: cx.caller.cpu,
            is_indirect: false,
        }
    }

    /// Block near which a file without blocks begins (`ext4_inode_to_goal_block`).
    pub(super) fn inode_goal(&self, cx: &Context, node: &ExtNode) -> u64 {
        let geometry = self.allocator.geometry();
        let mut group = node.group;
        if geometry.set_groups >= 4 {
            group = group / geometry.set_groups * geometry.set_groups;
            group += u32::from(node.is_file() && group + 1 < geometry.groups);
        }
        let start = geometry.block_at(group, 0);
        if self.is_delayed {
            return start;
        }
        // Coloured by the process, so that files made at the same time do not meet.
        let colour = u64::from(cx.caller.pid % 16);
        start + colour * u64::from(geometry.blocks_of(group) / 16)
    }

    /// A block of metadata near a goal.
    pub(super) fn meta_block(
        &mut self,
        cx: &mut Context,
        node: u32,
        goal: u64,
    ) -> Result<u64, Errno> {
        let request = BlockRequest {
            node,
            logical: 0,
            count: 1,
            goal,
            left: None,
            right: None,
            is_data: false,
            is_exact: true,
            size: 0,
            is_open: true,
            cpu: cx.caller.cpu,
            is_indirect: !self.has_extents,
        };
        let (block, _) = self.take(cx, &request)?;
        self.change_map_block(cx, node, block);
        Ok(block)
    }

    /// Keeps the leaves of an extent tree in step with its records.
    fn grow_tree(
        &mut self,
        cx: &mut Context,
        node: u32,
        first: u64,
        (before, after): (u64, u64),
    ) -> Result<(), Errno> {
        let state = &self.nodes[&node];
        if state.maps.leaves.is_empty() {
            let records = state.records;
            return if records > ROOT_RECORDS {
                self.first_leaf(cx, node, records)
            } else {
                Ok(())
            };
        }
        let leaves = &state.maps.leaves;
        let at = leaves.partition_point(|leaf| leaf.first <= first).saturating_sub(1);
        let leaf = leaves[at];
        self.change_map_block(cx, node, leaf.place);
        if after == before {
            return Ok(());
        }
        let records = (leaf.records + after).saturating_sub(before);
        let most = self.leaf_records();
        if records <= most {
            if let Some(state) = self.nodes.get_mut(&node) {
                state.maps.leaves[at].records = records;
            }
            return Ok(());
        }
        self.split_leaf(cx, node, at, first)
    }

    fn leaf_records(&self) -> u64 {
        u64::from((self.allocator.geometry().block_bytes - RECORD_BYTES) / RECORD_BYTES)
    }

    fn first_leaf(&mut self, cx: &mut Context, node: u32, records: u64) -> Result<(), Errno> {
        let goal = self.inode_goal(cx, &self.nodes[&node]);
        let place = self.meta_block(cx, node, goal)?;
        self.change_maps(cx, node, |maps| maps.leaves.push(Leaf { first: 0, place, records }));
        Ok(())
    }

    /// A full leaf: what lies right of the new record moves into a new one.
    fn split_leaf(
        &mut self,
        cx: &mut Context,
        node: u32,
        at: usize,
        first: u64,
    ) -> Result<(), Errno> {
        let state = &self.nodes[&node];
        let leaf = state.maps.leaves[at];
        let end = state.maps.leaves.get(at + 1).map_or(u64::MAX, |next| next.first);
        let moved = state.blocks.after(first).map(|next| next.first).filter(|&next| next < end);
        let border = moved.unwrap_or(first);
        let goal = state.blocks.at_or_before(border).and_then(|extent| {
            extent.place.block().map(|(_, block)| block + (border - extent.first))
        });
        let right = state.blocks.within(border, end - border).count() as u64;
        let goal = goal.unwrap_or(leaf.place);
        let place = self.meta_block(cx, node, goal)?;
        let most = self.leaf_records();
        let depth_before = self.nodes[&node].maps.leaves.len() as u64 > ROOT_RECORDS;
        self.change_maps(cx, node, |maps| {
            let left = maps.leaves[at].records + 1;
            maps.leaves[at].records = left.saturating_sub(right);
            maps.leaves.insert(at + 1, Leaf { first: border, place, records: right });
        });
        let leaves = self.nodes[&node].maps.leaves.len() as u64;
        let indexes = self.nodes[&node].maps.indexes.len() as u64;
        let needs = if leaves > ROOT_RECORDS { leaves.div_ceil(most) } else { 0 };
        if needs > indexes || leaves > ROOT_RECORDS && !depth_before {
            let place = self.meta_block(cx, node, goal)?;
            self.change_maps(cx, node, |maps| maps.indexes.push(place));
        }
        Ok(())
    }

    /// Places in a file without extents: missing indirect blocks first.
    fn indirect(&mut self, cx: &mut Context, wish: &Wish, count: u64) -> Result<(u64, u32), Errno> {
        let per_block = u64::from(self.allocator.geometry().block_bytes) / 4;
        let path = indirect_path(wish.first, per_block);
        let room = blocks_to_border(wish.first, per_block);
        let mut goal = self.near_goal(cx, wish, &path);
        for &key in &path {
            if !self.nodes[&wish.node].maps.indirect.contains_key(&key) {
                goal = self.meta_block(cx, wish.node, goal)?;
                self.change_maps(cx, wish.node, |maps| {
                    maps.indirect.insert(key, goal);
                });
            }
        }
        let node = &self.nodes[&wish.node];
        let request = BlockRequest {
            node: wish.node,
            logical: wish.first,
            count: count.min(room) as u32,
            goal,
            left: None,
            right: None,
            is_data: node.is_file(),
            is_exact: wish.is_exact,
            size: wish.size,
            is_open: node.writers > 0 || node.is_flushing,
            cpu: cx.caller.cpu,
            is_indirect: true,
        };
        let found = self.take(cx, &request)?;
        if let Some(key) = path.last() {
            let block = self.nodes[&wish.node].maps.indirect[key];
            self.change_map_block(cx, wish.node, block);
        }
        Ok(found)
    }

    /// The block before in the same indirect block, that block itself, or the inode's group
    /// (`ext4_find_near`), at the highest level that is missing.
    pub(super) fn near_goal(&self, cx: &Context, wish: &Wish, path: &[(u8, u64)]) -> u64 {
        let node = &self.nodes[&wish.node];
        let missing = path.iter().position(|key| !node.maps.indirect.contains_key(key));
        if let Some(at) = missing {
            // Neighbour in the parent: the indirect block before this one.
            let (depth, number) = path[at];
            let before = node.maps.indirect.range((depth, 0)..(depth, number)).next_back();
            let parent = at.checked_sub(1).and_then(|up| node.maps.indirect.get(&path[up]));
            let is_child = at > 0;
            return match (before, parent) {
                (Some((_, &block)), _) if is_child => block,
                (_, Some(&block)) => block,
                _ => self.top_goal(cx, wish),
            };
        }
        let per_block = u64::from(self.allocator.geometry().block_bytes) / 4;
        let border = wish.first + blocks_to_border(wish.first, per_block);
        let start = if path.is_empty() { 0 } else { border - per_block };
        let left = node.blocks.at_or_before(wish.first).filter(|extent| extent.end() > start);
        let left = left.and_then(|extent| extent.place_of(extent.end() - 1).block());
        let map = path.last().and_then(|key| node.maps.indirect.get(key).copied());
        left.map(|(_, block)| block).or(map).unwrap_or_else(|| self.inode_goal(cx, node))
    }

    /// Goal of what the inode itself points at: the pointer before it that is set.
    fn top_goal(&self, cx: &Context, wish: &Wish) -> u64 {
        let node = &self.nodes[&wish.node];
        let per_block = u64::from(self.allocator.geometry().block_bytes) / 4;
        let level = indirect_path(wish.first, per_block).len() as u8;
        let mut above =
            node.maps.indirect.iter().filter(|((depth, number), _)| {
                *number == 0 && *depth < level * 16 && depth % 16 == 0
            });
        if let Some((_, &block)) = above.next_back() {
            return block;
        }
        let direct = node.blocks.within(0, DIRECT_BLOCKS).last();
        let direct = direct.and_then(|extent| extent.place_of(extent.end() - 1).block());
        direct.map_or_else(|| self.inode_goal(cx, node), |(_, block)| block)
    }
}

/// Records on the device of all extents that a range touches or meets.
pub fn records_near(map: &ExtentMap, first: u64, count: u64) -> u64 {
    let from = first.saturating_sub(1);
    let whole = |part: FileExtent| map.get(part.first).map_or(part.count, |all| all.count);
    map.within(from, first - from + count + 1).map(|part| whole(part).div_ceil(UNWRITTEN_MAX)).sum()
}

/// Keys of the indirect blocks above a block of a file: 16 * level + depth, and a number.
pub fn indirect_path(block: u64, per_block: u64) -> Vec<(u8, u64)> {
    let Some(mut at) = block.checked_sub(DIRECT_BLOCKS) else { return Vec::new() };
    let mut span = per_block;
    for level in 1..=3_u8 {
        if at < span {
            return (0..level)
                .map(|depth| (16 * level + depth, at / (span / per_block.pow(u32::from(depth)))))
                .collect();
        }
        at -= span;
        span *= per_block;
    }
    Vec::new()
}

/// Blocks from one on that the same indirect block maps.
pub const fn blocks_to_border(block: u64, per_block: u64) -> u64 {
    if block < DIRECT_BLOCKS {
        DIRECT_BLOCKS - block
    } else {
        per_block - (block - DIRECT_BLOCKS) % per_block
    }
}
