//! `Adaptive`: replacement by recency and frequency, balanced by pages that came back (ARC).
//!
//! Two lists of pages that were used once and more often, and for each a memory of what was evicted
//! from it. A page that comes back soon after it left the first list lets that grow, one of the
//! second list lets it shrink. The memories are shadows: a page is remembered while no more pages
//! than its list may remember were evicted after it.
//!
//! Source: Megiddo and Modha, "ARC: a self-tuning, low overhead replacement cache" (FAST 2003); the
//! variant of `ZFS`, whose pages may be dirty or on their way and are then passed over.

use crate::api::frame::{FrameFlags, FrameId, FrameList, Frames, Replacement, Shadow, Victim};

/// Mark of a shadow that comes from the list of pages used often.
const OFTEN: u32 = 1 << 30;
const CLOCK: u32 = OFTEN - 1;

/// The two lists.
#[derive(Clone, Debug)]
pub struct Adaptive {
    recent: FrameList,
    often: FrameList,
    /// Pages that the list of recent ones should have.
    target: u64,
    pages_max: u64,
    /// Evictions from each list.
    evicted: [u64; 2],
    /// Pages that came back and stood in a memory: of recent ones, of frequent ones.
    ghost_hits: [u64; 2],
}

impl Adaptive {
    /// Empty lists of a cache of so many pages, half of them for recent ones.
    pub fn new(pages_max: u64) -> Self {
        Self {
            recent: FrameList::default(),
            often: FrameList::default(),
            target: pages_max / 2,
            pages_max,
            evicted: [0; 2],
            ghost_hits: [0; 2],
        }
    }

    /// Pages that each memory may hold: with its list no more than the cache, both no more than it.
    fn remembered(&self) -> [u64; 2] {
        let recent = self.pages_max.saturating_sub(self.recent.len()).min(self.evicted[0]);
        let all = self.recent.len() + self.often.len() + recent;
        [recent, (2 * self.pages_max).saturating_sub(all).min(self.evicted[1])]
    }

    /// List of recent (0) or frequent (1) pages whose memory holds a shadow.
    fn ghost(&self, shadow: Shadow) -> Option<usize> {
        let list = usize::from(shadow.0 & OFTEN != 0);
        let ago = (self.evicted[list] as u32).wrapping_sub(shadow.0) & CLOCK;
        (u64::from(ago) <= self.remembered()[list]).then_some(list)
    }

    fn came_back(&mut self, list: usize) {
        self.ghost_hits[list] += 1;
        let sizes = self.remembered().map(|size| size.max(1));
        let step = (sizes[1 - list] / sizes[list]).max(1);
        self.target = if list == 0 {
            (self.target + step).min(self.pages_max)
        } else {
            self.target.saturating_sub(step)
        };
    }

    fn push_often(&mut self, frames: &mut Frames, id: FrameId) {
        frames[id].flags.set(FrameFlags::ACTIVE);
        self.often.push(frames, id);
    }

    /// Oldest page of a list that is neither dirty nor on its way; those before it go round.
    fn evictable(&mut self, frames: &mut Frames, list: usize) -> Option<FrameId> {
        let pages = if list == 0 { &mut self.recent } else { &mut self.often };
        for _ in 0..pages.len() {
            let id = pages.tail();
            pages.remove(frames, id);
            let flags = frames[id].flags;
            let is_clean = !flags.has(FrameFlags::DIRTY)
                && !flags.has(FrameFlags::WRITE_BACK)
                && flags.has(FrameFlags::UP_TO_DATE);
            if is_clean {
                return Some(id);
            }
            pages.push(frames, id);
        }
        None
    }
}

impl Replacement for Adaptive {
    fn added(&mut self, frames: &mut Frames, id: FrameId, shadow: Option<Shadow>) {
        if let Some(list) = shadow.and_then(|shadow| self.ghost(shadow)) {
            self.came_back(list);
            frames[id].flags.set(FrameFlags::WORKING_SET);
        }
        self.recent.push(frames, id);
    }

