//! Write cache: dirty extents that wait to be destaged.
//!
//! Models room in sectors and in number of extents, coalescing of overlapping and adjoining
//! writes, and the choice of the extent with the shortest positioning time. Leaves out which
//! extent a real drive's firmware would prefer for other reasons, and keeping data for reads after
//! they are on the media.
//!
//! Source: `DiskSim` 4.0 manual (2008), "Disk module" (write segments, combining of sequential
//! writes); shortest positioning time: Worthington, Ganger, Patt (1994).

use std::collections::BTreeMap;

use iolab_model::Ns;

use super::mechanism::Mechanism;

/// An extent in media sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First sector.
    pub start: u64,
    /// First sector after it.
    pub end: u64,
}

/// A dirty extent: where it ends, and where on the platters it starts once that was asked for.
#[derive(Clone, Copy, Debug)]
struct Dirty {
    end: u64,
    /// Number of the oldest write in it, among those of a bounded window.
    age: u64,
    spot: Option<Spot>,
}

#[derive(Clone, Copy, Debug)]
struct Spot {
    cylinder: u32,
    head: u32,
    angle: u32,
}

impl Dirty {
    const fn to(end: u64, age: u64) -> Self {
        Self { end, age, spot: None }
    }
}

/// Dirty data.
#[derive(Clone, Debug)]
pub struct WriteCache {
    extents: BTreeMap<u64, Dirty>,
    room: u64,
    most_extents: usize,
    /// Most extents among which the nearest is sought, oldest first; all if there is no limit.
    window: Option<usize>,
    /// Extents by age, if there is a window.
    ages: BTreeMap<u64, u64>,
    newest: u64,
    dirty: u64,
    /// Sectors promised to writes whose data are on the bus.
    reserved: u64,
    reserved_extents: usize,
    destaging: Vec<Extent>,
}

impl WriteCache {
    /// Room for so many media sectors in so many extents; no room means off.
    pub const fn new(room: u64, most_extents: usize) -> Self {
        Self {
            extents: BTreeMap::new(),
            room,
            most_extents,
            window: None,
            ages: BTreeMap::new(),
            newest: 0,
            dirty: 0,
            reserved: 0,
            reserved_extents: 0,
            destaging: Vec::new(),
        }
    }

    /// Destages the nearest of so many extents that have waited longest, instead of the nearest of
    /// all.
    #[must_use]
    pub const fn with_window(mut self, window: Option<usize>) -> Self {
        self.window = window;
        self
    }

    /// Media sectors of room.
    pub const fn room(&self) -> u64 {
        self.room
    }

    /// Dirty media sectors, those under way to the media included.
    pub fn dirty(&self) -> u64 {
        let moving = self.destaging.iter().map(|extent| extent.end - extent.start);
        self.dirty + moving.sum::<u64>()
    }

    /// Tell whether nothing acknowledged or on the bus is missing on the media.
    pub const fn is_clean(&self) -> bool {
        self.dirty == 0 && self.reserved == 0 && self.destaging.is_empty()
    }

    /// Tell whether there is something to start destaging.
    pub const fn can_destage(&self) -> bool {
        self.dirty > 0
    }

    /// Tell whether a write fits.
    pub fn fits(&self, extent: Extent) -> bool {
        let extents = self.extents.len() + self.reserved_extents + self.destaging.len();
        self.dirty() + self.reserved + extent.end - extent.start <= self.room
            && (extents < self.most_extents || self.touches(extent))
    }

    /// Tell whether it joins a dirty extent.
    fn touches(&self, extent: Extent) -> bool {
        let before = self.extents.range(..=extent.end).next_back();
        before.is_some_and(|(_, dirty)| dirty.end >= extent.start)
    }

    /// Sets room aside.
    pub const fn reserve(&mut self, extent: Extent) {
        self.reserved += extent.end - extent.start;
        self.reserved_extents += 1;
    }

