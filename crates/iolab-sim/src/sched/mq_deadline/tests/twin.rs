//! mq-deadline as the specification tells it: one list, looked through from end to end each time.

use std::collections::BTreeMap;

use iolab_model::Ns;

use crate::api::bio::PriorityClass;
use crate::api::request::{Direction, RequestId, Requests};
use crate::api::scheduler::{Merge, MergeEnd, Scheduler};
use crate::tunable::{Tunable, Tuned};

const MS: i64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
struct Row {
    id: RequestId,
    class: usize,
    is_write: bool,
    sector: u64,
    /// Later among equal sectors.
    sequence: u64,
    /// Place in the FIFO.
    age: u64,
    inserted_ms: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Twin {
    rows: Vec<Row>,
    gone: Vec<Row>,
    refused: Vec<RequestId>,
    outstanding: [u32; 3],
    positions: BTreeMap<(usize, bool), u64>,
    was_write: bool,
    batching: u64,
    starved: u64,
    sequence: u64,
    tunables: BTreeMap<String, u64>,
}

impl Default for Twin {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            gone: Vec::new(),
            refused: Vec::new(),
            outstanding: [0; 3],
            positions: BTreeMap::new(),
            was_write: true,
            batching: 0,
            starved: 0,
            sequence: 0,
            tunables: BTreeMap::new(),
        }
    }
}

impl Twin {
    pub(super) fn set(&mut self, name: &str, value: u64) {
        self.tunables.insert(name.to_owned(), value);
    }

    fn of(&self, class: usize, is_write: bool) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.class == class && row.is_write == is_write)
    }

    fn upwards(&self, class: usize, is_write: bool) -> Option<Row> {
        let position = self.positions.get(&(class, is_write)).copied().unwrap_or(0);
        let above = self.of(class, is_write).filter(|row| row.sector >= position);
        above.min_by_key(|row| (row.sector, row.sequence)).copied()
    }

    fn oldest(&self, class: usize, is_write: bool) -> Option<Row> {
        self.of(class, is_write).min_by_key(|row| row.age).copied()
    }

    fn try_class(&mut self, now_ms: i64, class: usize, youngest_ms: i64) -> Option<RequestId> {
        let mut chosen = self.upwards(class, self.was_write);
        if chosen.is_none() || self.batching >= self.tunables["fifo_batch"] {
            let has_reads = self.oldest(class, false).is_some();
            let has_writes = self.oldest(class, true).is_some();
            let mut is_write = has_writes;
            if has_reads {
                is_write = false;
                if has_writes {
                    is_write = self.starved >= self.tunables["writes_starved"];
                    self.starved += 1;
                }
            }
            if is_write {
                self.starved = 0;
            }
            let oldest = self.oldest(class, is_write)?;
            let name = if is_write { "write_expire" } else { "read_expire" };
            let has_expired = now_ms - oldest.inserted_ms >= self.tunables[name] as i64;
            let next = self.upwards(class, is_write);
            chosen = if has_expired { Some(oldest) } else { next.or(Some(oldest)) };
            self.was_write = is_write;
            self.batching = 0;
        }
        let chosen = chosen?;
        if chosen.inserted_ms > youngest_ms {
            return None;
        }
        self.batching += 1;
        self.positions.insert((class, chosen.is_write), chosen.sector);
        self.rows.retain(|row| row.id != chosen.id);
        self.gone.push(chosen);
        Some(chosen.id)
    }

    fn index(&self, id: RequestId) -> usize {
        self.rows.iter().position(|row| row.id == id).expect("the request is queued")
    }

    fn neighbour(&self, id: RequestId, is_above: bool) -> Option<RequestId> {
        let row = self.rows[self.index(id)];
        let key = |row: &Row| (row.sector, row.sequence);
        let all = self.of(row.class, row.is_write);
        let found = if is_above {
            all.filter(|other| key(other) > key(&row)).min_by_key(|other| key(other))
        } else {
            all.filter(|other| key(other) < key(&row)).max_by_key(|other| key(other))
        };
        found.map(|row| row.id)
    }
}

impl Tuned for Twin {
    const TUNABLES: &'static [Tunable<Self>] = &[];
}

impl Scheduler for Twin {
    fn insert(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let class = match request.submitter.priority.class {
            PriorityClass::RealTime => 0,
            PriorityClass::Idle => 2,
            _ => 1,
        };
        self.sequence += 1;
        self.outstanding[class] += 1;
        self.rows.push(Row {
            id,
            class,
            is_write: request.direction() == Direction::Write,
            sector: request.sector.0,
            sequence: self.sequence,
            age: self.sequence,
            inserted_ms: now.0 as i64 / MS,
        });
    }

    fn dispatch(&mut self, now: Ns, _: &Requests) -> Option<RequestId> {
        if let Some(id) = self.refused.pop() {
            let row = *self.gone.iter().find(|row| row.id == id).expect("it was dispatched");
            self.positions.insert((row.class, row.is_write), row.sector);
            return Some(id);
        }
        let now_ms = now.0 as i64 / MS;
        if self.outstanding.iter().filter(|&&count| count > 0).count() >= 2 {
            let youngest_ms = now_ms - self.tunables["prio_aging_expire"] as i64;
            for class in [1, 2] {
                let id = self.try_class(now_ms, class, youngest_ms);
                if id.is_some() {
                    return id;
                }
            }
        }
        for class in [0, 1, 2] {
            let id = self.try_class(now_ms, class, now_ms);
            if id.is_some() || self.outstanding[class] > 0 {
                return id;
            }
        }
        None
    }

    fn complete(&mut self, _: Ns, _: &Requests, id: RequestId) {
        let index = self.gone.iter().position(|row| row.id == id).expect("it was dispatched");
        let row = self.gone.remove(index);
        self.outstanding[row.class] -= 1;
    }

    fn requeue(&mut self, _: Ns, _: &Requests, id: RequestId) {
        self.refused.push(id);
    }

    fn has_requests(&self) -> bool {
        !self.rows.is_empty() || !self.refused.is_empty()
    }

    fn former(&self, _: &Requests, id: RequestId) -> Option<RequestId> {
        self.neighbour(id, false)
    }

    fn latter(&self, _: &Requests, id: RequestId) -> Option<RequestId> {
        self.neighbour(id, true)
    }

    fn merged(&mut self, _: Ns, requests: &Requests, merge: Merge) {
        if merge.end == MergeEnd::Front {
            let index = self.index(merge.into);
            self.sequence += 1;
            self.rows[index].sector = requests[merge.into].sector.0;
            self.rows[index].sequence = self.sequence;
        }
    }

    fn joined(&mut self, _: Ns, _: &Requests, survivor: RequestId, absorbed: RequestId) {
        let lost = self.rows.remove(self.index(absorbed));
        let index = self.index(survivor);
        let kept = &mut self.rows[index];
        if lost.inserted_ms < kept.inserted_ms {
            kept.inserted_ms = lost.inserted_ms;
            kept.age = lost.age;
        }
        self.outstanding[lost.class] -= 1;
    }
}
