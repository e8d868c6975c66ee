//! `VdevQueue`: the queue that `ZFS` keeps in front of a device, above the kernel's own.
//!
//! It orders, aggregates and limits what is active, so that the elevator below sees few requests,
//! already sorted, from threads of the kernel. Everything that arrives at an instant is in it
//! before any of it goes. Flushes pass it.
//!
//! Source: `vdev_queue.c` and `vdev_disk.c` of `OpenZFS` (described, not copied). Left out: scrubs,
//! trims, optional writes, back-off of classes that nobody waits for.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use iolab_files::api::own_cache::{DeviceQueue, QueueClass, QueueOrder};
use iolab_model::trace_event::kernel_thread;
use iolab_model::{Ns, Sector, TraceEvent};

use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, ProcessId, Submitter};
use crate::api::layer::{Incident, Info, Layer};

/// Threads of the kernel that submit: after the end of another request, and of writes.
const INTERRUPT_THREAD: ProcessId = ProcessId(kernel_thread::INTERRUPT);
const ISSUE_THREAD: ProcessId = ProcessId(kernel_thread::ISSUE);

/// Position in the order of service; smaller goes first.
type Rank = (u64, u64, u32);

/// A request that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    bio: Bio,
    at: Ns,
}

/// A request that is active: those that it carries.
#[derive(Clone, Debug, Default)]
struct Active {
    parents: Vec<BioId>,
    class: Option<QueueClass>,
}

/// The queue.
pub struct VdevQueue {
    below: Box<dyn Layer>,
    rules: DeviceQueue,
    /// Bytes of dirty data of the pool, as the file half tells.
    dirty: Rc<Cell<u64>>,
    waiting: [BTreeMap<Rank, Waiting>; 4],
    /// Those that wait by place: writes or not, sector, identity; with class and rank.
    places: BTreeMap<(bool, u64, u32), (QueueClass, Rank)>,
    active: Vec<Active>,
    free: Vec<u32>,
    counts: [u32; 4],
    /// Requests that ends have allowed to go.
    credits: u32,
    /// Time at which requests may go.
    go_at: Ns,
    /// Place behind the last request of each class.
    swept: [u64; 4],
    ordinal: u64,
    passing: Vec<Bio>,
    issued: u64,
    aggregated: u64,
    active_max: u32,
}

const fn place_of(bio: &Bio) -> (bool, u64, u32) {
    (bio.operation.is_write(), bio.sector.0, bio.id.0)
}

fn class_of(bio: &Bio) -> QueueClass {
    match bio.operation {
        Operation::Read if bio.flags.contains(Flags::BACKGROUND) => QueueClass::AsyncRead,
        Operation::Read => QueueClass::SyncRead,
        _ if bio.flags.contains(Flags::SYNC) => QueueClass::SyncWrite,
        _ => QueueClass::AsyncWrite,
    }
}

/// Priority in one list. (`ZIO_PRIORITY_*` before 0.6.3)
const fn priority(class: QueueClass) -> u64 {
    match class {
        QueueClass::SyncRead | QueueClass::SyncWrite => 0,
        QueueClass::AsyncWrite => 4,
        QueueClass::AsyncRead => 6,
    }
}

const CLASSES: [QueueClass; 4] =
    [QueueClass::SyncRead, QueueClass::SyncWrite, QueueClass::AsyncRead, QueueClass::AsyncWrite];

/// Most active writes of transactions with so much dirty data.
pub fn async_writes_max((least, most): (u32, u32), ramp: (u64, u64), dirty: u64, max: u64) -> u32 {
    let (from, to) = (max * ramp.0 / 100, max * ramp.1 / 100);
    if dirty <= from {
        least
    } else if dirty >= to || to <= from {
        most
    } else {
        least + (u64::from(most - least) * (dirty - from) / (to - from)) as u32
    }
}

impl VdevQueue {
    /// An empty queue in front of a layer.
    pub fn new(rules: DeviceQueue, below: Box<dyn Layer>, dirty: Rc<Cell<u64>>) -> Self {
        Self {
            below,
            rules,
            dirty,
            waiting: Default::default(),
            places: BTreeMap::new(),
            active: Vec::new(),
            free: Vec::new(),
            counts: [0; 4],
            credits: 0,
            go_at: Ns::MAX,
            swept: [0; 4],
            ordinal: 0,
            passing: Vec::new(),
            issued: 0,
            aggregated: 0,
            active_max: 0,
        }
    }

