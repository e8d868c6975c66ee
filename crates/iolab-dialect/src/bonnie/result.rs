//! Measured values, as they come back from the front end, and the cells that are made of them.

use serde::{Deserialize, Serialize};

use super::csv::{Cell, IO_PHASES, Line, PHASES, TOO_SHORT, TOO_SHORT_CPU};
use super::plan::Plan;

/// Shorter phases give no rate (bonnie++ 2.00).
const SHORT_NS: u64 = 500_000_000;
const SEEKS: usize = IO_PHASES - 1;

/// Event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[schemars(rename = "BonnieEvent")]
pub enum Event {
    /// Before the first run.
    Begin {},
    /// A run was measured, or as much of it as there is.
    Row(RowResult),
    /// Row of results for standard error.
    RowAside(RowResult),
    /// After the last run.
    End {},
    /// `bon_csv2txt` of these lines; the answer is JSON.
    Table {
        /// Text that was read.
        text: String,
    },
}

/// Phases of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "BonnieRowResult")]
pub struct RowResult {
    /// Measured phases.
    pub phases: Vec<PhaseResult>,
    /// True if it failed after these phases.
    #[serde(default)]
    pub is_failed: bool,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "BonniePhaseResult")]
pub struct PhaseResult {
    /// Its name, see [`PHASES`].
    pub name: String,
    /// From the release of the workers to the end of the last one.
    pub elapsed_ns: u64,
    /// CPU time of all workers.
    pub cpu_ns: u64,
    /// Longest call, or file.
    pub latency_ns_max: u64,
    /// Workers.
    pub workers: Vec<WorkerResult>,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "BonnieWorkerResult")]
pub struct WorkerResult {
    /// Records, tickets or files.
    pub ops: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The line of a run.
pub fn line_of(plan: &Plan, row: &RowResult) -> Line {
    let mut line = plan.show.line.clone();
    for (place, name) in PHASES.iter().enumerate() {
        if let Some(phase) = row.phases.iter().find(|phase| phase.name == *name) {
            line.cells[place] = cell(place, phase);
        }
    }
    line
}

fn cell(place: usize, phase: &PhaseResult) -> Cell {
    let latency = latency_text(phase.latency_ns_max);
    if phase.elapsed_ns < SHORT_NS {
        return Cell { rate: TOO_SHORT.into(), cpu: TOO_SHORT_CPU.into(), latency };
    }
    let seconds = phase.elapsed_ns as f64 / 1e9;
    let sum = |of: fn(&WorkerResult) -> u64| phase.workers.iter().map(of).sum::<u64>() as f64;
    let rate = match place {
        SEEKS => match sum(|worker| worker.ops) / seconds {
            rate if rate < 1000.0 => format!("{rate:.1}"),
            rate => format!("{rate:.0}"),
        },
        _ if place < SEEKS => {
            let rate = sum(|worker| worker.bytes) / 1024.0 / seconds;
            format!("{}", rate as u64)
        }
        _ => format!("{}", (sum(|worker| worker.ops) / seconds) as u64),
    };
    let cpu = (100.0 * phase.cpu_ns as f64 / phase.elapsed_ns as f64) as u64;
    Cell { rate, cpu: cpu.to_string(), latency }
}

/// A time with the unit that bonnie++ chooses; nothing for none.
fn latency_text(ns: u64) -> String {
    let us = ns / 1000;
    match us {
        0 => String::new(),
        _ if us > 99_999_999 => format!("{}s", us / 1_000_000),
        _ if us > 99_999 => format!("{}ms", us / 1000),
        _ => format!("{us}us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(elapsed_ms: u64, ops: u64, bytes: u64) -> PhaseResult {
        PhaseResult {
            name: String::new(),
            elapsed_ns: elapsed_ms * 1_000_000,
            cpu_ns: elapsed_ms * 999_000,
            latency_ns_max: 1_234_567,
            workers: vec![WorkerResult { ops, bytes }, WorkerResult { ops, bytes }],
        }
    }

    #[test]
    fn half_a_second_gives_a_rate_and_less_does_not() {
        let cell_of = |place, ms| cell(place, &phase(ms, 1000, 10 << 20));
        assert_eq!(cell_of(1, 499).rate, "+++++");
        assert_eq!(cell_of(1, 499).latency, "1234us");
        assert_eq!(cell_of(1, 500).rate, "40960");
        assert_eq!(cell_of(1, 500).cpu, "99");
        assert_eq!(cell_of(SEEKS, 4000).rate, "500.0");
        assert_eq!(cell_of(SEEKS, 1500).rate, "1333");
        assert_eq!(cell_of(6, 1500).rate, "1333");
    }

    #[test]
    fn latencies_have_the_recorded_units() {
        let seen = [0, 99_999_999, 100_000_000, 99_999_999_999, 100_000_000_000];
        assert_eq!(seen.map(latency_text), ["", "99999us", "100ms", "99999ms", "100s"]);
    }
}
