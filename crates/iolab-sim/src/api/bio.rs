//! `Bio`: the unit that one layer hands to the next.

use iolab_model::Sector;
use iolab_model::error::Errno;
pub use iolab_model::priority::{Priority, PriorityClass};
use serde::{Deserialize, Serialize};

/// The submitter's own name for a bio; comes back when it is done. Unique among those in flight
/// between the two layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BioId(pub u32);

/// End of a bio; an errno is what the submitter is told (the kernel's `blk_status_to_errno`).
pub type Status = Result<(), Errno>;

/// A bio that has ended, well or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Identity of the bio.
    pub id: BioId,
    /// Result of the bio.
    pub status: Status,
}

impl Ended {
    /// A bio that has ended well.
    pub const fn ok(id: BioId) -> Self {
        Self { id, status: Ok(()) }
    }
}

/// Action that a bio asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Tell the device that sectors hold nothing any more (trim).
    Discard,
    /// Make everything written so far durable; has no sectors.
    Flush,
}

impl Operation {
    /// Moves data from the host, or marks sectors: everything but a read.
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// Hints and promises of a bio, the kernel's `REQ_*` flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// Nothing special.
    pub const NONE: Self = Self(0);
    /// Flag of a bio that a task waits for (`REQ_SYNC`): `O_DIRECT`, `O_SYNC` or fsync-driven
    /// writes.
    pub const SYNC: Self = Self(1);
    /// Flush the cache first (`REQ_PREFLUSH`).
    pub const PREFLUSH: Self = Self(2);
    /// Durable when done (`REQ_FUA`).
    pub const FUA: Self = Self(4);
    /// Metadata (`REQ_META`).
    pub const META: Self = Self(8);
    /// Boosted (`REQ_PRIO`).
    pub const PRIORITY: Self = Self(16);
    /// Do not wait for more from this process (`REQ_NOIDLE`, `REQ_IDLE` cleared).
    pub const NO_IDLE: Self = Self(32);
    /// Must stay alone (`REQ_NOMERGE`).
    pub const NO_MERGE: Self = Self(64);
    /// Write-back that can wait (`REQ_BACKGROUND`): of old pages, or below the dirty limits.
    pub const BACKGROUND: Self = Self(128);

    /// Tell whether all of `other`'s bits are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Tell whether any of `other`'s bits is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets of bits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Without `other`'s bits.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// An I/O context: a process, or threads that share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// Process that submitted a bio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Submitter {
    /// Its I/O context.
    pub process: ProcessId,
    /// Its I/O priority.
    pub priority: Priority,
    /// The CPU it runs on.
    pub cpu: u16,
}

/// Block-layer unit before merging; also what a queue sends to its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// The submitter's token.
    pub id: BioId,
    /// Action to carry out.
    pub operation: Operation,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors; 0 only for a flush.
    pub sectors: u32,
    /// Hints and promises.
    pub flags: Flags,
    /// Process that asks.
    pub submitter: Submitter,
    /// Pieces of memory that it comes from or goes to; 0: one for each page of 4 KiB.
    pub segments: u32,
}

impl Bio {
    /// Pieces of memory of its first sectors; they are taken to be equally long.
    pub const fn segments_of(&self, sectors: u32) -> u32 {
        match self.segments {
            _ if !matches!(self.operation, Operation::Read | Operation::Write) => 0,
            0 => sectors.div_ceil(8),
            all => (sectors as u64 * all as u64).div_ceil(self.sectors as u64) as u32,
        }
    }

    /// Takes its first sectors away, as a bio of their own.
    #[must_use]
    pub fn cut(&mut self, sectors: u32) -> Self {
        let segments = match self.segments {
            0 => 0,
            all => self.segments_of(sectors).min(all),
        };
        let first = Self { sectors, segments, ..*self };
        self.sector = first.end();
        self.sectors -= sectors;
        self.segments -= segments.min(self.segments.saturating_sub(1));
        first
    }

    /// First sector after it.
    pub const fn end(&self) -> Sector {
        Sector(self.sector.0 + self.sectors as u64)
    }

    /// Tell whether somebody waits for it: every read, and writes flagged so.
    pub const fn is_sync(&self) -> bool {
        matches!(self.operation, Operation::Read) || self.flags.contains(Flags::SYNC)
    }
}
