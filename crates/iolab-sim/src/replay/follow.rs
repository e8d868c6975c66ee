//! "Follow the issues": arrivals and ends from the recording, every choice by the model.
//!
//! For schedulers whose state follows from more than their own choices (kyber counts latencies, bfq
//! learns habits): a recorded choice cannot be forced upon them. At the first issue that differs
//! the search goes back a little and tries other histories that the trace allows (see
//! [`super::feed`]); the first one that makes the recorded choice is followed from there. The
//! difference counts as a miss all the same. If none does, the model goes its own way, every issue
//! counts, and the search begins again later.
//!
//! The phase of the kernel's clock ticks is not recorded either; of eight the one that agrees best
//! is taken.

use std::collections::{BTreeMap, VecDeque};

use iolab_model::Ns;
use iolab_model::trace_event::Action;

use super::feed::{Feed, Issues, Jitter};
use super::predict::{Explanation, Method, Miss, Prediction};
use super::recording::{Recording, Row};
use super::simulate::{ATTACHED_BEFORE, EPOCH};
use crate::api::bio::Operation;
use crate::error::SimError;
use crate::sched::SchedulerKind;

/// From this share on the phase is not doubted.
const SURE: f64 = 0.97;
/// Phases of a clock tick that are tried.
const PHASES: u64 = 8;
/// Issues before a difference from which other histories are tried, nearest first.
const STEPS_BACK: [usize; 8] = [0, 1, 2, 4, 8, 16, 32, 64];
/// Histories tried from each.
const HISTORIES: u64 = 64;
/// A search in vain is followed by so many issues without one.
const REST: usize = 64;

/// A recording and the scheduler that follows it.
struct Follower<'a> {
    recording: &'a Recording,
    kind: SchedulerKind,
    tunables: BTreeMap<String, u64>,
}

/// Follows a recording with the scheduler `kind`, whose choices are its own; `tunables` replace the
/// recorded ones. The state at decision number `explain` is part of the answer.
///
/// # Errors
///
/// If a tunable is unknown.
pub(super) fn follow(
    recording: &Recording,
    kind: SchedulerKind,
    tunables: &BTreeMap<String, u64>,
    explain: Option<u64>,
) -> Result<Prediction, SimError> {
    let tunables = recording.setup.tunables_of(kind, tunables);
    let follower = Follower { recording, kind, tunables };
    let tick = 1_000_000_000 / u64::from(recording.setup.hz.max(1));
    let phases = || (0..PHASES).map(|eighth| eighth * tick / PHASES);
    let (mut best, mut most) = (0, None);
    for phase in phases() {
        let agreeing = follower.agreeing(phase)?;
        if most.is_none_or(|most| agreeing > most) {
            (best, most) = (phase, Some(agreeing));
        }
    }
    let found = follower.search(best, explain)?;
    if found.share() >= SURE {
        return Ok(found);
    }
    // After an early difference agreement is chance: what each phase finds decides.
    let mut found = found;
    for phase in phases().filter(|&phase| phase != best) {
        let other = follower.search(phase, explain)?;
        if other.predicted > found.predicted {
            found = other;
        }
    }
    Ok(found)
}

impl Follower<'_> {
    fn feed<'a>(
        &self,
        recorded: (&'a Issues, Ns),
        explain: Option<u64>,
    ) -> Result<Feed<'a>, SimError> {
        let setup = &self.recording.setup;
        let attached = Ns(recorded.1.0 - ATTACHED_BEFORE.0);
        let mut scheduler = self.kind.attach(&setup.context(attached));
        for (name, &value) in &self.tunables {
            scheduler.tune(name, value)?;
        }
        Ok(Feed::new(setup, scheduler, recorded, explain))
    }

    /// Issues at the recorded place, if nothing is searched.
    fn agreeing(&self, phase: u64) -> Result<usize, SimError> {
        let epoch = Ns(EPOCH.0 + phase);
        let recorded = Issues::of(&self.recording.rows, epoch);
        let mut feed = self.feed((&recorded, epoch), None)?;
        for row in &self.recording.rows {
            feed.follow(row);
        }
        feed.advance(Ns::MAX);
        Ok(feed.agreeing)
    }

    fn search(&self, phase: u64, explain: Option<u64>) -> Result<Prediction, SimError> {
        let epoch = Ns(EPOCH.0 + phase);
        let recorded = Issues::of(&self.recording.rows, epoch);
        let mut path = Path {
            rows: &self.recording.rows,
            recorded: &recorded,
            feed: self.feed((&recorded, epoch), explain)?,
            checkpoints: VecDeque::from([Checkpoint {
                row: 0,
                issue: 0,
                feed: self.feed((&recorded, epoch), explain)?,
            }]),
            rest: 0,
            prediction: Prediction {
                method: Method::Followed,
                tick_phase_ns: Some(phase),
                ..Prediction::default()
            },
            explain,
        };
        for index in 0..self.recording.rows.len() {
            path.follow(index);
        }
        Ok(path.prediction)
    }
}

