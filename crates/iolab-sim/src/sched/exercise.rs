//! For tests: random lives of requests, played to any scheduler through its hooks.
//!
//! Arrivals, merges, joins, refusals, completions and pauses come in random order; whatever the
//! scheduler answers is checked against what it was given: every request comes out exactly once.

use iolab_model::seed::Stream;
use iolab_model::{Ns, Sector, Seed};

use super::SchedulerKind;
use crate::api::bio::{
    Bio, BioId, Flags, Operation, Priority, PriorityClass, ProcessId, Submitter,
};
use crate::api::request::{Request, RequestId, Requests};
use crate::api::scheduler::{Hz, Merge, MergeEnd, Scheduler, SchedulerContext};

/// A queue like that of most tests.
pub(crate) const CONTEXT: SchedulerContext = SchedulerContext {
    is_rotational: true,
    hz: Hz(1_000),
    slots: 256,
    depth: 4,
    cpus: 3,
    attached: Ns(0),
};

/// An asynchronous bio of 4 KiB.
pub(crate) fn bio(operation: Operation, sector: u64) -> Bio {
    Bio {
        id: BioId(0),
        operation,
        sector: Sector(sector),
        sectors: 8,
        flags: Flags::NONE,
        submitter: Submitter::default(),
        segments: 0,
    }
}

/// Event, for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Dispatched(Ns, RequestId),
    Nothing(Ns),
    Merged(Merge),
    Joined(RequestId, RequestId),
}

/// A scheduler at play.
pub(crate) struct Exercise<'a> {
    scheduler: &'a mut dyn Scheduler,
    finds_own_merges: bool,
    random: Stream,
    requests: Requests,
    now: Ns,
    queued: Vec<RequestId>,
    refused: Vec<RequestId>,
    in_flight: Vec<RequestId>,
    pub(crate) events: Vec<Event>,
}

