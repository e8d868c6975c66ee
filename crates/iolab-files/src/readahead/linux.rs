//! `LinuxReadAhead`: the kernel's on-demand read-ahead, all eras.
//!
//! Left out: control groups that are congested, and files of which a part is in huge pages of
//! shared memory. Sources: see [`super::era`].

use super::era::{ReadAheadEra, ReadAheadRules, Walk};
use super::walk::{history, next_absent};
use crate::api::read_ahead::{
    CachedPages, Hint, NewFolio, ReadAccess, ReadAhead, ReadState, ReadWindow,
};

/// Largest folio: 2 MiB (Linux `MAX_PAGECACHE_ORDER` with 4 KiB pages on x86-64).
const ORDER_MAX: u8 = 9;
/// Faults that miss more than they hit, after which mappings are read page by page (Linux
/// mm/filemap.c: `MMAP_LOTSAMISS`).
const MISSES_MANY: u32 = 100;
/// Count at which misses stop counting: ten times that.
const MISSES_MAX: u32 = 10 * MISSES_MANY;
/// Pieces of a forced read: 2 MiB (Linux mm/readahead.c: `force_page_cache_ra`).
pub const FORCED_PAGES: u64 = 512;

/// Read-ahead as a kernel does it.
#[derive(Clone, Copy, Debug)]
pub struct LinuxReadAhead {
    rules: ReadAheadRules,
}

