//! Blocks and runs of blocks: places on the devices of a file system, and places in its files.
//!
//! A block is the file system's own ([`super::file_system::Facts::block_bytes`]); it divides the
//! unit of the cache or is a multiple of it.

use core::ops::Range;

use iolab_model::error::Errno;

/// A file, directory or link of one file system: its inode number, or whatever stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A device of a file system, by its role there; most have one.
///
/// A file system with a log device, a metadata device or a pool of them has several: the machine
/// knows which stack each stands for, and every stack has its own queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub u8);

impl DeviceId {
    /// The device that holds the data, and everything else unless the file system says so.
    pub const MAIN: Self = Self(0);
}

/// Neighbouring blocks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockRun {
    /// The device.
    pub device: DeviceId,
    /// First block.
    pub first: u64,
    /// Number of blocks.
    pub count: u64,
}

impl BlockRun {
    /// A run on the main device.
    pub const fn new(first: u64, count: u64) -> Self {
        Self { device: DeviceId::MAIN, first, count }
    }

    /// The block after the last one.
    pub const fn end(&self) -> u64 {
        self.first + self.count
    }

    /// The blocks as a range.
    pub const fn range(&self) -> Range<u64> {
        self.first..self.end()
    }
}

/// Neighbouring blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileRun {
    /// The file.
    pub node: NodeId,
    /// First block, counted from the file's beginning.
    pub first: u64,
    /// Number of blocks.
    pub count: u64,
}

impl FileRun {
    /// The block after the last one.
    pub const fn end(&self) -> u64 {
        self.first + self.count
    }
}

/// State of neighbouring blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing is there: reads give zeros without any I/O.
    Hole,
    /// Space is reserved, the place is not chosen yet; the data are in the cache alone.
    Delayed,
    /// Blocks that were never written are there: reads give zeros without any I/O. Holds the first.
    Unwritten(DeviceId, u64),
    /// Blocks with data are there. Holds the first.
    Written(DeviceId, u64),
}

impl Place {
    /// Device and first block, if there are any blocks.
    pub const fn block(self) -> Option<(DeviceId, u64)> {
        match self {
            Self::Unwritten(device, first) | Self::Written(device, first) => Some((device, first)),
            Self::Hole | Self::Delayed => None,
        }
    }
}

/// Answer to where blocks of a file are: the longest run from the first one asked for that has one
/// state and, where it has blocks, neighbouring ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// State of all of them.
    pub place: Place,
    /// Number of blocks, at least 1; at most as many as asked for.
    pub count: u64,
}

impl Mapped {
    /// Blocks to which dirty data are written that were given their places when they were copied:
    /// the same ones, which hold data afterwards. `ENOSPC`: they have none.
    pub const fn to_write(self) -> Result<Self, Errno> {
        match self.place {
            Place::Unwritten(device, first) | Place::Written(device, first) => {
                Ok(Self { place: Place::Written(device, first), count: self.count })
            }
            Place::Hole | Place::Delayed => Err(Errno::ENOSPC),
        }
    }
}