    fn rank(&mut self, now: Ns, bio: &Bio, class: QueueClass) -> Rank {
        self.ordinal += 1;
        match self.rules.order {
            QueueOrder::Deadline { tick, time_shift, .. } => {
                let steps = (now.0 / tick.0.max(1)) >> time_shift;
                (steps + priority(class), bio.sector.0, bio.id.0)
            }
            QueueOrder::Classes { .. } => match class {
                QueueClass::SyncRead | QueueClass::SyncWrite => (self.ordinal, 0, bio.id.0),
                QueueClass::AsyncRead | QueueClass::AsyncWrite => (bio.sector.0, 0, bio.id.0),
            },
        }
    }

    /// The next one to go and whether it may, by the rules.
    fn choose(&self, arrived: bool) -> Option<(QueueClass, Rank)> {
        let total: u32 = self.counts.iter().sum();
        match self.rules.order {
            QueueOrder::Deadline { min_pending, max_pending, .. } => {
                let may = arrived && total < min_pending || self.credits > 0 && total < max_pending;
                let first = |class: &QueueClass| {
                    let (rank, _) = self.waiting[*class as usize].first_key_value()?;
                    Some((*class, *rank))
                };
                let heads = CLASSES.iter().filter_map(first);
                may.then(|| heads.min_by_key(|(_, rank)| *rank)).flatten()
            }
            QueueOrder::Classes { active, ramp, dirty_max } => {
                let most = |class: QueueClass| match class {
                    QueueClass::AsyncWrite => {
                        async_writes_max(active[class as usize], ramp, self.dirty.get(), dirty_max)
                    }
                    _ => active[class as usize].1,
                };
                let below = |class: &QueueClass, limit: u32| {
                    !self.waiting[*class as usize].is_empty()
                        && self.counts[*class as usize] < limit
                };
                let needy = CLASSES.into_iter().find(|c| below(c, active[*c as usize].0));
                let class = needy.or_else(|| CLASSES.into_iter().find(|c| below(c, most(*c))))?;
                let waiting = &self.waiting[class as usize];
                let rank = match class {
                    QueueClass::SyncRead | QueueClass::SyncWrite => waiting.first_key_value(),
                    QueueClass::AsyncRead | QueueClass::AsyncWrite => waiting
                        .range((self.swept[class as usize], 0, 0)..)
                        .next()
                        .or_else(|| waiting.first_key_value()),
                };
                rank.map(|(rank, _)| (class, *rank))
            }
        }
    }

    /// Takes the one that goes, and those that go with it.
    fn take(&mut self, class: QueueClass, rank: Rank) -> Vec<Waiting> {
        let Some(first) = self.remove(class, rank) else { return Vec::new() };
        let is_write = first.bio.operation.is_write();
        let gap = if is_write { 0 } else { self.rules.read_gap_bytes / 512 };
        let span = self.rules.aggregation_bytes / 512;
        let (mut from, mut end) = (first.bio.sector.0, first.bio.end().0);
        let mut taken = vec![first];
        while let Some((&key, &(class, rank))) =
            self.places.range((is_write, 0, 0)..(is_write, from, 0)).next_back()
        {
            let bio = self.waiting[class as usize][&rank].bio;
            if bio.end().0 > from || from - bio.end().0 > gap || end - key.1 > span {
                break;
            }
            from = key.1;
            taken.extend(self.remove(class, rank));
        }
        while let Some((&key, &(class, rank))) =
            self.places.range((is_write, end, 0)..(is_write, u64::MAX, u32::MAX)).next()
        {
            let bio = self.waiting[class as usize][&rank].bio;
            if key.1 - end > gap || bio.end().0 - from > span {
                break;
            }
            end = bio.end().0;
            taken.extend(self.remove(class, rank));
        }
        taken
    }

    fn remove(&mut self, class: QueueClass, rank: Rank) -> Option<Waiting> {
        let waiting = self.waiting[class as usize].remove(&rank)?;
        self.places.remove(&place_of(&waiting.bio));
        Some(waiting)
    }

