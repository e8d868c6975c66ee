//! The way of a worker's transfers through a file: on behind the last one, or to a place that is
//! picked, each place of a region once or as often as chance has it.
//!
//! Facts about the order: fio 3.33 with `rw=X:N`, `percentage_random`, `bssplit` and a random map,
//! recorded with `write_iolog`, and `zonemode=strided`. Left out: zones that a device has.

use iolab_model::Bytes;
use iolab_model::seed::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::is_default;
use super::pick::Pick;

/// Order of the places of the transfers of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Course {
    /// Percent of the transfers whose place is picked; the others go on behind the one before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub picked_percent: u64,
    /// Transfers from one picked place on; 0 and 1: each place is picked anew.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ops_per_place: u64,
    /// True if these transfers repeat the picked place and do not go on from it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_repeating: bool,
    /// Bytes between the end of a transfer and the beginning of the next one; negative: backwards.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skip_bytes: i64,
    /// The region is begun again at its end; otherwise the file is used up then.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_endless: bool,
    /// Cached pages of a file are dropped when its region is begun again; dirty pages stay, and are
    /// written soon (`posix_fadvise(2)`, `POSIX_FADV_DONTNEED`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub drops_cache: bool,
    /// A file that was written is flushed when its region is begun again (fsync(2)); that is no
    /// operation of its own and has no latency.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flushes: bool,
    /// A file is removed and made anew when its region is begun again; that is no operation of its
    /// own and has no latency.
    #[serde(default, skip_serializing_if = "is_default")]
    pub renews: bool,
    /// The region is worked on zone by zone, and begun again at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<Zones>,
}

/// Zones of a region: so many bytes are moved in one, then the next is gone to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zones {
    /// Bytes that are moved before the next zone.
    pub moved_bytes: Bytes,
    /// Length of a zone.
    pub bytes: Bytes,
    /// Bytes between two zones.
    pub skip_bytes: Bytes,
}

impl Course {
    /// Contradiction, and advice.
    pub(super) fn problem(&self) -> Option<(String, &'static str)> {
        if self.zones.is_some_and(|zone| zone.moved_bytes.0 == 0 || zone.bytes.0 == 0) {
            return Some(("zones of 0 bytes".to_owned(), "use at least one transfer"));
        }
        if self.drops_cache && self.zones.is_some() {
            let problem = "dropping cached pages of a region of zones".to_owned();
            return Some((problem, "leave one of them out"));
        }
        if self.picked_percent > 100 {
            let problem = format!("{} % of the places are picked", self.picked_percent);
            return Some((problem, "use 0 to 100"));
        }
        None
    }
}

/// The part of a file that a course goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Begin of the course.
    pub(super) from: u64,
    /// Its length.
    pub(super) bytes: u64,
    /// Distance of two places that can be picked.
    pub(super) unit: u64,
}

/// Place of a step in a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    /// End of the last transfer, relative to the stretch.
    end: u64,
    /// Beginning of the last transfer.
    last: u64,
    /// Transfers that still belong to the picked place.
    left: u64,
    has_begun: bool,
    /// Beginning of the zone, relative to the stretch.
    zone: u64,
    /// Bytes moved in it.
    moved: u64,
}

/// Units of a stretch that were picked in this pass; reads and writes of a file share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Map {
    /// Picks so far.
    count: u64,
    /// One bit per unit.
    covered: Vec<u64>,
    n_covered: u64,
    /// The region was begun again, and nobody has asked since.
    is_begun_again: bool,
}

impl Map {
    fn is_covered(&self, unit: u64) -> bool {
        self.covered.get((unit / 64) as usize).is_some_and(|bits| bits >> (unit % 64) & 1 == 1)
    }

    /// The first free unit of `all` from one on, around the end; at least one is free.
    fn next_free(&self, from: u64, all: u64) -> u64 {
        let words = all.div_ceil(64);
        let taken_of = |word: u64| self.covered.get(word as usize).copied().unwrap_or(0);
        let mut word = from / 64;
        let mut taken = taken_of(word) | ((1 << (from % 64)) - 1);
        loop {
            let unit = word * 64 + u64::from(taken.trailing_ones());
            if taken != u64::MAX && unit < all {
                return unit;
            }
            word = (word + 1) % words;
            taken = taken_of(word);
        }
    }

