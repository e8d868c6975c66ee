//! The map cache: which pages of the map are in memory, when the whole map is not.
//!
//! Second-chance replacement (clock). A miss costs one flash read, charged by the drive. Left out:
//! writing changed map pages back.

/// Resident map pages; with a capacity of 0, all of them always.
#[derive(Debug)]
pub struct MapCache {
    entries_per_page: u32,
    /// Map page to position in the ring + 1; 0 if not resident.
    position: Vec<u32>,
    /// Map pages and whether they were used since the hand passed.
    ring: Vec<(u32, bool)>,
    capacity: u32,
    hand: u32,
    /// Lookups that found their map page.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
}

impl MapCache {
    /// Holds `capacity` map pages, of `logical_units` in all.
    pub fn new(capacity: u32, logical_units: u32, page_bytes: u64) -> Self {
        let entries_per_page = (page_bytes / 4).max(1) as u32;
        let pages = if capacity == 0 { 0 } else { logical_units.div_ceil(entries_per_page) };
        Self {
            entries_per_page,
            position: vec![0; pages as usize],
            ring: Vec::new(),
            capacity,
            hand: 0,
            hits: 0,
            misses: 0,
        }
    }

    /// Tell whether there is anything to look up.
    pub const fn is_partial(&self) -> bool {
        self.capacity > 0
    }

    /// The map page of a logical unit.
    pub const fn page_of(&self, logical: u32) -> u32 {
        logical / self.entries_per_page
    }

    /// Looks a map page up and makes it resident; false on a miss.
    pub fn touch(&mut self, page: u32) -> bool {
        if let Some(at) = self.position[page as usize].checked_sub(1) {
            self.ring[at as usize].1 = true;
            self.hits += 1;
            return true;
        }
        self.misses += 1;
        if (self.ring.len() as u32) < self.capacity {
            self.ring.push((page, false));
            self.position[page as usize] = self.ring.len() as u32;
            return false;
        }
        while self.ring[self.hand as usize].1 {
            self.ring[self.hand as usize].1 = false;
            self.hand = (self.hand + 1) % self.capacity;
        }
        let (old, _) = std::mem::replace(&mut self.ring[self.hand as usize], (page, false));
        self.position[old as usize] = 0;
        self.position[page as usize] = self.hand + 1;
        self.hand = (self.hand + 1) % self.capacity;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_in_use_gets_a_second_chance() {
        let mut cache = MapCache::new(2, 100, 40);
        assert_eq!((cache.page_of(9), cache.page_of(10)), (0, 1));
        assert!(!cache.touch(0) && !cache.touch(1) && cache.touch(0));
        assert!(!cache.touch(2), "evicts page 1: page 0 was used again");
        assert!(cache.touch(0) && !cache.touch(1));
        assert_eq!((cache.hits, cache.misses), (2, 4));
    }
}
