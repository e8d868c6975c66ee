//! The multi-block allocator: windows, normalisation, and the search behind them.
//!
//! Source: Linux fs/ext4/mballoc.c, `ext4_mb_new_blocks` and what it calls.

use core::ops::Range;

use super::groups::BlockGroups;
use super::rules::MballocRules;
use super::search::{BlockSearch, FoundRun};
use super::windows::{FileWindow, SharedWindow, Windows};
use crate::fs::ext::geometry::Geometry;

/// A block of a file and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Block of the file.
    pub logical: u64,
    /// Its place.
    pub physical: u64,
}

/// A request for blocks of a file.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct BlockRequest {
    /// Inode number.
    pub node: u32,
    /// First block of the file that needs a place.
    pub logical: u64,
    /// Number of blocks.
    pub count: u32,
    /// Place it should be near to.
    pub goal: u64,
    /// Last block with a place to the left.
    pub left: Option<Neighbour>,
    /// First block with a place to the right.
    pub right: Option<Neighbour>,
    /// For the data of a regular file, not for metadata.
    pub is_data: bool,
    /// As many as asked for, no window (fallocate, tails).
    pub is_exact: bool,
    /// Length of the file now, in bytes.
    pub size: u64,
    /// Open for writing.
    pub is_open: bool,
    /// Processor of the caller.
    pub cpu: u16,
    /// Places must have 32-bit numbers (files without extents).
    pub is_indirect: bool,
}

/// Way in which a request is served, decided before anything is searched (`ext4_mb_group_or_file`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    /// From or into a window of a processor.
    Shared,
    /// As part of a large file, with a window of its own.
    Stream,
    /// Exactly as asked for.
    Exact,
}

/// Places for the blocks of one file system.
#[derive(Clone, Debug)]
pub struct Allocator {
    pub(super) geometry: Geometry,
    pub(super) rules: MballocRules,
    pub(super) groups: BlockGroups,
    /// Group in which the last stream of each class of inodes ended.
    pub(super) stream_groups: Vec<u32>,
    windows: Windows,
    first_block: u64,
}

impl Allocator {
    /// The allocator of a fresh file system.
    pub fn new(geometry: Geometry, rules: MballocRules) -> Self {
        Self {
            groups: BlockGroups::new(&geometry, rules.is_ordered),
            stream_groups: vec![0; rules.stream_goals as usize],
            first_block: geometry.first_block,
            windows: Windows::default(),
            geometry,
            rules,
        }
    }

    /// The geometry.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The rules.
    pub const fn rules(&self) -> &MballocRules {
        &self.rules
    }

    /// Blocks that are neither used nor in a window.
    pub fn free_blocks(&self) -> u64 {
        (0..self.groups.count()).map(|group| u64::from(self.groups.free(group))).sum()
    }

    /// First free block in a range of blocks.
    pub fn next_free_in(&mut self, range: Range<u64>) -> Option<u64> {
        let mut at = range.start;
        while at < range.end {
            let (group, block) = self.geometry.group_of(at);
            let end = self.geometry.block_at(group, 0) + u64::from(self.geometry.blocks_of(group));
            if self.groups.free(group) > 0 {
                let next = self.groups.buddy(&self.geometry, group).next_free(block);
                let found = self.geometry.block_at(group, next);
                if found < end.min(range.end) {
                    return Some(found);
                }
            }
            at = end;
        }
        None
    }

    /// Free blocks of a group.
    pub fn free_in(&self, group: u32) -> u32 {
        self.groups.free(group)
    }

    /// Blocks in windows that nobody uses.
    pub fn window_blocks(&self) -> u64 {
        self.windows.unused_blocks()
    }

    /// Places for the first blocks of a request: the first place and how many; `None`: no space.
    pub fn allocate(&mut self, request: &BlockRequest) -> Option<(u64, u32)> {
        let mut request = *request;
        request.count = request.count.min(self.geometry.blocks_per_group);
        if request.goal < self.first_block || request.goal >= self.geometry.blocks {
            request.goal = self.first_block;
        }
        if !request.is_data {
            return self.search(&request, Service::Exact);
        }
        let way = self.way(&request);
        let taken = self.windows.take_of_file(request.node, request.logical, request.count);
        if taken.is_some() {
            return taken;
        }
        if way == Service::Shared {
            let found = self.windows.take_shared(request.cpu, request.goal, request.count);
            if let Some((physical, fallen)) = found {
                self.give_all(&fallen);
                return Some((physical, request.count));
            }
        }
        self.search(&request, way)
    }