    /// Sends one request, or several as one.
    fn send(&mut self, now: Ns, class: QueueClass, taken: &[Waiting]) {
        let first = taken[0];
        let from = taken.iter().map(|one| one.bio.sector.0).min().unwrap_or(0);
        let end = taken.iter().map(|one| one.bio.end().0).max().unwrap_or(0);
        let is_write = first.bio.operation.is_write();
        let process = match (is_write, first.at == now) {
            (true, _) => ISSUE_THREAD,
            (false, true) => first.bio.submitter.process,
            (false, false) => INTERRUPT_THREAD,
        };
        let parents = taken.iter().map(|one| one.bio.id).collect();
        let id = self.name(Active { parents, class: Some(class) });
        let bio = Bio {
            id,
            sector: Sector(from),
            sectors: (end - from) as u32,
            // The kernel is told nothing of who waits for a write.
            flags: Flags::NONE,
            submitter: Submitter { process, ..first.bio.submitter },
            ..first.bio
        };
        self.counts[class as usize] += 1;
        self.swept[class as usize] = end;
        self.issued += 1;
        self.aggregated += u64::from(taken.len() > 1);
        self.active_max = self.active_max.max(self.counts.iter().sum());
        self.below.submit(now, &bio);
    }

    fn name(&mut self, active: Active) -> BioId {
        if let Some(id) = self.free.pop() {
            self.active[id as usize] = active;
            return BioId(id);
        }
        self.active.push(active);
        BioId(self.active.len() as u32 - 1)
    }

    /// Lets go what may.
    fn go(&mut self, now: Ns) {
        for bio in core::mem::take(&mut self.passing) {
            let id = self.name(Active { parents: vec![bio.id], class: None });
            self.below.submit(now, &Bio { id, ..bio });
        }
        while let Some((class, rank)) = self.choose(true) {
            self.credits = self.credits.saturating_sub(1);
            let taken = self.take(class, rank);
            if taken.is_empty() {
                break;
            }
            self.send(now, class, &taken);
        }
        self.credits = 0;
    }
}

impl Layer for VdevQueue {
    fn info(&self) -> Info {
        Info { depth: u32::MAX, ..self.below.info() }
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        self.go_at = now;
        let is_data = matches!(bio.operation, Operation::Read | Operation::Write);
        if !is_data || bio.flags.intersects(Flags::PREFLUSH.with(Flags::FUA)) {
            self.passing.push(*bio);
            return;
        }
        let class = class_of(bio);
        let rank = self.rank(now, bio, class);
        self.places.insert(place_of(bio), (class, rank));
        self.waiting[class as usize].insert(rank, Waiting { bio: *bio, at: now });
    }

    fn next_event(&self) -> Ns {
        self.go_at.min(self.below.next_event())
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        if self.below.next_event() <= now {
            let mut ended = Vec::new();
            self.below.advance(now, &mut ended);
            let ramp = match self.rules.order {
                QueueOrder::Deadline { ramp_rate, .. } => ramp_rate,
                QueueOrder::Classes { .. } => 0,
            };
            let has_ended = !ended.is_empty();
            for Ended { id, status } in ended {
                let Active { parents, class } = core::mem::take(&mut self.active[id.0 as usize]);
                self.free.push(id.0);
                if let Some(class) = class {
                    self.counts[class as usize] -= 1;
                    self.credits += ramp;
                }
                done.extend(parents.into_iter().map(|id| Ended { id, status }));
            }
            if has_ended {
                self.go_at = now;
                return;
            }
        }
        if self.go_at <= now {
            self.go_at = Ns::MAX;
            self.go(now);
        }
    }

    fn exited(&mut self, now: Ns, process: ProcessId) {
        self.below.exited(now, process);
    }

    fn age(&mut self) {
        self.below.age();
    }

    fn record_events(&mut self, queues: &mut u16) {
        self.below.record_events(queues);
    }

    fn take_events(&mut self, events: &mut Vec<TraceEvent>) {
        self.below.take_events(events);
    }

    fn incidents(&self, list: &mut Vec<Incident>) {
        self.below.incidents(list);
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let own = [
            ("vdev_queue.issued", self.issued as f64),
            ("vdev_queue.aggregated", self.aggregated as f64),
            ("vdev_queue.active_max", f64::from(self.active_max)),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        self.below.counters().into_iter().chain(own).collect()
    }
}

#[cfg(test)]
mod tests;
