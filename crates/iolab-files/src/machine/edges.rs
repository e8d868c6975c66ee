//! Edges: pages, blocks and records of which a call changes a part only. What is cut, cleared or
//! moved is read first, and written again.

use super::engine::Machine;
use super::task::TaskIndex;
use crate::api::block::{FileRun, Mapped, Place};
use crate::api::frame::FrameFlags;

impl Machine {
    /// Starts to read the pages in which a range begins and ends, where it covers a part of them
    /// only and they hold data; the task waits for them.
    ///
    /// Source: Linux fs/ext4/inode.c (`ext4_block_truncate_page`, `ext4_zero_partial_blocks`),
    /// fs/iomap/buffered-io.c (`iomap_zero_range`): what is cut is read, cleared, and dirty.
    pub(super) fn read_edges(&mut self, index: TaskIndex, owner: u32, edges: &[u64]) {
        let size = self.tree.node(owner).size;
        let unit = self.whole_bytes();
        let block = u64::from(self.facts.block_bytes);
        let node = self.tree.node(owner).id;
        for &edge in edges.iter().filter(|edge| **edge > 0 && **edge <= size) {
            let (page, first) = ((edge - 1) / 4096, (edge - 1) / block);
            let Mapped { place, .. } = self.fs.map(FileRun { node, first, count: 1 });
            // Smaller blocks than a page are given back one by one.
            let is_alone = block < 4096 && self.facts.clusters.is_none();
            let is_cut = !edge.is_multiple_of(if is_alone { block } else { unit });
            if !is_cut || !matches!(place, Place::Written(..)) {
                continue;
            }
            let unit_page = page / self.unit_pages() * self.unit_pages();
            if self.lacks_page(owner, unit_page) {
                let runner = self.task(index).runner;
                let from = unit_page * 4096;
                let pages = (page, page + 1);
                if self.own_cache().is_some() {
                    self.read_record(owner, page, pages, runner);
                } else {
                    self.read_range(owner, (from, from + unit), pages, runner);
                }
            }
            self.await_page(index, owner, page);
        }
    }

    /// Starts to read the last block of a file that goes on behind it, if that block is to be
    /// moved: it must be written again.
    ///
    /// Source: illumos `uts/common/fs/ufs/ufs_bmap.c` (fragments that grow).
    pub(super) fn read_tail(&mut self, index: TaskIndex, owner: u32, at: u64) {
        if let Some(end) = self.moved_tail(owner, at) {
            self.read_edges(index, owner, &[end]);
        }
    }

    /// The last block of a file, which was read, is to be written again.
    pub(super) fn dirty_tail(&mut self, index: TaskIndex, owner: u32, at: u64) {
        if let Some(end) = self.moved_tail(owner, at) {
            self.dirty_edges(index, owner, &[end]);
        }
    }

    /// End of a file whose last block is moved by a write.
    fn moved_tail(&self, owner: u32, at: u64) -> Option<u64> {
        let (size, unit) = (self.tree.node(owner).size, self.whole_bytes());
        let moves = self.facts.clusters.is_some_and(|clusters| clusters.moves_tails);
        let is_behind = at / unit * unit >= size && !size.is_multiple_of(unit);
        (moves && is_behind).then_some(size)
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
        let block = u64::from(self.facts.block_bytes);
        let node = self.tree.node(owner).id;
        let unit = self.whole_bytes();
        for &edge in edges.iter().filter(|edge| !edge.is_multiple_of(unit)) {
            let run = FileRun { node, first: (edge - 1) / block, count: 1 };
            let is_written = matches!(self.fs.map(run).place, Place::Written(..));
            let page = (edge - 1) / 4096;
            let frame = self.cache.frame(owner, page);
            let is_here = |frame: &_| self.cache.frames[*frame].flags.has(FrameFlags::UP_TO_DATE);
            let Some(frame) = frame.filter(is_here).filter(|_| is_written) else { continue };
            if self.own_cache().is_some() {
                // The record is changed in a transaction; there is no room to wait for.
                let _ = self.prepare(index, owner, (edge - 1, edge), false);
            }
            if self.cache.set_dirty(frame) {
                if self.unit_pages() > 1 {
                    self.dirty_units(owner, (page, page + 1));
                }
                self.note_dirty(owner);
            }
        }
    }
}
