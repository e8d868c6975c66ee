//! Searches for absent pages: exactly as the kernel walks its tree, or page by page.
//!
//! The kernel's tree has nodes of 64 slots. A walk that begins in the middle of a folio stands on
//! the slot of the folio's first page, while it reports the index of the page asked for.
//! Source: Linux 6.12 `lib/xarray.c` (`xas_next`, `xas_prev`, `xas_load`), `mm/filemap.c`
//! (`page_cache_next_miss`, `page_cache_prev_miss`).

use super::era::Walk;
use crate::api::read_ahead::CachedPages;

/// log2 of the slots of a node.
const NODE_SHIFT: u32 = 6;
/// Slots of a node.
const SLOTS: i64 = 1 << NODE_SHIFT;
/// Nodes are not looked at above this level: 2^24 pages per slot.
const TOP: u32 = 4 * NODE_SHIFT;

/// Place in the tree: a slot of a level, and the index that the walk reports.
struct Cursor<'a> {
    pages: &'a dyn CachedPages,
    /// Page index, perhaps ahead of the slot.
    index: i64,
    /// Pages per slot are 2^shift.
    shift: u32,
    /// Slot, counted over all nodes of the level.
    slot: i64,
}

/// Content of a slot.
enum Slot {
    Folio,
    Absent,
    Node,
}

impl<'a> Cursor<'a> {
    /// Goes to a page from the root, as `xas_load` does.
    fn load(pages: &'a dyn CachedPages, page: u64) -> (Self, bool) {
        let index = page as i64;
        match pages.folio(page) {
            Some((first, order)) => {
                let shift = u32::from(order) / NODE_SHIFT * NODE_SHIFT;
                (Self { pages, index, shift, slot: first as i64 >> shift }, true)
            }
            None => (Self { pages, index, shift: 0, slot: index }, false),
        }
    }

    fn slot(&self) -> Slot {
        let page = (self.slot << self.shift) as u64;
        match self.pages.folio(page) {
            Some((_, order)) if u32::from(order) / NODE_SHIFT * NODE_SHIFT >= self.shift => {
                Slot::Folio
            }
            _ if self.shift == 0 => Slot::Absent,
            _ => Slot::Node,
        }
    }

    /// One slot on (`by` = 1) or back (-1); tells whether something is there. `None`: the walk has
    /// left the tree.
    fn step(&mut self, by: i64) -> Option<bool> {
        let edge = if by > 0 { SLOTS - 1 } else { 0 };
        let is_within = self.shift == 0 && self.slot.rem_euclid(SLOTS) != edge;
        self.index += by;
        if is_within {
            self.slot += by;
            return Some(matches!(self.slot(), Slot::Folio));
        }
        let own = (self.index >> self.shift).rem_euclid(SLOTS);
        if self.slot.rem_euclid(SLOTS) != own {
            let node = self.slot.div_euclid(SLOTS);
            self.slot += by;
            let mut left = (node, self.slot.div_euclid(SLOTS));
            while left.0 != left.1 {
                // The node ends: the next slot of the one above it.
                self.shift += NODE_SHIFT;
                self.slot = left.0 + by;
                if self.slot < 0 || self.shift > TOP {
                    return None;
                }
                left = (left.0.div_euclid(SLOTS), self.slot.div_euclid(SLOTS));
            }
        }
        self.descend()
    }

    fn descend(&mut self) -> Option<bool> {
        loop {
            match self.slot() {
                Slot::Folio => return Some(true),
                Slot::Absent => return Some(false),
                Slot::Node => {
                    self.shift -= NODE_SHIFT;
                    let offset = (self.index >> self.shift).rem_euclid(SLOTS);
                    self.slot = self.slot * SLOTS + offset;
                }
            }
        }
    }
}

/// First absent page from `page` on, looking at `scan_max` pages; `page + scan_max`: none.
pub fn next_absent(pages: &dyn CachedPages, page: u64, scan_max: u64, walk: Walk) -> u64 {
    if walk == Walk::Ideal || scan_max == 0 {
        return (page..page + scan_max)
            .find(|&page| pages.folio(page).is_none())
            .unwrap_or(page + scan_max);
    }
    let (mut cursor, mut is_present) = Cursor::load(pages, page);
    for _ in 1..scan_max {
        if !is_present {
            return cursor.index as u64;
        }
        is_present = cursor.step(1) == Some(true);
    }
    if is_present { page + scan_max } else { cursor.index as u64 }
}

/// Present pages directly before `page`, looking at `scan_max` pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesBefore {
    /// Number of them.
    pub pages: u64,
    /// The search came to the beginning of the file.
    pub is_from_start: bool,
}

/// Counts the present pages directly before `page`.
pub fn history(pages: &dyn CachedPages, page: u64, scan_max: u64, walk: Walk) -> PagesBefore {
    if page == 0 || scan_max == 0 {
        return PagesBefore { pages: 0, is_from_start: false };
    }
    if walk == Walk::Ideal {
        let reach = scan_max.min(page);
        let absent = (page - reach..page).rev().find(|&before| pages.folio(before).is_none());
        // A search that ends at its limit does not count the last page.
        let all = if reach == scan_max { reach - 1 } else { reach };
        let found = absent.map_or(all, |absent| page - 1 - absent);
        return PagesBefore { pages: found, is_from_start: found == page && reach < scan_max };
    }
    let (mut cursor, mut is_present) = Cursor::load(pages, page - 1);
    for _ in 1..scan_max {
        if !is_present || cursor.index < 0 {
            break;
        }
        is_present = cursor.step(-1) == Some(true);
    }
    let missed = cursor.index;
    PagesBefore { pages: (page as i64 - missed - 1) as u64, is_from_start: missed < 0 }
}
