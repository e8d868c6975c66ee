//! A tiny harness: feeds bios, merges, honours timers, refuses requests, ends processes.

use std::collections::BTreeMap;

use iolab_model::{Ns, Sector};

use crate::api::bio::{
    Bio, BioId, Flags, Operation, Priority, PriorityClass, ProcessId, Submitter,
};
use crate::api::request::{Request, RequestId, Requests};
use crate::api::scheduler::{Attach, Hz, Merge, MergeEnd, Scheduler, SchedulerContext};
use crate::sched::bfq::Bfq;
use crate::sched::bfq::marks::Mark;

pub(super) const START: Ns = Ns::from_seconds(1_000);

pub(super) fn context(is_rotational: bool) -> SchedulerContext {
    SchedulerContext {
        is_rotational,
        hz: Hz(1_000),
        slots: 256,
        depth: 4,
        cpus: 1,
        attached: Ns(0),
    }
}

/// Properties that distinguish bios here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) operation: Operation,
    pub(super) is_sync: bool,
    pub(super) process: u32,
    pub(super) class: PriorityClass,
    pub(super) level: u8,
    pub(super) sector: u64,
    pub(super) sectors: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            operation: Operation::Read,
            is_sync: false,
            process: 1,
            class: PriorityClass::BestEffort,
            level: 4,
            sector: 0,
            sectors: 8,
        }
    }
}

pub(super) fn bio(shape: Shape) -> Bio {
    Bio {
        id: BioId(0),
        operation: shape.operation,
        sector: Sector(shape.sector),
        sectors: shape.sectors,
        flags: if shape.is_sync { Flags::SYNC } else { Flags::NONE },
        submitter: Submitter {
            process: ProcessId(shape.process),
            priority: Priority { class: shape.class, level: shape.level },
            cpu: 0,
        },
        segments: 0,
    }
}

/// Dispatch that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dispatched {
    pub(super) at: Ns,
    pub(super) process: u32,
    pub(super) sector: u64,
    pub(super) sectors: u32,
    pub(super) waited: Ns,
}

/// The harness. Every request takes `service`; the device takes `depth` at once.
pub(super) struct Driver {
    pub(super) bfq: Bfq,
    pub(super) requests: Requests,
    pub(super) service: Ns,
    pub(super) depth: usize,
    pub(super) log: Vec<Dispatched>,
    /// Every so many dispatches one is refused; 0: never.
    pub(super) refuses_every: usize,
    pub(super) merges: bool,
    queued: BTreeMap<RequestId, u32>,
    flying: Vec<(Ns, RequestId)>,
    pub(super) sectors_in: u64,
    pub(super) sectors_out: u64,
    attempts: usize,
}

impl Driver {
    pub(super) fn new(is_rotational: bool) -> Self {
        Self {
            bfq: Bfq::attach(&context(is_rotational)),
            requests: Requests::default(),
            service: Ns::from_us(500),
            depth: 1,
            log: Vec::new(),
            refuses_every: 0,
            merges: false,
            queued: BTreeMap::new(),
            flying: Vec::new(),
            sectors_in: 0,
            sectors_out: 0,
            attempts: 0,
        }
    }

    /// Instant of the next completion or timer.
    pub(super) fn next_event(&self) -> Ns {
        let completion = self.flying.iter().map(|&(at, _)| at).min().unwrap_or(Ns::MAX);
        completion.min(self.bfq.next_timer())
    }

    /// Does what is due at `now`, in the order of the contract, with these arrivals in between.
    /// Answers with the processes whose requests are done.
    pub(super) fn step(&mut self, now: Ns, arrivals: &[Bio]) -> Vec<u32> {
        let mut done = Vec::new();
        self.flying.sort_by_key(|&(at, id)| (at, id));
        while let Some(&(at, id)) = self.flying.first()
            && at <= now
        {
            self.flying.remove(0);
            self.bfq.complete(now, &self.requests, id);
            done.push(self.requests[id].submitter.process.0);
            self.requests.remove(id);
        }
        for bio in arrivals {
            self.arrive(now, bio);
        }
        if self.bfq.next_timer() <= now {
            self.bfq.timer(now, &self.requests);
            assert!(self.bfq.next_timer() > now, "a timer that stays due");
        }
        while self.flying.len() < self.depth
            && let Some(id) = self.bfq.dispatch(now, &self.requests)
        {
            self.issue(now, id);
        }
        self.check();
        done
    }

    fn arrive(&mut self, now: Ns, bio: &Bio) {
        self.sectors_in += u64::from(bio.sectors);
        if self.merges && self.merge(now, bio) {
            return;
        }
        let id = self.requests.add(Request::of(bio, now));
        self.queued.insert(id, bio.sectors);
        self.bfq.insert(now, &self.requests, id);
    }

