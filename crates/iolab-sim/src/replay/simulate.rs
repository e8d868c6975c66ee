//! The closed-loop twin of a recording: its processes run again, against a simulated queue.
//!
//! Every process submits its own recorded bios in their order, keeps as many of them outstanding
//! as it did in the recording, and thinks between the end of one and the submission of the next as
//! long as it did there. So it is the scheduler that decides how fast each of them gets on. Left
//! out: time the CPUs spend, and stalls of the process that served the recorded device, except for
//! their mean, which is part of the overhead per request.

use std::collections::BTreeMap;

use iolab_model::Ns;
use iolab_model::trace_event::Action;
use serde::Serialize;

use super::history::{Figures, Life, figures, lives, row_of};
use super::one_head::{Fit, OneHead};
use super::recording::{Recording, Row, Setup};
use crate::Calendar;
use crate::api::bio::{Bio, BioId, Ended, ProcessId};
use crate::api::layer::Layer;
use crate::error::SimError;
use crate::queue::{BlockQueue, QueueParameters};
use crate::sched::SchedulerKind;

/// Times of simulation begin here, long after boot.
pub(super) const EPOCH: Ns = Ns::from_seconds(1_000);
/// The scheduler was attached so long before the first bio.
pub(super) const ATTACHED_BEFORE: Ns = Ns::from_seconds(1);

/// Real and simulated, side by side.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ReplayTwin")]
pub struct Twin {
    /// From the recording.
    pub real: Figures,
    /// From the simulation.
    pub simulated: Figures,
    /// The simulated events.
    #[serde(skip)]
    pub rows: Vec<Row>,
    /// Parameters that the model of the device lacks, measured from the recording.
    pub fit: Fit,
}

/// A process of the recording.
#[derive(Debug, Default)]
struct Actor {
    bios: Vec<Bio>,
    /// Submission of the first bios, those that waited for no other.
    starts: Vec<Ns>,
    /// For every later bio: time between the end of the one that made room and its submission.
    thinks: Vec<Ns>,
    planned: usize,
    planned_at: Ns,
    stop: Ns,
}

impl Actor {
    fn of(mut own: Vec<Life>) -> Self {
        own.sort_by_key(|life| life.queued);
        let bios = own.iter().map(|life| life.bio).collect();
        let concurrency = concurrency(&own);
        let stop = EPOCH + own.last().map_or(Ns(0), |life| life.entered);
        let starts = own.iter().take(concurrency).map(|life| EPOCH + life.entered).collect();
        let mut ends: Vec<Ns> = own.iter().map(|life| life.completed).collect();
        ends.sort_unstable();
        let followers = own.iter().skip(concurrency);
        let thinks = followers.zip(&ends).map(|(life, &end)| life.entered.since(end)).collect();
        Self { bios, starts, thinks, planned: 0, planned_at: Ns(0), stop }
    }

    /// Time at which the next bio is submitted, now that there is room for it; none when it is too
    /// late.
    ///
    /// A simulation that is ahead of the recording begins again with the first bio.
    fn plan(&mut self, now: Ns) -> Option<Ns> {
        let at = match self.starts.get(self.planned) {
            Some(&start) => start,
            None if self.thinks.is_empty() => return None,
            None => now + self.thinks[(self.planned - self.starts.len()) % self.thinks.len()],
        };
        self.planned_at = at.max(self.planned_at);
        self.planned += 1;
        (self.planned_at <= self.stop).then_some(self.planned_at)
    }
}

/// Most bios that were outstanding.
fn concurrency(own: &[Life]) -> usize {
    let mut changes: Vec<(Ns, i64)> = Vec::with_capacity(2 * own.len());
    for life in own {
        changes.push((life.queued, 1));
        changes.push((life.completed, -1));
    }
    changes.sort_unstable();
    let levels = changes.iter().scan(0_i64, |level, &(_, step)| {
        *level += step;
        Some(*level)
    });
    levels.max().unwrap_or(0) as usize
}

/// The processes at work on a queue.
struct Stage {
    queue: BlockQueue,
    actors: Vec<Actor>,
    submissions: Calendar<usize>,
    /// Process of each bio, and the number of bios that each process has submitted.
    owners: Vec<usize>,
    free: Vec<BioId>,
    submitted: Vec<usize>,
}

impl Stage {
    fn run(&mut self) {
        for index in 0..self.actors.len() {
            for _ in 0..self.actors[index].starts.len() {
                self.plan(EPOCH, index);
            }
        }
        let mut done = Vec::new();
        loop {
            let now = self.submissions.next_event().min(self.queue.next_event());
            if now == Ns::MAX
                || (self.submissions.is_empty() && self.owners.len() == self.free.len())
            {
                return;
            }
            while let Some((_, index)) = self.submissions.take_due(now) {
                self.submit(now, index);
            }
            if self.queue.next_event() <= now {
                self.queue.advance(now, &mut done);
            }
            for Ended { id, .. } in done.drain(..) {
                self.free.push(id);
                self.plan(now, self.owners[id.0 as usize]);
            }
        }
    }

