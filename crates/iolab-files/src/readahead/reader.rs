//! The walk of a read(2) through the pages of a file, batch by batch.
//!
//! Source: Linux 6.12 mm/filemap.c (`filemap_get_pages`, `filemap_get_read_batch`).

use crate::api::read_ahead::{CachedPages, Hint, ReadAccess, ReadAhead, ReadState, ReadWindow};

/// State of the folio that holds a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolioState {
    /// First page.
    pub first: u64,
    /// Order: 2^order pages.
    pub order: u8,
    /// True if the marker is on it.
    pub is_marked: bool,
    /// True if its data are here.
    pub is_up_to_date: bool,
    /// True while it is being written: a marker is not honoured.
    pub is_under_write_back: bool,
}

/// The pages of a file, as a read walks through them.
pub trait ReadPages: CachedPages {
    /// State of the folio that holds a page; `None`: absent.
    fn state(&self, page: u64) -> Option<FolioState>;

    /// Takes the mark from the folio that begins at a page.
    fn unmark(&mut self, first: u64);

    /// Adds the absent pages of a window and starts to read them.
    fn submit(&mut self, window: ReadWindow);

    /// Adds one page and starts to read it.
    fn submit_alone(&mut self, page: u64);

    /// The pages for a decider.
    fn view(&self) -> &dyn CachedPages;
}

/// Constant circumstances of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCall {
    /// Page after the last one asked for.
    pub end: u64,
    /// Advice.
    pub hint: Hint,
    /// Largest request of the queue, in pages.
    pub io_pages: u64,
    /// Pages of the file.
    pub file_pages: u64,
}

/// Pages that are copied next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Page after the last one.
    pub end: u64,
    /// The last folio, if its data must be waited for.
    pub wait_for: Option<u64>,
}

impl ReadCall {
    fn access(&self, page: u64) -> ReadAccess {
        let Self { hint, io_pages, file_pages, .. } = *self;
        ReadAccess { page, request: self.end - page, hint, io_pages, file_pages }
    }

    /// Collects the next batch from `page` on, reading what is absent or comes soon.
    pub fn batch(
        &self,
        rule: &dyn ReadAhead,
        state: &mut ReadState,
        page: u64,
        pages: &mut impl ReadPages,
    ) -> Batch {
        let mut last = collect(pages, page, self.end, rule.batch_folios());
        if last.is_none() {
            if let Some(window) = rule.miss(state, self.access(page), pages.view()) {
                pages.submit(window);
            }
            last = collect(pages, page, self.end, rule.batch_folios());
        }
        let Some(last) = last else {
            pages.submit_alone(page);
            return Batch { end: page + 1, wait_for: Some(page) };
        };
        if last.is_marked && !last.is_under_write_back {
            pages.unmark(last.first);
            // A marked folio may begin before the page of a read that starts inside it.
            if let Some(window) = rule.marker(state, self.access(last.first), pages.view()) {
                pages.submit(window);
            }
        }
        Batch {
            end: (last.first + (1 << last.order)).min(self.end),
            wait_for: (!last.is_up_to_date).then_some(last.first),
        }
    }
}

/// The last folio of a batch from `page` on: the first one that is marked or not up to date, or the
/// last of as many as a batch holds.
fn collect(pages: &impl ReadPages, page: u64, end: u64, folios: u32) -> Option<FolioState> {
    let mut last = None;
    let mut next = page;
    for _ in 0..folios {
        if next >= end {
            break;
        }
        let Some(folio) = pages.state(next) else { break };
        last = Some(folio);
        if !folio.is_up_to_date || folio.is_marked {
            break;
        }
        next = folio.first + (1 << folio.order);
    }
    last
}
