//! The requests of one queue: by sector and by age, without allocation once grown.
//!
//! A queue seldom holds more requests than the block layer has slots (256), so a sorted vector
//! beats a tree; the list by age is linked through a side table with one row per request slot.

use iolab_model::Sector;

use crate::api::request::RequestId;

/// No request.
const NIL: u32 = u32::MAX;

/// State of bfq per request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Its queue.
    pub(super) queue: u32,
    /// Index of its process.
    pub(super) process: u32,
    /// Its age reaches the limit here, in the scheduler's own time.
    pub(super) deadline: u64,
    sector: Sector,
    sequence: u64,
    older: u32,
    younger: u32,
}

impl Default for Item {
    fn default() -> Self {
        Self {
            queue: NIL,
            process: NIL,
            deadline: 0,
            sector: Sector(0),
            sequence: 0,
            older: NIL,
            younger: NIL,
        }
    }
}

/// The side table.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    rows: Vec<Item>,
    sequence: u64,
}

impl Items {
    /// A request's row.
    pub(super) fn get(&self, id: RequestId) -> &Item {
        &self.rows[id.index()]
    }

    /// A request's row, made if there is none yet.
    pub(super) fn get_mut(&mut self, id: RequestId) -> &mut Item {
        if self.rows.len() <= id.index() {
            self.rows.resize(id.index() + 1, Item::default());
        }
        &mut self.rows[id.index()]
    }
}

/// Requests of one queue.
#[derive(Clone, Debug)]
pub(super) struct Backlog {
    by_sector: Vec<(Sector, u64, RequestId)>,
    oldest: u32,
    youngest: u32,
}

impl Default for Backlog {
    fn default() -> Self {
        Self { by_sector: Vec::new(), oldest: NIL, youngest: NIL }
    }
}

impl Backlog {
    pub(super) const fn is_empty(&self) -> bool {
        self.by_sector.is_empty()
    }

    pub(super) const fn len(&self) -> usize {
        self.by_sector.len()
    }

    /// Adds a request by sector (after those at the same sector) and as the youngest.
    pub(super) fn insert(&mut self, items: &mut Items, id: RequestId, sector: Sector) {
        self.sort_in(items, id, sector);
        let youngest = self.youngest;
        let item = items.get_mut(id);
        item.older = youngest;
        item.younger = NIL;
        self.youngest = id.0;
        if youngest == NIL {
            self.oldest = id.0;
        } else {
            items.rows[youngest as usize].younger = id.0;
        }
    }

    /// Removes a request.
    pub(super) fn remove(&mut self, items: &mut Items, id: RequestId) {
        let place = self.place(items, id);
        self.by_sector.remove(place);
        let Item { older, younger, .. } = *items.get(id);
        match older {
            NIL => self.oldest = younger,
            _ => items.rows[older as usize].younger = younger,
        }
        match younger {
            NIL => self.youngest = older,
            _ => items.rows[younger as usize].older = older,
        }
    }

    /// Sorts a request again that now starts at `sector`.
    pub(super) fn move_to(&mut self, items: &mut Items, id: RequestId, sector: Sector) {
        let place = self.place(items, id);
        self.by_sector.remove(place);
        self.sort_in(items, id, sector);
    }

    /// Gives `heir` the deadline and the place by age of `id`, which gets the one of `heir`.
    pub(super) fn swap_ages(&mut self, items: &mut Items, heir: RequestId, id: RequestId) {
        let (a, b) = (*items.get(heir), *items.get(id));
        let exchange = |link: u32| match link {
            link if link == heir.0 => id.0,
            link if link == id.0 => heir.0,
            link => link,
        };
        let row = items.get_mut(heir);
        (row.deadline, row.older, row.younger) =
            (b.deadline, exchange(b.older), exchange(b.younger));
        let row = items.get_mut(id);
        (row.deadline, row.older, row.younger) =
            (a.deadline, exchange(a.older), exchange(a.younger));
        for swapped in [heir, id] {
            let Item { older, younger, .. } = *items.get(swapped);
            match older {
                NIL => self.oldest = swapped.0,
                _ => items.rows[older as usize].younger = swapped.0,
            }
            match younger {
                NIL => self.youngest = swapped.0,
                _ => items.rows[younger as usize].older = swapped.0,
            }
        }
    }

    /// The oldest.
    pub(super) fn oldest(&self) -> Option<RequestId> {
        (self.oldest != NIL).then_some(RequestId(self.oldest))
    }

    /// The lowest.
    pub(super) fn first(&self) -> Option<RequestId> {
        self.by_sector.first().map(|&(.., id)| id)
    }

    /// The next one up.
    pub(super) fn latter(&self, items: &Items, id: RequestId) -> Option<RequestId> {
        self.by_sector.get(self.place(items, id) + 1).map(|&(.., id)| id)
    }

    /// The next one down.
    pub(super) fn former(&self, items: &Items, id: RequestId) -> Option<RequestId> {
        let place = self.place(items, id).checked_sub(1)?;
        Some(self.by_sector[place].2)
    }

    /// The oldest that starts exactly at `sector`.
    pub(super) fn starting_at(&self, sector: Sector) -> Option<RequestId> {
        let place = self.by_sector.partition_point(|&(other, ..)| other < sector);
        self.by_sector.get(place).filter(|&&(other, ..)| other == sector).map(|&(.., id)| id)
    }

    fn sort_in(&mut self, items: &mut Items, id: RequestId, sector: Sector) {
        items.sequence += 1;
        let sequence = items.sequence;
        let item = items.get_mut(id);
        (item.sector, item.sequence) = (sector, sequence);
        let place = self.by_sector.partition_point(|&(other, ..)| other <= sector);
        self.by_sector.insert(place, (sector, sequence, id));
    }

    fn place(&self, items: &Items, id: RequestId) -> usize {
        let item = items.get(id);
        self.by_sector
            .binary_search_by_key(&(item.sector, item.sequence), |&(sector, sequence, _)| {
                (sector, sequence)
            })
            .expect("the request is queued here")
    }
}
