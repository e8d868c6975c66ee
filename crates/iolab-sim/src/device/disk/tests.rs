//! Closed forms, published checks (HDD-1 to HDD-8 of the models specification), and properties.

use std::collections::BTreeMap;

use iolab_model::seed::Stream;
use iolab_model::{Ns, Sector, Seed};

use super::Disk;
use super::mechanism::Mechanism;
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, Submitter};
use crate::api::layer::Layer;
use crate::profile::{Profile, Value};

mod caches;
mod closed_forms;
mod hdd;
mod properties;
mod worked_example;
mod writes;

/// A built-in drive with some parameters changed.
pub(crate) fn disk(name: &str, changes: &[(&str, Value)], seed: u64) -> Disk {
    let mut profile = Profile::built_in(name).unwrap();
    let changes: BTreeMap<String, Value> =
        changes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    profile.override_with(&changes).unwrap();
    Disk::from_profile(&profile, Seed(seed), "disk").unwrap()
}

pub(crate) fn number(value: f64) -> Value {
    Value::Number(value)
}

pub(crate) fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn mechanism(name: &str) -> Mechanism {
    disk(name, &[], 1).mechanism().clone()
}

pub(crate) fn bio(id: u32, operation: Operation, sector: u64, sectors: u32) -> Bio {
    Bio {
        id: BioId(id),
        operation,
        sector: Sector(sector),
        sectors,
        flags: Flags::NONE,
        submitter: Submitter::default(),
        segments: 0,
    }
}

/// A response: which bio, when it was sent, when it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub sent: Ns,
    pub done: Ns,
}

/// A host that keeps `depth` bios in flight and thinks `gap` after each.
pub(crate) struct Host {
    pub now: Ns,
    pub sent: Vec<Response>,
}

impl Host {
    pub(crate) const fn new() -> Self {
        Self { now: Ns(0), sent: Vec::new() }
    }

    /// Sends the bios that `next` makes; `None` ends.
    pub(crate) fn closed(
        &mut self,
        disk: &mut dyn Layer,
        depth: usize,
        next: impl FnMut(u32) -> Option<Bio>,
    ) {
        self.closed_after(disk, depth, 0, next);
    }

    /// The same, with some bios in flight already.
    pub(crate) fn closed_after(
        &mut self,
        disk: &mut dyn Layer,
        depth: usize,
        mut in_flight: usize,
        mut next: impl FnMut(u32) -> Option<Bio>,
    ) {
        let mut done = Vec::new();
        let mut is_over = false;
        loop {
            while in_flight < depth && !is_over {
                match next(self.sent.len() as u32) {
                    Some(bio) => {
                        disk.submit(self.now, &bio);
                        self.sent.push(Response { sent: self.now, done: Ns::MAX });
                        in_flight += 1;
                    }
                    None => is_over = true,
                }
            }
            if in_flight == 0 {
                return;
            }
            done.clear();
            self.step(disk, &mut done);
            in_flight -= done.len();
        }
    }

    /// One at a time, with a pause before each that `next` says.
    pub(crate) fn one_at_a_time(
        &mut self,
        disk: &mut dyn Layer,
        mut next: impl FnMut(u32) -> Option<(Ns, Bio)>,
    ) {
        let mut done = Vec::new();
        while let Some((pause, bio)) = next(self.sent.len() as u32) {
            self.idle_until(disk, self.now + pause);
            disk.submit(self.now, &bio);
            self.sent.push(Response { sent: self.now, done: Ns::MAX });
            done.clear();
            while done.is_empty() {
                self.step(disk, &mut done);
            }
        }
    }

    /// Lets the disk work by itself until then.
    pub(crate) fn idle_until(&mut self, disk: &mut dyn Layer, until: Ns) {
        let mut done = Vec::new();
        while disk.next_event() <= until {
            self.step(disk, &mut done);
        }
        self.now = until;
    }

    pub(crate) fn step(&mut self, disk: &mut dyn Layer, done: &mut Vec<Ended>) {
        let at = disk.next_event();
        assert_ne!(at, Ns::MAX, "bios are in flight and nothing will happen");
        assert!(at >= self.now, "time went back from {} to {at}", self.now);
        self.now = at;
        let before = done.len();
        disk.advance(at, done);
        for Ended { id, .. } in &done[before..] {
            let response = &mut self.sent[id.0 as usize];
            assert_eq!(response.done, Ns::MAX, "{id:?} was done twice");
            response.done = at;
        }
    }

    /// Mean response in milliseconds, without the first `skip`.
    pub(crate) fn mean_ms(&self, skip: usize) -> f64 {
        let rows = &self.sent[skip..];
        rows.iter().map(|r| (r.done - r.sent).0 as f64).sum::<f64>() / rows.len() as f64 * 1e-6
    }

    /// Completions per second over all.
    pub(crate) fn rate(&self) -> f64 {
        self.sent.len() as f64 / self.now.as_seconds()
    }
}

/// Uniform random bios of one kind.
fn random(
    disk: &Disk,
    operation: Operation,
    sectors: u32,
    count: u32,
) -> impl FnMut(u32) -> Option<Bio> + use<> {
    let mut stream: Stream = Seed(11).stream("addresses", 0);
    let slots = disk.info().capacity.0 / u64::from(sectors);
    move |id| {
        (id < count).then(|| bio(id, operation, stream.below(slots) * u64::from(sectors), sectors))
    }
}

pub(crate) fn counter(disk: &dyn Layer, name: &str) -> f64 {
    let counters = disk.counters();
    counters.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no {name}")).1
}

#[track_caller]
pub(crate) fn near(actual: f64, expected: f64, tolerance: f64) {
    let error = (actual - expected).abs();
    assert!(error <= tolerance, "{actual} is not {expected} +- {tolerance}");
}

#[track_caller]
pub(crate) fn within(actual: f64, range: (f64, f64)) {
    assert!(range.0 <= actual && actual <= range.1, "{actual} is not in {range:?}");
}
