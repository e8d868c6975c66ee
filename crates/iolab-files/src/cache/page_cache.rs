//! `PageCache`: memory, the files in it, and which page leaves when another one comes.

use super::map::{PageMap, Slot};
use crate::api::frame::{FrameFlags, FrameId, Frames, PageFrame, Replacement, Shadow, Victim};
use crate::api::read_ahead::CachedPages;

/// Dirty pages that reclaim passes over before it lets memory grow: what a round of direct reclaim
/// scans (Linux `SWAP_CLUSTER_MAX`, 32, at priority 12 down to 0). [assume]
const DIRTY_PASSES: u32 = 4096;

/// Counts of the cache, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Pages copied by read(2).
    pub used: u64,
    /// Pages that had to be read because a call used them.
    pub misses: u64,
    /// Pages read ahead.
    pub read_ahead: u64,
    /// Pages read ahead that were evicted unused.
    pub read_ahead_unused: u64,
    /// Pages evicted.
    pub evicted: u64,
}

/// Pages of all files, in a memory of limited size.
pub struct PageCache {
    /// The frames.
    pub frames: Frames,
    files: Vec<PageMap>,
    replacement: Box<dyn Replacement>,
    pages_max: u64,
    /// Dirty pages, of all files.
    pub dirty: u64,
    /// Pages under write-back.
    pub write_back: u64,
    /// Reclaim met dirty pages: the flusher should run.
    pub wants_flusher: bool,
    /// Counts.
    pub counters: CacheCounters,
}

impl PageCache {
    /// An empty memory.
    pub fn new(pages_max: u64, replacement: Box<dyn Replacement>) -> Self {
        Self {
            frames: Frames::default(),
            files: Vec::new(),
            replacement,
            pages_max: pages_max.max(1),
            dirty: 0,
            write_back: 0,
            wants_flusher: false,
            counters: CacheCounters::default(),
        }
    }

    /// Pages that could be cached.
    pub const fn pages_max(&self) -> u64 {
        self.pages_max
    }

    /// Pages of the working set that came back.
    pub fn refaults(&self) -> u64 {
        self.replacement.refaults()
    }

    /// Makes room for the pages of a file.
    pub fn open_file(&mut self, owner: u32) {
        if self.files.len() <= owner as usize {
            self.files.resize_with(owner as usize + 1, PageMap::default);
        }
    }

    /// The pages of a file.
    #[inline]
    pub fn file(&self, owner: u32) -> &PageMap {
        &self.files[owner as usize]
    }

    /// Frame of a cached page.
    #[inline]
    pub fn frame(&self, owner: u32, index: u64) -> Option<FrameId> {
        self.files[owner as usize].frame(index)
    }

    /// Adds a page if it is absent, evicting others if memory is full.
    pub fn add(&mut self, owner: u32, index: u64) -> FrameId {
        if let Some(frame) = self.frame(owner, index) {
            return frame;
        }
        while self.frames.used() as u64 >= self.pages_max {
            if !self.evict_one() {
                break;
            }
        }
        let shadow = match self.files[owner as usize].get(index) {
            Slot::Shadow(shadow) => Some(shadow),
            Slot::Absent | Slot::Page(_) => None,
        };
        let frame = self.frames.take(owner, index as u32);
        self.files[owner as usize].set(index, Slot::Page(frame));
        self.replacement.added(&mut self.frames, frame, shadow);
        frame
    }

    fn evict_one(&mut self) -> bool {
        for _ in 0..DIRTY_PASSES {
            match self.replacement.choose(&mut self.frames) {
                Victim::Evict(frame, shadow) => {
                    let page = self.frames[frame];
                    if page.flags.has(FrameFlags::UNUSED) {
                        self.counters.read_ahead_unused += 1;
                    }
                    self.counters.evicted += 1;
                    let file = &mut self.files[page.owner as usize];
                    file.set(u64::from(page.index), Slot::Shadow(shadow));
                    self.frames.release(frame);
                    if page.order > 0 {
                        self.evict_rest(page, shadow);
                    }
                    return true;
                }
                Victim::Dirty(_) => self.wants_flusher = true,
                Victim::Nothing => return false,
            }
        }
        false
    }

