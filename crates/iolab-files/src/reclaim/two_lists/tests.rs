//! Checks of the rules, and a twin that keeps plain vectors.

use std::collections::BTreeMap;

use iolab_model::seed::Seed;

use super::*;

/// A cache of a number of pages over the lists.
struct Pages {
    lists: TwoLists,
    frames: Frames,
    present: BTreeMap<u32, FrameId>,
    shadows: BTreeMap<u32, Shadow>,
    room: usize,
    misses: u64,
}

impl Pages {
    fn new(room: usize) -> Self {
        Self {
            lists: TwoLists::new(),
            frames: Frames::default(),
            present: BTreeMap::new(),
            shadows: BTreeMap::new(),
            room,
            misses: 0,
        }
    }

    /// One access of a page.
    fn read(&mut self, page: u32) -> bool {
        if let Some(id) = self.present.get(&page).copied() {
            self.lists.used(&mut self.frames, id);
            return true;
        }
        self.misses += 1;
        if self.present.len() >= self.room {
            let Victim::Evict(id, shadow) = self.lists.choose(&mut self.frames) else {
                panic!("a clean page is there");
            };
            let gone = self.frames[id].index;
            self.present.remove(&gone);
            self.shadows.insert(gone, shadow);
            self.frames.release(id);
        }
        let id = self.frames.take(0, page);
        let shadow = self.shadows.remove(&page);
        self.lists.added(&mut self.frames, id, shadow);
        self.lists.used(&mut self.frames, id);
        self.present.insert(page, id);
        false
    }
}

#[test]
fn lru_1_a_hot_set_survives_a_scan() {
    let mut pages = Pages::new(1_000);
    for page in (0..100).chain(0..100).chain(1_000..6_000) {
        pages.read(page);
    }
    assert!((0..100).all(|page| pages.present.contains_key(&page)));
}

#[test]
fn lru_2_a_cycle_longer_than_the_cache_misses_for_ever() {
    let mut pages = Pages::new(1_000);
    for _ in 0..20 {
        for page in 0..1_100 {
            assert!(!pages.read(page));
        }
    }
}

#[test]
fn lru_2_refaults_push_out_idle_active_pages() {
    let mut pages = Pages::new(1_150);
    for page in (5_000..5_150).chain(5_000..5_150) {
        pages.read(page);
    }
    assert_eq!(pages.lists.sizes().0, 150);
    let mut hits = 0;
    for _ in 0..20 {
        for page in 0..1_100 {
            hits += u64::from(pages.read(page));
        }
    }
    assert!(hits > 1_000, "{hits}");
    assert!(pages.lists.refaults() > 0);
    let idle = (5_000..5_150).filter(|page| pages.present.contains_key(page)).count();
    assert!(idle < 150, "{idle}");
}

#[test]
fn lru_3_a_cycle_of_four_caches_misses_for_ever() {
    let mut pages = Pages::new(1_000);
    for _ in 0..10 {
        for page in 0..4_000 {
            assert!(!pages.read(page));
        }
    }
}

#[test]
fn lru_4_ratio_of_the_lists() {
    assert_eq!([1, 1 << 18, 32 << 18].map(ratio), [1, 3, 17]);
}

#[test]
fn dirty_pages_go_round_and_those_under_write_back_are_passed_over() {
    let mut pages = Pages::new(3);
    for page in 0..3 {
        pages.read(page);
    }
    let ids: Vec<FrameId> = (0..3).map(|page| pages.present[&page]).collect();
    pages.frames[ids[0]].flags.set(FrameFlags::WRITE_BACK);
    pages.frames[ids[1]].flags.set(FrameFlags::DIRTY);
    assert_eq!(pages.lists.choose(&mut pages.frames), Victim::Dirty(ids[1]));
    assert!(matches!(pages.lists.choose(&mut pages.frames), Victim::Evict(id, _) if id == ids[2]));
    pages.frames[ids[1]].flags.set(FrameFlags::WRITE_BACK);
    assert_eq!(pages.lists.choose(&mut pages.frames), Victim::Nothing);
}

/// The same rules over plain vectors, the head first.
#[derive(Default)]
struct Plain {
    active: Vec<(u32, bool)>,
    inactive: Vec<(u32, bool)>,
    shadows: BTreeMap<u32, u64>,
    clock: u64,
}

impl Plain {
    fn read(&mut self, page: u32, room: usize) -> bool {
        if let Some(entry) = self.active.iter_mut().find(|entry| entry.0 == page) {
            entry.1 = true;
            return true;
        }
        if let Some(at) = self.inactive.iter().position(|entry| entry.0 == page) {
            if self.inactive[at].1 {
                self.inactive.remove(at);
                self.active.insert(0, (page, false));
                self.clock += 1;
            } else {
                self.inactive[at].1 = true;
            }
            return true;
        }
        if self.active.len() + self.inactive.len() >= room {
            if self.inactive.len() < self.active.len() {
                for _ in 0..32.min(self.active.len()) {
                    let old = self.active.pop().unwrap();
                    self.inactive.insert(0, old);
                }
            }
            let (gone, _) = self.inactive.pop().unwrap();
            self.shadows.insert(gone, self.clock);
            self.clock += 1;
        }
        let near = self.shadows.remove(&page);
        if near.is_some_and(|then| self.clock - then <= self.active.len() as u64) {
            self.clock += 1;
            self.active.insert(0, (page, true));
        } else {
            self.inactive.insert(0, (page, true));
        }
        false
    }
}

#[test]
fn agrees_with_plain_vectors() {
    let (mut fast, mut plain) = (Pages::new(50), Plain::default());
    let mut random = Seed(5).stream("two lists", 0);
    for step in 0..300_000u32 {
        let range = if step / 500 % 3 == 0 { 40 } else { 120 };
        let page = random.below(range) as u32 + if step / 2_000 % 2 == 0 { 0 } else { 30 };
        assert_eq!(fast.read(page), plain.read(page, 50), "step {step}, page {page}");
    }
    assert!(fast.lists.refaults() > 100);
}
