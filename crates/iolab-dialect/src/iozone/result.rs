//! Measured values, as they come back from the front end, and the numbers of a cell.

use iolab_workload::preset::IozoneTest;
use serde::{Deserialize, Serialize};

use super::plan::Plan;
use super::side::Part;
use super::typed::Unit;

/// Event of a run; the front end tells it in this order: begin, rows, end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// Before the first row.
    Begin {
        /// Date and time, as ctime(3) writes it.
        began: String,
        /// Version of iolab.
        version: String,
        /// Words of uname(1).
        machine: String,
    },
    /// A row was measured, or as much of it as there is.
    Row(RowResult),
    /// After the last row.
    End {
        /// Every row of every round.
        rows: Vec<RowResult>,
    },
    /// Part of a file beside the report is wanted.
    Side(Part),
    /// The report's numbers are wanted, as JSON.
    Sheets {
        /// Every row of every round.
        rows: Vec<RowResult>,
    },
}

/// Phases of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "IozoneRowResult")]
pub struct RowResult {
    /// Index of the row of the plan.
    pub index: usize,
    /// Measured phases.
    pub phases: Vec<PhaseResult>,
    /// True if it failed after these phases.
    #[serde(default)]
    pub is_failed: bool,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "IozonePhaseResult")]
pub struct PhaseResult {
    /// The test.
    pub name: IozoneTest,
    /// From the release of the workers to the end of the last one.
    pub elapsed_ns: u64,
    /// From the release until the last worker has flushed, closed and gone; unknown: as
    /// `elapsed_ns`.
    #[serde(default)]
    pub parent_ns: Option<u64>,
    /// CPU time of all workers.
    pub cpu_ns: u64,
    /// In the order of the files.
    pub workers: Vec<WorkerResult>,
}

/// One child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "IozoneWorkerResult")]
pub struct WorkerResult {
    /// Number of the child.
    pub child: usize,
    /// Records.
    pub ops: u64,
    /// Bytes.
    pub bytes: u64,
    /// Its timed region.
    pub elapsed_ns: u64,
    /// Time inside the calls of it.
    pub call_ns: u64,
}

impl PhaseResult {
    /// Number in the cell of a single stream.
    ///
    /// kB/s are cut twice, as the original does: whole bytes per second, then whole kB.
    pub fn cell(&self, plan: &Plan) -> u64 {
        let (ops, bytes): (u64, u64) =
            self.workers.iter().fold((0, 0), |sum, w| (sum.0 + w.ops, sum.1 + w.bytes));
        let ns = self.workers.iter().map(|w| self.counted_ns(w, plan)).max().unwrap_or(0);
        let seconds = ns.max(1) as f64 / 1e9;
        match plan.show.unit {
            Unit::KiloBytes => (bytes as f64 / seconds) as u64 >> 10,
            Unit::Operations => (ops as f64 / seconds) as u64,
            Unit::Microseconds => (1e6 * seconds / ops.max(1) as f64) as u64,
        }
    }

    /// Time that the rate of a worker is about: all of its time, or that of its calls if it pauses.
    fn counted_ns(&self, worker: &WorkerResult, plan: &Plan) -> u64 {
        if plan.show.paused.contains(&self.name) { worker.call_ns } else { worker.elapsed_ns }
    }

    /// CPU use in percent of one processor.
    pub fn cpu_percent(&self) -> f64 {
        100.0 * self.cpu_ns as f64 / self.elapsed_ns.max(1) as f64
    }

    /// Amount that a child moved, in kB or operations, and per second, in single precision as the
    /// original keeps it.
    pub fn child(&self, worker: &WorkerResult, plan: &Plan) -> (f32, f32) {
        let moved = match plan.show.unit {
            Unit::Operations => worker.ops as f64,
            _ => worker.bytes as f64 / 1024.0,
        };
        let ns = self.counted_ns(worker, plan);
        if moved == 0.0 || ns == 0 {
            return (0.0, 0.0);
        }
        (moved as f32, (moved / (ns as f64 / 1e9)) as f32)
    }

    /// Sum of the children's rates.
    pub fn children_rate(&self, plan: &Plan) -> f64 {
        self.workers.iter().map(|worker| f64::from(self.child(worker, plan).1)).sum()
    }
}

/// Median; of an even number the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}
