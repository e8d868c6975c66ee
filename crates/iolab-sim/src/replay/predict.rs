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

use super::arrivals::Arrivals;
use super::feed::Decision;
use super::follow::follow;
use super::history::direction_of;
use super::places::{ByPlace, Place};
use super::recording::{Recording, Row};
use crate::api::request::RequestId;
use crate::api::scheduler::Replayable;
use crate::error::SimError;
use crate::sched::SchedulerKind;

/// Way in which the model is kept on the recorded path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "PredictionMethod")]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The recorded choice is forced at every issue.
    #[default]
    Forced,
    /// Its choices are its own; after a difference, another history that the trace allows is
    /// sought.
    Followed,
}

/// An issue that the model would not have made as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "PredictionMiss")]
pub struct Miss {
    /// Number of the issue, from 0.
    pub issue: u64,
    /// Time at which the kernel issued (ns).
    pub at_ns: u64,
    /// Sector that the kernel issued.
    pub recorded: u64,
    /// Sector that the model chose.
    pub chosen: Option<u64>,
}

/// State of the model at one decision.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Explanation {
    /// Number of the issue, from 0.
    pub issue: u64,
    /// Time at which the kernel issued (ns).
    pub at_ns: u64,
    /// Sector that the kernel issued.
    pub recorded: u64,
    /// Sector that the model chose.
    pub chosen: Option<u64>,
    /// Time at which the model decided (ns), if it did.
    pub decided_at_ns: Option<u64>,
    /// A fact or a queue per line.
    pub state: Vec<String>,
    /// True if another order of events within microseconds makes the recorded choice; absent if
    /// nothing differs, or if the choice was forced.
    pub is_race: Option<bool>,
}

/// Agreement of the choices.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Prediction {
    /// Way in which the model was kept on the recorded path.
    pub method: Method,
    /// Issues that the model would have made as recorded.
    pub predicted: u64,
    /// The same, or one place earlier or later: neighbours that two processors exchanged.
    pub predicted_nearly: u64,
    /// Issues at which it was asked.
    pub issues: u64,
    /// Misses for which no other history was found.
    pub unexplained: u64,
    /// Phase of the clock ticks that agrees best (ns after a tick).
    pub tick_phase_ns: Option<u64>,
    /// The first misses.
    pub misses: Vec<Miss>,
    /// The first miss for which no other history was found.
    pub first_unexplained: Option<Miss>,
    /// The decision that was asked for.
    pub explanation: Option<Explanation>,
}

/// Most misses that are kept.
const MISSES_KEPT: usize = 20;

impl Prediction {
    /// Predicted issues over all.
    pub fn share(&self) -> f64 {
        self.predicted as f64 / (self.issues as f64).max(1.0)
    }

    /// Issues predicted at their place or next to it, over all.
    pub fn share_nearly(&self) -> f64 {
        self.predicted_nearly as f64 / (self.issues as f64).max(1.0)
    }

    pub(super) fn count(&mut self, is_same: bool, is_near: bool) {
        self.issues += 1;
        self.predicted += u64::from(is_same);
        self.predicted_nearly += u64::from(is_same || is_near);
    }

    pub(super) fn keep_miss(&mut self, miss: Miss) {
        if self.misses.len() < MISSES_KEPT {
            self.misses.push(miss);
        }
    }
}

/// Times of simulation begin here, long after boot.
const EPOCH: Ns = Ns::from_seconds(1_000);

/// A scheduler fed from a recording.
struct Replay {
    scheduler: Box<dyn Replayable>,
    arrivals: Arrivals,
    issued: ByPlace<RequestId>,
    /// Pulled already, and waiting for a tag.
    decided: Option<RequestId>,
    prediction: Prediction,
    /// Choice for the issue before, if the kernel made another.
    missed: Option<Place>,
    /// Number of the decision to describe, and its description.
    explain: Option<u64>,
    decision: Option<Decision>,
}

/// Predicts every issue of a recording with the scheduler `kind`; `tunables` replace the recorded
/// ones. The state at issue number `explain` is part of the answer.
///
/// Nothing is predicted by a scheduler that cannot be forced and is not the recorded one: its
/// history would soon be another.
///
/// # Errors
///
/// If a tunable is unknown.
pub fn predict(
    recording: &Recording,
    kind: SchedulerKind,
    tunables: &BTreeMap<String, u64>,
    explain: Option<u64>,
) -> Result<Option<Prediction>, SimError> {
    if kind.attach_replayable(&recording.setup.context(Ns(0))).is_some() {
        return force(recording, kind, tunables, explain).map(Some);
    }
    if kind != recording.setup.scheduler {
        return Ok(None);
    }
    follow(recording, kind, tunables, explain).map(Some)
}