    /// Gives a run back, which may reach over several groups.
    pub fn give(&mut self, first: u64, count: u64) {
        let mut at = first;
        while at < first + count {
            let (group, block) = self.geometry.group_of(at);
            let left = u64::from(self.geometry.blocks_of(group) - block);
            let part = left.min(first + count - at);
            self.groups.give(&self.geometry, group, block, part as u32);
            at += part;
        }
    }

    /// Takes a run that is known to be free, at mount.
    pub fn occupy(&mut self, first: u64, count: u64) {
        let mut at = first;
        while at < first + count {
            let (group, block) = self.geometry.group_of(at);
            let left = u64::from(self.geometry.blocks_of(group) - block);
            let part = left.min(first + count - at);
            self.groups.take(&self.geometry, group, block, part as u32);
            at += part;
        }
    }

    /// Drops the windows of a file (last close of a writer, truncate, eviction).
    pub fn drop_windows(&mut self, node: u32) {
        if self.windows.has_file(node) {
            let freed = self.windows.drop_of_file(node);
            self.give_all(&freed);
        }
    }

    /// Looks at all groups, as a thread does soon after mount (`ext4_lazyinit_thread`).
    pub fn learn_all(&mut self) {
        for group in 0..self.groups.count() {
            if self.groups.free(group) > 0 {
                self.groups.learn(&self.geometry, group);
            }
        }
    }

    fn give_all(&mut self, runs: &[(u64, u32)]) {
        for &(first, count) in runs {
            self.give(first, u64::from(count));
        }
    }

    fn way(&self, request: &BlockRequest) -> Service {
        if request.is_exact {
            return Service::Exact;
        }
        let size = request.size.div_ceil(u64::from(self.geometry.block_bytes));
        let end = request.logical + u64::from(request.count);
        let is_tail_of_closed = end == size && !request.is_open;
        if is_tail_of_closed && !self.rules.closed_share_window {
            return Service::Exact;
        }
        if end.max(size) <= self.rules.stream_blocks && self.rules.shared_window > 0 {
            Service::Shared
        } else if is_tail_of_closed {
            Service::Exact
        } else {
            Service::Stream
        }
    }

    fn search(&mut self, request: &BlockRequest, way: Service) -> Option<(u64, u32)> {
        let (range, search) = self.prepared(request, way);
        let mut attempt = search.clone();
        let mut found = self.find(&mut attempt);
        if found.is_none() {
            // Windows are given up when space is short (`ext4_mb_discard_preallocations`).
            let freed = self.windows.drop_all();
            if freed.is_empty() {
                return None;
            }
            self.give_all(&freed);
            attempt = search;
            found = self.find(&mut attempt);
        }
        let found = found?;
        self.groups.take(&self.geometry, found.group, found.first, found.count);
        Some(self.used(request, way, &range, found))
    }

    /// The request as it is searched for, and the blocks of the file that it stands for.
    fn prepared(&self, request: &BlockRequest, way: Service) -> (Range<u64>, BlockSearch) {
        let groups = if request.is_indirect {
            let reachable = u64::from(u32::MAX) / u64::from(self.geometry.blocks_per_group);
            self.groups.count().min(reachable as u32)
        } else {
            self.groups.count()
        };
        let plain = request.logical..request.logical + u64::from(request.count);
        let new = |count| {
            let goal = self.geometry.group_of(request.goal);
            let mut search = BlockSearch::new(goal, count, request.count, groups);
            search.is_data = request.is_data;
            search
        };
        match way {
            Service::Exact => (plain, new(request.count)),
            Service::Shared => {
                let mut search = new(self.rules.shared_window);
                search.count_slow = request.count;
                (plain, search)
            }
            Service::Stream => {
                let range = self.normalised(request);
                let mut search = new((range.end - range.start) as u32);
                search.stream_of = Some(request.node);
                if let Some(goal) = self.adjacent_goal(request, &range) {
                    search.goal = self.geometry.group_of(goal);
                    search.tries_goal = true;
                }
                (range, search)
            }
        }
    }

