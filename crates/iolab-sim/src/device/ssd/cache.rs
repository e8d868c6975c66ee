//! The write cache: slots of one mapping unit, evicted in the order in which they became dirty.
//!
//! A unit that is written again before its eviction has begun stays in its slot (the two writes
//! coalesce). A slot is taken from the moment a command reserves it until its row is programmed.
//! Slots belong to *epochs* that a flush closes: a flush is done when no slot of its epoch or of an
//! earlier one is left. Left out: the content itself, and power cuts.

use std::collections::VecDeque;

use super::ftl::NONE;

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Logical unit, or `NONE` once the content is void.
    logical: u32,
    /// Flash unit that is being programmed from here, or `NONE` while the slot is dirty.
    unit: u32,
    /// Epoch, counted modulo 2^32.
    epoch: u32,
}

/// An epoch that a flush closes when `waiter` is set.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    slots: u32,
    /// The command that waits for it, or `NONE` while it is open.
    waiter: u32,
}

/// Slots, their order, and who waits for them.
#[derive(Debug)]
pub struct Cache {
    capacity: u32,
    /// Slots that are in use or promised to commands.
    taken: u32,
    slots: Vec<Slot>,
    unused: Vec<u32>,
    /// Dirty slots, oldest first; may hold void ones.
    order: VecDeque<u32>,
    /// Dirty slots that are not void.
    dirty: u32,
    /// Void slots that are still in the order; they take no room.
    voids: u32,
    epochs: VecDeque<Epoch>,
    first_epoch: u32,
    /// Writes that were absorbed by a dirty slot, and slots trimmed before eviction.
    pub absorbed_units: u64,
}

