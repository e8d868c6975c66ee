//! Request slots: who may have one, who waits.
//!
//! Legacy: two pools (sync, async) of `nr_requests`, with batchers who may exceed it by half.
//! blk-mq: one pool; `none` has the device's tags. Left out: per-CPU tag caches and the batched
//! wake-up of sleepers.
//!
//! Source: Linux 4.20 block/blk-core.c, 6.18 block/blk-mq-tag.c (behaviour).

use std::collections::BTreeMap;

use iolab_model::Ns;

use crate::api::bio::{Bio, ProcessId};
use crate::api::scheduler::{Framework, Scheduler};

/// Requests that a batcher may allocate (Linux 4.20 block/blk-core.c, include/linux/blkdev.h:
/// `BLK_BATCH_REQ`).
pub const BATCH_REQUESTS: u32 = 32;
/// Time for which it stays one after it last waited (`BLK_BATCH_TIME`, HZ/50).
pub const BATCH_TIME: Ns = Ns::from_ms(20);

/// Number of used slots at which a pool counts as congested.
pub const fn congested_on(nr_requests: u32) -> u32 {
    nr_requests - nr_requests / 8 + 1
}

/// Number of used slots below which a pool no longer counts as congested.
pub const fn congested_off(nr_requests: u32) -> u32 {
    nr_requests - nr_requests / 8 - nr_requests / 16 - 1
}

/// Number of slots that batchers share with everybody else.
pub const fn batch_limit(nr_requests: u32) -> u32 {
    nr_requests + nr_requests / 2
}

#[derive(Clone, Copy, Debug)]
struct Batcher {
    left: u32,
    until: Ns,
}

/// The slots of one queue.
#[derive(Debug)]
pub struct Slots {
    framework: Framework,
    limit: u32,
    used: [u32; 2],
    is_full: [bool; 2],
    batchers: BTreeMap<ProcessId, Batcher>,
}

impl Slots {
    /// Slots of a fresh queue.
    pub fn new(framework: Framework, limit: u32) -> Self {
        Self { framework, limit, used: [0; 2], is_full: [false; 2], batchers: BTreeMap::new() }
    }

    /// Number of slots in use.
    pub fn used(&self) -> u32 {
        self.used[0] + self.used[1]
    }

    /// Takes a slot for a bio if there is one for it.
    pub fn take(&mut self, now: Ns, bio: &Bio, scheduler: &dyn Scheduler) -> bool {
        let pool = usize::from(bio.is_sync());
        let is_granted = match self.framework {
            Framework::MultiQueue => {
                let used = self.used();
                used < self.limit && used < scheduler.limit_depth(bio, self.limit)
            }
            Framework::Legacy => self.take_legacy(now, pool, bio, scheduler),
        };
        self.used[pool] += u32::from(is_granted);
        is_granted
    }

    fn take_legacy(&mut self, now: Ns, pool: usize, bio: &Bio, scheduler: &dyn Scheduler) -> bool {
        let used = self.used[pool];
        let process = bio.submitter.process;
        if used + 1 >= self.limit && !self.is_full[pool] {
            self.is_full[pool] = true;
            self.begin_batch(now, process);
        } else if used + 1 >= self.limit
            && !self.is_batching(now, process)
            && !scheduler.must_grant(bio)
        {
            return false;
        }
        if used >= batch_limit(self.limit) {
            return false;
        }
        if let Some(batcher) = self.batchers.get_mut(&process) {
            batcher.left = batcher.left.saturating_sub(1);
        }
        true
    }

    fn begin_batch(&mut self, now: Ns, process: ProcessId) {
        let batcher = Batcher { left: BATCH_REQUESTS, until: now + BATCH_TIME };
        self.batchers.insert(process, batcher);
    }

    fn is_batching(&self, now: Ns, process: ProcessId) -> bool {
        let is_fresh = |b: &Batcher| b.left == BATCH_REQUESTS || (b.left > 0 && now < b.until);
        self.batchers.get(&process).is_some_and(is_fresh)
    }

    /// A process that waited in vain is woken: it may go on for a while.
    pub fn woken(&mut self, now: Ns, process: ProcessId) {
        if self.framework == Framework::Legacy {
            self.begin_batch(now, process);
        }
    }

    /// Gives a slot back.
    pub fn give(&mut self, is_sync: bool) {
        let pool = usize::from(is_sync);
        self.used[pool] -= 1;
        if self.used[pool] < self.limit {
            self.is_full[pool] = false;
        }
    }

    /// Tell whether a sleeper of this kind may be woken.
    pub fn may_wake(&self, is_sync: bool) -> bool {
        match self.framework {
            Framework::MultiQueue => self.used() < self.limit,
            Framework::Legacy => self.used[usize::from(is_sync)] < self.limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blk_10_thresholds_of_the_legacy_pool() {
        assert_eq!(congested_on(128), 113);
        assert_eq!(congested_off(128), 103);
        assert_eq!(batch_limit(128), 192);
        assert_eq!((BATCH_REQUESTS, BATCH_TIME), (32, Ns::from_ms(20)));
    }
}
