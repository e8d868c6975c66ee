//! A small harness: a device of fixed latency, arrivals, merges, refusals.
//!
//! Order at an instant: completions, arrivals, timers, dispatch.

use iolab_model::Ns;
use iolab_model::seed::Stream;

use super::super::Cfq;
use crate::Calendar;
use crate::api::bio::{Bio, BioId, ProcessId};
use crate::api::request::{Request, RequestId, Requests};
use crate::api::scheduler::{Merge, MergeEnd, Scheduler};

/// Something that the device started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dispatch {
    pub at: Ns,
    /// Its bios, the first one first.
    pub bios: Vec<BioId>,
}

/// Refusals and merges to inject.
#[derive(Debug, Default)]
pub(super) struct Disturbance {
    /// Refuses one in eight.
    pub refusals: Option<Stream>,
    /// Offers bios for merging.
    pub merges: bool,
}

/// Answer of a process to the completion of one of its bios: when it sends which next.
pub(super) type Answer<'a> = dyn FnMut(Ns, &Bio) -> Option<(Ns, Bio)> + 'a;

/// cfq, the device, and what is under way.
pub(super) struct Driver {
    pub cfq: Cfq,
    pub requests: Requests,
    pub service: Ns,
    pub depth: usize,
    pub disturbance: Disturbance,
    pub log: Vec<Dispatch>,
    /// Bios in the order of completion.
    pub completed: Vec<(Ns, Bio)>,
    arrivals: Calendar<Bio>,
    exits: Calendar<ProcessId>,
    running: Calendar<RequestId>,
    retry: Ns,
    /// Bios of each request, and whether it is queued in cfq.
    bios: Vec<(Vec<Bio>, bool)>,
}

impl Driver {
    pub fn new(cfq: Cfq, service: Ns, depth: usize) -> Self {
        Self {
            cfq,
            requests: Requests::default(),
            service,
            depth,
            disturbance: Disturbance::default(),
            log: Vec::new(),
            completed: Vec::new(),
            arrivals: Calendar::default(),
            exits: Calendar::default(),
            running: Calendar::default(),
            retry: Ns::MAX,
            bios: Vec::new(),
        }
    }

    pub fn arrive(&mut self, at: Ns, bio: Bio) {
        self.arrivals.plan(at, bio);
    }

    pub fn exit(&mut self, at: Ns, process: ProcessId) {
        self.exits.plan(at, process);
    }

    /// Time of the next event.
    pub fn next_event(&self) -> Ns {
        self.arrivals
            .next_event()
            .min(self.exits.next_event())
            .min(self.running.next_event())
            .min(self.cfq.next_timer())
            .min(self.retry)
    }

    /// Runs one instant; `next` answers a completed bio with another one and when it comes.
    pub fn step(&mut self, next: &mut Answer<'_>) {
        let now = self.next_event();
        while let Some((_, id)) = self.running.take_due(now) {
            self.cfq.complete(now, &self.requests, id);
            self.requests.remove(id);
            for bio in core::mem::take(&mut self.bios[id.index()].0) {
                if let Some((at, bio)) = next(now, &bio) {
                    self.arrivals.plan(at, bio);
                }
                self.completed.push((now, bio));
            }
        }
        while let Some((_, bio)) = self.arrivals.take_due(now) {
            if !(self.disturbance.merges && self.merge(now, &bio)) {
                self.insert(now, &bio);
            }
        }
        while let Some((_, process)) = self.exits.take_due(now) {
            self.cfq.exit(now, process);
        }
        if self.cfq.next_timer() <= now {
            self.cfq.timer(now, &self.requests);
        }
        self.retry = Ns::MAX;
        while self.running.len() < self.depth
            && let Some(id) = self.cfq.dispatch(now, &self.requests)
        {
            if !self.start(now, id) {
                break;
            }
        }
    }

    /// Runs until nothing happens any more.
    pub fn run(&mut self) {
        while self.next_event() < Ns::MAX {
            self.step(&mut |_, _| None);
        }
    }

    fn insert(&mut self, now: Ns, bio: &Bio) {
        let id = self.requests.add(Request::of(bio, now));
        if self.bios.len() <= id.index() {
            self.bios.resize(id.index() + 1, Default::default());
        }
        self.bios[id.index()] = (vec![*bio], true);
        self.cfq.insert(now, &self.requests, id);
    }

    /// False if the device refuses.
    fn start(&mut self, now: Ns, id: RequestId) -> bool {
        let (bios, is_queued) = &mut self.bios[id.index()];
        *is_queued = false;
        self.cfq.activate(now, &self.requests, id);
        if self.disturbance.refusals.as_mut().is_some_and(|stream| stream.below(8) == 0) {
            self.cfq.requeue(now, &self.requests, id);
            self.retry = now + Ns::from_us(300);
            return false;
        }
        self.log.push(Dispatch { at: now, bios: bios.iter().map(|bio| bio.id).collect() });
        self.running.plan(now + self.service, id);
        true
    }

    fn merge(&mut self, now: Ns, bio: &Bio) -> bool {
        let Some(merge) = self.find_merge(now, bio) else { return false };
        let into = &mut self.requests[merge.into];
        into.sectors += bio.sectors;
        if merge.end == MergeEnd::Front {
            into.sector = bio.sector;
        }
        self.bios[merge.into.index()].0.push(*bio);
        self.cfq.merged(now, &self.requests, merge);
        self.join(now, merge);
        true
    }

    fn find_merge(&mut self, now: Ns, bio: &Bio) -> Option<Merge> {
        let queued = self.bios.iter().enumerate().filter(|(_, (_, is_queued))| *is_queued);
        let mut ids = queued.map(|(index, _)| RequestId(index as u32));
        let back = ids.find(|&id| {
            let request = &self.requests[id];
            request.end() == bio.sector && fits(request, bio)
        });
        if let Some(into) = back
            && self.cfq.allows_merge(now, &self.requests, into, bio)
        {
            return Some(Merge { into, end: MergeEnd::Back });
        }
        let into = self.cfq.front(now, &self.requests, bio)?;
        assert_eq!(self.requests[into].sector, bio.end());
        let is_allowed = fits(&self.requests[into], bio)
            && self.cfq.allows_merge(now, &self.requests, into, bio);
        is_allowed.then_some(Merge { into, end: MergeEnd::Front })
    }

    /// Joins the grown request with the neighbour that it now touches.
    fn join(&mut self, now: Ns, merge: Merge) {
        let id = merge.into;
        let pair = match merge.end {
            MergeEnd::Back => self.cfq.latter(&self.requests, id).map(|other| (id, other)),
            MergeEnd::Front => self.cfq.former(&self.requests, id).map(|other| (other, id)),
        };
        let Some((first, second)) = pair else { return };
        let (low, high) = (self.requests[first], self.requests[second]);
        let is_contiguous = low.end() == high.sector
            && low.operation == high.operation
            && low.flags == high.flags
            && low.submitter.priority == high.submitter.priority;
        if !is_contiguous || !self.cfq.allows_join(&self.requests, first, second) {
            return;
        }
        self.requests[first].sectors += high.sectors;
        self.cfq.joined(now, &self.requests, first, second);
        let (bios, _) = core::mem::take(&mut self.bios[second.index()]);
        self.bios[first.index()].0.extend(bios);
        self.requests.remove(second);
    }
}

fn fits(request: &Request, bio: &Bio) -> bool {
    request.operation == bio.operation
        && request.flags == bio.flags
        && request.submitter.priority == bio.submitter.priority
}
