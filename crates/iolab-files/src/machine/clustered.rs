//! Reads of file systems with clusters: read-ahead for each inode, memory given up behind readers.

use super::buffered_read::ReadWork;
use super::engine::Machine;
use super::task::{Flow, RunBy, TaskIndex};
use crate::api::block::FileRun;
use crate::api::file_system::{Clusters, FreeBehind};
use crate::api::frame::FrameFlags;
use crate::api::read_ahead::{Hint, NewFolio};
use crate::readahead::clustered::{ClusterAccess, ClusterLimits};

/// Offset up to which pages are never given up. (Solaris: `smallfile`, 32 KiB.) [doc]
const SMALL_FILE: u64 = 32 << 10;
/// Margin above `lotsfree` at which Solaris 8 begins: `pages_before_pager`, 200 of 8 KiB. [doc]
const BEFORE_PAGER: u64 = 200 * 8192;
/// Least value of `lotsfree`. [doc]
const LOTSFREE_MIN: u64 = 512 << 10;

impl Machine {
    /// Pages of the unit of the cache.
    pub(super) fn unit_pages(&self) -> u64 {
        (u64::from(self.facts.cache_unit_bytes) / 4096).max(1)
    }

    pub(super) fn step_clustered_read(
        &mut self,
        index: TaskIndex,
        work: &mut ReadWork,
        clusters: Clusters,
    ) -> Flow {
        let unit = self.unit_pages() * 4096;
        loop {
            let end = work.end.min(self.tree.node(work.owner).size);
            if work.at >= end {
                return self.end_read(index, work);
            }
            let at = work.at / unit * unit;
            let until = (at + unit).min(end);
            if work.looked_at != Some(at) {
                let runner = self.task(index).runner;
                work.is_sequential = self.look_at_unit(work.owner, at, clusters, runner);
                work.looked_at = Some(at);
            }
            for page in work.at / 4096..until.div_ceil(4096) {
                self.await_page(index, work.owner, page);
            }
            if self.task(index).pending > 0 {
                return Flow::More;
            }
            self.copy_range(index, work, until);
            if work.is_sequential {
                self.free_behind(work.owner, (at, until), clusters.frees_behind);
            }
        }
    }

    /// Starts the reads of an access to a unit; tells whether it was a sequential one.
    fn look_at_unit(&mut self, owner: u32, at: u64, clusters: Clusters, runner: RunBy) -> bool {
        let unit = self.unit_pages() * 4096;
        let size = self.tree.node(owner).size;
        let is_cached = self.cache.frame(owner, at / 4096).is_some();
        let access = ClusterAccess { at, size, is_cached };
        let longest = (self.max_sectors() * 512 / unit * unit).max(unit);
        let cluster = match clusters.read_bytes {
            None => clusters.bytes.min(longest),
            Some(_) => clusters.bytes.next_multiple_of(unit),
        };
        let each = clusters.read_bytes.map_or(cluster, |bytes| (bytes / unit * unit).max(unit));
        let limits = ClusterLimits { unit, cluster };
        let mut state = self.tree.node(owner).clustered;
        let reads = state.access(access, limits, |at, most| self.run_on_device(owner, at, most));
        self.tree.node_mut(owner).clustered = state;
        for ((first, length), is_ahead) in [(reads.now, false), (reads.ahead, true)]
            .into_iter()
            .filter_map(|(read, is_ahead)| read.map(|read| (read, is_ahead)))
        {
            let used = if is_ahead { (0, 0) } else { (first / 4096, (first + unit) / 4096) };
            for from in (first..first + length).step_by(each as usize) {
                let end = (from + each).min(first + length);
                self.read_range(owner, (from, end), used, runner);
            }
        }
        reads.is_sequential
    }

    /// Bytes from a place of a file on that lie together on the device, in whole units.
    fn run_on_device(&self, owner: u32, at: u64, most: u64) -> u64 {
        let unit = self.unit_pages() * 4096;
        let block = u64::from(self.facts.block_bytes);
        let node = self.tree.node(owner).id;
        let run = FileRun { node, first: at / block, count: most / block };
        let found = self.fs.map(run).count * block;
        (found.next_multiple_of(unit)).clamp(unit, most.max(unit))
    }

    /// Reads the absent pages of a range of bytes.
    pub(super) fn read_range(
        &mut self,
        owner: u32,
        (from, end): (u64, u64),
        used: (u64, u64),
        runner: RunBy,
    ) {
        let end = end.min(self.tree.node(owner).size).div_ceil(4096);
        let new: Vec<NewFolio> = (from / 4096..end)
            .filter(|&page| self.cache.frame(owner, page).is_none())
            .map(|first| NewFolio { first, order: 0, is_marked: false })
            .collect();
        self.add_folios(owner, &new, used, runner);
    }

    /// Gives up the pages of a unit that a sequential reader has left.
    fn free_behind(&mut self, owner: u32, (at, end): (u64, u64), rule: FreeBehind) {
        let bytes = self.settings.memory_bytes;
        let free = bytes.saturating_sub(self.cache.frames.used() as u64 * 4096);
        let gives_up = match rule {
            FreeBehind::Never => false,
            FreeBehind::WhenShort => {
                at > SMALL_FILE && free < (bytes / 64).max(LOTSFREE_MIN) + BEFORE_PAGER
            }
            FreeBehind::Large => {
                let cpus = u64::from(self.settings.cpus.max(1));
                // Up to a tenth of free memory pages stay where they can be found again.
                at > SMALL_FILE.max(free / cpus / 10)
            }
        };
        if gives_up {
            self.cache.give_up(owner, at / 4096, end.div_ceil(4096));
        }
    }

    /// Reads for a fault on an absent page of a mapped file.
    pub(super) fn clustered_fault(
        &mut self,
        owner: u32,
        page: u64,
        hint: Hint,
        (clusters, runner): (Clusters, RunBy),
    ) {
        let unit = self.unit_pages() * 4096;
        let at = page * 4096 / unit * unit;
        let mut state = self.tree.node(owner).clustered;
        let most = if hint == Hint::Random { unit } else { clusters.map_bytes };
        let length = state.fault(at, hint == Hint::Sequential, unit, most);
        self.tree.node_mut(owner).clustered = state;
        self.read_range(owner, (at, at + length), (page, page + 1), runner);
    }

    /// Marks all pages of the units that a write has touched: the unit is what is written.
    pub(super) fn dirty_units(&mut self, owner: u32, (first, last): (u64, u64)) -> u64 {
        let unit = self.unit_pages();
        let pages = self.pages_of(owner);
        let (from, end) = (first / unit * unit, last.next_multiple_of(unit).min(pages));
        let mut new = 0;
        for page in (from..first).chain(last..end) {
            let is_new = self.keeps_data() && self.cache.frame(owner, page).is_none();
            let frame = self.cache.add(owner, page);
            if is_new {
                self.begin_page(owner, page, (page * 4096, (page + 1) * 4096), [true; 2]);
            }
            self.cache.frames[frame].flags.set(FrameFlags::UP_TO_DATE);
            new += u64::from(self.cache.set_dirty(frame));
        }
        if self.own_cache().is_some() {
            self.join_pages(owner, (from, end));
        }
        new
    }
}