/// `get_init_ra_size`: the first window.
const fn first_size(request: u64, max: u64) -> u64 {
    let size = request.next_power_of_two();
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

/// `get_next_ra_size`: the window after one of `size`.
const fn next_size(size: u64, max: u64) -> u64 {
    if size < max / 16 {
        size * 4
    } else if size <= max / 2 {
        size * 2
    } else {
        max
    }
}

impl LinuxReadAhead {
    /// By these rules.
    pub const fn new(rules: ReadAheadRules) -> Self {
        Self { rules }
    }

    /// The rules.
    pub const fn rules(&self) -> ReadAheadRules {
        self.rules
    }

    fn is_split(&self) -> bool {
        self.rules.era >= ReadAheadEra::Ra3
    }

    fn window_max(&self, state: &ReadState, access: ReadAccess) -> u64 {
        let max = state.pages_max;
        if self.rules.has_io_pages && access.request > max && access.io_pages > max {
            access.request.min(access.io_pages)
        } else {
            max
        }
    }

    /// Search beside large folios; without them all walks agree.
    fn walk(&self) -> Walk {
        if self.rules.has_large_folios { self.rules.walk } else { Walk::Ideal }
    }

    /// Read exactly what is asked for, as far as the device's limits go.
    fn forced(state: &ReadState, access: ReadAccess) -> ReadWindow {
        let most = access.io_pages.max(state.pages_max);
        let size = if state.pages_max == 0 { 1 } else { access.request.min(most) };
        ReadWindow { start: access.page, size, ahead: 0, order: None }
    }

    /// The window in `state`, as it is submitted; keeps the order where the era does.
    fn submitted(&self, state: &mut ReadState, order: u8) -> ReadWindow {
        let order = self.folio_order(state, order);
        if self.rules.era == ReadAheadEra::Ra4 {
            state.order = order.unwrap_or(0);
        }
        ReadWindow { start: state.start, size: state.size, ahead: state.ahead, order }
    }

    /// Order of the folios of a window; `order` is that of the folio that led to it, or, in the
    /// last era, the one asked for.
    fn folio_order(&self, state: &ReadState, order: u8) -> Option<u8> {
        if !self.rules.has_large_folios || state.size == 0 {
            return None;
        }
        let is_kept = self.rules.era == ReadAheadEra::Ra4;
        if !is_kept && state.size < 4 {
            return None;
        }
        let asked = if is_kept { order } else { order + 2 };
        Some(asked.min(ORDER_MAX).min(state.size.ilog2() as u8))
    }

    fn is_sequential(state: &ReadState, page: u64) -> bool {
        state.previous.is_some_and(|previous| page.wrapping_sub(previous) <= 1)
    }

    /// A miss by itself, eras 3 and 4.
    fn miss_apart(
        &self,
        state: &mut ReadState,
        access: ReadAccess,
        pages: &dyn CachedPages,
    ) -> ReadWindow {
        let ReadAccess { page, request, .. } = access;
        let max = self.window_max(state, access);
        if page == 0 || request > max || Self::is_sequential(state, page) {
            let size = first_size(request, max);
            let ahead = if size > request { size - request } else { size / 2 };
            (state.start, state.size, state.ahead) = (page, size, ahead);
        } else {
            let found = history(pages, page, max, self.walk());
            if found.pages <= request {
                return ReadWindow { start: page, size: request, ahead: 0, order: None };
            }
            let times = if found.is_from_start { 2 } else { 1 };
            let size = (found.pages * times + request).min(max);
            (state.start, state.size, state.ahead) = (page, size, 1);
        }
        state.order = 0;
        self.submitted(state, 0)
    }

    /// A marker by itself, eras 3 and 4.
    fn marker_apart(
        &self,
        state: &mut ReadState,
        access: ReadAccess,
        pages: &dyn CachedPages,
    ) -> Option<ReadWindow> {
        let ReadAccess { page, request, .. } = access;
        let order = pages.folio(page).map_or(0, |(_, order)| order);
        let max = self.window_max(state, access);
        let expected = (state.start + state.size).wrapping_sub(state.ahead) >> order << order;
        if page == expected {
            state.start += state.size;
            state.size = state.size.max(next_size(state.size, max));
        } else {
            self.restart(state, (page, request), max, pages)?;
        }
        if self.rules.era == ReadAheadEra::Ra4 {
            // The cap is the lowest bit of the limit: Linux 6.16 page_cache_async_ra.
            let asked = (state.order + 2).min(max.trailing_zeros() as u8);
            let end = (state.start + state.size) >> asked << asked;
            if end > state.start {
                state.size = end - state.start;
            }
            state.ahead = state.size;
            let order = state.order + 2;
            return Some(self.submitted(state, order));
        }
        state.ahead = state.size;
        Some(self.submitted(state, order))
    }

    /// A marker of another stream: its window begins at the first absent page.
    fn restart(
        &self,
        state: &mut ReadState,
        (page, request): (u64, u64),
        max: u64,
        pages: &dyn CachedPages,
    ) -> Option<()> {
        let start = next_absent(pages, page + 1, max, self.walk());
        if start - page > max {
            return None;
        }
        state.start = start;
        state.size = next_size(start - page + request, max);
        Some(())
    }

    /// Misses and markers together, eras 1 and 2 (`ondemand_readahead`).
    fn on_demand(
        &self,
        state: &mut ReadState,
        access: ReadAccess,
        marked: Option<u8>,
        pages: &dyn CachedPages,
    ) -> Option<ReadWindow> {
        let ReadAccess { page, request, .. } = access;
        let max = self.window_max(state, access);
        let order = marked.unwrap_or(0);
        let mark = (state.start + state.size).wrapping_sub(state.ahead);
        let expected = mark.next_multiple_of(1 << order);
        if page != 0 && (page == expected || page == state.start + state.size) {
            state.start += state.size;
            state.size = next_size(state.size, max);
            state.ahead = state.size;
        } else if page != 0 && marked.is_some() {
            self.restart(state, (page, request), max, pages)?;
            state.ahead = state.size;
        } else if page == 0 || request > max || Self::is_sequential(state, page) {
            let size = first_size(request, max);
            let ahead = if size > request { size - request } else { size };
            (state.start, state.size, state.ahead) = (page, size, ahead);
        } else if !self.context(state, (page, request), max, pages) {
            return Some(ReadWindow { start: page, size: request, ahead: 0, order: None });
        }
        self.include_next(state, page, max);
        Some(self.submitted(state, order))
    }

    /// A window out of the pages that are cached before a miss (`try_context_readahead`).
    fn context(
        &self,
        state: &mut ReadState,
        (page, request): (u64, u64),
        max: u64,
        pages: &dyn CachedPages,
    ) -> bool {
        let found = history(pages, page, max, self.walk()).pages;
        let is_first_era = self.rules.era == ReadAheadEra::Ra1;
        if found == 0 || (!is_first_era && found <= request) {
            return false;
        }
        let found = if found >= page { found * 2 } else { found };
        state.start = page;
        if is_first_era {
            // Linux 3.10 mm/readahead.c: try_context_readahead.
            state.size = first_size(found + request, max);
            state.ahead = state.size;
        } else {
            state.size = (found + request).min(max);
            state.ahead = 1;
        }
        true
    }

    /// A window whose marker this very read would hit takes the next one with it.
    fn include_next(&self, state: &mut ReadState, page: u64, max: u64) {
        if page != state.start || state.size != state.ahead {
            return;
        }
        let more = next_size(state.size, max);
        if !self.rules.caps_self_trigger || state.size + more <= max {
            state.ahead = more;
            state.size += more;
        } else {
            (state.size, state.ahead) = (max, max / 2);
        }
    }

    fn missed(
        &self,
        state: &mut ReadState,
        access: ReadAccess,
        pages: &dyn CachedPages,
    ) -> Option<ReadWindow> {
        if self.is_split() {
            Some(self.miss_apart(state, access, pages))
        } else {
            self.on_demand(state, access, None, pages)
        }
    }

    fn marked(
        &self,
        state: &mut ReadState,
        access: ReadAccess,
        pages: &dyn CachedPages,
    ) -> Option<ReadWindow> {
        if state.pages_max == 0 {
            return None;
        }
        if self.is_split() {
            return self.marker_apart(state, access, pages);
        }
        let order = pages.folio(access.page).map_or(0, |(_, order)| order);
        self.on_demand(state, access, Some(order), pages)
    }
}

impl ReadAhead for LinuxReadAhead {
    fn advised(&self, state: &mut ReadState, hint: Hint, device_pages: u64) {
        match hint {
            Hint::Sequential => state.pages_max = 2 * device_pages,
            Hint::Normal => state.pages_max = device_pages,
            Hint::Random => {}
        }
    }

    fn miss(
        &self,
        state: &mut ReadState,
        access: ReadAccess,
        pages: &dyn CachedPages,
    ) -> Option<ReadWindow> {
        if access.hint == Hint::Random || state.pages_max == 0 {
            return Some(Self::forced(state, access));
        }
        self.missed(state, access, pages)
    }

    fn marker(
        &self,
        state: &mut ReadState,
        access: ReadAccess,
        pages: &dyn CachedPages,
    ) -> Option<ReadWindow> {
        self.marked(state, access, pages)
    }

    fn ended(&self, state: &mut ReadState, next: u64) {
        let last = if self.rules.is_previous_next { next } else { next.saturating_sub(1) };
        state.previous = Some(last / 4096);
    }

    fn fault_miss(
        &self,
        state: &mut ReadState,
        access: ReadAccess,
        pages: &dyn CachedPages,
    ) -> Option<ReadWindow> {
        if access.hint == Hint::Random || state.pages_max == 0 {
            return None;
        }
        if access.hint == Hint::Sequential {
            let access = ReadAccess { request: state.pages_max, ..access };
            return self.missed(state, access, pages);
        }
        if state.map_misses < MISSES_MAX {
            state.map_misses += 1;
        }
        if state.map_misses > MISSES_MANY {
            return None;
        }
        state.start = access.page.saturating_sub(state.pages_max / 2);
        (state.size, state.ahead) = (state.pages_max, state.pages_max / 4);
        state.order = 0;
        Some(self.submitted(state, 0))
    }

    fn fault_hit(
        &self,
        state: &mut ReadState,
        access: ReadAccess,
        marked: Option<u64>,
        pages: &dyn CachedPages,
    ) -> Option<ReadWindow> {
        if access.hint == Hint::Random || state.pages_max == 0 {
            return None;
        }
        state.map_misses = state.map_misses.saturating_sub(1);
        let page = marked?;
        let access = ReadAccess { page, request: state.pages_max, ..access };
        self.marked(state, access, pages)
    }

    fn mapped_around(&self, state: &mut ReadState, pages: u64) {
        state.map_misses = state.map_misses.saturating_sub(pages.min(u64::from(u32::MAX)) as u32);
    }

    fn will_need(&self, state: &ReadState, access: ReadAccess) -> ReadWindow {
        Self::forced(state, access)
    }

    fn batch_folios(&self) -> u32 {
        self.rules.batch_folios
    }

    fn fault_around_pages(&self) -> u64 {
        // Linux mm/memory.c: fault_around_bytes, 64 KiB.
        if self.rules.has_fault_around { 16 } else { 0 }
    }

    fn folios(
        &self,
        window: ReadWindow,
        file_pages: u64,
        pages: &dyn CachedPages,
        out: &mut Vec<NewFolio>,
    ) {
        let ReadWindow { start, size, ahead, .. } = window;
        let end = (start + size).min(file_pages);
        let mut first = start;
        if let Some(order) = window.order {
            let mark = (ahead > 0).then(|| start + size - ahead.min(size));
            while first < end {
                let order = self.fitting_order(order, first, end);
                let folio = first..first + (1 << order);
                if folio.into_iter().any(|page| pages.folio(page).is_some()) {
                    break;
                }
                let is_marked = mark.is_some_and(|mark| first == mark >> order << order);
                out.push(NewFolio { first, order, is_marked });
                first += 1 << order;
            }
            if first >= end {
                return;
            }
        }
        // Single pages; here the marker is counted back from the clipped end.
        let mark = (ahead > 0).then(|| end.checked_sub(ahead)).flatten().filter(|m| *m >= first);
        for page in first..end {
            if pages.folio(page).is_none() {
                out.push(NewFolio { first: page, order: 0, is_marked: mark == Some(page) });
            }
        }
    }
}

impl LinuxReadAhead {
    /// Order of the folio at `first`: aligned, and inside the window.
    fn fitting_order(&self, order: u8, first: u64, end: u64) -> u8 {
        let mut order = order;
        if !first.is_multiple_of(1 << order) {
            order = first.trailing_zeros() as u8;
        }
        while order > 0 && first + (1 << order) > end {
            order -= 1;
        }
        if order == 1 && !self.rules.has_order_one { 0 } else { order }
    }
}
