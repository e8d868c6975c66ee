//! Geometry: where mke2fs puts groups, bitmaps, inode tables, journal and first directories.
//!
//! Source: e2fsprogs 1.47 `misc/mke2fs.c`, `lib/ext2fs/{initialize,alloc_tables,mkjournal}.c` by
//! their results: `tests/golden/layout` holds the free blocks of real images.

use core::ops::Range;

/// Order for mkfs, with its defaults filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "features of the file system")]
pub struct MkfsOrder {
    /// Size of a block: 1024, 2048 or 4096.
    pub block_bytes: u32,
    /// Blocks of the device.
    pub blocks: u64,
    /// Number of inodes, before rounding.
    pub inodes: u64,
    /// Size of an inode on the device.
    pub inode_bytes: u32,
    /// Files have extents (`extent`).
    pub has_extents: bool,
    /// Group descriptors of 64 bytes (`64bit`).
    pub is_64bit: bool,
    /// Bitmaps never written are marked so (`metadata_csum`, `uninit_bg`).
    pub has_checksums: bool,
    /// Space is left for more descriptors (`resize_inode`).
    pub can_grow: bool,
    /// Copies of the superblock in few groups alone (`sparse_super`).
    pub has_few_copies: bool,
    /// Groups whose metadata lie together (`flex_bg`, `-G`); 1 without.
    pub set_groups: u32,
    /// Blocks of the journal; 0: none.
    pub journal_blocks: u64,
}

/// Places of everything that mkfs makes.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Size of a block.
    pub block_bytes: u32,
    /// Blocks of the file system.
    pub blocks: u64,
    /// First block that belongs to a group: 1 with 1 KiB blocks.
    pub first_block: u64,
    /// Blocks of a full group.
    pub blocks_per_group: u32,
    /// Number of groups.
    pub groups: u32,
    /// Inodes of a group.
    pub inodes_per_group: u32,
    /// Size of an inode.
    pub inode_bytes: u32,
    /// Groups whose metadata lie together.
    pub set_groups: u32,
    /// Runs of the journal, in its order.
    pub journal: Vec<(u64, u64)>,
    /// Blocks of the root directory and of `lost+found`.
    pub directories: [(u64, u64); 2],
    block_bitmaps: Vec<u64>,
    inode_bitmaps: Vec<u64>,
    inode_tables: Vec<u64>,
    used: Vec<Vec<Range<u32>>>,
    descriptors_per_block: u32,
    has_checksums: bool,
    touched: Vec<bool>,
}

/// Size of `lost+found` at least (`create_lost_and_found`).
const LOST_FOUND_BYTES: u64 = 16 << 10;
/// Blocks that a last group must have beyond its metadata (`ext2fs_initialize`).
const LAST_GROUP_MIN: u64 = 50;
/// Growth for which descriptors are reserved (`calc_reserved_gdt_blocks`).
const GROWTH: u64 = 1024;

impl Geometry {
    /// Places for a layout; `None` if the device is too small for it.
    pub fn new(layout: &MkfsOrder) -> Option<Self> {
        let block = u64::from(layout.block_bytes);
        let first_block = u64::from(layout.block_bytes == 1024);
        let per_group = 8 * block;
        let descriptor = if layout.is_64bit { 64 } else { 32 };
        let mut blocks = layout.blocks;
        loop {
            let groups = blocks.checked_sub(first_block)?.div_ceil(per_group);
            if groups == 0 {
                return None;
            }
            let inodes = inodes_per_group(layout, groups);
            let table = (inodes * u64::from(layout.inode_bytes)).div_ceil(block);
            let mut places = Making::new(layout, blocks, groups, descriptor);
            let last = places.last_group_blocks();
            let is_copy = places.has_copy(groups - 1);
            let overhead = 2 + table + if is_copy { places.copy_blocks() } else { 0 };
            if last < overhead + LAST_GROUP_MIN && groups > 1 {
                blocks -= last;
                continue;
            }
            if last < overhead {
                return None;
            }
            places.copies();
            places.tables(table)?;
            let directories = places.directories(layout)?;
            let journal = places.journal(layout)?;
            return Some(places.finish(layout, inodes, journal, directories));
        }
    }

    /// Group of a block, and its place there.
    pub fn group_of(&self, block: u64) -> (u32, u32) {
        let at = block - self.first_block;
        let size = u64::from(self.blocks_per_group);
        ((at / size) as u32, (at % size) as u32)
    }

