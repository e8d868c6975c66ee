//! "Predict the next issue": arrivals and completions from the recording, choices by the model.
//!
//! At every recorded issue the simulated scheduler chooses; its choice is compared with the
//! recorded one, and then the recorded one is forced, so that one miss does not cause the next.
//! The queue decides one request ahead: right after an issue it pulls the next request, which then
//! waits for a tag and can no longer be overtaken (blk-mq keeps it on the hardware queue's dispatch
//! list). So a choice is made at the previous issue, or at the first insertion after it. Not to be
//! predicted: a request inserted on another CPU between the decision and its time stamp.

use std::collections::BTreeMap;

use iolab_model::Ns;
use iolab_model::trace_event::Action;
use serde::Serialize;

use super::places::{ByPlace, Place};
use super::recording::{Recording, Row};
use crate::api::request::{Request, RequestId, Requests};
use crate::api::scheduler::{Hz, Merge, MergeEnd, Replayable, SchedulerContext};
use crate::error::SimError;
use crate::sched::SchedulerKind;

/// Agreement of the choices.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Prediction {
    /// Issues that the model would have made as recorded.
    pub predicted: u64,
    /// Issues at which it was asked.
    pub issues: u64,
    /// The first misses: when (ns), recorded sector, chosen sector.
    pub misses: Vec<(u64, u64, Option<u64>)>,
}

/// Most misses that are kept.
const MISSES_KEPT: usize = 20;

impl Prediction {
    /// Predicted issues over all.
    pub fn share(&self) -> f64 {
        self.predicted as f64 / (self.issues as f64).max(1.0)
    }
}

/// Times of simulation begin here, long after boot.
const EPOCH: Ns = Ns::from_seconds(1_000);

/// A scheduler fed from a recording.
struct Replay {
    scheduler: Box<dyn Replayable>,
    requests: Requests,
    queued: ByPlace<RequestId>,
    issued: ByPlace<RequestId>,
    is_inserted_at: Action,
    /// Pulled already, and waiting for a tag.
    decided: Option<RequestId>,
    prediction: Prediction,
}

/// Replays a recording through the scheduler `kind`; `tunables` replace the recorded ones.
///
/// # Errors
///
/// If the scheduler cannot be replayed choice by choice (its state depends on more than its own
/// choices), or a tunable is unknown.
pub fn predict(
    recording: &Recording,
    kind: SchedulerKind,
    tunables: &BTreeMap<String, u64>,
) -> Result<Prediction, SimError> {
    let setup = &recording.setup;
    let context = SchedulerContext {
        is_rotational: setup.rotational != 0,
        hz: Hz(setup.hz),
        slots: setup.nr_requests,
        depth: setup.driver_queue_depth,
        cpus: setup.cpus,
        attached: Ns(0),
    };
    let Some(mut scheduler) = kind.attach_replayable(&context) else {
        return Err(SimError::Inconsistent {
            subject: format!("scheduler {kind}"),
            problem: "its choices cannot be forced one by one".into(),
            remedy: "compare distributions instead".into(),
        });
    };
    if kind == setup.scheduler {
        for (name, value) in &setup.tunables {
            if let Ok(value) = value.parse() {
                scheduler.tune(name, value)?;
            }
        }
    }
    for (name, &value) in tunables {
        scheduler.tune(name, value)?;
    }
    let mut replay = Replay {
        scheduler,
        requests: Requests::default(),
        queued: ByPlace::default(),
        issued: ByPlace::default(),
        // Without a scheduler nothing is inserted: a request exists from its allocation on.
        is_inserted_at: if setup.scheduler.is_elevator() { Action::Inserted } else { Action::Got },
        decided: None,
        prediction: Prediction::default(),
    };
    for row in &recording.rows {
        replay.follow(row);
    }
    Ok(replay.prediction)
}

impl Replay {
    fn place(&self, id: RequestId) -> Place {
        (self.requests[id].direction(), self.requests[id].sector)
    }