    fn cover(&mut self, first: u64, count: u64, all: u64) {
        self.covered.resize((all.div_ceil(64)) as usize, 0);
        for unit in first..first + count {
            self.covered[(unit / 64) as usize] |= 1 << (unit % 64);
        }
        self.n_covered += count;
    }

    fn clear(&mut self) {
        self.covered.fill(0);
        self.n_covered = 0;
    }

    /// Tell once that the region was begun again.
    pub(super) fn take_begun_again(&mut self) -> bool {
        core::mem::take(&mut self.is_begun_again)
    }
}

/// Source of chance.
pub(super) struct Chance<'a> {
    /// Of the worker.
    pub(super) random: &'a mut Stream,
    /// Of orders that are the same in every pass.
    pub(super) key: u64,
}

impl Way {
    /// The next transfer of `length` bytes at most: its place and its length; `None`: the stretch
    /// is used up.
    pub(super) fn next(
        &mut self,
        (course, pick): (&Course, &Pick),
        (stretch, length): (Stretch, u64),
        map: &mut Map,
        chance: &mut Chance<'_>,
    ) -> Option<(u64, u64)> {
        let Some(zone) = course.zones else {
            return self.step((course, pick), (stretch, length), map, chance);
        };
        if self.moved >= zone.moved_bytes.0 {
            self.zone += zone.bytes.0 + zone.skip_bytes.0;
            if self.zone + stretch.unit > stretch.bytes {
                self.zone = 0;
            }
            (self.moved, self.has_begun, self.left) = (0, false, 0);
            map.clear();
        }
        let bytes = zone.bytes.0.min(stretch.bytes - self.zone);
        let inside = Stretch { from: stretch.from + self.zone, bytes, ..stretch };
        let course = Course { is_endless: true, zones: None, ..course.clone() };
        let found = self.step((&course, pick), (inside, length), map, chance)?;
        self.moved += found.1;
        Some(found)
    }

    /// The next transfer of a stretch without zones.
    fn step(
        &mut self,
        (course, pick): (&Course, &Pick),
        (stretch, length): (Stretch, u64),
        map: &mut Map,
        chance: &mut Chance<'_>,
    ) -> Option<(u64, u64)> {
        let is_random = match course.picked_percent {
            0 => false,
            100 => true,
            percent => chance.random.below(100) < percent,
        };
        let found = if is_random {
            self.random((course, pick), (stretch, length), map, chance)
        } else {
            self.onward(course, stretch, length, map)
        };
        let (at, length) = found?;
        (self.last, self.end, self.has_begun) = (at, at + length, true);
        Some((stretch.from + at, length))
    }

    fn random(
        &mut self,
        (course, pick): (&Course, &Pick),
        (stretch, length): (Stretch, u64),
        map: &mut Map,
        chance: &mut Chance<'_>,
    ) -> Option<(u64, u64)> {
        if self.left > 0 {
            self.left -= 1;
            let at = if course.is_repeating { self.last } else { self.end };
            if let Some(length) = fitting(stretch, at, length) {
                return Some((at, length));
            }
        }
        self.left = course.ops_per_place.saturating_sub(1);
        let all = stretch.bytes / stretch.unit;
        if all == 0 {
            return None;
        }
        if *pick != Pick::Permutation {
            let unit = pick.next((all, all), map.count, chance.random, chance.key);
            map.count += 1;
            let at = unit * stretch.unit;
            return fitting(stretch, at, length).map(|length| (at, length));
        }
        // Runs from one place on touch others' places, which counts for nothing.
        let may_end = course.ops_per_place <= 1 && course.picked_percent == 100;
        unpicked(map, (all, stretch.unit), length, !course.is_endless && may_end, chance)
    }

    fn onward(
        &mut self,
        course: &Course,
        stretch: Stretch,
        length: u64,
        map: &mut Map,
    ) -> Option<(u64, u64)> {
        let at = match (self.has_begun, self.end.checked_add_signed(course.skip_bytes)) {
            (false, _) => 0,
            (true, Some(at)) => at,
            // Backwards beyond the front: it goes on from the end.
            (true, None) => stretch.bytes.saturating_add_signed(course.skip_bytes),
        };
        if let Some(length) = fitting(stretch, at, length) {
            return Some((at, length));
        }
        // Beyond the end it goes on from the front; where a part of a transfer is left, the file is
        // used up. Where some places are picked, the end of the region is no end of the work.
        let is_beyond = course.skip_bytes != 0 && at >= stretch.bytes;
        if course.is_endless || is_beyond || course.picked_percent > 0 {
            // Who skips comes to the front several times in a pass.
            map.is_begun_again = !is_beyond;
            return fitting(stretch, 0, length).map(|length| (0, length));
        }
        None
    }
}

