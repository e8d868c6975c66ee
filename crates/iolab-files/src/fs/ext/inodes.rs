//! Placement of inodes: Orlov's rule for directories, the parent's set for files.
//!
//! Source: Linux fs/ext4/ialloc.c (`find_group_orlov`, `find_group_other`).

use std::collections::BTreeSet;

use super::geometry::Geometry;

/// First inode that files get (`EXT4_GOOD_OLD_FIRST_INO`); `lost+found` has it.
const FIRST_INODE: u32 = 11;

#[derive(Clone, Debug)]
struct InodeGroup {
    free: u32,
    directories: u32,
    next: u32,
    freed: BTreeSet<u32>,
}

/// Free inodes of all groups.
#[derive(Clone, Debug)]
pub struct InodeTable {
    groups: Vec<InodeGroup>,
    per_group: u32,
    set_groups: u32,
}

/// A directory as the place for a new inode.
#[derive(Clone, Copy, Debug)]
pub struct Parent {
    /// Inode number.
    pub number: u32,
    /// Group of its inode.
    pub group: u32,
    /// Group of the last inode made in it.
    pub last_group: Option<u32>,
    /// The root directory.
    pub is_root: bool,
}

impl InodeTable {
    /// Inodes of a fresh file system.
    pub fn new(geometry: &Geometry) -> Self {
        let per_group = geometry.inodes_per_group;
        let new = InodeGroup { free: per_group, directories: 0, next: 0, freed: BTreeSet::new() };
        let mut groups = vec![new; geometry.groups as usize];
        groups[0].next = FIRST_INODE;
        groups[0].free -= FIRST_INODE;
        groups[0].directories = 2;
        Self { groups, per_group, set_groups: geometry.set_groups }
    }

    /// Takes an inode for a file or a link.
    pub fn take_for_file(&mut self, parent: &Parent, free_of: &dyn Fn(u32) -> u32) -> Option<u32> {
        let group = if self.set_groups > 1 {
            self.in_set(parent.group)
                .or_else(|| parent.last_group.and_then(|last| self.in_set(last)))
                .or_else(|| self.below(parent, free_of))
        } else {
            self.near(parent, free_of)
        };
        let group = group.or_else(|| self.any_from(parent.group))?;
        Some(self.take(group, false))
    }

    /// Takes an inode for a directory.
    pub fn take_for_directory(
        &mut self,
        parent: &Parent,
        name_hash: u32,
        free_of: &dyn Fn(u32) -> u32,
    ) -> Option<u32> {
        let group = if parent.is_root {
            self.spread(name_hash, free_of)
        } else {
            self.below(parent, free_of)
        };
        let group = group.or_else(|| self.any_from(parent.group))?;
        Some(self.take(group, true))
    }

    /// Gives an inode back.
    pub fn give(&mut self, inode: u32, is_directory: bool) {
        let group = &mut self.groups[((inode - 1) / self.per_group) as usize];
        group.freed.insert((inode - 1) % self.per_group);
        group.free += 1;
        group.directories -= u32::from(is_directory);
    }

    /// Takes an inode that is known to be free, at mount.
    pub fn occupy(&mut self, inode: u32, is_directory: bool) {
        let at = (inode - 1) % self.per_group;
        let group = &mut self.groups[((inode - 1) / self.per_group) as usize];
        if at >= group.next {
            group.freed.extend(group.next..at);
            group.next = at + 1;
        } else if !group.freed.remove(&at) {
            return;
        }
        group.free -= 1;
        group.directories += u32::from(is_directory);
    }

    fn take(&mut self, group: u32, is_directory: bool) -> u32 {
        let state = &mut self.groups[group as usize];
        state.free -= 1;
        state.directories += u32::from(is_directory);
        let at = state.freed.pop_first().unwrap_or_else(|| {
            state.next += 1;
            state.next - 1
        });
        group * self.per_group + at + 1
    }