impl<'a> Exercise<'a> {
    pub(crate) fn new(kind: SchedulerKind, scheduler: &'a mut dyn Scheduler, seed: u64) -> Self {
        Self {
            scheduler,
            finds_own_merges: kind.finds_own_merges(),
            random: Seed(seed).stream("scheduler exercise", 0),
            requests: Requests::default(),
            now: Ns::from_seconds(100),
            queued: Vec::new(),
            refused: Vec::new(),
            in_flight: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Run so many random steps, then drain everything.
    pub(crate) fn run(&mut self, steps: u32) {
        for _ in 0..steps {
            match self.random.below(16) {
                0..5 => self.arrive(),
                5..7 => self.merge(),
                7..12 => drop(self.dispatch()),
                12 => self.refuse(),
                13..15 => drop(self.complete()),
                _ => self.pause(),
            }
            self.check();
        }
        self.drain();
    }

    fn check(&self) {
        let has_any = !self.queued.is_empty() || !self.refused.is_empty();
        assert_eq!(self.scheduler.has_requests(), has_any, "at {}", self.now);
    }

    fn random_bio(&mut self) -> Bio {
        let random = &mut self.random;
        let operation = match random.below(8) {
            0..4 => Operation::Read,
            4..7 => Operation::Write,
            _ => Operation::Discard,
        };
        let class = match random.below(8) {
            0 => PriorityClass::RealTime,
            1 => PriorityClass::Idle,
            2 => PriorityClass::None,
            _ => PriorityClass::BestEffort,
        };
        let process = random.below(4) as u32;
        let mut bio = bio(operation, random.below(80) * 8);
        bio.flags = if random.below(3) == 0 { Flags::SYNC } else { Flags::NONE };
        bio.submitter = Submitter {
            process: ProcessId(process),
            priority: Priority { class, level: 4 },
            cpu: (process % 3) as u16,
        };
        bio
    }

    fn arrive(&mut self) {
        let bio = self.random_bio();
        let id = self.requests.add(Request::of(&bio, self.now));
        self.queued.push(id);
        self.scheduler.insert(self.now, &self.requests, id);
    }

    /// A bio that continues a random queued request, at either end.
    fn merge(&mut self) {
        if self.queued.is_empty() {
            return;
        }
        let into = self.queued[self.random.below(self.queued.len() as u64) as usize];
        let request = self.requests[into];
        let mut bio = bio(request.operation, request.end().0);
        bio.flags = request.flags;
        bio.submitter = request.submitter;
        let mut merge = Merge { into, end: MergeEnd::Back };
        if self.random.below(2) == 0 {
            let Some(sector) = request.sector.0.checked_sub(8) else { return };
            bio.sector = Sector(sector);
            merge.end = MergeEnd::Front;
        }
        if self.finds_own_merges {
            let found = self.scheduler.merge_bio(self.now, &self.requests, &bio);
            let Some(found) = found else { return };
            merge = found;
        } else if !self.scheduler.allows_merge(self.now, &self.requests, into, &bio) {
            return;
        }
        let request = &mut self.requests[merge.into];
        request.sectors += 8;
        if merge.end == MergeEnd::Front {
            request.sector = bio.sector;
        }
        self.scheduler.merged(self.now, &self.requests, merge);
        self.events.push(Event::Merged(merge));
        if !self.finds_own_merges {
            self.join(merge);
        }
    }

    fn join(&mut self, merge: Merge) {
        let id = merge.into;
        let pair = match merge.end {
            MergeEnd::Back => self.scheduler.latter(&self.requests, id).map(|other| (id, other)),
            MergeEnd::Front => self.scheduler.former(&self.requests, id).map(|other| (other, id)),
        };
        let Some((first, second)) = pair else { return };
        let (a, b) = (self.requests[first], self.requests[second]);
        if a.end() != b.sector
            || a.operation != b.operation
            || a.submitter.priority != b.submitter.priority
            || !self.scheduler.allows_join(&self.requests, first, second)
        {
            return;
        }
        self.requests[first].sectors += b.sectors;
        self.scheduler.joined(self.now, &self.requests, first, second);
        self.events.push(Event::Joined(first, second));
        let index = self.queued.iter().position(|&id| id == second);
        self.queued.remove(index.expect("only queued requests are neighbours"));
        self.requests.remove(second);
    }

    fn dispatch(&mut self) -> bool {
        let Some(id) = self.scheduler.dispatch(self.now, &self.requests) else {
            self.events.push(Event::Nothing(self.now));
            return false;
        };
        self.events.push(Event::Dispatched(self.now, id));
        let list = if self.refused.contains(&id) { &mut self.refused } else { &mut self.queued };
        let index = list.iter().position(|&queued| queued == id);
        list.remove(index.expect("a request comes out once, and only if it was put in"));
        self.requests[id].issued = self.now;
        self.scheduler.activate(self.now, &self.requests, id);
        self.in_flight.push(id);
        true
    }

    fn refuse(&mut self) {
        if let Some(id) = self.in_flight.pop() {
            self.scheduler.requeue(self.now, &self.requests, id);
            self.refused.push(id);
        }
    }

    fn complete(&mut self) -> bool {
        if self.in_flight.is_empty() {
            return false;
        }
        let index = self.random.below(self.in_flight.len() as u64) as usize;
        let id = self.in_flight.swap_remove(index);
        self.scheduler.complete(self.now, &self.requests, id);
        self.requests.remove(id);
        true
    }

    /// Some time passes, with the timers that fall into it.
    fn pause(&mut self) {
        let until = self.now + Ns::from_us(self.random.below(3_000));
        // Often a whole tick: deadlines are met exactly.
        let is_aligned = self.random.below(2) == 0;
        let until = if is_aligned { CONTEXT.hz.floor(until).max(self.now) } else { until };
        while self.scheduler.next_timer() <= until {
            self.now = self.now.max(self.scheduler.next_timer());
            self.scheduler.timer(self.now, &self.requests);
        }
        self.now = until;
    }

    /// Everything comes out: a scheduler may wait, but not for ever.
    fn drain(&mut self) {
        let end = self.now + Ns::from_seconds(60);
        while self.scheduler.has_requests() || !self.in_flight.is_empty() {
            if !self.dispatch() && !self.complete() {
                self.pause();
            }
            assert!(self.now < end, "{} requests never came out", self.queued.len());
        }
        assert!(self.queued.is_empty() && self.refused.is_empty(), "requests were forgotten");
        assert!(self.requests.is_empty());
    }
}

#[test]
fn every_request_comes_out_exactly_once_from_every_scheduler() {
    for &kind in SchedulerKind::ALL {
        let mut seen = [0_usize; 3];
        for seed in 0..30 {
            let mut scheduler = kind.attach(&CONTEXT);
            let mut exercise = Exercise::new(kind, &mut *scheduler, seed);
            exercise.run(2_000);
            for event in &exercise.events {
                match event {
                    Event::Dispatched(..) => seen[0] += 1,
                    Event::Merged(_) => seen[1] += 1,
                    Event::Joined(..) => seen[2] += 1,
                    Event::Nothing(_) => {}
                }
            }
        }
        assert!(seen[0] > 10_000, "{kind}: {seen:?}");
        assert_eq!(seen[1] > 1_000, kind.is_elevator(), "{kind}: {seen:?}");
        assert_eq!(seen[2] > 0, !kind.finds_own_merges(), "{kind}: {seen:?}");
    }
}
