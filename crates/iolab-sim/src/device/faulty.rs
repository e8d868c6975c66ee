//! Commands that fail as a stack file says: a layer around a whole device.
//!
//! A failing command goes to the device and takes its time there; only its end is another one, as
//! where a sector cannot be read. What a device does by itself (retries, reallocation, destaging
//! from its cache) does not fail. The kernel's letters for an errno: Linux block/blk-core.c,
//! `blk_errors`.

use iolab_model::error::Errno;
use iolab_model::seed::Stream;
use iolab_model::{Ns, Sector, Seed, TraceEvent};

use crate::api::bio::{Bio, BioId, Ended, ProcessId};
use crate::api::layer::{Incident, Info, Layer, reason};
use crate::stack::faults::FaultSpec;

/// Code of the incidents that a stack file asks for.
pub const FAULTS_INJECTED: &str = "faults_injected";

/// A rule, and what came of it.
#[derive(Debug)]
struct Rule {
    spec: FaultSpec,
    random: Stream,
    /// Commands to which it applies, and those that it let fail.
    seen: u64,
    failed: u64,
    first: Option<(Ns, Sector, u32)>,
}

impl Rule {
    /// Tell whether this command fails, and how.
    fn strikes(&mut self, now: Ns, bio: &Bio) -> Option<Errno> {
        if !self.spec.is_about(bio) {
            return None;
        }
        self.seen += 1;
        let is_due = self.seen > self.spec.after_ops;
        let is_spent = self.spec.times.is_some_and(|times| self.failed >= times);
        if !is_due || is_spent {
            return None;
        }
        let probability = self.spec.probability.unwrap_or(1.0);
        if probability < 1.0 && self.random.unit() >= probability {
            return None;
        }
        self.failed += 1;
        self.first.get_or_insert((now, bio.sector, bio.sectors));
        Some(self.spec.error.errno())
    }

    fn incident(&self, device: &str) -> Option<Incident> {
        let (at, sector, sectors) = self.first?;
        let count = self.failed;
        let commands = if count == 1 { "command" } else { "commands" };
        Some(Incident {
            code: FAULTS_INJECTED,
            at,
            message: format!(
                "{device}: {count} {commands} failed with {} because the stack file says so ({}); \
                 the first {}",
                reason(self.spec.error.errno()),
                self.spec.text(),
                if sectors == 0 {
                    "was a flush".to_owned()
                } else {
                    format!("had {sectors} sectors at sector {}", sector.0)
                }
            ),
            hint: "take [[faults]] out of the stack file to measure without, as another study",
        })
    }
}

/// A device of which some commands fail.
pub struct Faulty {
    below: Box<dyn Layer>,
    device: String,
    rules: Vec<Rule>,
    /// Commands at the device that will end badly.
    doomed: Vec<(BioId, Errno)>,
}

impl Faulty {
    /// Rules for the device called `device` in messages; `seed` is the root of their randomness.
    pub fn new(below: Box<dyn Layer>, device: &str, rules: Vec<FaultSpec>, seed: Seed) -> Self {
        let rule = |(index, spec)| {
            let random = seed.stream(&format!("fault/{device}"), index);
            Rule { spec, random, seen: 0, failed: 0, first: None }
        };
        let rules = (0..).zip(rules).map(rule).collect();
        Self { below, device: device.to_owned(), rules, doomed: Vec::new() }
    }
}

impl Layer for Faulty {
    fn info(&self) -> Info {
        self.below.info()
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        // Every rule counts every command; the first that strikes decides.
        let struck: Vec<_> = self.rules.iter_mut().map(|rule| rule.strikes(now, bio)).collect();
        if let Some(errno) = struck.into_iter().flatten().next() {
            self.doomed.push((bio.id, errno));
        }
        self.below.submit(now, bio);
    }

    fn next_event(&self) -> Ns {
        self.below.next_event()
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        let before = done.len();
        self.below.advance(now, done);
        if self.doomed.is_empty() {
            return;
        }
        for ended in &mut done[before..] {
            if let Some(index) = self.doomed.iter().position(|&(id, _)| id == ended.id) {
                ended.status = Err(self.doomed.swap_remove(index).1);
            }
        }
    }

    fn is_busy(&self) -> bool {
        self.below.is_busy()
    }

    fn exited(&mut self, now: Ns, process: ProcessId) {
        self.below.exited(now, process);
    }

    fn age(&mut self) {
        self.below.age();
    }

    fn record_events(&mut self, queues: &mut u16) {
        self.below.record_events(queues);
    }

    fn take_events(&mut self, events: &mut Vec<TraceEvent>) {
        self.below.take_events(events);
    }

    fn incidents(&self, list: &mut Vec<Incident>) {
        list.extend(self.rules.iter().filter_map(|rule| rule.incident(&self.device)));
        self.below.incidents(list);
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let mut all = self.below.counters();
        let failed: u64 = self.rules.iter().map(|rule| rule.failed).sum();
        all.push(("commands_failed".to_owned(), failed as f64));
        all
    }
}