    fn len(&self) -> u32 {
        self.groups.len() as u32
    }

    fn set(&self, set: u32) -> core::ops::Range<u32> {
        set * self.set_groups..((set + 1) * self.set_groups).min(self.len())
    }

    fn first_in(&self, set: u32) -> Option<u32> {
        self.set(set).find(|&group| self.groups[group as usize].free > 0)
    }

    fn in_set(&self, group: u32) -> Option<u32> {
        self.first_in(group / self.set_groups)
    }

    fn any_from(&self, start: u32) -> Option<u32> {
        let groups = self.len();
        (0..groups).map(|by| (start + by) % groups).find(|&g| self.groups[g as usize].free > 0)
    }

    /// Free inodes, free blocks and directories of a set.
    fn stats(&self, set: u32, free_of: &dyn Fn(u32) -> u32) -> (u64, u64, u64) {
        self.set(set).fold((0, 0, 0), |(inodes, blocks, directories), group| {
            let state = &self.groups[group as usize];
            (
                inodes + u64::from(state.free),
                blocks + u64::from(free_of(group)),
                directories + u64::from(state.directories),
            )
        })
    }

    fn sums(&self, free_of: &dyn Fn(u32) -> u32) -> (u32, (u64, u64, u64)) {
        let sets = self.len().div_ceil(self.set_groups);
        let all = (0..sets).map(|set| self.stats(set, free_of));
        (sets, all.fold((0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2)))
    }

    /// A directory under the root: the emptiest set that is not worse than the mean.
    fn spread(&self, name_hash: u32, free_of: &dyn Fn(u32) -> u32) -> Option<u32> {
        let (sets, (inodes, blocks, _)) = self.sums(free_of);
        let start = name_hash % sets;
        let mut best: Option<(u64, u32)> = None;
        for set in (0..sets).map(|by| (start + by) % sets) {
            let stats = self.stats(set, free_of);
            let is_fine = stats.0 > 0
                && stats.0 >= inodes / u64::from(sets)
                && stats.1 >= blocks / u64::from(sets);
            let least = best.map_or(u64::from(self.per_group), |(least, _)| least);
            if is_fine && stats.2 < least {
                best = Some((stats.2, set));
            }
        }
        best.and_then(|(_, set)| self.first_in(set))
    }

    /// Any other directory: the parent's set, unless it is too full.
    fn below(&self, parent: &Parent, free_of: &dyn Fn(u32) -> u32) -> Option<u32> {
        let (sets, (inodes, blocks, directories)) = self.sums(free_of);
        let set_inodes = u64::from(self.per_group) * u64::from(self.set_groups);
        let directories_max = directories / u64::from(sets) + set_inodes / 16;
        let inodes_min = (inodes / u64::from(sets)).saturating_sub(set_inodes / 4).max(1);
        let blocks_min = blocks / u64::from(sets);
        let start = parent.last_group.unwrap_or(parent.group) / self.set_groups;
        let fits = |set: &u32| {
            let stats = self.stats(*set, free_of);
            let quarter = u64::from(self.per_group) * u64::from(self.set_groups);
            stats.2 < directories_max
                && stats.0 >= inodes_min
                && stats.1 >= blocks_min.saturating_sub(quarter)
        };
        (0..sets).map(|by| (start + by) % sets).find(fits).and_then(|set| self.first_in(set))
    }

    /// A file without sets of groups: the parent's group, else by a quadratic walk.
    fn near(&self, parent: &Parent, free_of: &dyn Fn(u32) -> u32) -> Option<u32> {
        let has_room = |group: u32| self.groups[group as usize].free > 0 && free_of(group) > 0;
        if has_room(parent.group) {
            return Some(parent.group);
        }
        let groups = self.len();
        let mut group = (parent.group + parent.number) % groups;
        let mut step = 1;
        while step < groups {
            group = (group + step) % groups;
            if has_room(group) {
                return Some(group);
            }
            step <<= 1;
        }
        None
    }
}
