//! Mechanisms that schedulers share: requests by sector, requests by age, the one-way distance.

use std::collections::BTreeMap;

use iolab_model::{Ns, Sector};

use crate::api::request::RequestId;

/// What sysfs accepts at most where the kernel keeps a tunable in an `int`.
pub const INT_MAX: u64 = i32::MAX as u64;

/// Requests sorted by start sector; equal sectors keep insertion order (the newer after the older).
#[derive(Clone, Debug, Default)]
pub struct Sorted {
    tree: BTreeMap<(Sector, u64), RequestId>,
    sequence: u64,
}

/// Where a request sits in [`Sorted`]; the owner keeps it per request.
pub type SortedKey = (Sector, u64);

impl Sorted {
    /// Adds a request and answers with its key.
    pub fn insert(&mut self, sector: Sector, id: RequestId) -> SortedKey {
        let key = (sector, self.sequence);
        self.sequence += 1;
        self.tree.insert(key, id);
        key
    }

    /// Removes a request.
    pub fn remove(&mut self, key: SortedKey) -> Option<RequestId> {
        self.tree.remove(&key)
    }

    /// The lowest.
    pub fn first(&self) -> Option<RequestId> {
        self.tree.first_key_value().map(|(_, &id)| id)
    }

    /// The first (oldest among equals) that starts at or above `sector`.
    pub fn at_or_above(&self, sector: Sector) -> Option<RequestId> {
        self.tree.range((sector, 0)..).next().map(|(_, &id)| id)
    }

    /// The next one up.
    pub fn latter(&self, key: SortedKey) -> Option<RequestId> {
        self.tree.range((key.0, key.1 + 1)..).next().map(|(_, &id)| id)
    }

    /// The next one down.
    pub fn former(&self, key: SortedKey) -> Option<RequestId> {
        self.tree.range(..key).next_back().map(|(_, &id)| id)
    }

    /// A request that starts exactly at `sector`: the oldest.
    pub fn starting_at(&self, sector: Sector) -> Option<RequestId> {
        self.tree.range((sector, 0)..=(sector, u64::MAX)).next().map(|(_, &id)| id)
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }
}

/// Requests by age, each with a deadline: a doubly linked list in slots that are reused.
#[derive(Clone, Debug, Default)]
pub struct DeadlineFifo {
    entries: Vec<FifoEntry>,
    oldest: Option<u32>,
    newest: Option<u32>,
    free: Option<u32>,
    len: usize,
}

/// Where a request sits in a [`DeadlineFifo`]; the owner keeps it per request. Low half: the slot;
/// high half: how often the slot was used before, so that an old key never hits a new request.
pub type FifoKey = u64;

#[derive(Clone, Copy, Debug)]
struct FifoEntry {
    id: RequestId,
    deadline: Ns,
    older: Option<u32>,
    newer: Option<u32>,
    uses: u32,
    is_queued: bool,
}

impl DeadlineFifo {
    /// Adds a request at the tail.
    pub fn push(&mut self, id: RequestId, deadline: Ns) -> FifoKey {
        let slot = self.free_slot();
        let older = self.newest.replace(slot);
        match older {
            Some(older) => self.entries[older as usize].newer = Some(slot),
            None => self.oldest = Some(slot),
        }
        let entry = &mut self.entries[slot as usize];
        let uses = entry.uses;
        *entry = FifoEntry { id, deadline, older, newer: None, uses, is_queued: true };
        self.len += 1;
        u64::from(uses) << 32 | u64::from(slot)
    }

    /// The oldest and its deadline.
    pub fn head(&self) -> Option<(RequestId, Ns)> {
        let entry = &self.entries[self.oldest? as usize];
        Some((entry.id, entry.deadline))
    }

    /// Removes a request.
    pub fn remove(&mut self, key: FifoKey) -> Option<RequestId> {
        let FifoEntry { id, older, newer, .. } = *self.entry(key)?;
        match older {
            Some(older) => self.entries[older as usize].newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.entries[newer as usize].older = older,
            None => self.newest = older,
        }
        let slot = key as u32;
        let entry = &mut self.entries[slot as usize];
        entry.is_queued = false;
        entry.uses = entry.uses.wrapping_add(1);
        entry.newer = self.free.replace(slot);
        self.len -= 1;
        Some(id)
    }

    /// A request's deadline.
    pub fn deadline(&self, key: FifoKey) -> Option<Ns> {
        self.entry(key).map(|entry| entry.deadline)
    }

    /// Removes `absorbed`; if its deadline was earlier, `survivor` takes its deadline and place.
    /// Answers with the survivor's key.
    pub fn inherit(&mut self, survivor: FifoKey, absorbed: FifoKey) -> FifoKey {
        let (Some(lost), Some(kept)) =
            (self.entry(absorbed).copied(), self.entry(survivor).copied())
        else {
            return survivor;
        };
        if lost.deadline >= kept.deadline {
            self.remove(absorbed);
            return survivor;
        }
        self.remove(survivor);
        self.entries[absorbed as u32 as usize].id = kept.id;
        absorbed
    }

