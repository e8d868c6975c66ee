//! The elevator's merge index: one-hit cache, hash of end sectors, and the rules of what may merge.
//!
//! Source: Linux 4.20 and 6.18 block/elevator.c, block/blk-merge.c (behaviour).

use std::collections::BTreeSet;

use iolab_model::Sector;

use crate::api::bio::{Bio, Flags, Operation};
use crate::api::request::{Request, RequestId};
use crate::api::scheduler::Framework;

/// Limits of one merged request.
#[derive(Clone, Copy, Debug)]
pub struct MergeLimits {
    /// Longest request, in sectors.
    pub max_sectors: u32,
    /// Most pieces of memory of a request.
    pub max_segments: u32,
    /// Requests must not cross a multiple of this; 0 if they may.
    pub chunk_sectors: u32,
    /// Priorities must be equal (blk-mq since 5.0).
    pub framework: Framework,
}

impl MergeLimits {
    /// Tell whether a request and a bio are of one kind.
    pub fn alike(&self, request: &Request, bio: &Bio) -> bool {
        let barred = Flags::NO_MERGE.with(Flags::PREFLUSH).with(Flags::FUA);
        request.operation == bio.operation
            && matches!(bio.operation, Operation::Read | Operation::Write | Operation::Discard)
            && !request.flags.intersects(barred)
            && !bio.flags.intersects(barred)
            && (self.framework == Framework::Legacy
                || request.submitter.priority == bio.submitter.priority)
    }

    /// Tell whether a request of so many sectors, in so many pieces of memory, is allowed.
    pub fn fits(&self, start: Sector, (sectors, segments): (u64, u32)) -> bool {
        let chunk = u64::from(self.chunk_sectors);
        sectors <= u64::from(self.max_sectors)
            && segments <= self.max_segments
            && (chunk == 0 || start.0 / chunk == (start.0 + sectors - 1) / chunk)
    }
}

/// Requests by end sector, and the one-hit cache.
#[derive(Debug, Default)]
pub struct MergeIndex {
    by_end: BTreeSet<(Sector, u32)>,
    /// The cached request (`last_merge`).
    pub cached: Option<RequestId>,
}

impl MergeIndex {
    /// An inserted request can be found; it becomes the cached one only if there is none.
    pub fn insert(&mut self, id: RequestId, end: Sector) {
        self.by_end.insert((end, id.0));
        self.cached.get_or_insert(id);
    }

    /// A request was merged into: its end may have moved, and it becomes the cached one.
    pub fn grown(&mut self, id: RequestId, old_end: Sector, new_end: Sector) {
        if old_end != new_end {
            self.by_end.remove(&(old_end, id.0));
            self.by_end.insert((new_end, id.0));
        }
        self.cached = Some(id);
    }

    /// A request left the scheduler.
    pub fn remove(&mut self, id: RequestId, end: Sector) {
        self.by_end.remove(&(end, id.0));
        if self.cached == Some(id) {
            self.cached = None;
        }
    }

    /// A request that ends where a bio starts.
    pub fn ending_at(&self, sector: Sector) -> Option<RequestId> {
        let range = (sector, 0)..=(sector, u32::MAX);
        self.by_end.range(range).next_back().map(|&(_, id)| RequestId(id))
    }
}
