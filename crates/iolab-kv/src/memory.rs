//! A map in this process: what the clients cost where the store costs next to nothing.
//!
//! Values are found by a hash and lie each in a lock of its own; an ordered index beside them
//! serves scans. Left out: removing memory of deleted keys, and everything about durability.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError, RwLock};

use iolab_model::kv::{KvError, KvFact, KvStore};

type Key = Box<[u8]>;

/// Places of values, by key.
#[derive(Debug, Default)]
struct Index {
    places: HashMap<Key, usize>,
    order: BTreeMap<Key, usize>,
    values: Vec<Mutex<Vec<u8>>>,
}

/// The store.
#[derive(Debug, Default)]
pub struct MemoryStore {
    index: RwLock<Index>,
}

impl KvStore for MemoryStore {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn is_new(&self) -> bool {
        true
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, KvError> {
        value.clear();
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let Some(&place) = index.places.get(key) else { return Ok(false) };
        let found = index.values[place].lock().unwrap_or_else(PoisonError::into_inner);
        value.extend_from_slice(&found);
        Ok(true)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), KvError> {
        {
            let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(&place) = index.places.get(key) {
                let mut found = index.values[place].lock().unwrap_or_else(PoisonError::into_inner);
                found.clear();
                found.extend_from_slice(value);
                return Ok(());
            }
        }
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        let place = index.values.len();
        // Somebody may have put it meanwhile: the later one wins.
        let place = *index.places.entry(key.into()).or_insert(place);
        index.order.insert(key.into(), place);
        if place == index.values.len() {
            index.values.push(Mutex::new(value.to_vec()));
        } else {
            *index.values[place].lock().unwrap_or_else(PoisonError::into_inner) = value.to_vec();
        }
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<(), KvError> {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.places.remove(key);
        index.order.remove(key);
        Ok(())
    }

    fn scan(
        &self,
        from: &[u8],
        count: u32,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u32, KvError> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let bounds = (std::ops::Bound::Included(from), std::ops::Bound::Unbounded);
        let mut seen = 0;
        for (key, &place) in index.order.range::<[u8], _>(bounds).take(count as usize) {
            each(key, &index.values[place].lock().unwrap_or_else(PoisonError::into_inner));
            seen += 1;
        }
        Ok(seen)
    }

    fn facts(&self) -> Vec<KvFact> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        vec![KvFact { name: "records".into(), value: index.places.len() as f64 }]
    }

    fn close(self) -> Result<(), KvError> {
        Ok(())
    }
}
