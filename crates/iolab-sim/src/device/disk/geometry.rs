//! Geometry: where a sector lies on the platters.
//!
//! Models zones of equally long tracks, heads, cylinder-by-cylinder or serpentine numbering, track
//! and cylinder skew, spare cylinders between zones. Leaves out defects and spares inside a zone:
//! its sectors are all there.
//!
//! Source: Ruemmler and Wilkes (1994), "Data layout"; `DiskSim` 4.0 manual (2008), layout models.

use iolab_model::Ns;

use crate::error::SimError;

/// Cylinders with the same number of sectors on every track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// Number of cylinders.
    pub cylinders: u32,
    /// Media sectors on a track; 0 for spare cylinders, over which the arm only passes.
    pub track_sectors: u32,
    /// Media sectors by which the next track of a cylinder is shifted.
    pub track_skew: u32,
    /// Media sectors by which the first track of the next cylinder is shifted.
    pub cylinder_skew: u32,
}

/// The order in which tracks are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All heads of a cylinder, then the next cylinder (old disks).
    Cylinders,
    /// A group of cylinders with one head inwards, with the next head outwards, and so on.
    Serpentine {
        /// Cylinders in a group.
        cylinders: u32,
    },
}

/// Place of a media sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Cylinder, 0 outermost.
    pub cylinder: u32,
    /// Head.
    pub head: u32,
    /// Media sectors on this track.
    pub track_sectors: u32,
    /// Position on the track in sectors from the index mark, skew included.
    pub slot: u32,
    /// Sectors from here to the end of the track's numbering.
    pub left: u32,
}

#[derive(Clone, Copy, Debug)]
struct ZoneStart {
    zone: Zone,
    cylinder: u32,
    sector: u64,
}

/// The platters.
#[derive(Clone, Debug)]
pub struct Geometry {
    heads: u32,
    period: u64,
    layout: Layout,
    zones: Vec<ZoneStart>,
    cylinders: u32,
    sectors: u64,
}

impl Geometry {
    /// Platters of the given zones, outermost first; `period` is one revolution.
    pub fn new(heads: u32, period: Ns, layout: Layout, zones: &[Zone]) -> Self {
        let mut starts = Vec::with_capacity(zones.len());
        let (mut cylinder, mut sector) = (0, 0);
        for &zone in zones {
            if zone.track_sectors > 0 {
                starts.push(ZoneStart { zone, cylinder, sector });
            }
            cylinder += zone.cylinders;
            sector += u64::from(zone.cylinders) * u64::from(heads) * u64::from(zone.track_sectors);
        }
        Self {
            heads,
            period: period.0,
            layout,
            zones: starts,
            cylinders: cylinder,
            sectors: sector,
        }
    }

    /// Refuses zones that contradict the rest of the description.
    pub fn check(subject: &str, cylinders: u32, zones: &[Zone]) -> Result<(), SimError> {
        let wrong = |problem: String, remedy: &str| {
            Err(SimError::Inconsistent {
                subject: subject.to_owned(),
                problem,
                remedy: remedy.to_owned(),
            })
        };
        if zones.iter().all(|zone| zone.track_sectors == 0) {
            return wrong(
                "there are no zones".to_owned(),
                "list at least one row with sectors in `zones`",
            );
        }
        for (index, zone) in zones.iter().enumerate() {
            if zone.cylinders == 0 {
                let problem = format!("zone {index} has no cylinders");
                return wrong(problem, "delete the row or correct it");
            }
            let skew = zone.track_skew.max(zone.cylinder_skew);
            if skew > 0 && skew >= zone.track_sectors {
                let problem = format!(
                    "zone {index} has skews {} and {} on tracks of {} sectors",
                    zone.track_skew, zone.cylinder_skew, zone.track_sectors
                );
                return wrong(problem, "a skew is less than one revolution");
            }
        }
        let sum: u64 = zones.iter().map(|zone| u64::from(zone.cylinders)).sum();
        if sum != u64::from(cylinders) {
            let problem = format!("the zones have {sum} cylinders, `cylinders` says {cylinders}");
            return wrong(problem, "make the zones add up to `cylinders`");
        }
        Ok(())
    }

    /// Media sectors in all.
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Cylinders in all.
    pub const fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// One revolution.
    pub const fn period(&self) -> Ns {
        Ns(self.period)
    }

    /// Time from the index mark to the start of a slot; slots may count past one revolution.
    #[inline]
    pub const fn angle(&self, track_sectors: u32, slot: u32) -> u64 {
        slot as u64 * self.period / track_sectors as u64
    }

    /// Angle at which a place starts, as time from the index mark.
    #[inline]
    pub const fn angle_of(&self, place: &Place) -> u64 {
        self.angle(place.track_sectors, place.slot)
    }

    fn zone_of(&self, sector: u64) -> &ZoneStart {
        let after = self.zones.partition_point(|start| start.sector <= sector);
        &self.zones[after - 1]
    }

    /// The zone that holds a sector.
    pub fn zone(&self, sector: u64) -> Zone {
        self.zone_of(sector).zone
    }

    /// Place of a sector; it must be below [`Geometry::sectors`].
    pub fn place(&self, sector: u64) -> Place {
        debug_assert!(sector < self.sectors, "sector {sector} is not on the disk");
        let start = self.zone_of(sector);
        let zone = &start.zone;
        let within = sector - start.sector;
        let track = within / u64::from(zone.track_sectors);
        let index = (within - track * u64::from(zone.track_sectors)) as u32;
        let (cylinder, head, steps) = self.track(zone, track as u32);
        let shift = u64::from(steps) * u64::from(zone.cylinder_skew)
            + (track - u64::from(steps)) * u64::from(zone.track_skew);
        let slot = (u64::from(index) + shift) % u64::from(zone.track_sectors);
        Place {
            cylinder: start.cylinder + cylinder,
            head,
            track_sectors: zone.track_sectors,
            slot: slot as u32,
            left: zone.track_sectors - index,
        }
    }