    /// Number of requests.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn entry(&self, key: FifoKey) -> Option<&FifoEntry> {
        let entry = self.entries.get(key as u32 as usize)?;
        (entry.is_queued && entry.uses == (key >> 32) as u32).then_some(entry)
    }

    fn free_slot(&mut self) -> u32 {
        if let Some(slot) = self.free {
            self.free = self.entries[slot as usize].newer;
            return slot;
        }
        self.entries.push(FifoEntry {
            id: RequestId(0),
            deadline: Ns::MAX,
            older: None,
            newer: None,
            uses: 0,
            is_queued: false,
        });
        self.entries.len() as u32 - 1
    }
}

/// Requests that are kept both by sector and by age.
#[derive(Clone, Debug, Default)]
pub struct SortedFifo {
    /// By start sector.
    pub sorted: Sorted,
    /// By age.
    pub fifo: DeadlineFifo,
}

/// Where a request sits in a [`SortedFifo`]; the owner keeps it per request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// In the order of sectors.
    pub sorted: SortedKey,
    /// In the order of age.
    pub fifo: FifoKey,
}

impl SortedFifo {
    /// Adds a request.
    pub fn insert(&mut self, sector: Sector, id: RequestId, deadline: Ns) -> Place {
        Place { sorted: self.sorted.insert(sector, id), fifo: self.fifo.push(id, deadline) }
    }

    /// Removes a request.
    pub fn remove(&mut self, place: Place) {
        self.sorted.remove(place.sorted);
        self.fifo.remove(place.fifo);
    }

    /// A request starts elsewhere now (a front merge): answers with its new place.
    #[must_use]
    pub fn moved(&mut self, place: Place, sector: Sector) -> Place {
        if place.sorted.0 == sector {
            return place;
        }
        match self.sorted.remove(place.sorted) {
            Some(id) => Place { sorted: self.sorted.insert(sector, id), ..place },
            None => place,
        }
    }

    /// `absorbed` goes; `survivor` takes the earlier deadline with its place in the FIFO, and is
    /// sorted under `sector`. Answers with the survivor's place.
    #[must_use]
    pub fn joined(&mut self, survivor: Place, absorbed: Place, sector: Sector) -> Place {
        self.sorted.remove(absorbed.sorted);
        let fifo = self.fifo.inherit(survivor.fifo, absorbed.fifo);
        self.moved(Place { fifo, ..survivor }, sector)
    }
}

/// One value per request slot, for a scheduler's own data.
#[derive(Clone, Debug)]
pub struct PerRequest<T> {
    values: Vec<T>,
}

impl<T> Default for PerRequest<T> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

impl<T: Clone + Default> PerRequest<T> {
    /// Sets a request's value.
    pub fn set(&mut self, id: RequestId, value: T) {
        if self.values.len() <= id.index() {
            self.values.resize(id.index() + 1, T::default());
        }
        self.values[id.index()] = value;
    }

    /// A request's value; it must have been set.
    pub fn get(&self, id: RequestId) -> &T {
        &self.values[id.index()]
    }

    /// A request's value, to change; it must have been set.
    pub fn get_mut(&mut self, id: RequestId) -> &mut T {
        &mut self.values[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sectors_keep_insertion_order() {
        let mut sorted = Sorted::default();
        let old = sorted.insert(Sector(8), RequestId(0));
        sorted.insert(Sector(8), RequestId(1));
        sorted.insert(Sector(4), RequestId(2));
        assert_eq!(sorted.at_or_above(Sector(5)), Some(RequestId(0)));
        assert_eq!(sorted.latter(old), Some(RequestId(1)));
        assert_eq!(sorted.former(old), Some(RequestId(2)));
        assert_eq!(sorted.starting_at(Sector(8)), Some(RequestId(0)));
    }

    #[test]
    fn the_survivor_takes_the_earlier_place() {
        let mut fifo = DeadlineFifo::default();
        let early = fifo.push(RequestId(0), Ns(10));
        fifo.push(RequestId(1), Ns(15));
        let late = fifo.push(RequestId(2), Ns(20));
        let key = fifo.inherit(late, early);
        assert_eq!(fifo.head(), Some((RequestId(2), Ns(10))));
        assert_eq!(fifo.deadline(key), Some(Ns(10)));
        assert_eq!(fifo.len(), 2);
    }

    #[test]
    fn the_old_key_of_a_reused_slot_is_dead() {
        let mut fifo = DeadlineFifo::default();
        let old = fifo.push(RequestId(0), Ns(10));
        assert_eq!(fifo.remove(old), Some(RequestId(0)));
        let new = fifo.push(RequestId(1), Ns(20));
        assert_ne!(old, new);
        assert_eq!(fifo.remove(old), None);
        assert_eq!(fifo.deadline(old), None);
        assert_eq!(fifo.head(), Some((RequestId(1), Ns(20))));
    }
}
