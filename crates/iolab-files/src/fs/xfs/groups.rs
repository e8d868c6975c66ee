//! `AllocationGroups`: all allocation groups, and the choice of one for a request.
//!
//! Sources: Linux `fs/xfs/libxfs/xfs_bmap.c` (`xfs_bmap_btalloc` and its helpers), `xfs_alloc.c`
//! (`xfs_alloc_vextent_start_ag`, `xfs_alloc_space_available`), `xfs_ag_resv.c`.

use std::collections::BTreeMap;

use super::geometry::{
    BLOCK_INODES, CHUNK_BLOCKS, CHUNK_INODES, Geometry, HEADER_BLOCKS, LIST_BLOCKS,
};
use super::inodes::Chunks;
use super::near::{Nearest, Want, by_size_alone, exact, near};
use super::space::{FreeSpace, FreeSpan};

/// Blocks of a group that no extent can have: headers, roots of trees, their list
/// (`xfs_alloc_ag_max_usable`).
const UNUSABLE_BLOCKS: u32 = 10;
/// Root directory and two inodes of the real-time part, made by mkfs.
pub const ROOT_INODES: u32 = 3;

/// A group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Free blocks.
    pub space: FreeSpace,
    /// Inodes.
    pub chunks: Chunks,
    /// Blocks promised to trees of the group that may grow.
    pub reserved: u32,
}

/// Request for blocks of a file or of metadata.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Block of the device to be near to.
    pub goal: u64,
    /// Blocks wanted.
    pub count: u64,
    /// For data of a file.
    pub is_data: bool,
    /// Beyond the last extent of a file on a striped volume, at this block of the file.
    pub aligned_at: Option<u64>,
}

/// All groups.
#[derive(Clone, Debug)]
pub struct AllocationGroups {
    /// Shape.
    pub geometry: Geometry,
    all: Vec<Group>,
    /// Busy blocks were given away: the log has to be forced before data go there.
    pub has_forced: bool,
}

impl core::ops::Index<u32> for AllocationGroups {
    type Output = Group;

    fn index(&self, group: u32) -> &Group {
        &self.all[group as usize]
    }
}

impl core::ops::IndexMut<u32> for AllocationGroups {
    fn index_mut(&mut self, group: u32) -> &mut Group {
        &mut self.all[group as usize]
    }
}

/// Blocks of a tree with so many records and so few in each leaf and node.
fn tree_blocks(records: u32, leaf_min: u32, node_min: u32) -> u32 {
    let mut level = records.div_ceil(leaf_min).max(1);
    let mut total = level;
    while level > 1 {
        level = level.div_ceil(node_min);
        total += level;
    }
    total
}

impl AllocationGroups {
    /// Fresh groups, with the chunk of the root directory at its place.
    pub fn new(geometry: Geometry) -> Self {
        let all = (0..geometry.groups).map(|index| Self::fresh(&geometry, index)).collect();
        let mut all = Self { geometry, all, has_forced: false };
        let root = all.root_block();
        all[0].space.take(FreeSpan { first: root, count: CHUNK_BLOCKS });
        all[0].chunks.add(root, ROOT_INODES);
        all
    }

    /// Block of the chunk of the root directory in group 0.
    pub fn root_block(&self) -> u32 {
        let align = self.geometry.unit_blocks.max(CHUNK_BLOCKS);
        (HEADER_BLOCKS + LIST_BLOCKS).next_multiple_of(align)
    }

