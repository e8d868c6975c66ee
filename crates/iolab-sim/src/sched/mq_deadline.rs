//! mq-deadline: batches in one direction, upwards by sector, with deadlines and priority classes.
//!
//! Three classes (real time, best effort, idle) are served strictly in this order: a lower class
//! waits until every request of the higher ones has *completed*, unless it is older than
//! `prio_aging_expire`. Inside a class, reads and writes each have an order by sector and an order
//! by age. A batch goes upwards from the start of the last dispatched request of its direction;
//! a new batch starts at the oldest request if that has expired or if nothing lies above.
//!
//! The direction of the last batch, the batch counter and the starvation counter belong to all
//! classes together. Requests that the device refused go first, whatever their class.
//!
//! Left out: zoned devices (write locking moved out of the scheduler in 6.10), negative
//! `writes_starved`, and the age test with a deadline changed while requests are queued (the kernel
//! reconstructs the time of insertion from the deadline and the present tunable).
//!
//! Source: Linux 6.18 block/mq-deadline.c (behaviour and constants).

use iolab_model::{Ns, Sector};

use super::common::{INT_MAX, PerRequest, Place, SortedFifo};
use super::deadlines::{HasSettings, Rows, Settings, Starvation};
use crate::api::bio::{Bio, Operation, PriorityClass};
use crate::api::request::{Direction, Request, RequestId, Requests};
use crate::api::scheduler::{
    Attach, Framework, Merge, MergeEnd, Replayable, Scheduler, SchedulerContext,
};
use crate::tunable::{Tunable, TunableInfo, Tuned, Unit};

// Linux 6.18 block/mq-deadline.c: `prio_aging_expire` 10 HZ.
const PRIORITY_AGING_EXPIRE_MS: u64 = 10_000;

const CLASSES: usize = 3;

/// The mq-deadline scheduler.
#[derive(Clone, Debug)]
pub struct MqDeadline {
    settings: Settings,
    classes: [Class; CLASSES],
    places: PerRequest<Place>,
    /// Refused by the device; the last one goes first.
    refused: Vec<RequestId>,
    last_direction: Direction,
    batching: u64,
    starvation: Starvation,
    /// Whole ticks.
    priority_aging_expire: Ns,
    async_depth: u64,
}

/// The requests of one priority class.
#[derive(Clone, Debug, Default)]
struct Class {
    queues: [SortedFifo; 2],
    /// Start of the last dispatched request.
    positions: [Sector; 2],
    /// Inserted and not yet completed (or absorbed by another request).
    outstanding: u32,
}

impl Class {
    /// The next one upwards.
    fn next(&self, direction: Direction) -> Option<RequestId> {
        let direction = direction.index();
        self.queues[direction].sorted.at_or_above(self.positions[direction])
    }

    fn has(&self, direction: Direction) -> bool {
        !self.queues[direction.index()].fifo.is_empty()
    }
}

impl MqDeadline {
    /// The next request of a class, if it was inserted no later than `youngest` (nanoseconds, may
    /// lie before the start of the simulation). A refusal for youth leaves the choice of direction
    /// behind, as in the kernel.
    fn pick(&mut self, now: Ns, class: usize, youngest: Option<i64>) -> Option<RequestId> {
        let queues = &self.classes[class];
        let id = match queues.next(self.last_direction) {
            Some(id) if self.batching < self.settings.fifo_batch => id,
            _ => {
                let (reads, writes) = (queues.has(Direction::Read), queues.has(Direction::Write));
                let limit = self.settings.writes_starved;
                let direction = self.starvation.choose(limit, reads, writes)?;
                self.last_direction = direction;
                self.batching = 0;
                self.first_of_batch(now, class, direction)?
            }
        };
        if youngest.is_some_and(|youngest| self.inserted(class, id) > youngest) {
            return None;
        }
        self.batching += 1;
        Some(id)
    }

    /// The oldest if it has expired or nothing lies above, else the next one upwards.
    fn first_of_batch(&self, now: Ns, class: usize, direction: Direction) -> Option<RequestId> {
        let queues = &self.classes[class];
        let (oldest, deadline) = queues.queues[direction.index()].fifo.head()?;
        if now >= deadline {
            return Some(oldest);
        }
        Some(queues.next(direction).unwrap_or(oldest))
    }

    /// The tick in which a request came, from its deadline: a join may have made it older.
    fn inserted(&self, class: usize, id: RequestId) -> i64 {
        let direction = self.last_direction.index();
        let key = self.places.get(id).fifo;
        let deadline = self.classes[class].queues[direction].fifo.deadline(key).unwrap_or(Ns(0));
        deadline.0 as i64 - self.settings.expire[direction].0 as i64
    }