    fn merge(&mut self, now: Ns, bio: &Bio) -> bool {
        let is_alike = |request: &Request| {
            request.operation == bio.operation
                && request.submitter.priority == bio.submitter.priority
        };
        let back = self
            .queued
            .keys()
            .copied()
            .find(|&id| is_alike(&self.requests[id]) && self.requests[id].end() == bio.sector);
        if let Some(into) = back
            && self.bfq.allows_merge(now, &self.requests, into, bio)
        {
            self.requests[into].sectors += bio.sectors;
            self.bfq.merged(now, &self.requests, Merge { into, end: MergeEnd::Back });
            let latter = self.bfq.latter(&self.requests, into);
            self.join(now, Some(into), latter);
            return true;
        }
        let front = self.bfq.front(now, &self.requests, bio);
        if let Some(into) = front.filter(|&id| is_alike(&self.requests[id]))
            && self.bfq.allows_merge(now, &self.requests, into, bio)
        {
            self.requests[into].sector = bio.sector;
            self.requests[into].sectors += bio.sectors;
            self.bfq.merged(now, &self.requests, Merge { into, end: MergeEnd::Front });
            let former = self.bfq.former(&self.requests, into);
            self.join(now, former, Some(into));
            return true;
        }
        false
    }

    fn join(&mut self, now: Ns, first: Option<RequestId>, second: Option<RequestId>) {
        let (Some(a), Some(b)) = (first, second) else {
            return;
        };
        let (one, two) = (self.requests[a], self.requests[b]);
        if one.end() != two.sector
            || one.operation != two.operation
            || one.submitter.priority != two.submitter.priority
            || !self.bfq.allows_join(&self.requests, a, b)
        {
            return;
        }
        self.requests[a].sectors += two.sectors;
        self.bfq.joined(now, &self.requests, a, b);
        assert!(self.queued.remove(&b).is_some(), "an absorbed request was queued");
        self.requests.remove(b);
    }

    fn issue(&mut self, now: Ns, id: RequestId) {
        self.bfq.activate(now, &self.requests, id);
        self.attempts += 1;
        if self.refuses_every > 0 && self.attempts.is_multiple_of(self.refuses_every) {
            self.bfq.requeue(now, &self.requests, id);
            return;
        }
        assert!(self.queued.remove(&id).is_some(), "{id:?} was not queued: dispatched twice?");
        let request = self.requests[id];
        self.sectors_out += u64::from(request.sectors);
        self.log.push(Dispatched {
            at: now,
            process: request.submitter.process.0,
            sector: request.sector.0,
            sectors: request.sectors,
            waited: now - request.inserted,
        });
        self.flying.push((now + self.service, id));
    }

    /// Runs until nothing happens any more.
    pub(super) fn drain(&mut self) {
        while self.next_event() < Ns::MAX {
            self.step(self.next_event(), &[]);
        }
        assert!(self.queued.is_empty(), "{} requests are stuck", self.queued.len());
        assert_eq!(self.sectors_in, self.sectors_out);
        assert!(!self.bfq.has_requests());
    }

    /// The scheduler's counters against a recount.
    fn check(&self) {
        let bfq = &self.bfq;
        let live = || (0..bfq.queues.len() as u32).filter(|&id| bfq.queue(id).has(Mark::Live));
        let sum = |of: &dyn Fn(u32) -> usize| live().map(of).sum::<usize>();
        let backlog = sum(&|id| bfq.queue(id).backlog.len());
        assert_eq!(bfq.queued as usize, backlog, "queued");
        assert_eq!(backlog + bfq.returned.len(), self.queued.len(), "queued and returned");
        assert_eq!(bfq.device.in_flight as usize, self.flying.len(), "in flight");
        let in_flight = sum(&|id| bfq.queue(id).in_flight as usize);
        assert_eq!(in_flight, self.flying.len(), "in flight by queue");
        let busy = sum(&|id| usize::from(bfq.queue(id).is_busy()));
        assert_eq!(bfq.busy_queues() as usize, busy, "busy");
        let raised = sum(&|id| usize::from(bfq.queue(id).is_busy() && bfq.is_raised(id)));
        assert_eq!(bfq.raised_busy as usize, raised, "raised and busy");
        let allocated = sum(&|id| bfq.queue(id).allocated as usize);
        assert_eq!(allocated, self.queued.len() + self.flying.len(), "allocated");
        for (class, tree) in bfq.agenda.trees.iter().enumerate() {
            let weight = sum(&|id| {
                let entity = bfq.entity(id);
                let counts = entity.is_weighed && entity.class.index() == class;
                if counts { entity.weight as usize } else { 0 }
            });
            assert_eq!(tree.weight_sum as usize, weight, "weight of class {class}");
        }
        for id in live() {
            let queue = bfq.queue(id);
            assert_eq!(queue.next.is_none(), queue.backlog.is_empty(), "next of {id}");
            assert!(queue.backlog.is_empty() || queue.is_busy(), "{id} has work but is not busy");
        }
    }
}