    fn fresh(geometry: &Geometry, index: u32) -> Group {
        let blocks = geometry.blocks_of(index);
        let has_log = index == geometry.log_group;
        let (before, after) = if has_log {
            (HEADER_BLOCKS..geometry.log_first, geometry.log_first + geometry.log_blocks)
        } else {
            (0..0, HEADER_BLOCKS)
        };
        let list = after..after + LIST_BLOCKS;
        let left = FreeSpan { first: before.start, count: before.end - before.start };
        let rest = FreeSpan { first: list.end, count: blocks.saturating_sub(list.end) };
        // The trees of free inodes and of reference counts may have to hold everything: least
        // records per leaf and node 126 and 252, and 168 and 252.
        let usable = if has_log { blocks - geometry.log_blocks } else { blocks };
        let inodes = tree_blocks(usable * BLOCK_INODES / CHUNK_INODES, 126, 252);
        let counts = tree_blocks(usable, 168, 252);
        Group {
            space: FreeSpace::new(&[left, rest], list),
            chunks: Chunks::default(),
            reserved: inodes + counts,
        }
    }

    /// Number of groups.
    pub fn count(&self) -> u32 {
        self.geometry.groups
    }

    /// All groups in order.
    pub fn iter(&self) -> impl Iterator<Item = &Group> {
        self.all.iter()
    }