    fn follow(&mut self, row: &Row) {
        let now = EPOCH + row.at;
        match row.action {
            action if action == self.is_inserted_at => self.insert(now, row),
            Action::BackMerged => self.merge(now, row, MergeEnd::Back),
            Action::FrontMerged => self.merge(now, row, MergeEnd::Front),
            Action::RequestMerged => self.join(now, row),
            Action::Issued => self.issue(now, row),
            Action::Completed => self.complete(now, row),
            _ => {}
        }
    }

    fn insert(&mut self, now: Ns, row: &Row) {
        let id = self.requests.add(Request::of(&row.bio, now));
        self.queued.add(self.place(id), id);
        self.scheduler.insert(now, &self.requests, id);
        self.decide(now);
    }

    /// Pulls the next request, unless one is waiting already.
    fn decide(&mut self, now: Ns) {
        if self.decided.is_none() {
            self.decided = self.scheduler.predict(now, &self.requests);
        }
    }

    /// A bio joins a queued request; one that joined a plugged request is part of it already.
    fn merge(&mut self, now: Ns, row: &Row, end: MergeEnd) {
        let direction = Request::of(&row.bio, now).direction();
        let found = match end {
            MergeEnd::Back => self.ending_at((direction, row.bio.sector)),
            MergeEnd::Front => self.queued.at((direction, row.bio.end())).next(),
        };
        let Some(into) = found else { return };
        let request = &mut self.requests[into];
        request.sectors += row.bio.sectors;
        if end == MergeEnd::Front {
            self.queued.take((direction, request.sector), |id| id == into);
            request.sector = row.bio.sector;
            self.queued.add((direction, request.sector), into);
        }
        self.scheduler.merged(now, &self.requests, Merge { into, end });
    }

    /// The oldest queued request whose end is there, among those of the nearest place before.
    fn ending_at(&self, place: Place) -> Option<RequestId> {
        self.queued.before(place).find(|&id| self.requests[id].end() == place.1)
    }

    /// A queued request joins the one before it.
    fn join(&mut self, now: Ns, row: &Row) {
        let direction = Request::of(&row.bio, now).direction();
        let place = (direction, row.bio.sector);
        let Some(survivor) = self.ending_at(place) else { return };
        let Some(absorbed) = self.queued.take_oldest(place) else { return };
        let sectors = self.requests[absorbed].sectors;
        self.requests[survivor].sectors += sectors;
        self.scheduler.joined(now, &self.requests, survivor, absorbed);
        self.requests.remove(absorbed);
    }

    fn issue(&mut self, now: Ns, row: &Row) {
        let place = (Request::of(&row.bio, now).direction(), row.bio.sector);
        if self.queued.at(place).next().is_none() {
            return;
        }
        self.decide(now);
        let chosen = self.decided.take();
        let Some(id) = self.take_issued(place, row.bio.sectors, chosen) else { return };
        self.prediction.issues += 1;
        if chosen == Some(id) {
            self.prediction.predicted += 1;
        } else if self.prediction.misses.len() < MISSES_KEPT {
            let sector = chosen.map(|id| self.requests[id].sector.0);
            self.prediction.misses.push((row.at.0, row.bio.sector.0, sector));
        }
        self.scheduler.force(now, &self.requests, id);
        self.requests[id].issued = now;
        self.scheduler.activate(now, &self.requests, id);
        self.issued.add(place, id);
        self.decide(now);
    }

    /// Takes the queued request that was issued: a recording does not tell apart those of one place
    /// and length, so that the chosen one counts as issued if it is among them.
    fn take_issued(
        &mut self,
        place: Place,
        sectors: u32,
        chosen: Option<RequestId>,
    ) -> Option<RequestId> {
        let Self { queued, requests, .. } = self;
        let is_as_long = |id: RequestId| requests[id].sectors == sectors;
        let is_chosen = |id: RequestId| chosen == Some(id) && is_as_long(id);
        let alike = queued.take(place, is_chosen).or_else(|| queued.take(place, is_as_long));
        alike.or_else(|| queued.take_oldest(place))
    }

    fn complete(&mut self, now: Ns, row: &Row) {
        let place = (Request::of(&row.bio, now).direction(), row.bio.sector);
        let Some(id) = self.issued.take_oldest(place) else { return };
        self.scheduler.complete(now, &self.requests, id);
        self.requests.remove(id);
    }
}
