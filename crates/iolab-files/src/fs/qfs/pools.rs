//! `Pools`: free DAUs, large and small, and free space for metadata.
//!
//! Small DAUs and metadata among the data come out of a large DAU, which is whole again when
//! nothing of it is in use.

use super::geometry::Geometry;
use crate::api::block::DeviceId;
use crate::fs::free_runs::FreeRuns;

const SMALL: u64 = Geometry::SMALL;

/// Free space of all kinds.
#[derive(Clone, Debug)]
pub struct Pools {
    dau: u64,
    /// Whole DAUs.
    large: FreeRuns,
    /// Rests of DAUs that small ones or metadata were taken from.
    small: FreeRuns,
    /// Device of the metadata, if they have one.
    meta: Option<FreeRuns>,
}

impl Pools {
    /// All of a fresh file system.
    pub fn new(geometry: &Geometry) -> Self {
        let Geometry { units, dau, data, meta_units, meta, .. } = *geometry;
        Self {
            dau,
            large: FreeRuns::new(data, (units - data) / dau * dau),
            small: FreeRuns::default(),
            meta: meta_units.map(|units| FreeRuns::new(meta, units - meta)),
        }
    }

    /// Free units of data.
    pub const fn units(&self) -> u64 {
        self.large.units() + self.small.units()
    }

    /// Takes a whole DAU, the first one from `near` on.
    pub fn take_large(&mut self, near: u64) -> Option<u64> {
        let first = self.large.find(near, self.dau, self.dau)?;
        self.large.occupy(first, self.dau);
        Some(first)
    }

    /// Takes some units of a DAU that others share, the first ones from `near` on.
    pub fn take_small(&mut self, near: u64, count: u64) -> Option<u64> {
        let align = count.next_power_of_two();
        let found = self.small.find(near, count, align).or_else(|| {
            let whole = self.take_large(near)?;
            self.small.give(whole, self.dau);
            self.small.find(whole, count, align)
        })?;
        self.small.occupy(found, count);
        Some(found)
    }

    /// Takes units for metadata.
    pub fn take_meta(&mut self, count: u64) -> Option<(DeviceId, u64)> {
        let Some(meta) = &mut self.meta else {
            return Some((DeviceId::MAIN, self.take_small(0, count)?));
        };
        let first = meta.find(0, count, count.next_power_of_two())?;
        meta.occupy(first, count);
        Some((DeviceId(1), first))
    }

    /// Frees units.
    pub fn give(&mut self, device: DeviceId, first: u64, count: u64) {
        if let Some(meta) = self.meta.as_mut().filter(|_| device != DeviceId::MAIN) {
            meta.give(first, count);
            return;
        }
        for (whole, first, count) in self.pieces(first, count) {
            if count == self.dau {
                self.large.give(first, count);
                continue;
            }
            self.small.give(first, count);
            if self.small.run_at(whole) >= self.dau {
                self.small.occupy(whole, self.dau);
                self.large.give(whole, self.dau);
            }
        }
    }

    /// Uses units that are free, wherever they are: for the maps of a mounted file system.
    pub fn occupy(&mut self, device: DeviceId, first: u64, count: u64) {
        if let Some(meta) = self.meta.as_mut().filter(|_| device != DeviceId::MAIN) {
            meta.occupy(first, count);
            return;
        }
        for (whole, first, count) in self.pieces(first, count) {
            if count == self.dau {
                self.large.occupy(first, count);
                continue;
            }
            if self.large.run_at(whole) >= self.dau {
                self.large.occupy(whole, self.dau);
                self.small.give(whole, self.dau);
            }
            self.small.occupy(first, count);
        }
    }

    /// Parts of a run in one DAU each: first unit of the DAU, first unit, units.
    fn pieces(&self, first: u64, count: u64) -> Vec<(u64, u64, u64)> {
        let (mut at, end) = (first, first + count);
        let mut pieces = Vec::new();
        while at < end {
            let whole = at / self.dau * self.dau;
            let count = (whole + self.dau).min(end) - at;
            pieces.push((whole, at, count));
            at += count;
        }
        pieces
    }

    /// Tell whether so many units of metadata are free, in pieces of one indirect block.
    pub fn has_meta(&self, count: u64) -> bool {
        let free = self.meta.as_ref().map_or(self.units(), FreeRuns::units);
        free >= count + Geometry::META_DAU + SMALL
    }
}
