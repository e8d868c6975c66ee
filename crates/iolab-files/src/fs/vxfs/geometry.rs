//! `Geometry`: where the log, the maps and the space for extents lie.
//!
//! Addresses are units of 1 KiB, whatever the block is: the cache of the machine counts pages, and
//! a block may be longer than one.

use crate::api::block::BlockRun;

/// Layout of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Units of the device, whole blocks.
    pub units: u64,
    /// Units of a block.
    pub block: u64,
    /// Units at whose multiples extents begin.
    pub align: u64,
    /// Inodes of a chunk of the inode list.
    pub chunk_inodes: u32,
    /// The log: first unit, units; none with the data: 0 units.
    pub log: (u64, u64),
    /// First unit of the maps of the allocation units.
    pub maps: u64,
    /// First unit for extents.
    pub data: u64,
}

impl Geometry {
    /// Size of a unit.
    pub const UNIT: u64 = 1024;
    /// Unit of the cache: a page of SPARC.
    pub const CACHE_UNIT: u64 = 8192;
    /// Alignment of extents, if mkfs says nothing.
    pub const ALIGN: u64 = 8192;
    /// Blocks of an allocation unit, and units of its map.
    const AU_BLOCKS: u64 = 32768;
    const MAP: u64 = 8;
    /// Boot block and superblock, 8 KiB each; the log follows.
    const HEAD: u64 = 16;
    /// Units of a chunk of the inode list.
    pub const CHUNK: u64 = 8;
    /// Longest file. [assume: that of UFS]
    pub const FILE_MAX: u64 = 1 << 40;

    /// The layout of a fresh file system; `None`: there is no room for it. Sizes in bytes: of a
    /// block, of the alignment, of an inode.
    pub fn new(bytes: u64, (block, align, inode): (u64, u64, u64), log_bytes: u64) -> Option<Self> {
        let block = block / Self::UNIT;
        let units = bytes / Self::UNIT / block * block;
        let log = (Self::HEAD, log_bytes / Self::UNIT);
        let maps = (log.0 + log.1).next_multiple_of(Self::MAP);
        let count = units.div_ceil(Self::AU_BLOCKS * block);
        let data = (maps + count * Self::MAP).next_multiple_of(block.max(Self::CHUNK));
        let geometry = Self {
            units,
            block,
            align: align / Self::UNIT,
            chunk_inodes: (Self::CHUNK * Self::UNIT / inode) as u32,
            log,
            maps,
            data,
        };
        // The root's inode and directory, and a file.
        (units > data + 4 * Self::CHUNK).then_some(geometry)
    }

    /// Units of an allocation unit.
    pub const fn au_units(&self) -> u64 {
        Self::AU_BLOCKS * self.block
    }

    /// Number of allocation units.
    pub const fn aus(&self) -> u64 {
        self.units.div_ceil(self.au_units())
    }

    /// Allocation unit of a place.
    pub const fn au_of(&self, unit: u64) -> u64 {
        unit / self.au_units()
    }

    /// First place of an allocation unit for extents.
    pub fn au_start(&self, au: u64) -> u64 {
        (au * self.au_units()).max(self.data)
    }

    /// Map of the allocation unit of a place.
    pub const fn map_of(&self, unit: u64) -> BlockRun {
        BlockRun::new(self.maps + self.au_of(unit) * Self::MAP, Self::MAP)
    }
}
