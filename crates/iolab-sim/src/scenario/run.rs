//! Runs scenarios and compares.

use std::cell::RefCell;
use std::rc::Rc;

use iolab_model::{Ns, Sector};
use serde::Serialize;

use super::file::{Expectation, RequestRow, Scenario, ScenarioFile};
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, Priority, ProcessId, Submitter};
use crate::api::layer::{Info, Layer};
use crate::api::request::RequestId;
use crate::device::fixed::Fixed;
use crate::error::SimError;
use crate::queue::{BlockQueue, QueueParameters};

/// Simulated time 0 of a scenario: long after boot and after the scheduler was attached.
const EPOCH: Ns = Ns::from_seconds(1_000);

/// Result of a case.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Judgement {
    /// Name of the case.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Scheduler, or `block layer`.
    pub scheduler: String,
    /// Obtained equals expected.
    pub is_ok: bool,
    /// Expected result, as text.
    pub expected: String,
    /// Obtained result, as text.
    pub obtained: String,
}

/// Runs every scenario and block-layer case of a file, in its order.
pub fn judge_all(file: &ScenarioFile) -> Result<Vec<Judgement>, SimError> {
    let scenarios = file.scenarios.iter().map(judge);
    let cases = file.block_layer.iter().map(super::block_layer::judge);
    scenarios.chain(cases).collect()
}

/// Runs a scenario and compares.
pub fn judge(scenario: &Scenario) -> Result<Judgement, SimError> {
    let mut obtained = obtain(scenario)?;
    if scenario.expect.at_us.is_empty() {
        obtained.at_us.clear();
    }
    Ok(Judgement {
        id: scenario.id.clone(),
        title: scenario.title.clone(),
        scheduler: scenario.scheduler.name().to_owned(),
        is_ok: obtained == scenario.expect,
        expected: in_words(&scenario.expect),
        obtained: in_words(&obtained),
    })
}

fn in_words(expectation: &Expectation) -> String {
    let times = expectation.at_us.iter().map(|&us| format!("@{}", us as f64 / 1_000.0));
    let mut times = times.chain(std::iter::repeat(String::new()));
    let order: Vec<String> = expectation
        .dispatch
        .iter()
        .map(|name| format!("{name}{}", times.next().unwrap_or_default()))
        .collect();
    let merged: Vec<String> =
        expectation.merged.iter().map(|(lost, kept)| format!("{lost} in {kept}")).collect();
    if merged.is_empty() {
        return order.join(" ");
    }
    format!("{} ({})", order.join(" "), merged.join(", "))
}

/// A device that notes what it was given.
struct Watched {
    inner: Fixed,
    seen: Rc<RefCell<Vec<(Ns, BioId)>>>,
}

impl Layer for Watched {
    fn info(&self) -> Info {
        self.inner.info()
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        self.seen.borrow_mut().push((now, bio.id));
        self.inner.submit(now, bio);
    }

    fn next_event(&self) -> Ns {
        self.inner.next_event()
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        self.inner.advance(now, done);
    }
}

/// Runs a scenario: who was dispatched when, and who was absorbed by whom.
pub fn obtain(scenario: &Scenario) -> Result<Expectation, SimError> {
    let seen = Rc::default();
    let mut queue = queue_of(scenario, Rc::clone(&seen))?;
    if let Some(state) = &scenario.state
        && !queue.scheduler.preset(state)
    {
        return Err(SimError::Inconsistent {
            subject: format!("scenario {}", scenario.id),
            problem: format!("{} does not understand the state `{state}`", scenario.scheduler),
            remedy: "word it as the reference page of the scheduler does".into(),
        });
    }
    let mut obtained = Expectation::default();
    let mut arrivals = scenario.requests.iter().enumerate().peekable();
    let mut done = Vec::new();
    loop {
        let arrival = arrivals.peek().map_or(Ns::MAX, |(_, row)| instant(row.t_us));
        let now = queue.next_event().min(arrival);
        if now == Ns::MAX {
            return Ok(obtained);
        }
        if queue.below().next_event() <= now {
            queue.advance(now, &mut done);
        }
        while let Some((index, row)) = arrivals.next_if(|(_, row)| instant(row.t_us) <= now) {
            queue.submit(now, &bio_of(index, row));
        }
        queue.advance(now, &mut done);
        for (at, id) in seen.borrow_mut().drain(..) {
            note(&queue, scenario, (at, id), &mut obtained);
        }
    }
}