/// The next of the units that were not picked in this pass, and how many bytes from it on are free.
fn unpicked(
    map: &mut Map,
    (all, unit): (u64, u64),
    length: u64,
    ends: bool,
    chance: &mut Chance<'_>,
) -> Option<(u64, u64)> {
    if map.n_covered >= all {
        if ends {
            return None;
        }
        map.clear();
        map.is_begun_again = true;
        map.count = map.count.next_multiple_of(all);
    }
    // The order of a pass is that of the first one.
    let picked = super::draw::scatter(map.count % all, all, chance.key);
    map.count += 1;
    // Behind what is there, as fio has it: room is longest where something ends.
    let picked = map.next_free(picked, all);
    let wanted = length.div_ceil(unit);
    let free = (picked..all.min(picked + wanted)).take_while(|at| !map.is_covered(*at)).count();
    map.cover(picked, free as u64, all);
    Some((picked * unit, length.min(free as u64 * unit)))
}

/// Bytes of a transfer at `at`, cut to whole units where the stretch ends.
fn fitting(stretch: Stretch, at: u64, length: u64) -> Option<u64> {
    let room = stretch.bytes.checked_sub(at)?;
    let length = if length <= room { length } else { room / stretch.unit * stretch.unit };
    (length > 0).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::Seed;

    const KIB: u64 = 1024;

    /// Places in KiB of transfers of 4 KiB in 32 KiB.
    fn places(course: &Course, pick: &Pick, count: usize) -> Vec<u64> {
        let stretch = Stretch { from: 0, bytes: 32 * KIB, unit: 4 * KIB };
        let (mut way, mut map) = (Way::default(), Map::default());
        let mut random = Seed(4).stream("course", 0);
        let mut chance = Chance { random: &mut random, key: 5 };
        (0..count)
            .map_while(|_| way.next((course, pick), (stretch, 4 * KIB), &mut map, &mut chance))
            .map(|(at, length)| {
                assert_eq!(length, 4 * KIB);
                at / KIB
            })
            .collect()
    }

    #[test]
    fn onward_is_what_fio_recorded() {
        let of = |skip_bytes| Course { skip_bytes, ..Course::default() };
        let pick = Pick::Sequential;
        assert_eq!(places(&of(0), &pick, 99), [0, 4, 8, 12, 16, 20, 24, 28]);
        assert_eq!(places(&of(4096), &pick, 8), [0, 8, 16, 24, 0, 8, 16, 24]);
        assert_eq!(places(&of(-8192), &pick, 8), [0, 24, 20, 16, 12, 8, 4, 0]);
        // Before, the region was begun again where less than a transfer is left of it.
        assert_eq!(places(&of(2048), &pick, 99), [0, 6, 12, 18, 24]);
        let endless = Course { is_endless: true, ..Course::default() };
        assert_eq!(places(&endless, &pick, 10)[8..], [0, 4]);
        let endless = Course { is_endless: true, ..of(2048) };
        assert_eq!(places(&endless, &pick, 7)[4..], [24, 0, 6]);
    }

    #[test]
    fn a_region_that_is_begun_again_says_so_once() {
        let stretch = Stretch { from: 0, bytes: 32 * KIB, unit: 4 * KIB };
        for (picked_percent, pick) in [(0, Pick::Sequential), (100, Pick::Permutation)] {
            let course = Course { is_endless: true, picked_percent, ..Course::default() };
            let (mut way, mut map) = (Way::default(), Map::default());
            let mut random = Seed(4).stream("course", 0);
            let mut chance = Chance { random: &mut random, key: 5 };
            let again: Vec<usize> = (0..25)
                .filter(|_| {
                    let wanted = (stretch, 4 * KIB);
                    way.next((&course, &pick), wanted, &mut map, &mut chance).unwrap();
                    map.take_begun_again()
                })
                .collect();
            assert_eq!(again, [8, 16, 24], "{pick:?}");
        }
    }

    #[test]
    fn zones_follow_each_other_as_fio_recorded() {
        let zone = |moved, bytes, skip| {
            let [moved_bytes, bytes, skip_bytes] = [moved, bytes, skip].map(|kib| Bytes(kib * KIB));
            Some(Zones { moved_bytes, bytes, skip_bytes })
        };
        let of = |course: &Course, pick: &Pick, region: u64, count| -> Vec<u64> {
            let stretch = Stretch { from: 0, bytes: region * KIB, unit: 4 * KIB };
            let (mut way, mut map) = (Way::default(), Map::default());
            let mut random = Seed(4).stream("course", 0);
            let mut chance = Chance { random: &mut random, key: 5 };
            (0..count)
                .map_while(|_| way.next((course, pick), (stretch, 4 * KIB), &mut map, &mut chance))
                .map(|(at, _)| at / KIB)
                .collect()
        };
        let strided = Course { zones: zone(8, 32, 24), ..Course::default() };
        let expected = [0, 4, 56, 60, 112, 116, 168, 172, 224, 228, 0, 4, 56, 60];
        assert_eq!(of(&strided, &Pick::Sequential, 256, 14), expected);
        // More is moved than a zone holds: it is gone through again.
        let again = Course { zones: zone(16, 8, 8), ..Course::default() };
        assert_eq!(of(&again, &Pick::Sequential, 32, 10), [0, 4, 0, 4, 16, 20, 16, 20, 0, 4]);
        let random = Course { picked_percent: 100, zones: zone(32, 16, 0), ..Course::default() };
        let seen = of(&random, &Pick::Permutation, 64, 16);
        let zones: Vec<u64> = seen.iter().map(|at| at / 16).collect();
        assert_eq!(zones, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
        let mut pass = seen[..4].to_vec();
        pass.sort_unstable();
        assert_eq!(pass, [0, 4, 8, 12], "each place of a zone once in a pass: {seen:?}");
    }

    #[test]
    fn each_place_comes_once_in_a_pass() {
        let course = Course { picked_percent: 100, ..Course::default() };
        let mut seen = places(&course, &Pick::Permutation, 99);
        seen.sort_unstable();
        assert_eq!(seen, [0, 4, 8, 12, 16, 20, 24, 28]);
        let endless = Course { is_endless: true, ..course };
        let twice = places(&endless, &Pick::Permutation, 16);
        assert_eq!(twice[..8], twice[8..], "the order of the first pass");
    }

    #[test]
    fn some_transfers_follow_a_picked_place() {
        let runs = Course { picked_percent: 100, ops_per_place: 3, ..Course::default() };
        let seen = places(&runs, &Pick::Uniform, 90);
        let follow = seen.windows(2).filter(|pair| pair[1] == pair[0] + 4).count();
        assert!(follow >= 40, "{seen:?}");
        let same = Course { is_repeating: true, ..runs };
        let seen = places(&same, &Pick::Permutation, 24);
        assert!(seen.chunks(3).all(|run| run.iter().all(|at| *at == run[0])), "{seen:?}");
    }

    #[test]
    fn the_next_free_unit_lies_behind_or_around_the_end() {
        let mut map = Map::default();
        assert_eq!(map.next_free(69, 70), 69, "nothing is covered");
        map.cover(0, 3, 70);
        map.cover(60, 10, 70);
        for (from, free) in [(0, 3), (2, 3), (5, 5), (60, 3), (69, 3), (59, 59)] {
            assert_eq!(map.next_free(from, 70), free, "from {from}");
        }
        map.cover(3, 56, 70);
        assert_eq!(map.next_free(10, 70), 59, "the only one");
    }

    #[test]
    fn transfers_of_several_sizes_cover_a_region_once() {
        let course = Course { picked_percent: 100, ..Course::default() };
        let stretch = Stretch { from: 8192, bytes: 512 * KIB, unit: 4 * KIB };
        let (mut way, mut map) = (Way::default(), Map::default());
        let mut random = Seed(4).stream("course", 0);
        let mut chance = Chance { random: &mut random, key: 5 };
        let mut touched = vec![0_u32; 128];
        for turn in 0.. {
            let length = [4, 16, 64][turn % 3] * KIB;
            let step = (&course, &Pick::Permutation);
            let Some((at, length)) = way.next(step, (stretch, length), &mut map, &mut chance)
            else {
                break;
            };
            let first = ((at - 8192) / (4 * KIB)) as usize;
            let count = (length / (4 * KIB)) as usize;
            touched[first..first + count].iter_mut().for_each(|times| *times += 1);
        }
        assert!(touched.iter().all(|times| *times == 1), "{touched:?}");
    }
}