impl Cache {
    /// An empty cache.
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            taken: 0,
            slots: Vec::new(),
            unused: Vec::new(),
            order: VecDeque::new(),
            dirty: 0,
            voids: 0,
            epochs: VecDeque::from([Epoch { slots: 0, waiter: NONE }]),
            first_epoch: 0,
            absorbed_units: 0,
        }
    }

    /// Promises room for so many units, if there is any.
    pub fn reserve(&mut self, units: u32) -> bool {
        let fits = self.taken + units <= self.capacity;
        if fits {
            self.taken += units;
        }
        fits
    }

    /// Gives back promised room.
    pub fn release(&mut self, units: u32) {
        self.taken -= units;
    }

    /// Dirty units.
    pub const fn dirty(&self) -> u32 {
        self.dirty
    }

    /// A slot that a new write of its unit may go to, or the flash unit to be voided first.
    ///
    /// `None` means absorbed.
    pub fn overwrite(&mut self, slot: u32) -> Option<u32> {
        let held = &mut self.slots[slot as usize];
        if held.unit == NONE {
            self.absorbed_units += 1;
            return None;
        }
        held.logical = NONE;
        Some(held.unit)
    }

    /// Puts a logical unit into a new dirty slot; the room was reserved.
    pub fn insert(&mut self, logical: u32) -> u32 {
        let epoch = self.first_epoch.wrapping_add(self.epochs.len() as u32 - 1);
        let slot = Slot { logical, unit: NONE, epoch };
        self.epochs.back_mut().expect("one epoch is always open").slots += 1;
        self.dirty += 1;
        let index = if let Some(index) = self.unused.pop() {
            self.slots[index as usize] = slot;
            index
        } else {
            self.slots.push(slot);
            self.slots.len() as u32 - 1
        };
        self.order.push_back(index);
        index
    }

    /// The content of a slot is void (trimmed). Returns the flash unit to be voided, if its
    /// eviction had begun; otherwise its room is free at once.
    pub fn forget(&mut self, slot: u32) -> Option<u32> {
        let held = &mut self.slots[slot as usize];
        held.logical = NONE;
        if held.unit != NONE {
            return Some(held.unit);
        }
        self.dirty -= 1;
        self.absorbed_units += 1;
        self.voids += 1;
        self.leave(slot);
        if self.voids > self.capacity {
            self.compact();
        }
        None
    }

    /// Takes the oldest dirty slot for eviction into a flash unit; answers the slot and its
    /// logical unit. Void slots on the way are freed.
    pub fn evict(&mut self, unit: u32) -> Option<(u32, u32)> {
        while let Some(slot) = self.order.pop_front() {
            let held = &mut self.slots[slot as usize];
            if held.logical == NONE {
                self.voids -= 1;
                self.unused.push(slot);
                continue;
            }
            held.unit = unit;
            self.dirty -= 1;
            return Some((slot, held.logical));
        }
        None
    }

    /// The row is programmed: frees the slot, and answers what is now on flash and where, unless
    /// it became void meanwhile.
    pub fn programmed(&mut self, slot: u32) -> Option<(u32, u32)> {
        let Slot { logical, unit, .. } = self.slots[slot as usize];
        self.leave(slot);
        self.unused.push(slot);
        (logical != NONE).then_some((logical, unit))
    }

    /// The slot's room and its place in its epoch are free.
    fn leave(&mut self, slot: u32) {
        let epoch = self.slots[slot as usize].epoch.wrapping_sub(self.first_epoch);
        self.epochs[epoch as usize].slots -= 1;
        self.taken -= 1;
    }

    /// Takes all void slots out of the order, so that it cannot grow without bound.
    fn compact(&mut self) {
        let (slots, unused) = (&self.slots, &mut self.unused);
        self.order.retain(|&slot| {
            let is_void = slots[slot as usize].logical == NONE;
            if is_void {
                unused.push(slot);
            }
            !is_void
        });
        self.voids = 0;
    }

    /// Tell whether the oldest slot belongs to an epoch that somebody waits for.
    pub fn must_drain(&self) -> bool {
        match self.order.front() {
            Some(&slot) => {
                let epoch = self.slots[slot as usize].epoch.wrapping_sub(self.first_epoch);
                (epoch as usize) + 1 < self.epochs.len()
            }
            None => false,
        }
    }

    /// Closes the open epoch on behalf of a command.
    pub fn close_epoch(&mut self, waiter: u32) {
        self.epochs.back_mut().expect("one epoch is always open").waiter = waiter;
        self.epochs.push_back(Epoch { slots: 0, waiter: NONE });
    }

    /// The next command whose epoch, and every earlier one, is on flash.
    pub fn take_drained(&mut self) -> Option<u32> {
        let &Epoch { slots, waiter } = self.epochs.front()?;
        if slots > 0 || waiter == NONE {
            return None;
        }
        self.epochs.pop_front();
        self.first_epoch = self.first_epoch.wrapping_add(1);
        Some(waiter)
    }

    /// Takes void slots off the front of the order, so that it begins with the oldest dirty one.
    pub fn sweep(&mut self) {
        while let Some(&slot) = self.order.front() {
            if self.slots[slot as usize].logical != NONE {
                break;
            }
            self.order.pop_front();
            self.voids -= 1;
            self.unused.push(slot);
        }
    }

    /// Slots in use or promised.
    pub const fn taken(&self) -> u32 {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_a_dirty_unit_coalesce_and_of_an_evicted_one_do_not() {
        let mut cache = Cache::new(4);
        assert!(cache.reserve(2));
        let slot = cache.insert(7);
        assert_eq!(cache.overwrite(slot), None);
        cache.release(1);
        assert_eq!(cache.evict(42), Some((slot, 7)));
        assert_eq!(cache.overwrite(slot), Some(42), "the copy under way is void");
        assert_eq!(cache.programmed(slot), None);
        assert_eq!((cache.taken(), cache.dirty(), cache.absorbed_units), (0, 0, 1));
    }

    #[test]
    fn a_flush_waits_for_what_was_written_before_it_only() {
        let mut cache = Cache::new(8);
        assert!(cache.reserve(3));
        cache.insert(1);
        cache.close_epoch(77);
        let later = cache.insert(2);
        cache.close_epoch(78);
        assert!(cache.must_drain());
        let (first, _) = cache.evict(10).unwrap();
        assert_eq!(cache.take_drained(), None);
        cache.programmed(first);
        assert_eq!(cache.take_drained(), Some(77));
        assert_eq!(cache.take_drained(), None);
        assert_eq!(cache.forget(later), None);
        cache.sweep();
        assert_eq!(cache.take_drained(), Some(78), "trimmed data need no program");
        assert!(!cache.must_drain());
    }

    #[test]
    fn trimmed_slots_take_neither_room_nor_memory() {
        let mut cache = Cache::new(4);
        assert!(cache.reserve(1));
        let oldest = cache.insert(0);
        for _ in 0..100 {
            assert!(cache.reserve(1));
            let slot = cache.insert(1);
            assert_eq!(cache.forget(slot), None);
            cache.sweep();
        }
        assert_eq!((cache.taken(), cache.dirty()), (1, 1));
        assert!(cache.slots.len() <= 6, "{}", cache.slots.len());
        assert_eq!(cache.evict(5), Some((oldest, 0)));
    }

    #[test]
    fn reservations_end_at_the_capacity() {
        let mut cache = Cache::new(3);
        assert!(cache.reserve(2) && !cache.reserve(2) && cache.reserve(1));
        cache.release(3);
        assert_eq!(cache.taken(), 0);
    }
}
