//! `TwoLists`: replacement by an active and an inactive list, with refaults.
//!
//! Source: Linux mm/vmscan.c, mm/swap.c, mm/workingset.c (without the multi-generation lists).

use crate::api::frame::{FrameFlags, FrameId, FrameList, Frames, Replacement, Shadow, Victim};

/// Pages of 1 GiB.
const GIB_PAGES: u64 = 1 << 18;
/// Pages that leave the active list at a time.
const BATCH: u64 = 32;

/// Length that the active list may have as a multiple of the inactive one.
pub fn ratio(pages: u64) -> u64 {
    match pages / GIB_PAGES {
        0 => 1,
        gib => (10 * gib).isqrt(),
    }
}

/// The two lists.
#[derive(Clone, Debug, Default)]
pub struct TwoLists {
    active: FrameList,
    inactive: FrameList,
    /// Evictions and activations.
    clock: u64,
    refaults: u64,
}

impl TwoLists {
    /// Empty lists.
    pub fn new() -> Self {
        Self::default()
    }

    fn activate(&mut self, frames: &mut Frames, id: FrameId) {
        frames[id].flags.clear(FrameFlags::REFERENCED);
        frames[id].flags.set(FrameFlags::ACTIVE);
        self.active.push(frames, id);
    }

    /// Shortens the active list while it is too long: its oldest pages become inactive.
    fn balance(&mut self, frames: &mut Frames) {
        let (active, inactive) = (self.active.len(), self.inactive.len());
        if inactive * ratio(active + inactive) >= active {
            return;
        }
        for _ in 0..BATCH.min(active) {
            let id = self.active.tail();
            self.active.remove(frames, id);
            let flags = &mut frames[id].flags;
            flags.clear(FrameFlags::ACTIVE);
            flags.clear(FrameFlags::YOUNG);
            flags.set(FrameFlags::WORKING_SET);
            self.inactive.push(frames, id);
        }
    }

    fn rotate(&mut self, frames: &mut Frames, id: FrameId) {
        self.inactive.remove(frames, id);
        self.inactive.push(frames, id);
    }
}

impl Replacement for TwoLists {
    fn added(&mut self, frames: &mut Frames, id: FrameId, shadow: Option<Shadow>) {
        if let Some(Shadow(then)) = shadow {
            let distance = u64::from((self.clock as u32).wrapping_sub(then));
            if distance <= self.active.len() {
                self.refaults += 1;
                self.clock += 1;
                frames[id].flags.set(FrameFlags::WORKING_SET);
                self.activate(frames, id);
                return;
            }
        }
        self.inactive.push(frames, id);
    }

    #[inline]
    fn used(&mut self, frames: &mut Frames, id: FrameId) {
        let flags = &mut frames[id].flags;
        if flags.has(FrameFlags::ACTIVE) || !flags.has(FrameFlags::REFERENCED) {
            flags.set(FrameFlags::REFERENCED);
            return;
        }
        self.inactive.remove(frames, id);
        self.clock += 1;
        self.activate(frames, id);
    }

    fn removed(&mut self, frames: &mut Frames, id: FrameId) {
        if frames[id].flags.has(FrameFlags::ACTIVE) {
            frames[id].flags.clear(FrameFlags::ACTIVE);
            self.active.remove(frames, id);
        } else {
            self.inactive.remove(frames, id);
        }
    }

    fn choose(&mut self, frames: &mut Frames) -> Victim {
        self.balance(frames);
        for _ in 0..self.inactive.len() {
            let id = self.inactive.tail();
            let flags = frames[id].flags;
            if flags.has(FrameFlags::WRITE_BACK) {
                self.rotate(frames, id);
            } else if flags.has(FrameFlags::YOUNG) {
                frames[id].flags.clear(FrameFlags::YOUNG);
                if flags.has(FrameFlags::REFERENCED) {
                    self.inactive.remove(frames, id);
                    self.clock += 1;
                    self.activate(frames, id);
                } else {
                    frames[id].flags.set(FrameFlags::REFERENCED);
                    self.rotate(frames, id);
                }
            } else if flags.has(FrameFlags::DIRTY) {
                frames[id].flags.set(FrameFlags::RECLAIM);
                self.rotate(frames, id);
                return Victim::Dirty(id);
            } else {
                self.inactive.remove(frames, id);
                let shadow = Shadow(self.clock as u32);
                self.clock += 1;
                return Victim::Evict(id, shadow);
            }
        }
        Victim::Nothing
    }

    fn refaults(&self) -> u64 {
        self.refaults
    }

    fn sizes(&self) -> (u64, u64) {
        (self.active.len(), self.inactive.len())
    }
}

#[cfg(test)]
mod tests;