    /// The other pages of a folio leave with one of them.
    fn evict_rest(&mut self, gone: PageFrame, shadow: Shadow) {
        let first = u64::from(gone.index) >> gone.order << gone.order;
        for index in first..first + (1 << gone.order) {
            let Some(frame) = self.frame(gone.owner, index) else { continue };
            let flags = self.frames[frame].flags;
            let is_busy = flags.has(FrameFlags::DIRTY) || flags.has(FrameFlags::WRITE_BACK);
            if is_busy || !flags.has(FrameFlags::UP_TO_DATE) {
                self.frames[frame].order = 0;
                continue;
            }
            self.counters.evicted += 1;
            self.counters.read_ahead_unused += u64::from(flags.has(FrameFlags::UNUSED));
            self.replacement.removed(&mut self.frames, frame);
            self.files[gone.owner as usize].set(index, Slot::Shadow(shadow));
            self.frames.release(frame);
        }
    }

    /// A page is used by read(2) or write(2).
    #[inline]
    pub fn used(&mut self, frame: FrameId) {
        self.replacement.used(&mut self.frames, frame);
        self.frames[frame].flags.clear(FrameFlags::UNUSED);
    }

    /// Marks a page dirty; tells whether that is new.
    #[inline]
    pub fn set_dirty(&mut self, frame: FrameId) -> bool {
        let page = &mut self.frames[frame];
        page.flags.set(FrameFlags::DIRTY);
        let is_new = self.files[page.owner as usize].set_dirty(u64::from(page.index), true);
        self.dirty += u64::from(is_new);
        is_new
    }

    /// Marks a page clean.
    pub fn clear_dirty(&mut self, frame: FrameId) {
        let page = &mut self.frames[frame];
        page.flags.clear(FrameFlags::DIRTY);
        let is_new = self.files[page.owner as usize].set_dirty(u64::from(page.index), false);
        self.dirty -= u64::from(is_new);
    }

    /// Forgets the pages of a range of a file, dirty ones as well; those under way to the device or
    /// from it stay. Calls `each` for every dirty page.
    pub fn forget(&mut self, owner: u32, from: u64, end: u64, mut each: impl FnMut(u64)) {
        for border in [from, end] {
            self.split_folio(owner, border);
        }
        let Self { frames, files, replacement, dirty, .. } = self;
        let mut kept = Vec::new();
        files[owner as usize].cut(from, end, |index, frame| {
            let flags = frames[frame].flags;
            if flags.has(FrameFlags::DIRTY) {
                *dirty -= 1;
                frames[frame].flags.clear(FrameFlags::DIRTY);
                each(index);
            }
            let is_busy = flags.has(FrameFlags::WRITE_BACK) || !flags.has(FrameFlags::UP_TO_DATE);
            if is_busy {
                kept.push((index, frame));
                return;
            }
            replacement.removed(frames, frame);
            frames.release(frame);
        });
        for (index, frame) in kept {
            self.files[owner as usize].set(index, Slot::Page(frame));
        }
    }

    /// A folio that lies on both sides of a page becomes single pages.
    fn split_folio(&mut self, owner: u32, border: u64) {
        let Some(before) = border.checked_sub(1) else { return };
        let Some(frame) = self.frame(owner, before) else { return };
        let order = self.frames[frame].order;
        let first = before >> order << order;
        if first + (1 << order) <= border {
            return;
        }
        for page in first..first + (1 << order) {
            if let Some(frame) = self.frame(owner, page) {
                self.frames[frame].order = 0;
            }
        }
    }

