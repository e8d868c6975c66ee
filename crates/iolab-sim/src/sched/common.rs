//! Mechanisms that schedulers share: requests by sector, requests by age, the one-way distance.

use iolab_model::{Ns, Sector};

use crate::api::request::RequestId;
use crate::api::scheduler::Hz;

/// Largest value that sysfs accepts where the kernel keeps a tunable in an `int`.
pub const INT_MAX: u64 = i32::MAX as u64;

/// Time in whole ticks; remembers the present tick, so that most questions need no division.
#[derive(Clone, Copy, Debug)]
pub struct TickClock {
    tick: Ns,
    /// The tick that was last asked for, and when it began.
    count: u64,
    start: Ns,
}

impl TickClock {
    /// A clock of that rate.
    pub const fn new(hz: Hz) -> Self {
        Self { tick: hz.tick(), count: 0, start: Ns(0) }
    }

    /// `now` floored to a whole tick.
    pub fn floor(&mut self, now: Ns) -> Ns {
        if now < self.start || now.0 - self.start.0 >= self.tick.0 {
            self.count = now.0 / self.tick.0;
            self.start = Ns(self.count * self.tick.0);
        }
        self.start
    }

    /// Whole ticks before `now`.
    pub fn ticks(&mut self, now: Ns) -> u64 {
        self.floor(now);
        self.count
    }
}

/// Requests sorted by start sector; equal sectors keep insertion order (the newer after the older).
///
/// A sorted list in chunks: at the depths of real queues (tens to thousands) binary search and
/// moving a few hundred bytes beat a tree, and chunks are reused.
#[derive(Clone, Debug, Default)]
pub struct Sorted {
    chunks: Vec<Chunk>,
    /// The last key of each chunk.
    ends: Vec<SortedKey>,
    spare: Vec<Chunk>,
    sequence: u64,
    len: usize,
}

type Chunk = Vec<(SortedKey, RequestId)>;

/// Position of a request in [`Sorted`]; the owner keeps it per request.
pub type SortedKey = (Sector, u64);

/// Longest chunk of [`Sorted`]; a longer one is cut in two.
const CHUNK_MAX: usize = 64;
/// Neighbouring chunks that hold no more together become one.
const CHUNK_MIN: usize = 16;

impl Sorted {
    /// Adds a request and answers with its key.
    pub fn insert(&mut self, sector: Sector, id: RequestId) -> SortedKey {
        let key = (sector, self.sequence);
        self.sequence += 1;
        self.len += 1;
        let mut chunk = self.chunk_of(key).min(self.chunks.len().saturating_sub(1));
        if self.chunks.is_empty() {
            self.add_chunk(0, key);
        } else if self.chunks[chunk].len() == CHUNK_MAX {
            chunk += usize::from(self.cut(chunk) < key);
        }
        let entries = &mut self.chunks[chunk];
        let index = entries.partition_point(|(other, _)| *other < key);
        entries.insert(index, (key, id));
        self.ends[chunk] = self.ends[chunk].max(key);
        key
    }

    /// Removes a request.
    pub fn remove(&mut self, key: SortedKey) -> Option<RequestId> {
        let (chunk, index) = self.position(key);
        let &(found, id) = self.chunks.get(chunk)?.get(index)?;
        if found != key {
            return None;
        }
        self.len -= 1;
        let entries = &mut self.chunks[chunk];
        entries.remove(index);
        let len = entries.len();
        if let Some(&(last, _)) = entries.last() {
            self.ends[chunk] = last;
            if len <= CHUNK_MIN / 2 {
                self.unite(chunk);
            }
        } else {
            self.drop_chunk(chunk);
        }
        Some(id)
    }

    /// The lowest.
    pub fn first(&self) -> Option<RequestId> {
        self.chunks.first()?.first().map(|&(_, id)| id)
    }

    /// The first (oldest among equals) that starts at or above `sector`.
    pub fn at_or_above(&self, sector: Sector) -> Option<RequestId> {
        self.entry_from((sector, 0)).map(|(_, id)| id)
    }

    /// The next one up.
    pub fn latter(&self, key: SortedKey) -> Option<RequestId> {
        self.entry_from((key.0, key.1 + 1)).map(|(_, id)| id)
    }

    /// The next one down.
    pub fn former(&self, key: SortedKey) -> Option<RequestId> {
        let (chunk, index) = self.position(key);
        let entry = match index.checked_sub(1) {
            Some(index) => self.chunks.get(chunk)?.get(index),
            None => self.chunks.get(chunk.checked_sub(1)?)?.last(),
        };
        entry.map(|&(_, id)| id)
    }

