//! Read-ahead against recordings of the kernel, and against windows worked out by hand.

mod checks;
mod mapped;
mod recorded;
mod walks;

use core::cell::RefCell;
use std::collections::BTreeMap;

use super::era::{ReadAheadRules, Walk};
use super::linux::LinuxReadAhead;
use super::reader::{Batch, FolioState, ReadCall, ReadPages};
use crate::api::read_ahead::{
    CachedPages, Hint, NewFolio, ReadAccess, ReadAhead, ReadState, ReadWindow,
};

/// A file whose pages are up to date as soon as the call that reads them has ended.
pub struct TestFile {
    rule: LinuxReadAhead,
    pub state: ReadState,
    pub hint: Hint,
    pub io_pages: u64,
    pub file_pages: u64,
    /// First page of each folio, with its order and mark.
    folios: BTreeMap<u64, (u8, bool)>,
    /// Requests of the call in progress: runs of new pages.
    requests: Vec<(u64, u64)>,
    looked_at: RefCell<u64>,
}

impl CachedPages for TestFile {
    fn folio(&self, page: u64) -> Option<(u64, u8)> {
        *self.looked_at.borrow_mut() += 1;
        let (&first, &(order, _)) = self.folios.range(..=page).next_back()?;
        (page < first + (1 << order)).then_some((first, order))
    }
}

impl ReadPages for TestFile {
    fn state(&self, page: u64) -> Option<FolioState> {
        let (first, order) = self.folio(page)?;
        let is_marked = self.folios[&first].1;
        let (is_up_to_date, is_under_write_back) = (true, false);
        Some(FolioState { first, order, is_marked, is_up_to_date, is_under_write_back })
    }

    fn unmark(&mut self, first: u64) {
        self.folios.get_mut(&first).unwrap().1 = false;
    }

    fn submit(&mut self, window: ReadWindow) {
        let mut new = Vec::new();
        self.rule.folios(window, self.file_pages, self, &mut new);
        let before = self.requests.len();
        for NewFolio { first, order, is_marked } in new {
            self.folios.insert(first, (order, is_marked));
            let end = first + (1 << order);
            match self.requests[before..].last_mut() {
                Some(run) if run.1 == first => run.1 = end,
                _ => self.requests.push((first, end)),
            }
        }
    }

    fn submit_alone(&mut self, page: u64) {
        self.folios.insert(page, (0, false));
        self.requests.push((page, page + 1));
    }

    fn view(&self) -> &dyn CachedPages {
        self
    }
}

impl TestFile {
    pub fn new(rules: ReadAheadRules, pages_max: u64) -> Self {
        let rule = LinuxReadAhead::new(rules);
        Self {
            rule,
            state: rule.opened(pages_max),
            hint: Hint::Normal,
            io_pages: 320,
            file_pages: 16_384,
            folios: BTreeMap::new(),
            requests: Vec::new(),
            looked_at: RefCell::new(0),
        }
    }

    /// One read(2); answers the requests, in their order.
    pub fn read(&mut self, offset: u64, length: u64) -> Vec<(u64, u64)> {
        let (end, size) = (offset + length, self.file_pages * 4096);
        let call = ReadCall {
            end: end.div_ceil(4096),
            hint: self.hint,
            io_pages: self.io_pages,
            file_pages: self.file_pages,
        };
        let (rule, mut state) = (self.rule, self.state);
        let mut page = offset / 4096;
        while page * 4096 < end.min(size) {
            let Batch { end, .. } = call.batch(&rule, &mut state, page, self);
            assert!(end > page, "a batch makes progress");
            page = end;
        }
        rule.ended(&mut state, end.min(size));
        self.state = state;
        core::mem::take(&mut self.requests)
    }

    /// Reads of single pages; answers `page:[first,last)` of every read that led to requests.
    pub fn pages(&mut self, pages: impl IntoIterator<Item = u64>) -> String {
        let each = |page: u64| {
            let found = self.read(page * 4096, 4096);
            found.iter().map(|(first, end)| format!("{page}:[{first},{end})")).collect::<Vec<_>>()
        };
        pages.into_iter().flat_map(each).collect::<Vec<_>>().join(" ")
    }

    /// Circumstances of an access that is no read.
    pub fn access(&self, page: u64, request: u64) -> ReadAccess {
        let Self { hint, io_pages, file_pages, .. } = *self;
        ReadAccess { page, request, hint, io_pages, file_pages }
    }
}

/// The rules with the ideal walk.
pub fn ideal(rules: ReadAheadRules) -> ReadAheadRules {
    ReadAheadRules { walk: Walk::Ideal, ..rules }
}