/// A state right after an issue of the kernel, from which other histories may begin.
struct Checkpoint<'a> {
    /// The next row and the next issue.
    row: usize,
    issue: usize,
    feed: Feed<'a>,
}

/// The history that is followed.
struct Path<'a> {
    rows: &'a [Row],
    recorded: &'a Issues,
    feed: Feed<'a>,
    /// Oldest first.
    checkpoints: VecDeque<Checkpoint<'a>>,
    /// Issues to go until a difference is searched for again.
    rest: usize,
    prediction: Prediction,
    explain: Option<u64>,
}

impl Path<'_> {
    fn follow(&mut self, index: usize) {
        let row = &self.rows[index];
        self.feed.follow(row);
        if row.action == Action::Issued && row.bio.operation != Operation::Flush {
            self.judge(index, row.at);
        }
    }

    /// Compares the choice with the issue of this row, and finds back to the recorded history.
    fn judge(&mut self, index: usize, at: Ns) {
        let number = self.prediction.issues as usize;
        let (_, place) = self.recorded.places[number];
        let chosen = self.feed.choice(number);
        let is_same = chosen == Some(place);
        let is_neighbour = |other: Option<usize>| {
            other.is_some_and(|other| self.feed.choice(other) == Some(place))
        };
        let is_near = is_neighbour(number.checked_sub(1)) || is_neighbour(Some(number + 1));
        self.prediction.count(is_same, is_near);
        let is_asked = self.explain == Some(number as u64);
        let decision = if is_asked { self.feed.decision.take() } else { None };
        self.rest = self.rest.saturating_sub(1);
        let is_found = is_same || (self.rest == 0 && self.find_back(index, number));
        let miss = Miss {
            issue: number as u64,
            at_ns: at.0,
            recorded: place.1.0,
            chosen: chosen.map(|(_, sector)| sector.0),
        };
        if !is_same {
            self.prediction.keep_miss(miss);
        }
        if !is_found {
            self.prediction.unexplained += 1;
            self.prediction.first_unexplained.get_or_insert(miss);
            if self.rest == 0 {
                self.rest = REST;
            }
        }
        if is_asked {
            let Miss { issue, at_ns, recorded, chosen } = miss;
            self.prediction.explanation = Some(Explanation {
                issue,
                at_ns,
                recorded,
                chosen,
                decided_at_ns: decision.as_ref().map(|decision| decision.at.0),
                state: decision.map_or_else(Vec::new, |decision| decision.state),
                is_race: (!is_same).then_some(is_found),
            });
        }
        let feed = self.feed.clone();
        self.checkpoints.push_back(Checkpoint { row: index + 1, issue: number + 1, feed });
        if self.checkpoints.len() > STEPS_BACK[STEPS_BACK.len() - 1] + 1 {
            self.checkpoints.pop_front();
        }
    }

    /// Goes back and tries other histories; true if one makes the recorded issues up to `number`.
    fn find_back(&mut self, index: usize, number: usize) -> bool {
        for back in STEPS_BACK {
            let place = self.checkpoints.len().saturating_sub(back + 1);
            let Checkpoint { row, issue, feed } = &self.checkpoints[place];
            for history in 0..HISTORIES {
                let mut feed = feed.clone();
                feed.jitter = Some(Jitter::new(history));
                for row in &self.rows[*row..=index] {
                    feed.follow(row);
                }
                let is_recorded =
                    |number: usize| feed.choice(number) == Some(self.recorded.places[number].1);
                if (*issue..=number).all(is_recorded) {
                    feed.jitter = None;
                    self.feed = feed;
                    self.checkpoints.truncate(place + 1);
                    return true;
                }
            }
            if place == 0 {
                break;
            }
        }
        false
    }
}