    /// A request that starts exactly at `sector`: the oldest.
    pub fn starting_at(&self, sector: Sector) -> Option<RequestId> {
        self.entry_from((sector, 0)).filter(|(key, _)| key.0 == sector).map(|(_, id)| id)
    }

    /// Number of requests.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Tell whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first chunk that ends at or above a key.
    fn chunk_of(&self, key: SortedKey) -> usize {
        self.ends.partition_point(|end| *end < key)
    }

    /// Chunk and index of the first entry at or above a key.
    fn position(&self, key: SortedKey) -> (usize, usize) {
        let chunk = self.chunk_of(key);
        let index = self
            .chunks
            .get(chunk)
            .map_or(0, |entries| entries.partition_point(|(other, _)| *other < key));
        (chunk, index)
    }

    fn entry_from(&self, key: SortedKey) -> Option<(SortedKey, RequestId)> {
        let (chunk, index) = self.position(key);
        self.chunks.get(chunk)?.get(index).copied()
    }

    fn add_chunk(&mut self, at: usize, end: SortedKey) {
        let chunk = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_MAX));
        self.chunks.insert(at, chunk);
        self.ends.insert(at, end);
    }

    fn drop_chunk(&mut self, at: usize) {
        self.ends.remove(at);
        let mut chunk = self.chunks.remove(at);
        chunk.clear();
        self.spare.push(chunk);
    }

    /// Cuts a chunk in two; answers with the end of the lower half.
    fn cut(&mut self, at: usize) -> SortedKey {
        self.add_chunk(at + 1, self.ends[at]);
        let (lower, upper) = self.chunks.split_at_mut(at + 1);
        let entries = &mut lower[at];
        upper[0].extend(entries.drain(CHUNK_MAX / 2..));
        self.ends[at] = entries[CHUNK_MAX / 2 - 1].0;
        self.ends[at]
    }

    /// Appends the next chunk to a short one, if both are short.
    fn unite(&mut self, at: usize) {
        if at + 1 < self.chunks.len()
            && self.chunks[at].len() + self.chunks[at + 1].len() <= CHUNK_MIN
        {
            let (lower, upper) = self.chunks.split_at_mut(at + 1);
            lower[at].append(&mut upper[0]);
            self.ends[at] = self.ends[at + 1];
            self.drop_chunk(at + 1);
        }
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

/// Position of a request in a [`DeadlineFifo`]; the owner keeps it per request. Low half: the slot;
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

    /// Tell whether there is none.
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

/// Position of a request in a [`SortedFifo`]; the owner keeps it per request.
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
    use std::collections::BTreeMap;

    use iolab_model::Seed;

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

    /// In lock step with the standard library's tree, at all depths up to some hundreds.
    #[test]
    fn chunks_behave_like_a_tree() {
        let mut random = Seed(11).stream("sorted", 0);
        let mut sorted = Sorted::default();
        let mut tree: BTreeMap<SortedKey, RequestId> = BTreeMap::new();
        for step in 0..60_000_u32 {
            // Grows for a while, shrinks for a while.
            let is_growing = step / 1_000 % 2 == 0;
            if random.below(10) < if is_growing { 7 } else { 3 } {
                let key = sorted.insert(Sector(random.below(500)), RequestId(step));
                assert!(tree.insert(key, RequestId(step)).is_none());
            } else if let Some(&key) = tree.keys().nth(random.below(200) as usize) {
                assert_eq!(sorted.remove(key), tree.remove(&key));
                assert_eq!(sorted.remove(key), None);
            }
            let key = (Sector(random.below(510)), random.below(u64::from(step) + 1));
            let above = |key| tree.range(key..).next().map(|(_, &id)| id);
            assert_eq!(sorted.first(), tree.values().next().copied());
            assert_eq!(sorted.at_or_above(key.0), above((key.0, 0)));
            assert_eq!(sorted.latter(key), above((key.0, key.1 + 1)));
            assert_eq!(sorted.former(key), tree.range(..key).next_back().map(|(_, &id)| id));
            let same = tree.range((key.0, 0)..=(key.0, u64::MAX)).next().map(|(_, &id)| id);
            assert_eq!(sorted.starting_at(key.0), same);
            assert_eq!((sorted.len(), sorted.is_empty()), (tree.len(), tree.is_empty()));
        }
        assert!(sorted.spare.len() + sorted.chunks.len() > 4, "never more than one chunk");
    }

    #[test]
    fn ticks_are_floored_and_time_may_jump() {
        let mut clock = TickClock::new(Hz(250));
        for ns in [0, 3_999_999, 4_000_000, 4_000_001, 900_000_000, 7_999_999] {
            assert_eq!(clock.floor(Ns(ns)), Hz(250).floor(Ns(ns)));
            assert_eq!(clock.ticks(Ns(ns)), Hz(250).ticks(Ns(ns)));
        }
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
