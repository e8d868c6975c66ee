//! `Request`: bios merged into one command for the device, and the table that holds them.

use core::ops::{Index, IndexMut};

use iolab_model::{Ns, Sector};

use super::bio::{Bio, Flags, Operation, Submitter};

/// Index into [`Requests`]; reused after completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u32);

impl RequestId {
    /// As an index, for side tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Data direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the device.
    Read = 0,
    /// To the device (discards count here).
    Write = 1,
}

impl Direction {
    /// Both, reads first.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// As an index into a pair.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Read => Self::Write,
            Self::Write => Self::Read,
        }
    }
}

/// Block-layer unit after merging.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Action to carry out.
    pub operation: Operation,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// Pieces of memory of its bios.
    pub segments: u32,
    /// Hints and promises of its bios.
    pub flags: Flags,
    /// Process that submitted its first bio.
    pub submitter: Submitter,
    /// Time at which its slot was allocated.
    pub allocated: Ns,
    /// Time at which it was inserted into the scheduler.
    pub inserted: Ns,
    /// Time at which the device got it; `Ns::MAX` before.
    pub issued: Ns,
    /// Its number on the queue, from 1, never used twice; 0: it is none yet.
    pub number: u64,
}

impl Request {
    /// A request of a single bio.
    pub const fn of(bio: &Bio, now: Ns) -> Self {
        Self {
            operation: bio.operation,
            sector: bio.sector,
            sectors: bio.sectors,
            segments: bio.segments_of(bio.sectors),
            flags: bio.flags,
            submitter: bio.submitter,
            allocated: now,
            inserted: now,
            issued: Ns::MAX,
            number: 0,
        }
    }

    /// First sector after it.
    pub const fn end(&self) -> Sector {
        Sector(self.sector.0 + self.sectors as u64)
    }

    /// Data direction.
    pub const fn direction(&self) -> Direction {
        if self.operation.is_write() { Direction::Write } else { Direction::Read }
    }

    /// Tell whether somebody waits for it: every read, and writes flagged so.
    pub const fn is_sync(&self) -> bool {
        matches!(self.operation, Operation::Read) || self.flags.contains(Flags::SYNC)
    }
}

/// The requests of one queue, in slots that are reused.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    slots: Vec<Request>,
    free: Vec<RequestId>,
}

impl Requests {
    /// Puts a request into a free slot.
    pub fn add(&mut self, request: Request) -> RequestId {
        if let Some(id) = self.free.pop() {
            self.slots[id.index()] = request;
            return id;
        }
        self.slots.push(request);
        RequestId(self.slots.len() as u32 - 1)
    }

    /// Frees a slot.
    pub fn remove(&mut self, id: RequestId) {
        debug_assert!(!self.free.contains(&id), "{id:?} was freed twice");
        self.free.push(id);
    }

    /// Number of requests that exist.
    pub const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Tell whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Index<RequestId> for Requests {
    type Output = Request;
    fn index(&self, id: RequestId) -> &Request {
        &self.slots[id.index()]
    }
}

impl IndexMut<RequestId> for Requests {
    fn index_mut(&mut self, id: RequestId) -> &mut Request {
        &mut self.slots[id.index()]
    }
}
