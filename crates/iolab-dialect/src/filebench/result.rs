//! Measured values as they come back from the front end, and the sums that the report shows.

use iolab_model::Histogram;
use serde::{Deserialize, Serialize};

use super::plan::{FlowopShow, Show, ToldAs};

/// Name of the event; of a row the rest is a [`RowResult`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FilebenchEvent")]
pub struct Event {
    /// Kind of the event.
    pub event: ReportEvent,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FilebenchEventKind")]
pub enum ReportEvent {
    /// Before the first run.
    Begin,
    /// A run has ended.
    Row,
    /// After the last run.
    End,
}

/// One run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FilebenchRowResult")]
pub struct RowResult {
    /// Measured phases: one.
    pub phases: Vec<PhaseResult>,
    /// Time that all of it took, with the making of files.
    #[serde(default)]
    pub whole_ns: u64,
}

/// The phase of a record.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FilebenchPhaseResult")]
pub struct PhaseResult {
    /// From the release of the threads to the end of the last one.
    pub elapsed_ns: u64,
    /// CPU time of all threads.
    #[serde(default)]
    pub cpu: CpuSpent,
    /// Kinds of threads.
    pub tenants: Vec<ThreadsResult>,
}

/// CPU time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FilebenchCpu")]
pub struct CpuSpent {
    /// In user space.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
}

/// Equal threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FilebenchTenantResult")]
pub struct ThreadsResult {
    /// Each of them.
    pub workers: Vec<WorkerResult>,
    /// Operations of their program.
    #[serde(default)]
    pub operations: Vec<Operation>,
}

/// One thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FilebenchWorkerResult")]
pub struct WorkerResult {
    /// Ordinal among the equal ones.
    #[serde(default)]
    pub worker: u32,
    /// The first failure.
    #[serde(default)]
    pub first_error: Option<String>,
    /// Flowop that ended it before its time.
    #[serde(default)]
    pub ended_by: Option<String>,
}

/// One operation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FilebenchOperation")]
pub struct Operation {
    /// Its id.
    pub id: String,
    /// Number of times.
    pub ops: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Latency.
    pub latency: Histogram,
    /// Between the reports.
    #[serde(default)]
    pub parts: Vec<Part>,
}

/// `CountedAs` of an operation between two reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FilebenchPart")]
pub struct Part {
    /// Number of times.
    pub ops: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Latency.
    pub latency: Histogram,
}

impl Part {
    /// Adds others.
    pub fn add(&mut self, ops: u64, bytes: u64, latency: &Histogram) {
        self.ops += ops;
        self.bytes += bytes;
        self.latency.merge(latency);
    }
}

/// A row of the report.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Form of it.
    pub show: &'a FlowopShow,
    /// Its counts.
    pub sum: Part,
}

/// Rows of the report in the order of their definitions: of the whole run, or of the parts
/// `from .. to` between reports.
pub fn lines<'a>(
    show: &'a Show,
    phase: &PhaseResult,
    parts: Option<(usize, usize)>,
) -> Vec<Line<'a>> {
    let mut all = Vec::new();
    for flowop in &show.flowops {
        let mut sum = Part::default();
        for (tenant, id) in &flowop.parts {
            let operations = phase.tenants.get(*tenant).map(|tenant| &tenant.operations);
            let found = operations.into_iter().flatten().find(|one| one.id == *id);
            let Some(one) = found else { continue };
            match parts {
                None => sum.add(one.ops, one.bytes, &one.latency),
                Some((from, to)) => {
                    for part in one.parts.iter().take(to).skip(from) {
                        sum.add(part.ops, part.bytes, &part.latency);
                    }
                }
            }
        }
        all.push(Line { show: flowop, sum });
    }
    all
}

/// Sums over operations on files.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Operations.
    pub ops: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes.
    pub bytes: u64,
    /// Sum of all latencies, in ns.
    pub latency_ns: f64,
}

/// Sum of the rows that are operations on files.
pub fn summary(lines: &[Line<'_>]) -> Summary {
    let mut sum = Summary::default();
    for line in lines.iter().filter(|line| line.show.counts != ToldAs::Control) {
        sum.ops += line.sum.ops;
        sum.bytes += line.sum.bytes;
        sum.reads += if line.show.counts == ToldAs::Read { line.sum.ops } else { 0 };
        sum.writes += if line.show.counts == ToldAs::Write { line.sum.ops } else { 0 };
        sum.latency_ns += line.sum.latency.mean().unwrap_or(0.0) * line.sum.latency.count() as f64;
    }
    sum
}