    /// A block of a group.
    pub fn block_at(&self, group: u32, block: u32) -> u64 {
        self.first_block + u64::from(group) * u64::from(self.blocks_per_group) + u64::from(block)
    }

    /// Blocks of a group: fewer in the last one.
    pub fn blocks_of(&self, group: u32) -> u32 {
        let left = self.blocks - self.block_at(group, 0);
        left.min(u64::from(self.blocks_per_group)) as u32
    }

    /// Blocks of a group that mkfs uses, in order.
    pub fn fixed(&self, group: u32) -> &[Range<u32>] {
        &self.used[group as usize]
    }

    /// Number of blocks of a group that mkfs uses.
    pub fn fixed_blocks(&self, group: u32) -> u32 {
        self.fixed(group).iter().map(|run| run.end - run.start).sum()
    }

    /// Tell whether the bitmap of a group says nothing that its place does not say.
    pub fn is_untouched(&self, group: u32) -> bool {
        self.has_checksums && !self.touched[group as usize]
    }

    /// Block that holds the bitmap of the blocks of a group.
    pub fn block_bitmap(&self, group: u32) -> u64 {
        self.block_bitmaps[group as usize]
    }

    /// Block that holds the bitmap of the inodes of a group.
    pub fn inode_bitmap(&self, group: u32) -> u64 {
        self.inode_bitmaps[group as usize]
    }

    /// Block that holds the descriptor of a group.
    pub fn descriptor(&self, group: u32) -> u64 {
        self.first_block + 1 + u64::from(group / self.descriptors_per_block)
    }

    /// Block that holds an inode, counted from 1.
    pub fn inode_block(&self, inode: u32) -> u64 {
        let (group, at) = self.inode_group(inode);
        let per_block = self.block_bytes / self.inode_bytes;
        self.inode_tables[group as usize] + u64::from(at / per_block)
    }

    /// Group of an inode, and its place in the table.
    pub const fn inode_group(&self, inode: u32) -> (u32, u32) {
        ((inode - 1) / self.inodes_per_group, (inode - 1) % self.inodes_per_group)
    }
}

/// Inodes of a group, as rounding leaves them.
fn inodes_per_group(layout: &MkfsOrder, groups: u64) -> u64 {
    let block = u64::from(layout.block_bytes);
    let size = u64::from(layout.inode_bytes);
    let wanted = layout.inodes.div_ceil(groups).clamp(1, block * 8);
    let table = (wanted * size).div_ceil(block);
    let filled = (table * block / size).min(block * 8);
    (filled & !7).max(8)
}

/// Tell whether a group has a copy of the superblock: 0, 1 and powers of 3, 5 and 7.
fn is_power_of_few(group: u64) -> bool {
    group < 2
        || [3, 5, 7].into_iter().any(|base: u64| {
            let mut power = base;
            while power < group {
                power *= base;
            }
            power == group
        })
}

/// Places that are found one after the other.
struct Making {
    per_group: u64,
    first_block: u64,
    blocks: u64,
    groups: u64,
    block_bytes: u64,
    set_groups: u64,
    has_few_copies: bool,
    descriptor_blocks: u64,
    reserved_blocks: u64,
    descriptor_bytes: u64,
    /// Used blocks of each group, in order and joined.
    used: Vec<Vec<Range<u64>>>,
    touched: Vec<bool>,
    block_bitmaps: Vec<u64>,
    inode_bitmaps: Vec<u64>,
    inode_tables: Vec<u64>,
}

impl Making {
    fn new(layout: &MkfsOrder, blocks: u64, groups: u64, descriptor_bytes: u64) -> Self {
        let block_bytes = u64::from(layout.block_bytes);
        let per_block = block_bytes / descriptor_bytes;
        let descriptor_blocks = groups.div_ceil(per_block);
        let first_block = u64::from(layout.block_bytes == 1024);
        let per_group = 8 * block_bytes;
        let grown = (blocks * GROWTH).min(u64::from(u32::MAX));
        let reserved = (grown - first_block).div_ceil(per_group).div_ceil(per_block);
        let reserved = reserved.saturating_sub(descriptor_blocks).min(block_bytes / 4);
        Self {
            per_group,
            first_block,
            blocks,
            groups,
            block_bytes,
            set_groups: u64::from(layout.set_groups),
            has_few_copies: layout.has_few_copies,
            descriptor_blocks,
            reserved_blocks: if layout.can_grow { reserved } else { 0 },
            descriptor_bytes,
            used: vec![Vec::new(); groups as usize],
            touched: vec![false; groups as usize],
            block_bitmaps: Vec::new(),
            inode_bitmaps: Vec::new(),
            inode_tables: Vec::new(),
        }
    }