    fn take(&mut self, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let place = *self.places.get(id);
        self.queue(request).remove(place);
        self.move_to(request);
    }

    /// The next one upwards is sought from this request on.
    fn move_to(&mut self, request: &Request) {
        let direction = request.direction().index();
        self.classes[class_of(request)].positions[direction] = request.sector;
    }

    fn aged(&mut self, now: Ns) -> Option<RequestId> {
        if self.classes.iter().filter(|class| class.outstanding > 0).count() < 2 {
            return None;
        }
        let youngest =
            self.settings.clock.floor(now).0 as i64 - self.priority_aging_expire.0 as i64;
        (1..CLASSES).find_map(|class| self.pick(now, class, Some(youngest)))
    }

    fn most_urgent(&mut self, now: Ns) -> Option<RequestId> {
        for class in 0..CLASSES {
            let picked = self.pick(now, class, None);
            if picked.is_some() || self.classes[class].outstanding > 0 {
                return picked;
            }
        }
        None
    }

    fn queue(&mut self, request: &Request) -> &mut SortedFifo {
        &mut self.classes[class_of(request)].queues[request.direction().index()]
    }
}

/// Names of the directions, by index.
const NAMES: [&str; 2] = ["reads", "writes"];

/// Index of a class in the order of service; nobody's priority counts as best effort.
const fn index_of(class: PriorityClass) -> usize {
    match class {
        PriorityClass::RealTime => 0,
        PriorityClass::None | PriorityClass::BestEffort => 1,
        PriorityClass::Idle => 2,
    }
}

const fn class_of(request: &Request) -> usize {
    index_of(request.submitter.priority.class)
}

impl Attach for MqDeadline {
    const FRAMEWORK: Framework = Framework::MultiQueue;

    fn attach(context: &SchedulerContext) -> Self {
        Self {
            settings: Settings::new(context.hz),
            classes: Default::default(),
            places: PerRequest::default(),
            refused: Vec::new(),
            // Linux 6.18 block/mq-deadline.c: `last_dir` starts as a write.
            last_direction: Direction::Write,
            batching: 0,
            starvation: Starvation::default(),
            priority_aging_expire: context.hz.time_of_ms(PRIORITY_AGING_EXPIRE_MS),
            // Linux 6.10 and later: `async_depth` starts as `nr_requests`.
            async_depth: u64::from(context.slots),
        }
    }

    fn attach_replayable(context: &SchedulerContext) -> Option<Box<dyn Replayable>> {
        Some(Box::new(Self::attach(context)))
    }
}

impl Scheduler for MqDeadline {
    fn insert(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let deadline = self.settings.deadline(now, request.direction());
        let place = self.queue(request).insert(request.sector, id, deadline);
        self.places.set(id, place);
        self.classes[class_of(request)].outstanding += 1;
    }

    /// Goes to the list of its class that is served before all sorting.
    fn insert_at_head(&mut self, _: Ns, requests: &Requests, id: RequestId) {
        self.classes[class_of(&requests[id])].outstanding += 1;
        self.refused.push(id);
    }

    fn dispatch(&mut self, now: Ns, requests: &Requests) -> Option<RequestId> {
        if let Some(id) = self.refused.pop() {
            self.move_to(&requests[id]);
            return Some(id);
        }
        let id = self.aged(now).or_else(|| self.most_urgent(now))?;
        self.take(requests, id);
        Some(id)
    }

    fn complete(&mut self, _: Ns, requests: &Requests, id: RequestId) {
        self.classes[class_of(&requests[id])].outstanding -= 1;
    }

    fn requeue(&mut self, _: Ns, _: &Requests, id: RequestId) {
        self.refused.push(id);
    }

    fn has_requests(&self) -> bool {
        let has = |class: &Class| class.has(Direction::Read) || class.has(Direction::Write);
        !self.refused.is_empty() || self.classes.iter().any(has)
    }

    fn limit_depth(&self, bio: &Bio, slots: u32) -> u32 {
        match bio.operation {
            Operation::Read => slots,
            _ => u64::from(slots).min(self.async_depth) as u32,
        }
    }

    fn front(&mut self, _: Ns, _: &Requests, bio: &Bio) -> Option<RequestId> {
        if !self.settings.has_front_merges {
            return None;
        }
        let direction = if bio.operation.is_write() { Direction::Write } else { Direction::Read };
        let class = &self.classes[index_of(bio.submitter.priority.class)];
        class.queues[direction.index()].sorted.starting_at(bio.end())
    }

    fn former(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        let request = &requests[id];
        let queues = &self.classes[class_of(request)].queues;
        queues[request.direction().index()].sorted.former(self.places.get(id).sorted)
    }