    /// Range of the file that a request is extended to (`ext4_mb_normalize_request`).
    fn normalised(&self, request: &BlockRequest) -> Range<u64> {
        let block = u64::from(self.geometry.block_bytes);
        let size = request.size.max((request.logical + u64::from(request.count)) * block);
        let (mut start, bytes) = predicted(request, size, block);
        start /= block;
        let mut count = (bytes / block).cast_signed();
        let group = u64::from(self.geometry.blocks_per_group);
        start = start.max(request.logical / group * group);
        if let Some(left) = request.left.filter(|left| start <= left.logical) {
            count -= (left.logical + 1 - start).cast_signed();
            start = left.logical + 1;
        }
        if let Some(right) = request.right {
            let end = start.cast_signed() + count;
            count -= (end - right.logical.cast_signed()).max(0);
        }
        let count = count.clamp(1, group.cast_signed()).cast_unsigned();
        self.windows.cut(request.node, request.logical, start..start + count)
    }

    /// Place that makes the range a neighbour of what is there; the left one counts more.
    fn adjacent_goal(&self, request: &BlockRequest, range: &Range<u64>) -> Option<u64> {
        let count = range.end - range.start;
        let right = request.right.filter(|right| right.logical == range.end);
        let before = right.and_then(|right| right.physical.checked_sub(count));
        let left = request.left.filter(|left| left.logical + 1 == range.start);
        let behind = left.map(|left| left.physical + 1);
        let behind = behind.filter(|&block| block < self.geometry.blocks);
        behind.or(before.filter(|&block| block >= self.first_block))
    }

    /// Uses what was found, and keeps the rest as a window.
    fn used(
        &mut self,
        request: &BlockRequest,
        way: Service,
        range: &Range<u64>,
        found: FoundRun,
    ) -> (u64, u32) {
        let physical = self.geometry.block_at(found.group, found.first);
        if found.count <= request.count {
            return (physical, found.count);
        }
        if way == Service::Shared {
            let window = SharedWindow { physical, count: found.count };
            let fallen = self.windows.add_shared(request.cpu, window, request.count);
            self.give_all(&fallen);
            return (physical, request.count);
        }
        let logical = placed(request, range, u64::from(found.count));
        let window = FileWindow::new(logical, physical, found.count);
        self.windows.add_to_file(request.node, window, (request.logical, request.count))
    }
}

/// Start and length in bytes of the range that a file of this size is thought to grow into.
fn predicted(request: &BlockRequest, size: u64, block: u64) -> (u64, u64) {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    let chunk_max = 2 * block;
    let at = request.logical * block;
    let aligned = |bytes: u64| (at / bytes * bytes, bytes);
    for bytes in [16, 32, 64, 128, 256, 512, 1024].map(|kib| kib * KIB) {
        if size <= bytes {
            return (0, bytes);
        }
    }
    if size <= 4 * MIB || chunk_max <= 2 * KIB {
        aligned(2 * MIB)
    } else if size <= 8 * MIB || chunk_max <= 4 * KIB {
        aligned(4 * MIB)
    } else if u64::from(request.count) <= 8 * MIB / block || chunk_max <= 8 * KIB {
        aligned(8 * MIB)
    } else {
        (at, u64::from(request.count) * block)
    }
}

/// Block of the file that a window shorter than wanted begins with (`ext4_mb_new_inode_pa`): its
/// end at the wanted end, else its start at the wanted start, else at the block asked for.
fn placed(request: &BlockRequest, range: &Range<u64>, count: u64) -> u64 {
    if count >= range.end - range.start {
        return range.start;
    }
    let at_end = range.end - count;
    if request.logical >= at_end {
        at_end
    } else if request.logical + u64::from(request.count) <= range.start + count {
        range.start
    } else {
        request.logical
    }
}