    /// Cylinder within the zone, head, and cylinder steps made since the zone's first track.
    fn track(&self, zone: &Zone, track: u32) -> (u32, u32, u32) {
        let Layout::Serpentine { cylinders } = self.layout else {
            let cylinder = track / self.heads;
            return (cylinder, track - cylinder * self.heads, cylinder);
        };
        let group = track / (cylinders * self.heads);
        let within = track - group * cylinders * self.heads;
        let first = group * cylinders;
        let width = cylinders.min(zone.cylinders - first);
        let (head, along) = (within / width, within % width);
        let cylinder = if head.is_multiple_of(2) { along } else { width - 1 - along };
        let before = group * ((cylinders - 1) * self.heads + 1);
        (first + cylinder, head, before + head * (width - 1) + along)
    }

    /// First sector numbered on a cylinder (serpentine: of its group; spare: of the last cylinder
    /// before it that has any).
    pub fn first_sector(&self, cylinder: u32) -> u64 {
        let after = self.zones.partition_point(|start| start.cylinder <= cylinder);
        let start = &self.zones[after.max(1) - 1];
        let last = start.zone.cylinders - 1;
        let mut within = cylinder.saturating_sub(start.cylinder).min(last);
        if let Layout::Serpentine { cylinders } = self.layout {
            within -= within % cylinders;
        }
        let per_cylinder = u64::from(self.heads) * u64::from(start.zone.track_sectors);
        start.sector + u64::from(within) * per_cylinder
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn zones() -> [Zone; 2] {
        [
            Zone { cylinders: 7, track_sectors: 12, track_skew: 3, cylinder_skew: 5 },
            Zone { cylinders: 5, track_sectors: 9, track_skew: 2, cylinder_skew: 4 },
        ]
    }

    fn geometry(layout: Layout) -> Geometry {
        Geometry::new(3, Ns(1_000_000), layout, &zones())
    }

    #[test]
    fn cylinders_fill_head_by_head_and_each_track_is_shifted() {
        let geometry = geometry(Layout::Cylinders);
        assert_eq!(geometry.sectors(), 7 * 3 * 12 + 5 * 3 * 9);
        let place = geometry.place(0);
        assert_eq!((place.cylinder, place.head, place.slot, place.left), (0, 0, 0, 12));
        let place = geometry.place(12);
        assert_eq!((place.cylinder, place.head, place.slot), (0, 1, 3));
        // Cylinder 1: two track skews and one cylinder skew, 2 * 3 + 5 = 11.
        let place = geometry.place(36);
        assert_eq!((place.cylinder, place.head, place.slot), (1, 0, 11));
        let place = geometry.place(7 * 3 * 12 + 9 + 8);
        assert_eq!((place.cylinder, place.head, place.slot, place.left), (7, 1, (8 + 2) % 9, 1));
    }

    #[test]
    fn spare_cylinders_are_passed_over() {
        let spare = |cylinders| Zone { cylinders, track_sectors: 0, ..Zone::default() };
        let [first, second] = zones();
        let rows = [spare(1), first, spare(4), second, spare(2)];
        assert_eq!(Geometry::check("x", 19, &rows), Ok(()));
        assert!(Geometry::check("x", 5, &[spare(5)]).is_err());
        let geometry = Geometry::new(3, Ns(1_000_000), Layout::Cylinders, &rows);
        assert_eq!(geometry.sectors(), self::geometry(Layout::Cylinders).sectors());
        let cylinder = |sector| geometry.place(sector).cylinder;
        assert_eq!((cylinder(0), cylinder(7 * 36 - 1), cylinder(7 * 36)), (1, 7, 12));
        let firsts = [0, 1, 7, 8, 11, 12, 18].map(|cylinder| geometry.first_sector(cylinder));
        assert_eq!(firsts, [0, 0, 6 * 36, 6 * 36, 6 * 36, 7 * 36, 7 * 36 + 4 * 27]);
    }

    #[test]
    fn a_serpentine_turns_round_with_the_next_head() {
        let geometry = geometry(Layout::Serpentine { cylinders: 3 });
        let tracks: Vec<(u32, u32)> = (0..9)
            .map(|track| geometry.place(track * 12))
            .map(|place| (place.cylinder, place.head))
            .collect();
        let expected = [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1), (0, 2), (1, 2), (2, 2)];
        assert_eq!(tracks, expected);
        // The last group of the zone has one cylinder only.
        assert_eq!(geometry.place(18 * 12).cylinder, 6);
        assert_eq!(geometry.place(20 * 12).head, 2);
    }

    proptest! {
        #[test]
        fn every_sector_has_its_own_place(serpentine in 0_u32..5) {
            let layout = match serpentine {
                0 => Layout::Cylinders,
                cylinders => Layout::Serpentine { cylinders },
            };
            let geometry = geometry(layout);
            let mut seen = BTreeSet::new();
            for sector in 0..geometry.sectors() {
                let place = geometry.place(sector);
                prop_assert!(place.cylinder < 12 && place.head < 3);
                prop_assert!(place.slot < place.track_sectors);
                prop_assert!(seen.insert((place.cylinder, place.head, place.slot)));
                prop_assert!(geometry.first_sector(place.cylinder) <= sector
                    || layout != Layout::Cylinders);
            }
        }
    }
}