    /// The data for which room was set aside are here; answers the sectors that were overwritten
    /// in the cache.
    pub fn insert(&mut self, extent: Extent) -> u64 {
        self.reserved -= extent.end - extent.start;
        self.reserved_extents -= 1;
        let absorbed = self.forget(extent);
        let after = self.take(extent.end);
        let end = after.map_or(extent.end, |dirty| dirty.end);
        match self.extents.range_mut(..extent.start).next_back() {
            Some((_, before)) if before.end == extent.start => before.end = end,
            _ => {
                self.newest += 1;
                self.put(extent.start, end, after.map_or(self.newest, |dirty| dirty.age));
            }
        }
        self.dirty += extent.end - extent.start;
        absorbed
    }

    fn put(&mut self, start: u64, end: u64, age: u64) {
        self.extents.insert(start, Dirty::to(end, age));
        if self.window.is_some() {
            self.ages.insert(age, start);
        }
    }

    fn take(&mut self, start: u64) -> Option<Dirty> {
        let dirty = self.extents.remove(&start)?;
        self.ages.remove(&dirty.age);
        Some(dirty)
    }

    /// Drops dirty data that newer data replace; answers how many sectors.
    pub fn forget(&mut self, extent: Extent) -> u64 {
        let mut gone = 0;
        while let Some((&start, dirty)) = self.extents.range_mut(..extent.end).next_back() {
            let (end, age) = (dirty.end, dirty.age);
            if end <= extent.start {
                break;
            }
            gone += end.min(extent.end) - start.max(extent.start);
            let is_cut = start < extent.start;
            if is_cut {
                dirty.end = extent.start;
            } else {
                self.take(start);
            }
            if end > extent.end {
                self.newest += u64::from(is_cut);
                self.put(extent.end, end, if is_cut { self.newest } else { age });
            }
            if is_cut {
                break;
            }
        }
        self.dirty -= gone;
        gone
    }

    /// Tell whether all of an extent is dirty here.
    pub fn holds(&self, extent: Extent) -> bool {
        let inside = |start: u64, end: u64| start <= extent.start && extent.end <= end;
        self.destaging.iter().any(|moving| inside(moving.start, moving.end))
            || self
                .extents
                .range(..=extent.start)
                .next_back()
                .is_some_and(|(&start, dirty)| inside(start, dirty.end))
    }

    /// The dirty extent with the shortest positioning time, and that time.
    ///
    /// Looks outwards from the arm and stops where the seek alone takes longer than the best
    /// found, so the number of extents hardly matters.
    pub fn nearest(&mut self, mechanism: &Mechanism, now: Ns) -> Option<(u64, u64)> {
        if let Some(window) = self.window {
            return self.nearest_of_oldest(window, mechanism, now);
        }
        let here = mechanism.geometry.first_sector(mechanism.cylinder);
        let mut best: Option<(u64, u64)> = None;
        let mut look = |start: u64, dirty: &mut Dirty| -> bool {
            let spot = dirty.spot.get_or_insert_with(|| spot(mechanism, start));
            let distance = spot.cylinder.abs_diff(mechanism.cylinder);
            if best.is_some_and(|(_, time)| mechanism.curve.floor(distance) >= time) {
                return false;
            }
            let travel = mechanism.travel(spot.cylinder, spot.head, true);
            let time = travel + mechanism.wait(now + Ns(travel), u64::from(spot.angle));
            if best.is_none_or(|(_, least)| time < least) {
                best = Some((start, time));
            }
            true
        };
        for (&start, dirty) in self.extents.range_mut(here..) {
            if !look(start, dirty) {
                break;
            }
        }
        for (&start, dirty) in self.extents.range_mut(..here).rev() {
            if !look(start, dirty) {
                break;
            }
        }
        best
    }

    /// The same among the extents that have waited longest.
    fn nearest_of_oldest(
        &mut self,
        window: usize,
        mechanism: &Mechanism,
        now: Ns,
    ) -> Option<(u64, u64)> {
        let extents = &mut self.extents;
        let cost = |start: &u64| {
            let dirty = extents.get_mut(start).expect("an extent has one age");
            let spot = dirty.spot.get_or_insert_with(|| spot(mechanism, *start));
            let travel = mechanism.travel(spot.cylinder, spot.head, true);
            (*start, travel + mechanism.wait(now + Ns(travel), u64::from(spot.angle)))
        };
        self.ages.values().take(window).map(cost).min_by_key(|&(_, time)| time)
    }