    fn has_copy(&self, group: u64) -> bool {
        !self.has_few_copies || is_power_of_few(group)
    }

    const fn copy_blocks(&self) -> u64 {
        1 + self.descriptor_blocks + self.reserved_blocks
    }

    const fn group_start(&self, group: u64) -> u64 {
        self.first_block + group * self.per_group
    }

    fn group_end(&self, group: u64) -> u64 {
        self.group_start(group + 1).min(self.blocks)
    }

    fn last_group_blocks(&self) -> u64 {
        self.blocks - self.group_start(self.groups - 1)
    }

    /// Superblocks and descriptors. They alone do not make a bitmap worth reading.
    fn copies(&mut self) {
        for group in 0..self.groups {
            if self.has_copy(group) {
                let start = self.group_start(group);
                let end = start + self.copy_blocks();
                self.used[group as usize].push(start..end);
            }
        }
    }

    fn is_free(&self, first: u64, count: u64) -> bool {
        let end = first + count;
        let groups = self.group_of(first)..=self.group_of(end - 1);
        end <= self.blocks
            && groups.into_iter().all(|group| {
                self.used[group].iter().all(|run| run.end <= first || end <= run.start)
            })
    }

    const fn group_of(&self, block: u64) -> usize {
        ((block - self.first_block) / self.per_group) as usize
    }

    /// First free run of `count` blocks in `from..to`.
    fn find(&self, from: u64, to: u64, count: u64) -> Option<u64> {
        let mut at = from;
        while at + count <= to {
            let last = at + count;
            let hit = (self.group_of(at)..=self.group_of(last - 1))
                .flat_map(|group| &self.used[group])
                .find(|run| run.start < last && at < run.end);
            match hit {
                Some(run) => at = run.end,
                None => return Some(at),
            }
        }
        None
    }

    fn occupy(&mut self, first: u64, count: u64) {
        let (mut at, end) = (first, first + count);
        while at < end {
            let group = self.group_of(at);
            let stop = self.group_end(group as u64).min(end);
            let runs = &mut self.used[group];
            let place = runs.partition_point(|run| run.start < at);
            if place > 0 && runs[place - 1].end == at {
                runs[place - 1].end = stop;
            } else {
                runs.insert(place, at..stop);
            }
            self.touched[group] = true;
            at = stop;
        }
    }

    /// Bitmaps and inode tables, set by set.
    fn tables(&mut self, table: u64) -> Option<()> {
        for set in 0..self.groups.div_ceil(self.set_groups) {
            let first = set * self.set_groups;
            let members = self.set_groups.min(self.groups - first);
            let (start, end) = (self.group_start(first), self.group_end(first + members - 1));
            for kind in 0..3 {
                let size = if kind == 2 { table } else { 1 };
                let mut at = start;
                for member in 0..members {
                    let wanted = (size * (members - member)).min(self.per_group / 4).max(size);
                    let is_next = member > 0 && self.is_free(at, size);
                    if !is_next {
                        let found = self.find(start, end, wanted);
                        at = found.or_else(|| self.find(start, end, size))?;
                    }
                    self.occupy(at, size);
                    let list = match kind {
                        0 => &mut self.block_bitmaps,
                        1 => &mut self.inode_bitmaps,
                        _ => &mut self.inode_tables,
                    };
                    list.push(at);
                    at += size;
                }
            }
        }
        Some(())
    }

    /// Root, `lost+found`, and the block of the inode that keeps descriptors.
    fn directories(&mut self, layout: &MkfsOrder) -> Option<[(u64, u64); 2]> {
        let lost = (LOST_FOUND_BYTES / self.block_bytes).min(12);
        let start = self.first_block;
        let mut next = |count| {
            let at = self.find(start, self.blocks, count)?;
            self.occupy(at, count);
            Some((at, count))
        };
        let root = next(1)?;
        let lost = next(lost)?;
        if layout.can_grow {
            next(1)?;
        }
        Some([root, lost])
    }

