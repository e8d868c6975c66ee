//! The way of recorded requests into a scheduler: insertions, merges and joins as they happened.

use iolab_model::Ns;
use iolab_model::trace_event::Action;

use super::history::direction_of;
use super::places::{ByPlace, Place};
use super::recording::{Row, Setup};
use crate::api::bio::{Bio, Flags, Operation};
use crate::api::request::{Request, RequestId, Requests};
use crate::api::scheduler::{Merge, MergeEnd, Scheduler};

/// The requests of a recording that a scheduler has, and those at the device.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// Both.
    pub(super) requests: Requests,
    queued: ByPlace<RequestId>,
    /// Places of bios that follow a flush.
    behind_flush: ByPlace<()>,
    is_elevator: bool,
}

impl Arrivals {
    /// Nothing yet.
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            requests: Requests::default(),
            queued: ByPlace::default(),
            behind_flush: ByPlace::default(),
            is_elevator: setup.scheduler.is_elevator(),
        }
    }

    /// Direction and first sector of a request.
    pub(super) fn place(&self, id: RequestId) -> Place {
        (self.requests[id].direction(), self.requests[id].sector)
    }

    /// Queued requests at a place, oldest first.
    pub(super) fn at(&self, place: Place) -> impl Iterator<Item = RequestId> {
        self.queued.at(place)
    }

    /// Takes the oldest queued request of a place that is wanted.
    pub(super) fn take(
        &mut self,
        place: Place,
        is_wanted: impl Fn(RequestId) -> bool,
    ) -> Option<RequestId> {
        self.queued.take(place, is_wanted)
    }

    /// Does with the scheduler what the kernel did at this event; true if it has a request more.
    pub(super) fn follow(
        &mut self,
        now: Ns,
        row: &Row,
        scheduler: &mut (impl Scheduler + ?Sized),
    ) -> bool {
        let bio = &row.bio;
        let place = (direction_of(bio), bio.sector);
        match row.action {
            Action::Queued => self.queue(now, bio, scheduler),
            // Without a scheduler a request is queued from its allocation on, unless it waits for
            // a flush.
            Action::Got if !self.is_elevator && self.behind_flush.at(place).next().is_none() => {
                return self.insert(now, bio, scheduler);
            }
            Action::Inserted
                if self.is_elevator || self.behind_flush.at(place).next().is_some() =>
            {
                return self.insert(now, bio, scheduler);
            }
            Action::BackMerged => self.merge(now, bio, MergeEnd::Back, scheduler),
            Action::FrontMerged => self.merge(now, bio, MergeEnd::Front, scheduler),
            Action::RequestMerged => self.join(now, bio, scheduler),
            _ => {}
        }
        false
    }

    /// A bio comes: the kernel looks for a request to merge it with, whatever comes of it.
    fn queue(&mut self, now: Ns, bio: &Bio, scheduler: &mut (impl Scheduler + ?Sized)) {
        let place = (direction_of(bio), bio.sector);
        if bio.flags.contains(Flags::PREFLUSH) && bio.operation != Operation::Flush {
            self.behind_flush.add(place, ());
        }
        if let Some(into) = self.ending_at(place) {
            scheduler.allows_merge(now, &self.requests, into, bio);
        }
    }

    fn insert(&mut self, now: Ns, bio: &Bio, scheduler: &mut (impl Scheduler + ?Sized)) -> bool {
        let place = (direction_of(bio), bio.sector);
        let id = self.requests.add(Request::of(bio, now));
        self.queued.add(place, id);
        if self.behind_flush.take_oldest(place).is_some() {
            scheduler.insert_at_head(now, &self.requests, id);
        } else {
            scheduler.insert(now, &self.requests, id);
        }
        true
    }

    /// The oldest queued request whose end is there, among those of the nearest place before.
    fn ending_at(&self, place: Place) -> Option<RequestId> {
        self.queued.before(place).find(|&id| self.requests[id].end() == place.1)
    }

    /// A bio joins a queued request; one that joined a plugged request is part of it already, and
    /// one whose request has left the model is lost.
    fn merge(
        &mut self,
        now: Ns,
        bio: &Bio,
        end: MergeEnd,
        scheduler: &mut (impl Scheduler + ?Sized),
    ) {
        let direction = direction_of(bio);
        let found = match end {
            MergeEnd::Back => self.ending_at((direction, bio.sector)),
            MergeEnd::Front => self.queued.at((direction, bio.end())).next(),
        };
        let Some(into) = found else { return };
        let request = &mut self.requests[into];
        request.sectors += bio.sectors;
        if end == MergeEnd::Front {
            self.queued.take((direction, request.sector), |id| id == into);
            request.sector = bio.sector;
            self.queued.add((direction, request.sector), into);
        }
        scheduler.merged(now, &self.requests, Merge { into, end });
    }

    /// A queued request joins the one before it.
    fn join(&mut self, now: Ns, bio: &Bio, scheduler: &mut (impl Scheduler + ?Sized)) {
        let place = (direction_of(bio), bio.sector);
        let Some(survivor) = self.ending_at(place) else { return };
        let Some(absorbed) = self.queued.take_oldest(place) else { return };
        self.requests[survivor].sectors += self.requests[absorbed].sectors;
        scheduler.joined(now, &self.requests, survivor, absorbed);
        self.requests.remove(absorbed);
    }
}
