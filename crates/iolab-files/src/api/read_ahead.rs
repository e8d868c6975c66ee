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
pub struct Access {
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
pub struct Window {
    /// First page.
    pub start: u64,
    /// Number of pages, before clipping at the end of the file.
    pub size: u64,
    /// Pages behind the marker; `None`: no marker.
    pub ahead: Option<u64>,
    /// Order of folios asked for.
    pub order: u8,
}

/// A decider of read-ahead.
pub trait ReadAhead {
    /// An absent page. At least that page is read, whatever the answer.
    fn miss(
        &self,
        state: &mut ReadState,
        access: Access,
        pages: &dyn CachedPages,
    ) -> Option<Window>;

    /// A marked folio, which has lost its mark.
    fn marker(
        &self,
        state: &mut ReadState,
        access: Access,
        pages: &dyn CachedPages,
    ) -> Option<Window>;

    /// A read(2) has ended; `next` is the byte after the last one that was copied.
    fn ended(&self, state: &mut ReadState, next: u64);
}