fn force(
    recording: &Recording,
    kind: SchedulerKind,
    tunables: &BTreeMap<String, u64>,
    explain: Option<u64>,
) -> Result<Prediction, SimError> {
    let setup = &recording.setup;
    let context = setup.context(Ns(0));
    let Some(mut scheduler) = kind.attach_replayable(&context) else {
        return Err(SimError::Inconsistent {
            subject: format!("scheduler {kind}"),
            problem: "its choices cannot be forced one by one".into(),
            remedy: "compare distributions instead".into(),
        });
    };
    for (name, value) in setup.tunables_of(kind, tunables) {
        scheduler.tune(&name, value)?;
    }
    let mut replay = Replay {
        scheduler,
        arrivals: Arrivals::new(setup),
        issued: ByPlace::default(),
        decided: None,
        prediction: Prediction::default(),
        missed: None,
        explain,
        decision: None,
    };
    for row in &recording.rows {
        replay.follow(row);
    }
    Ok(replay.prediction)
}

impl Replay {
    fn follow(&mut self, row: &Row) {
        let now = EPOCH + row.at;
        if self.arrivals.follow(now, row, &mut *self.scheduler) {
            self.decide(now);
        }
        match row.action {
            Action::Issued => self.issue(now, row),
            Action::Completed => self.complete(now, row),
            _ => {}
        }
    }

    /// Pulls the next request, unless one is waiting already.
    fn decide(&mut self, now: Ns) {
        if self.decided.is_none() {
            self.decided = self.scheduler.predict(now, &self.arrivals.requests);
            if self.explain == Some(self.prediction.issues) {
                let state = self.scheduler.describe(now, &self.arrivals.requests);
                self.decision = Some(Decision { at: now.since(EPOCH), state });
            }
        }
    }

    fn issue(&mut self, now: Ns, row: &Row) {
        let place = (direction_of(&row.bio), row.bio.sector);
        if self.arrivals.at(place).next().is_none() {
            return;
        }
        self.decide(now);
        let chosen = self.decided.take();
        let Some(id) = self.take_issued(place, row.bio.sectors, chosen) else { return };
        self.judge(row, place, (id, chosen));
        let requests = &mut self.arrivals.requests;
        self.scheduler.force(now, requests, id);
        requests[id].issued = now;
        self.scheduler.activate(now, requests, id);
        self.issued.add(place, id);
        self.decide(now);
    }

    /// Compares the choice with what was issued.
    fn judge(&mut self, row: &Row, place: Place, (id, chosen): (RequestId, Option<RequestId>)) {
        let is_same = chosen == Some(id);
        let chosen = chosen.map(|id| self.arrivals.place(id));
        let number = self.prediction.issues;
        self.prediction.count(is_same, false);
        // What was chosen at the issue before and missed comes now: the two were exchanged.
        self.prediction.predicted_nearly += u64::from(self.missed == Some(place));
        self.missed = chosen.filter(|_| !is_same);
        let (at_ns, sector) = (row.at.0, row.bio.sector.0);
        let chosen_sector = chosen.map(|(_, sector)| sector.0);
        if !is_same {
            let (recorded, chosen) = (sector, chosen_sector);
            self.prediction.keep_miss(Miss { issue: number, at_ns, recorded, chosen });
        }
        if self.explain == Some(number) {
            self.prediction.explanation = Some(Explanation {
                issue: number,
                at_ns,
                recorded: sector,
                chosen: chosen_sector,
                decided_at_ns: self.decision.as_ref().map(|decision| decision.at.0),
                state: self.decision.take().map_or_else(Vec::new, |decision| decision.state),
                is_race: None,
            });
        }
    }

    /// Takes the queued request that was issued: a recording does not tell apart those of one place
    /// and length, so that the chosen one counts as issued if it is among them.
    fn take_issued(
        &mut self,
        place: Place,
        sectors: u32,
        chosen: Option<RequestId>,
    ) -> Option<RequestId> {
        let lengths: Vec<(RequestId, bool)> = self
            .arrivals
            .at(place)
            .map(|id| (id, self.arrivals.requests[id].sectors == sectors))
            .collect();
        let is_as_long = |id: RequestId| lengths.contains(&(id, true));
        let is_chosen = |id: RequestId| chosen == Some(id) && is_as_long(id);
        let arrivals = &mut self.arrivals;
        let alike = arrivals.take(place, is_chosen).or_else(|| arrivals.take(place, is_as_long));
        alike.or_else(|| arrivals.take(place, |_| true))
    }

    fn complete(&mut self, now: Ns, row: &Row) {
        let place = (direction_of(&row.bio), row.bio.sector);
        let Some(id) = self.issued.take_oldest(place) else { return };
        self.scheduler.complete(now, &self.arrivals.requests, id);
        self.arrivals.requests.remove(id);
    }
}