fn queue_of(
    scenario: &Scenario,
    seen: Rc<RefCell<Vec<(Ns, BioId)>>>,
) -> Result<BlockQueue, SimError> {
    let device = scenario.device;
    let service = Ns::from_us(device.service_us);
    let inner = Fixed::new(service, device.depth, device.rotational);
    let cpus = scenario.requests.iter().map(|row| row.cpu + 1).max().unwrap_or(1);
    let parameters = QueueParameters {
        scheduler: scenario.scheduler,
        tunables: scenario.tunables.clone(),
        nr_requests: Some(256),
        look_ahead: 0,
        nomerges: scenario.nomerges.unwrap_or(if scenario.merges { 0 } else { 2 }),
        cpus,
        wbt_lat_usec: Some(scenario.wbt_lat_usec),
        ..QueueParameters::default()
    };
    BlockQueue::new(Ns(0), &parameters, Box::new(Watched { inner, seen }))
}

fn instant(us: u64) -> Ns {
    EPOCH + Ns::from_us(us)
}

fn bio_of(index: usize, row: &RequestRow) -> Bio {
    let is_sync = row.sync || row.op == Operation::Read;
    Bio {
        id: BioId(index as u32),
        operation: row.op,
        sector: Sector(row.sector),
        sectors: row.n,
        flags: if is_sync { Flags::SYNC } else { Flags::NONE },
        submitter: Submitter {
            process: ProcessId(row.pid),
            priority: Priority { class: row.class, level: row.prio },
            cpu: row.cpu,
        },
        segments: 0,
    }
}

fn note(queue: &BlockQueue, scenario: &Scenario, seen: (Ns, BioId), obtained: &mut Expectation) {
    let mut carried =
        queue.carried(RequestId(seen.1.0)).map(|id| &scenario.requests[id.0 as usize].id);
    let Some(first) = carried.next() else { return };
    obtained.merged.extend(carried.map(|lost| (lost.clone(), first.clone())));
    obtained.dispatch.push(first.clone());
    obtained.at_us.push((seen.0 - EPOCH).0 / 1_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/golden/scheduler/scheduler-scenarios.yaml"
    ));

    /// Schedulers whose file exists; the others' scenarios are dropped before parsing.
    fn file() -> ScenarioFile {
        // A request called `y` is no boolean.
        let options = serde_saphyr::options! { strict_booleans: true };
        let mut value: serde_json::Value =
            serde_saphyr::from_str_with_options(FILE, options).unwrap();
        let is_known = |name: &serde_json::Value| {
            name.as_str().is_none_or(|n| n.parse::<crate::sched::SchedulerKind>().is_ok())
        };
        value["scenarios"].as_array_mut().unwrap().retain(|s| is_known(&s["scheduler"]));
        let cases = value["block_layer"].as_array_mut().unwrap();
        cases.retain(|c| is_known(&c["input"]["scheduler"]));
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn every_scenario_gives_the_expected_order() {
        let judgements = judge_all(&file()).unwrap();
        let wrong: Vec<String> = judgements
            .iter()
            .filter(|j| !j.is_ok)
            .map(|j| format!("{}: expected {}\n    obtained {}", j.id, j.expected, j.obtained))
            .collect();
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), judgements.len(), wrong.join("\n"));
        assert!(judgements.len() >= 10, "too few cases: {}", judgements.len());
    }

    #[test]
    fn an_unknown_field_is_named() {
        let text = FILE.replacen("depth: 1", "deepth: 1", 1);
        let error = ScenarioFile::parse("x.yaml", &text).unwrap_err().to_string();
        assert!(error.contains("deepth") && error.contains("depth"), "{error}");
    }
}
