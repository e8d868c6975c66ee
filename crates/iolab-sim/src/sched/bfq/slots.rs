//! Number of request slots that an operation may use, so that writes do not starve reads.
//!
//! As in Linux 6.18, where a limit counts slots of the whole queue. Up to 6.16 it counted bits per
//! word of a bitmap: the same fractions, but a limit of one left one slot per word.

use super::state::Bfq;
use crate::api::bio::{Bio, Operation};

impl Bfq {
    /// Slots that an operation may use; all of them for reads.
    // Linux block/bfq-iosched.c: bfq_update_depths; 50 and 75 %, while queues are raised 18, 37 %.
    fn depth_of(&self, bio: &Bio, slots: u32) -> u32 {
        if matches!(bio.operation, Operation::Read) {
            return slots;
        }
        let depth = match (self.raised_busy > 0, bio.is_sync()) {
            (false, false) => slots >> 1,
            (false, true) => (slots * 3) >> 2,
            (true, false) => (slots * 3) >> 4,
            (true, true) => (slots * 6) >> 4,
        };
        depth.max(1)
    }

    /// Slots that may be in use for this bio to get one.
    pub(super) fn depth_for(&self, bio: &Bio, slots: u32) -> u32 {
        let depth = self.depth_of(bio, slots);
        let has_too_many = self.queue_of(bio).is_some_and(|(_, id)| self.exceeds_share(id, depth));
        if has_too_many { 1 } else { depth }
    }

    /// Tell whether a queue has more requests than its weight entitles it to.
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