    /// Takes at most `most` sectors from the front of an extent to write them.
    pub fn begin(&mut self, start: u64, most: u64) -> Extent {
        let dirty = self.take(start).expect("the caller was told of this extent");
        let cut = dirty.end.min(start + most);
        if cut < dirty.end {
            self.put(cut, dirty.end, dirty.age);
        }
        self.dirty -= cut - start;
        let extent = Extent { start, end: cut };
        self.destaging.push(extent);
        extent
    }

    /// An extent under way is on the media.
    pub fn finish(&mut self, extent: Extent) {
        self.destaging.retain(|moving| *moving != extent);
    }

    /// The first dirty extent from a sector on, or else the first of all, whose data are not on
    /// their way already in an older version.
    pub fn next_from(&self, sector: u64) -> Option<u64> {
        let is_free = |&(&start, dirty): &(&u64, &Dirty)| {
            !self.destaging.iter().any(|moving| moving.start < dirty.end && start < moving.end)
        };
        let mut after = self.extents.range(sector..);
        let mut before = self.extents.range(..sector);
        after.find(is_free).or_else(|| before.find(is_free)).map(|(&start, _)| start)
    }
}

fn spot(mechanism: &Mechanism, start: u64) -> Spot {
    let place = mechanism.geometry.place(start);
    let angle = mechanism.geometry.angle_of(&place) as u32;
    Spot { cylinder: place.cylinder, head: place.head, angle }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn extent(start: u64, end: u64) -> Extent {
        Extent { start, end }
    }

    fn listed(cache: &WriteCache) -> Vec<(u64, u64)> {
        cache.extents.iter().map(|(&start, dirty)| (start, dirty.end)).collect()
    }

    fn put(cache: &mut WriteCache, extent: Extent) -> u64 {
        cache.reserve(extent);
        cache.insert(extent)
    }

    #[test]
    fn adjoining_writes_become_one_extent() {
        let mut cache = WriteCache::new(100, 2);
        put(&mut cache, extent(10, 20));
        put(&mut cache, extent(30, 40));
        assert!(!cache.fits(extent(50, 51)), "a third extent");
        assert!(cache.fits(extent(40, 45)), "continues the second");
        put(&mut cache, extent(20, 30));
        assert_eq!(listed(&cache), [(10, 40)]);
        assert!(cache.holds(extent(12, 39)) && !cache.holds(extent(12, 41)));
        assert!(!cache.fits(extent(40, 111)), "70 sectors are free");
    }

    proptest! {
        /// In lock step with a set of sectors.
        #[test]
        fn dirty_sectors_are_those_of_a_naive_set(
            writes in proptest::collection::vec((0_u64..60, 1_u64..12, 0_u8..4), 1..60),
            is_bounded in any::<bool>(),
        ) {
            let window = is_bounded.then_some(3);
            let mut cache = WriteCache::new(1_000, usize::MAX).with_window(window);
            let mut naive = BTreeSet::new();
            for (start, length, action) in writes {
                let written = extent(start, start + length);
                let before = naive.iter().filter(|s| (start..start + length).contains(*s)).count();
                if action == 0 {
                    prop_assert_eq!(cache.forget(written), before as u64);
                    naive.retain(|s| !(start..start + length).contains(s));
                } else {
                    prop_assert_eq!(put(&mut cache, written), before as u64);
                    naive.extend(start..start + length);
                }
                prop_assert_eq!(cache.dirty(), naive.len() as u64);
                let ends = listed(&cache);
                prop_assert!(ends.iter().flat_map(|&(s, e)| s..e).eq(naive.iter().copied()));
                prop_assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0));
                let mut starts: Vec<u64> = cache.ages.values().copied().collect();
                starts.sort_unstable();
                let all = ends.iter().map(|&(start, _)| start);
                prop_assert!(starts.into_iter().eq(all.filter(|_| is_bounded)));
            }
        }
    }
}
