//! Edges: pages, blocks and records of which a call changes a part only. What is cut, cleared or
//! moved is read first, and written again.

use super::engine::Machine;
use super::task::TaskIndex;
use crate::api::block::{FileRun, Place};
use crate::api::frame::FrameFlags;

impl Machine {
    /// Starts to read the pages in which a range begins and ends, where it covers a part of them
    /// only and they hold data; the task waits for them.
    ///
    /// Source: Linux fs/ext4/inode.c (`ext4_block_truncate_page`, `ext4_zero_partial_blocks`),
    /// fs/iomap/buffered-io.c (`iomap_zero_range`): what is cut is read, cleared, and dirty.
    pub(super) fn read_edges(&mut self, index: TaskIndex, owner: u32, edges: &[u64]) {
        let (unit, unit_pages) = (self.whole_bytes(), self.unit_pages());
        for page in self.cut_pages(owner, edges) {
            let first = page / unit_pages * unit_pages;
            if self.lacks_page(owner, first) {
                let runner = self.task(index).runner;
                let pages = (page, page + 1);
                if self.own_cache().is_some() {
                    self.read_record(owner, page, pages, runner);
                } else {
                    self.read_range(owner, (first * 4096, first * 4096 + unit), pages, runner);
                }
            }
            for page in first..first + unit_pages {
                self.await_page(index, owner, page);
            }
        }
    }

    /// Tell whether pages that were read because they are cut have left memory while the task
    /// slept: the kernel has them locked.
    pub(super) fn has_lost_page(&self, owner: u32, edges: &[u64]) -> bool {
        let unit = self.unit_pages();
        self.cut_pages(owner, edges)
            .into_iter()
            .any(|page| self.lacks_page(owner, page / unit * unit))
    }

    /// Pages with data on the device that are cut at these places.
    fn cut_pages(&self, owner: u32, edges: &[u64]) -> Vec<u64> {
        let size = self.tree.node(owner).size;
        let block = u64::from(self.facts.block_bytes);
        // Smaller blocks than a page are given back one by one.
        let is_alone = block < 4096 && self.facts.clusters.is_none();
        let whole = if is_alone { block } else { self.whole_bytes() };
        let cut = edges.iter().filter(|&&edge| edge > 0 && edge <= size);
        cut.filter(|&&edge| !edge.is_multiple_of(whole) && self.has_written(owner, edge))
            .map(|edge| (edge - 1) / 4096)
            .collect()
    }

    /// Tell whether anything that is cached together with the byte before an edge is on the device.
    fn has_written(&self, owner: u32, edge: u64) -> bool {
        let block = u64::from(self.facts.block_bytes);
        let node = self.tree.node(owner).id;
        let unit = if self.facts.clusters.is_some() { self.whole_bytes() } else { block };
        let from = (edge - 1) / unit * unit;
        (from / block..(from + unit) / block).any(|first| {
            matches!(self.fs.map(FileRun { node, first, count: 1 }).place, Place::Written(..))
        })
    }

    /// Starts to read the last block of a file that goes on behind it, if that block may be moved:
    /// it must be written again.
    ///
    /// Source: illumos `uts/common/fs/ufs/ufs_bmap.c` (fragments that grow).
    pub(super) fn read_tail(&mut self, index: TaskIndex, owner: u32, range: (u64, u64)) {
        if let Some(end) = self.moved_tail(owner, range) {
            self.read_edges(index, owner, &[end]);
        }
    }

    /// The last block of a file, which was read, is to be written again.
    pub(super) fn dirty_tail(&mut self, index: TaskIndex, owner: u32, range: (u64, u64)) {
        if let Some(end) = self.moved_tail(owner, range) {
            self.dirty_edges(index, owner, &[end]);
        }
    }

    /// End of a file whose last block is moved by a write, and not filled by it.
    fn moved_tail(&self, owner: u32, (at, end): (u64, u64)) -> Option<u64> {
        let (size, unit) = (self.tree.node(owner).size, self.whole_bytes());
        let moves = self.moves_blocks();
        let fills = at <= size / unit * unit;
        (moves && end > size && !fills && !size.is_multiple_of(unit)).then_some(size)
    }

    /// Edges of a range that is given back or cleared: where it begins, and where it ends before
    /// the end of the file or in its last block.
    pub(super) fn edges_of(&self, owner: u32, (at, end): (u64, u64)) -> [u64; 2] {
        let size = self.tree.node(owner).size;
        let block = match self.facts.clusters {
            Some(_) => self.whole_bytes(),
            None => u64::from(self.facts.block_bytes),
        };
        // The last block goes as a whole, or is cleared up to the end of the file.
        let end = if end >= size.next_multiple_of(block) { 0 } else { end.min(size) };
        [if at < size { at } else { 0 }, end]
    }

    /// Bytes that are cached and given back together: those of a page, a block or a record.
    pub(super) fn whole_bytes(&self) -> u64 {
        (self.unit_pages() * 4096).max(u64::from(self.facts.block_bytes))
    }

    /// The pages in which a range begins and ends were cut, which makes them dirty where they hold
    /// data.
    pub(super) fn dirty_edges(&mut self, index: TaskIndex, owner: u32, edges: &[u64]) {
        let unit = self.whole_bytes();
        for &edge in edges.iter().filter(|edge| !edge.is_multiple_of(unit)) {
            let page = (edge - 1) / 4096;
            let Some(frame) = self.cache.frame(owner, page) else { continue };
            let flags = self.cache.frames[frame].flags;
            let holds = flags.has(FrameFlags::WRITE_BACK) || self.has_written(owner, edge);
            if !flags.has(FrameFlags::UP_TO_DATE) || !holds {
                continue;
            }
            if self.own_cache().is_some() {
                // The record is changed in a transaction; there is no room to wait for.
                let _ = self.prepare(index, owner, (edge - 1, edge), false);
            }
            let is_new = self.cache.set_dirty(frame);
            // The rest of its unit may be clean, or on its way.
            let others =
                if self.unit_pages() > 1 { self.dirty_units(owner, (page, page + 1)) } else { 0 };
            if is_new || others > 0 {
                self.note_dirty(owner);
            }
        }
    }
}
