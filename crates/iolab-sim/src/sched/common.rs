//! Mechanisms that schedulers share: requests by sector, requests by age, the one-way distance.

use std::collections::BTreeMap;

use iolab_model::{Ns, Sector};

use crate::api::request::RequestId;

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

/// Requests by age, each with a deadline.
#[derive(Clone, Debug, Default)]
pub struct DeadlineFifo {
    entries: BTreeMap<u64, (RequestId, Ns)>,
    sequence: u64,
}

/// Where a request sits in a [`DeadlineFifo`]; the owner keeps it per request.
pub type FifoKey = u64;

impl DeadlineFifo {
    /// Adds a request at the tail.
    pub fn push(&mut self, id: RequestId, deadline: Ns) -> FifoKey {
        let key = self.sequence;
        self.sequence += 1;
        self.entries.insert(key, (id, deadline));
        key
    }

    /// The oldest and its deadline.
    pub fn head(&self) -> Option<(RequestId, Ns)> {
        self.entries.first_key_value().map(|(_, &entry)| entry)
    }

    /// Removes a request.
    pub fn remove(&mut self, key: FifoKey) -> Option<RequestId> {
        self.entries.remove(&key).map(|(id, _)| id)
    }

    /// A request's deadline.
    pub fn deadline(&self, key: FifoKey) -> Option<Ns> {
        self.entries.get(&key).map(|&(_, deadline)| deadline)
    }

    /// Removes `absorbed`; if its deadline was earlier, `survivor` takes its deadline and place.
    /// Answers with the survivor's key.
    pub fn inherit(&mut self, survivor: FifoKey, absorbed: FifoKey) -> FifoKey {
        let (Some(lost), Some(kept)) =
            (self.entries.remove(&absorbed), self.entries.get(&survivor).copied())
        else {
            return survivor;
        };
        if lost.1 >= kept.1 {
            return survivor;
        }
        self.entries.remove(&survivor);
        self.entries.insert(absorbed, (kept.0, lost.1));
        absorbed
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
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
}