    /// The journal: with extents in the middle, else behind the first directories with the blocks
    /// that map it between.
    fn journal(&mut self, layout: &MkfsOrder) -> Option<Vec<(u64, u64)>> {
        let mut left = layout.journal_blocks;
        let mut runs = Vec::new();
        let mut at = if layout.has_extents { self.journal_goal() } else { self.first_block };
        let mut logical = 0;
        while left > 0 {
            let place = self.find(at, self.blocks, 1).or_else(|| self.find(0, at, 1))?;
            at = place;
            if !layout.has_extents {
                let maps = self.maps_before(logical);
                if maps > 0 {
                    self.occupy(place, maps);
                    at = place + maps;
                }
            }
            let room = self.free_from(at);
            let upto = if layout.has_extents { left } else { self.mapped_from(logical) };
            let count = room.min(left).min(upto);
            if count == 0 {
                continue;
            }
            self.occupy(at, count);
            runs.push((at, count));
            (at, left, logical) = (at + count, left - count, logical + count);
        }
        Some(runs)
    }

    /// Free blocks from a free one on, within its group.
    fn free_from(&self, at: u64) -> u64 {
        if at >= self.blocks || !self.is_free(at, 1) {
            return 0;
        }
        let group = self.group_of(at);
        let next = self.used[group].iter().map(|run| run.start).find(|&start| start > at);
        next.unwrap_or_else(|| self.group_end(group as u64)) - at
    }

    /// Blocks that map others and lie before a block of a file without extents.
    const fn maps_before(&self, logical: u64) -> u64 {
        let per = self.block_bytes / 4;
        match logical {
            12 => 1,
            _ if logical == 12 + per => 2,
            _ if logical > 12 + per && (logical - 12).is_multiple_of(per) => 1,
            _ => 0,
        }
    }

    /// Blocks from one on that the same block maps.
    const fn mapped_from(&self, logical: u64) -> u64 {
        let per = self.block_bytes / 4;
        if logical < 12 { 12 - logical } else { per - (logical - 12) % per }
    }

    /// First block of the group in the middle with the most free ones.
    fn journal_goal(&self) -> u64 {
        let middle = ((self.blocks - self.first_block) / 2) / self.per_group;
        let is_far = self.set_groups > 1 && middle > self.set_groups;
        let start = if is_far {
            let first = middle & !(self.set_groups - 1);
            (first..self.groups).find(|&group| self.free_of(group) > 0).unwrap_or(0)
        } else {
            middle.saturating_sub(1)
        };
        let middle = if is_far { start } else { middle };
        let end = (middle + 1).min(self.groups - 1);
        let mut best = start;
        for group in start + 1..=end {
            if self.free_of(group) > self.free_of(best) {
                best = group;
            }
        }
        self.group_start(best)
    }

    fn free_of(&self, group: u64) -> u64 {
        let used: u64 = self.used[group as usize].iter().map(|run| run.end - run.start).sum();
        self.group_end(group) - self.group_start(group) - used
    }

    fn finish(
        mut self,
        layout: &MkfsOrder,
        inodes: u64,
        journal: Vec<(u64, u64)>,
        directories: [(u64, u64); 2],
    ) -> Geometry {
        // The last group is never marked as untouched.
        *self.touched.last_mut().expect("there is a group") = true;
        let used = (0..self.groups)
            .map(|group| {
                let start = self.group_start(group);
                let runs = core::mem::take(&mut self.used[group as usize]);
                let inside = |run: Range<u64>| (run.start - start) as u32..(run.end - start) as u32;
                joined(runs.into_iter().map(inside))
            })
            .collect();
        Geometry {
            block_bytes: layout.block_bytes,
            blocks: self.blocks,
            first_block: self.first_block,
            blocks_per_group: self.per_group as u32,
            groups: self.groups as u32,
            inodes_per_group: inodes as u32,
            inode_bytes: layout.inode_bytes,
            set_groups: layout.set_groups,
            journal,
            directories,
            block_bitmaps: self.block_bitmaps,
            inode_bitmaps: self.inode_bitmaps,
            inode_tables: self.inode_tables,
            used,
            descriptors_per_block: (self.block_bytes / self.descriptor_bytes) as u32,
            has_checksums: layout.has_checksums,
            touched: self.touched,
        }
    }
}

fn joined(runs: impl Iterator<Item = Range<u32>>) -> Vec<Range<u32>> {
    let mut result: Vec<Range<u32>> = Vec::new();
    for run in runs {
        match result.last_mut() {
            Some(last) if last.end == run.start => last.end = run.end,
            _ => result.push(run),
        }
    }
    result
}

#[cfg(test)]
mod tests;
