//! Knobs that change while the workload runs: when, how, and what the record says about it.
//!
//! The parent changes them, because it owns the journal: each change is intended there before it
//! is made, read back after, and undone with everything else. Left out: changes of the workload.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use iolab_drive::clock::monotonic;

use crate::error::{Error, Result};
use crate::knob::KnobSet;
use crate::machine::Machine;
use crate::protocol::{KnobChange, Mark, PairsTreatment, TrialSpec, Warning};

/// Work beside a child that measures.
pub trait Midway {
    /// The timed region began, by the monotonic clock.
    fn released(&mut self, at_ns: u64);

    /// Time until the next action is due; none if nothing is.
    fn due_in(&self) -> Option<Duration>;

    /// Does what is due.
    fn act(&mut self) -> Result<()>;

    /// Puts the knobs of treatments into effect, one for each device made alike, between two
    /// slices.
    fn switch_to(&mut self, treatments: &[usize]) -> Result<()>;
}

/// The changes of one trial.
pub struct Changes<'a> {
    machine: &'a mut Machine,
    knobs: &'a mut KnobSet,
    left: VecDeque<&'a KnobChange>,
    /// Every knob that the trial has by now.
    values: BTreeMap<String, String>,
    released_ns: Option<u64>,
    marks: Vec<Mark>,
    warnings: Vec<Warning>,
    /// Treatments that alternate.
    treatments: &'a [PairsTreatment],
    /// Device and treatment where its knobs were checked, noted in the journal and put into effect
    /// once.
    known: BTreeSet<(usize, usize)>,
    /// Every knob as read back then, the first time of each treatment.
    found: BTreeMap<usize, BTreeMap<String, String>>,
    /// The treatment whose knobs each twin has.
    at: BTreeMap<usize, usize>,
}

/// Work that was done while a trial ran.
#[derive(Debug, Default)]
pub struct Done {
    /// Changes of knobs that the trial asked for.
    pub marks: Vec<Mark>,
    /// Warnings for the reader.
    pub warnings: Vec<Warning>,
    /// Every knob as read back under each treatment; empty if they never alternated.
    pub knobs: Vec<BTreeMap<String, String>>,
}

impl<'a> Changes<'a> {
    /// The changes that `spec` asks for.
    pub fn new(machine: &'a mut Machine, knobs: &'a mut KnobSet, spec: &'a TrialSpec) -> Self {
        Self {
            machine,
            knobs,
            left: spec.changes.iter().collect(),
            values: spec.knobs.clone(),
            released_ns: None,
            marks: Vec::new(),
            warnings: Vec::new(),
            treatments: spec.pairs.as_ref().map_or(&[], |pairs| &pairs.treatments),
            known: BTreeSet::new(),
            found: BTreeMap::new(),
            at: BTreeMap::new(),
        }
    }

    /// Makes all changes at once, on the paper of a dry run.
    pub fn rehearse(&mut self) -> Result<()> {
        while let Some(change) = self.left.pop_front() {
            self.make(change)?;
        }
        Ok(())
    }

    /// Work that was done, with warnings about it.
    pub fn finish(mut self) -> Done {
        if let Some(change) = self.left.front() {
            self.warnings.push(Warning::new(
                "change_not_made",
                format!(
                    "the workload ended before the change after {:.3} s was due",
                    Duration::from_nanos(change.at_ns).as_secs_f64()
                ),
                "let it run longer, or change earlier",
            ));
        }
        let knobs = self.knobs_of_treatments();
        Done { marks: self.marks, warnings: self.warnings, knobs }
    }

    /// Of each treatment what was read back of one with the same knobs.
    fn knobs_of_treatments(&self) -> Vec<BTreeMap<String, String>> {
        if self.found.is_empty() {
            return Vec::new();
        }
        let of = |treatment: &PairsTreatment| {
            let mut alike = self.found.iter();
            alike.find(|(index, _)| self.treatments[**index].knobs == treatment.knobs)
        };
        let found = self.treatments.iter().map(|it| of(it).map(|(_, knobs)| knobs.clone()));
        found.map(Option::unwrap_or_default).collect()
    }

    /// Gives one of several devices made alike the knobs of a treatment; others stay as they are.
    fn assign(&mut self, place: usize, treatment: usize) -> Result<()> {
        if self.at.get(&place) == Some(&treatment) {
            return Ok(());
        }
        self.at.remove(&place);
        let asked = &self.treatments[treatment].knobs;
        let knobs = &mut *self.knobs;
        if self.known.insert((place, treatment)) {
            let applied = knobs.apply_on(self.machine, place, asked)?;
            self.warnings.extend(applied.warnings);
            self.found.entry(treatment).or_insert(applied.knobs);
        } else {
            self.machine.unlisted(|machine| knobs.apply_on(machine, place, asked))?;
        }
        self.at.insert(place, treatment);
        Ok(())
    }

    /// Gives the only device, or all that count as one, the knobs of a treatment.
    fn switch(&mut self, treatment: usize) -> Result<()> {
        let wanted = &self.treatments[treatment];
        if self.known.insert((0, treatment)) {
            let applied = self.knobs.apply(self.machine, &wanted.knobs)?;
            self.warnings.extend(applied.warnings);
            self.found.insert(treatment, applied.knobs);
            self.values = wanted.knobs.clone();
            return Ok(());
        }
        let before = std::mem::replace(&mut self.values, wanted.knobs.clone());
        self.knobs.switch(self.machine, &before, &wanted.knobs)
    }

    fn make(&mut self, change: &KnobChange) -> Result<()> {
        let released = self.released_ns.unwrap_or_default();
        let before = self.knobs.read_back(self.machine);
        self.values.extend(change.knobs.clone());
        let began_ns = monotonic().0.saturating_sub(released);
        let applied = self.knobs.apply(self.machine, &self.values)?;
        let done_ns = monotonic().0.saturating_sub(released);
        self.warnings.extend(applied.warnings);
        for name in change.knobs.keys() {
            self.marks.push(Mark {
                asked_ns: change.at_ns,
                began_ns,
                done_ns,
                knob: name.clone(),
                from: before.get(name).cloned(),
                to: applied.knobs.get(name).cloned(),
            });
        }
        Ok(())
    }
}

impl Midway for Changes<'_> {
    fn released(&mut self, at_ns: u64) {
        self.released_ns.get_or_insert(at_ns);
    }

    fn due_in(&self) -> Option<Duration> {
        let due = self.released_ns?.saturating_add(self.left.front()?.at_ns);
        Some(Duration::from_nanos(due.saturating_sub(monotonic().0)))
    }

    fn act(&mut self) -> Result<()> {
        while self.due_in().is_some_and(|left| left.is_zero()) {
            let change = self.left.pop_front().expect("something is due");
            self.make(change)?;
        }
        Ok(())
    }

    fn switch_to(&mut self, treatments: &[usize]) -> Result<()> {
        if let Some(wrong) = treatments.iter().find(|index| **index >= self.treatments.len()) {
            return Err(Error::protocol(format!("there is no treatment {wrong}")));
        }
        match treatments {
            [only] => self.switch(*only),
            several => {
                several.iter().enumerate().try_for_each(|(place, it)| self.assign(place, *it))
            }
        }
    }
}
