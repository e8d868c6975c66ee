//! `Geometry`: where super-block, maps, metadata and allocation units lie.
//!
//! Addresses are units of 1 KiB, those in which sammkfs counts.

use crate::api::block::{BlockRun, DeviceId};

/// Devices of a file system, as mcf has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `ms`: metadata among the data.
    Together,
    /// `ma`: metadata on a device of their own (`mm`) of so many bytes.
    Apart(u64),
}

/// Layout of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Units of the device of data.
    pub units: u64,
    /// Units of a DAU; of a device of type `md`: of a large one.
    pub dau: u64,
    /// The first DAUs of a file are small ones (type `md`).
    pub is_dual: bool,
    /// First DAU.
    pub data: u64,
    /// Units of the device of metadata; none: metadata lie among the data.
    pub meta_units: Option<u64>,
    /// First unit of metadata behind the maps, on a device of their own.
    pub meta: u64,
}

impl Geometry {
    /// Size of a unit.
    pub const UNIT: u64 = 1024;
    /// Unit of the cache: a page of SPARC.
    pub const CACHE_UNIT: u64 = 8192;
    /// Units of a small DAU. [doc]
    pub const SMALL: u64 = 4;
    /// Units of a file in small DAUs: 8 of them (`NSDEXT`). [code]
    pub const SMALL_END: u64 = 8 * Self::SMALL;
    /// Large DAUs that the inode itself points at (`NLDEXT`). [code]
    pub const DIRECT: u64 = 8;
    /// Pointers of an indirect block (`DEXT`), and its units (`SAM_INDBLKSZ`). [code]
    pub const POINTERS: u64 = 2048;
    /// Units of an indirect block, and of a piece of the inode file.
    pub const META_DAU: u64 = 16;
    /// Inodes of 512 bytes in a piece of the inode file.
    pub const CHUNK_INODES: u32 = (Self::META_DAU * Self::UNIT / 512) as u32;
    /// Label and super-block, at the beginning of each device. [assume]
    const HEAD: u64 = 32;
    /// Units of a piece of a map, and DAUs in it: a bit for each.
    const MAP: u64 = 4;
    const MAP_DAUS: u64 = Self::MAP * Self::UNIT * 8;
    /// Longest file. [assume: that of UFS]
    pub const FILE_MAX: u64 = 1 << 40;

    /// The layout of a fresh file system; `Err`: KiB that the device of data, or of metadata, would
    /// have to have at least.
    pub fn new(
        bytes: u64,
        (dau, is_dual): (u64, bool),
        family: Family,
    ) -> Result<Self, (DeviceId, u64)> {
        let units = bytes / Self::UNIT;
        let maps = (units / dau).div_ceil(Self::MAP_DAUS) * Self::MAP;
        let behind = (Self::HEAD + maps).next_multiple_of(Self::META_DAU);
        let (head, meta_units) = match family {
            Family::Together => (behind, None),
            Family::Apart(bytes) => (Self::HEAD, Some(bytes / Self::UNIT)),
        };
        let data = head.next_multiple_of(dau);
        // The root's inode and directory, and a file.
        let least = data + 4 * dau;
        if units < least {
            return Err((DeviceId::MAIN, least));
        }
        let least_meta = behind + 4 * Self::META_DAU;
        if meta_units.is_some_and(|units| units < least_meta) {
            return Err((DeviceId(1), least_meta));
        }
        Ok(Self { units, dau, is_dual, data, meta_units, meta: behind })
    }

    /// Device of the metadata.
    pub const fn meta_device(&self) -> DeviceId {
        if self.meta_units.is_some() { DeviceId(1) } else { DeviceId::MAIN }
    }

    /// Map of the DAU of a place.
    pub const fn map_of(&self, unit: u64) -> BlockRun {
        let piece = unit / self.dau / Self::MAP_DAUS;
        let first = Self::HEAD + piece * Self::MAP;
        BlockRun { device: self.meta_device(), first, count: Self::MAP }
    }

    /// The DAU of a file that holds a unit of it: first unit, units. `is_large`: it has no small
    /// ones.
    pub const fn slot(&self, unit: u64, is_large: bool) -> (u64, u64) {
        if is_large {
            (unit / self.dau * self.dau, self.dau)
        } else if unit < Self::SMALL_END {
            (unit / Self::SMALL * Self::SMALL, Self::SMALL)
        } else {
            let behind = unit - Self::SMALL_END;
            (Self::SMALL_END + behind / self.dau * self.dau, self.dau)
        }
    }

    /// Units of a file of so many bytes, in whole DAUs.
    pub const fn units_of(&self, bytes: u64, is_large: bool) -> u64 {
        if bytes == 0 {
            return 0;
        }
        let (first, count) = self.slot((bytes - 1) / Self::UNIT, is_large);
        first + count
    }

    /// Number of the indirect block that points at the DAU of a unit of a file; none: the inode
    /// does.
    pub const fn indirect(&self, unit: u64, is_large: bool) -> Option<u64> {
        let behind = if is_large { unit } else { unit.saturating_sub(Self::SMALL_END) };
        match (behind / self.dau).checked_sub(Self::DIRECT) {
            Some(number) => Some(number / Self::POINTERS),
            None => None,
        }
    }
}