    fn latter(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        let request = &requests[id];
        let queues = &self.classes[class_of(request)].queues;
        queues[request.direction().index()].sorted.latter(self.places.get(id).sorted)
    }

    fn merged(&mut self, _: Ns, requests: &Requests, merge: Merge) {
        if merge.end == MergeEnd::Front {
            let request = &requests[merge.into];
            let place = *self.places.get(merge.into);
            let place = self.queue(request).moved(place, request.sector);
            self.places.set(merge.into, place);
        }
    }

    fn describe(&self, now: Ns, requests: &Requests) -> Vec<String> {
        self.lines(now, requests)
    }

    fn joined(&mut self, _: Ns, requests: &Requests, survivor: RequestId, absorbed: RequestId) {
        let request = &requests[survivor];
        let (kept, lost) = (*self.places.get(survivor), *self.places.get(absorbed));
        let place = self.queue(request).joined(kept, lost, request.sector);
        self.places.set(survivor, place);
        self.classes[class_of(request)].outstanding -= 1;
    }
}

impl MqDeadline {
    /// The batch, then the queues of every class that has requests.
    fn lines(&self, now: Ns, requests: &Requests) -> Vec<String> {
        let mut lines = vec![format!(
            "batch: {}, {} of {} issued; {} requests before all sorting; reads passed writes {} \
             times of {}",
            NAMES[self.last_direction.index()],
            self.batching,
            self.settings.fifo_batch,
            self.refused.len(),
            self.starvation.batches(),
            self.settings.writes_starved
        )];
        for (class, name) in self.classes.iter().zip(["real time", "best effort", "idle"]) {
            for direction in Direction::ALL {
                let Some((oldest, deadline)) = class.queues[direction.index()].fifo.head() else {
                    continue;
                };
                let left_ms = (deadline.0 as f64 - now.0 as f64) / 1e6;
                let next = class.next(direction).map_or_else(
                    || "none above".to_owned(),
                    |id| format!("next above is sector {}", requests[id].sector.0),
                );
                lines.push(format!(
                    "{name} {}: last at sector {}, {next}; oldest is sector {}, which \
                     expires in {left_ms:.3} ms",
                    NAMES[direction.index()],
                    class.positions[direction.index()].0,
                    requests[oldest].sector.0,
                ));
            }
        }
        lines
    }
}

impl Replayable for MqDeadline {
    fn predict(&self, now: Ns, requests: &Requests) -> Option<RequestId> {
        self.clone().dispatch(now, requests)
    }

    fn force(&mut self, _: Ns, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        if let Some(index) = self.refused.iter().position(|&refused| refused == id) {
            self.refused.remove(index);
            return self.move_to(request);
        }
        let direction = request.direction();
        let class = &self.classes[class_of(request)];
        let is_continued = direction == self.last_direction
            && self.batching < self.settings.fifo_batch
            && request.sector >= class.positions[direction.index()];
        if !is_continued {
            let (reads, writes) = (class.has(Direction::Read), class.has(Direction::Write));
            // The counters move as if the rules had been asked; their answer is overruled.
            self.starvation.choose(self.settings.writes_starved, reads, writes);
            if direction == Direction::Write {
                self.starvation = Starvation::default();
            }
            self.last_direction = direction;
            self.batching = 0;
        }
        self.batching += 1;
        self.take(requests, id);
    }
}

impl HasSettings for MqDeadline {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }
}

impl Tuned for MqDeadline {
    const TUNABLES: &'static [Tunable<Self>] = &[
        Rows::<Self>::READ_EXPIRE,
        Rows::<Self>::WRITE_EXPIRE,
        Rows::<Self>::WRITES_STARVED,
        Rows::<Self>::FRONT_MERGES,
        Tunable {
            info: TunableInfo {
                name: "async_depth",
                unit: Unit::Requests,
                default: 256,
                min: 1,
                max: INT_MAX,
                about: "Request slots that writes may use; starts as the number of slots.",
            },
            get: |s| s.async_depth,
            set: |s, requests| s.async_depth = requests,
        },
        Rows::<Self>::FIFO_BATCH,
        Tunable {
            info: TunableInfo {
                name: "prio_aging_expire",
                unit: Unit::Milliseconds,
                default: PRIORITY_AGING_EXPIRE_MS,
                min: 0,
                max: INT_MAX,
                about: "Age at which a request passes requests of higher classes.",
            },
            get: |s| s.settings.hz.ms_of_time(s.priority_aging_expire),
            set: |s, ms| s.priority_aging_expire = s.settings.hz.time_of_ms(ms),
        },
    ];
}

#[cfg(test)]
mod tests;
