//! `ReadAhead`: a decider of what is read before it is asked for.
//!
//! The machine walks through the pages of a read and calls it at pages that are absent
//! ([`ReadAhead::miss`]) or carry a marker ([`ReadAhead::marker`]).

/// State of one open file; a rule that keeps its state per inode is given the inode's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadState {
    /// First page of the last window.
    pub start: u64,
    /// Its pages.
    pub size: u64,
    /// Pages of it that were still ahead of the reader when the next one is started.
    pub ahead: u64,
    /// Limit of a window in pages, copied from the device when the file was opened.
    pub pages_max: u64,
    /// Order of folios of the last window.
    pub order: u8,
    /// Page that the last read ended in, by the rule of the era; `None` after opening.
    pub previous: Option<u64>,
    /// Faults on absent pages, less those on present ones.
    pub map_misses: u32,
}

/// Advice that the reader gave (fadvise, madvise).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// None.
    #[default]
    Normal,
    /// Random: exactly what is asked for.
    Random,
    /// Sequential.
    Sequential,
}

/// Circumstances of a miss or of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAccess {
    /// The page.
    pub page: u64,
    /// Pages from there to the end of the user's request.
    pub request: u64,
    /// Advice.
    pub hint: Hint,
    /// Largest request of the queue, in pages (`max_sectors_kb`).
    pub io_pages: u64,
    /// Pages of the file, the last one perhaps in part.
    pub file_pages: u64,
}

/// The pages of one file, as far as read-ahead may look.
pub trait CachedPages {
    /// First page and order of the folio that holds a page; `None`: absent.
    fn folio(&self, page: u64) -> Option<(u64, u8)>;
}

/// Pages to read; those that are present are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadWindow {
    /// First page.
    pub start: u64,
    /// Number of pages, before clipping at the end of the file.
    pub size: u64,
    /// Pages from the marker on; 0: no marker.
    pub ahead: u64,
    /// Order of folios asked for; `None`: single pages.
    pub order: Option<u8>,
}

/// A folio to be added to the cache and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFolio {
    /// First page.
    pub first: u64,
    /// Order: 2^order pages.
    pub order: u8,
    /// True if the marker is on it.
    pub is_marked: bool,
}

/// A decider of read-ahead.
pub trait ReadAhead {
    /// A file was opened on a device whose `read_ahead_kb` is this many pages.
    fn opened(&self, device_pages: u64) -> ReadState {
        ReadState { pages_max: device_pages, ..ReadState::default() }
    }

    /// Advice was given.
    fn advised(&self, state: &mut ReadState, hint: Hint, device_pages: u64);

    /// An absent page of a read. At least that page is read, whatever the answer.
    fn miss(
        &self,
        state: &mut ReadState,
        access: ReadAccess,
        pages: &dyn CachedPages,
    ) -> Option<ReadWindow>;

    /// A marked folio of a read, which has lost its mark; `access.page` is its first page.
    fn marker(
        &self,
        state: &mut ReadState,
        access: ReadAccess,
        pages: &dyn CachedPages,
    ) -> Option<ReadWindow>;

    /// A read(2) has ended; `next` is the byte after the last one that was copied.
    fn ended(&self, state: &mut ReadState, next: u64);

    /// A fault on an absent page of a mapping.
    fn fault_miss(
        &self,
        state: &mut ReadState,
        access: ReadAccess,
        pages: &dyn CachedPages,
    ) -> Option<ReadWindow>;

    /// A fault that found its page; `marked` is the first page of its folio if that was marked and
    /// has lost its mark.
    fn fault_hit(
        &self,
        state: &mut ReadState,
        access: ReadAccess,
        marked: Option<u64>,
        pages: &dyn CachedPages,
    ) -> Option<ReadWindow>;

    /// Present pages were mapped around a fault.
    fn mapped_around(&self, state: &mut ReadState, pages: u64);

    /// Pages that advice to read ahead (`WILLNEED`) starts to read, out of a range.
    fn will_need(&self, state: &ReadState, access: ReadAccess) -> ReadWindow;

    /// Most folios that are copied before markers and waits are looked at again.
    fn batch_folios(&self) -> u32;

    /// Present pages that are mapped at a read fault, a power of two; 0: none.
    fn fault_around_pages(&self) -> u64;

    /// Folios of a window: absent pages of it, clipped at the end of the file.
    fn folios(
        &self,
        window: ReadWindow,
        file_pages: u64,
        pages: &dyn CachedPages,
        out: &mut Vec<NewFolio>,
    );
}