    /// All groups in order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.all.iter_mut()
    }

    /// Free blocks that files may have.
    pub fn free(&self) -> u64 {
        self.all
            .iter()
            .map(|group| u64::from(group.space.free().saturating_sub(group.reserved)))
            .sum()
    }

    /// The longest run of a group that a file may have (`xfs_alloc_longest_free_extent`).
    fn longest(&self, group: u32) -> u32 {
        let Group { space, reserved, .. } = &self[group];
        let longest = space.longest();
        let missing = space.kept_min().saturating_sub(space.kept());
        let others = space.free() - longest;
        let delta = missing + reserved.saturating_sub(others);
        if longest > delta {
            (longest - delta).min(self.geometry.group_blocks - UNUSABLE_BLOCKS)
        } else {
            u32::from(longest > 0)
        }
    }

    /// Tell whether a group can serve a request, and how many blocks of it at most
    /// (`xfs_alloc_space_available`).
    fn room(&self, group: u32, least: u32) -> Option<u32> {
        let Group { space, reserved, .. } = &self[group];
        let kept = space.kept().min(space.kept_min());
        let room = (space.free() + kept).checked_sub(reserved + space.kept_min())?;
        (self.longest(group) >= least && room >= least).then_some(room)
    }

    /// Allocates the first part of a request, as much as one run can give: block and number.
    pub fn allocate(&mut self, request: &Request) -> Option<(u64, u64)> {
        let max = request.count.min(u64::from(self.geometry.group_blocks - UNUSABLE_BLOCKS)) as u32;
        let (start, goal) = self.geometry.place(request.goal);
        let mut longest = 0;
        for group in self.from(start) {
            longest = longest.max(self.longest(group));
            if longest >= max {
                break;
            }
        }
        let want =
            Want { goal, min: longest.min(max).max(1), max, align: 1, is_data: request.is_data };
        if let Some(block) = request.aligned_at
            && let Some(found) = self.at_end(start, &want, block)
        {
            return Some(found);
        }
        self.search(start, &want).or_else(|| self.search(start, &Want { min: 1, ..want }))
    }

    /// At the end of a file on a striped volume: exactly behind the last block, else at a
    /// multiple of the unit.
    fn at_end(&mut self, start: u32, want: &Want, block: u64) -> Option<(u64, u64)> {
        if block > 0 && self.room(start, want.min).is_some() {
            self[start].space.refill();
            if let Some(run) = exact(&self[start].space, want) {
                self[start].space.take(run);
                return Some((self.geometry.block(start, run.first), u64::from(run.count)));
            }
        }
        let align = self.geometry.unit_blocks;
        let min = if want.min == want.max { want.min } else { want.min.saturating_sub(align) };
        self.search(start, &Want { align, min: min.max(1), ..*want })
    }

    fn from(&self, start: u32) -> impl Iterator<Item = u32> + use<> {
        let count = self.count();
        (0..count).map(move |step| (start + step) % count)
    }

    /// Goes through the groups from one on; near the goal in that one, by size in the others.
    fn search(&mut self, start: u32, want: &Want) -> Option<(u64, u64)> {
        for group in self.from(start) {
            let Some(room) = self.room(group, want.min + want.align - 1) else { continue };
            self[group].space.refill();
            let want = Want { max: want.max.min(room), ..*want };
            let found = loop {
                let space = &self[group].space;
                let found =
                    if group == start { near(space, &want) } else { by_size_alone(space, &want) };
                if found != Nearest::Busy {
                    break found;
                }
                // The log is forced, and what was busy may be used.
                self.has_forced = true;
                self.iter_mut().for_each(|group| group.space.settle_all());
            };
            if let Nearest::Blocks(run) = found {
                self[group].space.take(run);
                return Some((self.geometry.block(group, run.first), u64::from(run.count)));
            }
        }
        None
    }

    /// One block of metadata near another one.
    pub fn allocate_metadata(&mut self, goal: u64) -> Option<u64> {
        let request = Request { goal, count: 1, is_data: false, aligned_at: None };
        self.allocate(&request).map(|(block, _)| block)
    }

    /// Gives blocks back; they are busy until their checkpoint is durable.
    pub fn give(&mut self, first: u64, count: u64) {
        let (group, block) = self.geometry.place(first);
        let run = FreeSpan { first: block, count: count as u32 };
        self[group].space.give(run);
        self[group].space.mark_busy(run);
    }

    /// Freed blocks are durably free.
    pub fn settle(&mut self, freed: &[(u64, u64)]) {
        let mut of_group: BTreeMap<u32, Vec<FreeSpan>> = BTreeMap::new();
        for (first, count) in freed {
            let (group, block) = self.geometry.place(*first);
            let run = FreeSpan { first: block, count: *count as u32 };
            of_group.entry(group).or_default().push(run);
        }
        for (group, runs) in of_group {
            self[group].space.settle(&runs);
        }
    }

    /// Blocks for a new chunk of inodes in a group: behind the last chunk, else near the root of
    /// the group's tree of inodes, at a multiple of their number (`xfs_ialloc_ag_alloc`).
    pub fn new_chunk(&mut self, group: u32) -> Option<u32> {
        self.room(group, CHUNK_BLOCKS)?;
        let align = if self.geometry.unit_blocks > CHUNK_BLOCKS {
            self.geometry.unit_blocks
        } else {
            CHUNK_BLOCKS
        };
        let here = &mut self[group];
        here.space.refill();
        let want = Want { goal: 3, min: CHUNK_BLOCKS, max: CHUNK_BLOCKS, align, is_data: false };
        let next = here.chunks.next_block();
        let behind = next.and_then(|goal| exact(&here.space, &Want { goal, align: 1, ..want }));
        let run = behind.or_else(|| {
            [want, Want { align: CHUNK_BLOCKS, ..want }].iter().find_map(|want| {
                match near(&here.space, want) {
                    Nearest::Blocks(run) => Some(run),
                    Nearest::Busy | Nearest::Nothing => None,
                }
            })
        })?;
        here.space.take(run);
        here.chunks.add(run.first, 0);
        Some(run.first)
    }

    /// Takes blocks that a mount finds owned.
    pub fn occupy(&mut self, first: u64, count: u64) {
        let (group, block) = self.geometry.place(first);
        self[group].space.take(FreeSpan { first: block, count: count as u32 });
    }

    /// Takes an inode that a mount finds in use, with its chunk.
    pub fn occupy_inode(&mut self, group: u32, inode: u32) {
        let block = inode / CHUNK_INODES * CHUNK_BLOCKS;
        let here = &mut self[group];
        if here.chunks.blocks().all(|run| run.first != block) {
            here.space.take(FreeSpan { first: block, count: CHUNK_BLOCKS });
            here.chunks.add(block, 0);
        }
        here.chunks.take_exactly(inode);
    }
}