    /// Pages from `from` on that are on their way from the device.
    pub fn busy_pages(&self, owner: u32, from: u64) -> Vec<u64> {
        let file = self.file(owner);
        if file.present() == 0 {
            return Vec::new();
        }
        let is_busy = |page: &u64| {
            let frame = self.frame(owner, *page);
            frame.is_some_and(|frame| !self.frames[frame].flags.has(FrameFlags::UP_TO_DATE))
        };
        (from..file.page_end()).filter(is_busy).collect()
    }

    /// A page whose read has failed is forgotten.
    pub fn drop_failed(&mut self, owner: u32, index: u64) {
        let Some(frame) = self.frame(owner, index) else { return };
        if !self.frames[frame].flags.has(FrameFlags::UP_TO_DATE) {
            self.replacement.removed(&mut self.frames, frame);
            self.frames.release(frame);
            self.files[owner as usize].set(index, Slot::Absent);
        }
    }

    /// Forgets every clean page (`drop_caches`).
    pub fn drop_clean(&mut self) {
        for owner in 0..self.files.len() as u32 {
            self.forget_clean(owner);
        }
    }

    /// The pages of a file are no longer mapped.
    pub fn unmap(&mut self, owner: u32) {
        for index in 0..self.file(owner).page_end() {
            if let Some(frame) = self.frame(owner, index) {
                let flags = &mut self.frames[frame].flags;
                flags.clear(FrameFlags::MAPPED);
                flags.clear(FrameFlags::WRITABLE);
                flags.clear(FrameFlags::YOUNG);
            }
        }
    }

    /// Forgets the clean pages of a file.
    pub fn forget_clean(&mut self, owner: u32) {
        if self.file(owner).present() > 0 {
            self.give_up(owner, 0, self.file(owner).page_end());
        }
    }

    /// Forgets the clean pages of a range of a file. A folio leaves as a whole, or stays.
    pub fn give_up(&mut self, owner: u32, from: u64, end: u64) {
        let mut index = from;
        while index < end {
            let order = self.frame(owner, index).map_or(0, |frame| self.frames[frame].order);
            let next = ((index >> order << order) + (1 << order)).min(end);
            if (index..next).all(|page| self.can_leave(owner, page)) {
                for page in index..next {
                    if let Some(frame) = self.frame(owner, page) {
                        self.replacement.removed(&mut self.frames, frame);
                        self.frames.release(frame);
                        self.files[owner as usize].set(page, Slot::Absent);
                    }
                }
            }
            index = next;
        }
    }

    /// Tell whether a page holds nothing that the device lacks, and nothing is on its way.
    fn can_leave(&self, owner: u32, index: u64) -> bool {
        self.frame(owner, index).is_none_or(|frame| {
            let flags = self.frames[frame].flags;
            let is_busy = flags.has(FrameFlags::DIRTY) || flags.has(FrameFlags::WRITE_BACK);
            flags.has(FrameFlags::UP_TO_DATE) && !is_busy
        })
    }

    /// Forgets the clean pages of a range of a file that something else has changed
    /// (`invalidate_inode_pages2_range`).
    pub fn invalidate(&mut self, owner: u32, from: u64, end: u64) {
        for border in [from, end] {
            self.split_folio(owner, border);
        }
        self.give_up(owner, from, end.min(self.file(owner).page_end()));
    }

    /// The pages of a file for a decider.
    pub const fn view(&self, owner: u32) -> FileView<'_> {
        FileView { cache: self, owner }
    }
}

/// The pages of one file, as read-ahead sees them.
pub struct FileView<'a> {
    cache: &'a PageCache,
    owner: u32,
}

impl CachedPages for FileView<'_> {
    #[inline]
    fn folio(&self, page: u64) -> Option<(u64, u8)> {
        let frame = self.cache.frame(self.owner, page)?;
        let order = self.cache.frames[frame].order;
        Some((page >> order << order, order))
    }
}
