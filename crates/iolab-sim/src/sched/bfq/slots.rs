//! How many request slots an operation may use, so that writes do not starve reads.

use super::state::Bfq;
use crate::api::bio::{Bio, Operation};

/// Most bits of a word of the slot bitmap, as a power of two.
const WORD_SHIFT: u32 = 6;

impl Bfq {
    /// Size of a word of the slot bitmap: at least four words unless there are few slots.
    // Linux lib/sbitmap.c: sbitmap_calculate_shift.
    const fn word_shift(slots: u32) -> u32 {
        let mut shift = WORD_SHIFT;
        if slots >= 4 {
            while 4 << shift > slots {
                shift -= 1;
            }
        }
        shift
    }

    /// Slots in a word that an operation may use; all of it for synchronous reads.
    // Linux block/bfq-iosched.c: bfq_update_depths; 50 and 75 %, while queues are raised 18, 37 %.
    fn word_depth(&self, bio: &Bio, word: u32) -> u32 {
        if matches!(bio.operation, Operation::Read) {
            return word;
        }
        let depth = match (self.raised_busy > 0, bio.is_sync()) {
            (false, false) => word >> 1,
            (false, true) => (word * 3) >> 2,
            (true, false) => (word * 3) >> 4,
            (true, true) => (word * 6) >> 4,
        };
        depth.max(1)
    }

    /// Slots that may be in use for this bio to get one.
    ///
    /// The kernel limits the slots per word of a bitmap; a limit of one leaves one per word.
    pub(super) fn depth_for(&self, bio: &Bio, slots: u32) -> u32 {
        let shift = Self::word_shift(slots);
        let depth = self.word_depth(bio, 1 << shift);
        let scaled = |depth: u32| ((slots * depth) >> shift).max(1);
        let queue = self.processes.find(bio.submitter.process).and_then(|process| {
            let process = self.processes.get(process);
            if bio.is_sync() { process.sync } else { process.unsync }
        });
        let has_too_many = queue.is_some_and(|id| self.exceeds_share(id, scaled(depth)));
        scaled(if has_too_many { 1 } else { depth })
    }

    /// Whether a queue has more requests than its weight entitles it to.
    fn exceeds_share(&self, id: u32, limit: u32) -> bool {
        let entity = self.entity(id);
        if !entity.is_weighed {
            return false;
        }
        // A queue of a higher class counts as eight times as heavy.
        let sum = self.agenda.trees[..=entity.class.index()]
            .iter()
            .fold(0, |sum, tree| sum * 8 + tree.weight_sum)
            .max(1);
        let share = u64::from(limit) * u64::from(entity.weight);
        u64::from(self.queue(id).allocated) >= (share + sum / 2) / sum
    }
}