    #[inline]
    fn used(&mut self, frames: &mut Frames, id: FrameId) {
        let flags = &mut frames[id].flags;
        let is_first = !flags.has(FrameFlags::REFERENCED);
        flags.set(FrameFlags::REFERENCED);
        // What came back is used often, unless nobody had asked for it when it came.
        let has_come_back = flags.has(FrameFlags::WORKING_SET) && !flags.has(FrameFlags::UNUSED);
        flags.clear(FrameFlags::WORKING_SET);
        if is_first && !has_come_back {
            return;
        }
        if flags.has(FrameFlags::ACTIVE) {
            self.often.remove(frames, id);
            self.often.push(frames, id);
        } else {
            self.recent.remove(frames, id);
            self.push_often(frames, id);
        }
    }

    fn removed(&mut self, frames: &mut Frames, id: FrameId) {
        if frames[id].flags.has(FrameFlags::ACTIVE) {
            frames[id].flags.clear(FrameFlags::ACTIVE);
            self.often.remove(frames, id);
        } else {
            self.recent.remove(frames, id);
        }
    }

    fn choose(&mut self, frames: &mut Frames) -> Victim {
        let first = usize::from(self.recent.len() <= self.target && !self.often.is_empty());
        for list in [first, 1 - first] {
            let Some(id) = self.evictable(frames, list) else { continue };
            frames[id].flags.clear(FrameFlags::ACTIVE);
            self.evicted[list] += 1;
            let mark = if list == 1 { OFTEN } else { 0 };
            return Victim::Evict(id, Shadow(self.evicted[list] as u32 & CLOCK | mark));
        }
        Victim::Nothing
    }

    fn refaults(&self) -> u64 {
        self.ghost_hits.iter().sum()
    }

    fn sizes(&self) -> (u64, u64) {
        (self.often.len(), self.recent.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::PageCache;

    /// Hits of a string of pages in a cache.
    fn hits(pages_max: u64, string: &[u64]) -> u64 {
        let mut cache = PageCache::new(pages_max, Box::new(Adaptive::new(pages_max)));
        cache.open_file(0);
        let mut hits = 0;
        for &page in string {
            let found = cache.frame(0, page);
            hits += u64::from(found.is_some());
            let frame = found.unwrap_or_else(|| cache.add(0, page));
            cache.frames[frame].flags.set(FrameFlags::UP_TO_DATE);
            cache.used(frame);
        }
        hits
    }

    #[test]
    fn a_scan_does_not_drive_out_what_is_used_often() {
        // Ten pages used again and again, between scans of pages that are used once.
        let mut string = Vec::new();
        for round in 0..50 {
            string.extend((0..10).chain(0..10));
            string.extend((0..40).map(|page| 1000 + round * 40 + page));
        }
        let found = hits(30, &string);
        assert!(found >= 50 * 20 - 10, "{found} of {}", 50 * 20);
    }

    #[test]
    fn arc_string_of_the_checks() {
        // By hand: 1 2 3 4 fill; 1 1 are hits, 1 is frequent now; 5 takes the place of 2.
        assert_eq!(hits(4, &[1, 2, 3, 4, 1, 1, 5, 1, 3, 4, 2]), 5);
    }

    #[test]
    fn a_larger_cache_hits_no_less_where_pages_are_used_once_per_round() {
        let loops: Vec<u64> = (0..20).flat_map(|_| 0..100).collect();
        let mut last = 0;
        for pages in [10, 50, 90, 99, 100, 120] {
            let found = hits(pages, &loops);
            assert!(found >= last, "{pages} pages: {found} hits after {last}");
            last = found;
        }
        assert_eq!(last, 1900);
    }

    #[test]
    fn dirty_pages_and_those_on_their_way_stay() {
        let mut cache = PageCache::new(4, Box::new(Adaptive::new(4)));
        cache.open_file(0);
        for page in 0..4 {
            let frame = cache.add(0, page);
            cache.frames[frame].flags.set(FrameFlags::UP_TO_DATE);
            if page < 3 {
                cache.set_dirty(frame);
            }
        }
        cache.add(0, 9);
        let here: Vec<_> = (0..10).filter(|&page| cache.frame(0, page).is_some()).collect();
        assert_eq!(here, [0, 1, 2, 9]);
    }
}