    fn plan(&mut self, now: Ns, index: usize) {
        if let Some(at) = self.actors[index].plan(now) {
            self.submissions.plan(at, index);
        }
    }

    fn submit(&mut self, now: Ns, index: usize) {
        let id = self.free.pop().unwrap_or_else(|| {
            self.owners.push(index);
            BioId(self.owners.len() as u32 - 1)
        });
        self.owners[id.0 as usize] = index;
        let bios = &self.actors[index].bios;
        let bio = Bio { id, ..bios[self.submitted[index] % bios.len()] };
        self.submitted[index] += 1;
        self.queue.submit(now, &bio);
    }
}

/// Runs the processes of a recording in a closed loop under the scheduler `kind`; `tunables`
/// replace the recorded ones. The device's angle begins as measured plus `turned` turns: other
/// angles give other histories of the same kind, which tells what is chance.
///
/// # Errors
///
/// If the device of the recording has no known model, or a tunable is unknown.
pub fn simulate(
    recording: &Recording,
    kind: SchedulerKind,
    tunables: &BTreeMap<String, u64>,
    turned: f64,
) -> Result<Twin, SimError> {
    let setup = &recording.setup;
    let model = setup.device_model.clone().filter(|model| model.kind == "hdd");
    let Some(model) = model else {
        return Err(SimError::Inconsistent {
            subject: "the recording".into(),
            problem: "was made on a device without a known model".into(),
            remedy: "only its order can be predicted".into(),
        });
    };
    let all = lives(&recording.rows);
    let mut fit = Fit::of(&recording.rows, &model);
    fit.phase += turned;
    let device =
        OneHead::new(model.clone(), setup.driver_queue_depth, fit.shifted(EPOCH, model.turn()));
    let mut parameters = parameters(setup, kind, tunables);
    let longest = longest_kb(&recording.rows);
    parameters.max_sectors_kb = parameters.max_sectors_kb.into_iter().chain(longest).min();
    let attached = Ns(EPOCH.0 - ATTACHED_BEFORE.0);
    let mut queue = BlockQueue::new(attached, &parameters, Box::new(device))?;
    queue.record_events(&mut 0);
    let mut by_process: BTreeMap<ProcessId, Vec<Life>> = BTreeMap::new();
    for life in all {
        by_process.entry(life.bio.submitter.process).or_default().push(life);
    }
    let actors: Vec<Actor> = by_process.into_values().map(Actor::of).collect();
    let mut stage = Stage {
        queue,
        submitted: vec![0; actors.len()],
        actors,
        submissions: Calendar::default(),
        owners: Vec::new(),
        free: Vec::new(),
    };
    stage.run();
    let mut events = Vec::new();
    stage.queue.take_events(&mut events);
    let rows: Vec<Row> = events.iter().map(|event| row_of(event, EPOCH)).collect();
    let real = figures(&recording.rows, setup.scheduler);
    Ok(Twin { real, simulated: figures(&rows, kind), rows, fit })
}

fn parameters(
    setup: &Setup,
    kind: SchedulerKind,
    tunables: &BTreeMap<String, u64>,
) -> QueueParameters {
    let mut all = BTreeMap::new();
    if kind == setup.scheduler {
        let recorded = setup.tunables.iter();
        all.extend(recorded.filter_map(|(name, value)| Some((name.clone(), value.parse().ok()?))));
    }
    all.extend(tunables.iter().map(|(name, &value)| (name.clone(), value)));
    QueueParameters {
        scheduler: kind,
        tunables: all,
        nr_requests: Some(setup.nr_requests),
        queue_depth: Some(setup.driver_queue_depth),
        max_sectors_kb: setup.max_sectors_kb,
        hz: setup.hz,
        cpus: setup.cpus,
        rotational: Some(setup.rotational != 0),
        ..QueueParameters::default()
    }
}

/// Length of the longest recorded request that is a merged one.
///
/// The number of memory segments of a request is limited too; how many of them a bio has depends on
/// where its buffer lies, which a recording does not tell. So the limit is what it shows.
fn longest_kb(rows: &[Row]) -> Option<u32> {
    let longest = |action: Action| {
        let lengths = rows.iter().filter(|row| row.action == action).map(|row| row.bio.sectors);
        lengths.max().unwrap_or(0)
    };
    let (bio, request) = (longest(Action::Queued), longest(Action::Issued));
    let queued = rows.iter().filter(|row| row.action == Action::BackMerged).count();
    (queued > 0 && request > bio).then_some(request / 2)
}
