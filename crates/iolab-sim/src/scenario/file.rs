//! The format of scenario files (YAML). Times in microseconds, sectors of 512 bytes.

use std::collections::BTreeMap;

use iolab_model::nearest::with_nearest;
use serde::Deserialize;
use serde_json::Value;

use super::block_layer::BlockCase;
use crate::api::bio::{Operation, PriorityClass};
use crate::error::SimError;
use crate::sched::SchedulerKind;

/// A file of scenarios.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Always 1.
    pub version: u32,
    /// Scheduler scenarios.
    #[serde(default)]
    pub scenarios: Vec<Scenario>,
    /// Cases of splitting, merging, flushing.
    #[serde(default)]
    pub(super) block_layer: Vec<BlockCase>,
    /// Numbers for unit tests; not judged here.
    #[serde(default)]
    pub formula_checks: Value,
}

/// Requests in, dispatch order out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name.
    pub id: String,
    /// The scheduler under test.
    pub scheduler: SchedulerKind,
    /// One line.
    pub title: String,
    /// Confidence of the author.
    #[serde(default)]
    pub confidence: String,
    /// Device that serves the requests.
    pub device: Device,
    /// Tunables that differ from the defaults, in sysfs units.
    #[serde(default)]
    pub tunables: BTreeMap<String, u64>,
    /// Merging is on.
    #[serde(default)]
    pub merges: bool,
    /// 0, 1 or 2; absent: 0 with `merges`, else 2.
    pub nomerges: Option<u8>,
    /// Target of write-back throttling, as in sysfs; absent: 0, off.
    #[serde(default)]
    pub wbt_lat_usec: i32,
    /// A state that the scheduler takes on before the first event.
    pub state: Option<String>,
    /// Arrivals, in time order.
    pub requests: Vec<RequestRow>,
    /// Expected result.
    pub expect: Expectation,
    /// The derivation.
    #[serde(default)]
    pub why: String,
}

/// Completes every request exactly `service_us` after its dispatch.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Service time.
    pub service_us: u64,
    /// Requests outstanding at most.
    pub depth: u32,
    /// Rotation, as the scheduler is told.
    pub rotational: bool,
}

/// One arrival.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestRow {
    /// Name.
    pub id: String,
    /// Time, in us.
    pub t_us: u64,
    /// I/O context.
    pub pid: u32,
    /// Operation.
    pub op: Operation,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    #[serde(default = "eight")]
    pub n: u32,
    /// True if a task waits for it; reads always.
    #[serde(default)]
    pub sync: bool,
    /// I/O priority class.
    #[serde(default)]
    pub class: PriorityClass,
    /// I/O priority level.
    #[serde(default = "four")]
    pub prio: u8,
    /// Submitting CPU.
    #[serde(default)]
    pub cpu: u16,
}

fn eight() -> u32 {
    8
}

fn four() -> u8 {
    4
}

/// Dispatch order and instants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Names in the order in which the device gets them.
    pub dispatch: Vec<String>,
    /// Times, in us.
    #[serde(default)]
    pub at_us: Vec<u64>,
    /// Absorbed request to the one that absorbed it.
    #[serde(default)]
    pub merged: BTreeMap<String, String>,
}

impl ScenarioFile {
    /// Parses a file; `subject` names it in errors.
    pub fn parse(subject: &str, text: &str) -> Result<Self, SimError> {
        let syntax = |problem: String| SimError::Syntax { subject: subject.to_owned(), problem };
        let options = serde_saphyr::options! { with_snippet: false };
        let file: Self = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| syntax(with_nearest(&error.to_string())))?;
        if file.version != 1 {
            let problem = format!("version {}: this program reads version 1", file.version);
            return Err(syntax(problem));
        }
        file.scenarios.iter().try_for_each(Scenario::check)?;
        Ok(file)
    }
}

impl Scenario {
    fn check(&self) -> Result<(), SimError> {
        let wrong = |problem: String, remedy: &str| {
            Err(SimError::Inconsistent {
                subject: format!("scenario {}", self.id),
                problem,
                remedy: remedy.to_owned(),
            })
        };
        if self.device.depth == 0 || self.requests.is_empty() {
            return wrong("no device slot or no request".into(), "give at least one of each");
        }
        for (index, row) in self.requests.iter().enumerate() {
            if row.n == 0 || row.prio > 7 {
                return wrong(
                    format!("request {}: n = {}, prio = {}", row.id, row.n, row.prio),
                    "n is at least 1 and prio 0 to 7",
                );
            }
            if index > 0 && row.t_us < self.requests[index - 1].t_us {
                return wrong(format!("request {} comes too early", row.id), "sort by t_us");
            }
            if self.requests[..index].iter().any(|other| other.id == row.id) {
                return wrong(format!("request {} appears twice", row.id), "give each a name");
            }
        }
        Ok(())
    }
}
