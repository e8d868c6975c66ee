//! Results as JSON: the same rows as in the report, with percentiles.

use serde::Serialize;

use super::plan::{Plan, ToldAs};
use super::render::{early, powers};
use super::result::{PhaseResult, RowResult, lines, summary};

/// Percentiles that are told of each flowop.
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// Results of one run.
#[derive(Serialize)]
struct Run<'a> {
    dialect: &'static str,
    elapsed_ns: u64,
    is_valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_by: Option<String>,
    errors: Vec<&'a str>,
    summary: Sum,
    flowops: Vec<Flowop<'a>>,
}

#[derive(Serialize)]
struct Sum {
    ops: u64,
    ops_per_s: f64,
    reads_per_s: f64,
    writes_per_s: f64,
    bytes_per_s: f64,
    latency_ns_mean: f64,
}

#[derive(Serialize)]
struct Flowop<'a> {
    name: &'a str,
    counts: ToldAs,
    ops: u64,
    bytes: u64,
    ops_per_s: f64,
    bytes_per_s: f64,
    latency_ns: Latency,
    /// `CountedAs` per power of two of nanoseconds, without the empty ones at the end.
    histogram: Vec<u64>,
}

#[derive(Serialize)]
struct Latency {
    mean: f64,
    min: u64,
    max: u64,
    percentiles: std::collections::BTreeMap<&'static str, u64>,
}

/// A run as JSON text.
pub fn row(plan: &Plan, row: &RowResult) -> String {
    let Some(phase) = row.phases.first() else { return String::new() };
    let all = lines(&plan.show, phase, None);
    let (sum, seconds) = (summary(&all), (phase.elapsed_ns as f64 / 1e9).max(1e-9));
    let errors = errors(phase);
    let ended_by = early(phase);
    let run = Run {
        dialect: "filebench",
        elapsed_ns: phase.elapsed_ns,
        is_valid: errors.is_empty() && !(plan.show.is_timeout && ended_by.is_some()),
        ended_by,
        errors,
        summary: Sum {
            ops: sum.ops,
            ops_per_s: sum.ops as f64 / seconds,
            reads_per_s: sum.reads as f64 / seconds,
            writes_per_s: sum.writes as f64 / seconds,
            bytes_per_s: sum.bytes as f64 / seconds,
            latency_ns_mean: sum.latency_ns / sum.ops.max(1) as f64,
        },
        flowops: all.iter().map(|line| flowop(line, seconds)).collect(),
    };
    serde_json::to_string_pretty(&run).unwrap_or_default() + "\n"
}

fn errors(phase: &PhaseResult) -> Vec<&str> {
    let workers = phase.tenants.iter().flat_map(|tenant| &tenant.workers);
    let mut all: Vec<&str> = workers.filter_map(|one| one.first_error.as_deref()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn flowop<'a>(line: &'a super::result::Line<'a>, seconds: f64) -> Flowop<'a> {
    let sum = &line.sum;
    let mut histogram = powers(&sum.latency).to_vec();
    let used = histogram.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    histogram.truncate(used);
    let percentiles = PERCENTILES
        .iter()
        .filter_map(|(name, percent)| Some((*name, sum.latency.quantile(*percent)?)))
        .collect();
    Flowop {
        name: &line.show.name,
        counts: line.show.counts,
        ops: sum.ops,
        bytes: sum.bytes,
        ops_per_s: sum.ops as f64 / seconds,
        bytes_per_s: sum.bytes as f64 / seconds,
        latency_ns: Latency {
            mean: sum.latency.mean().unwrap_or(0.0),
            min: sum.latency.min().unwrap_or(0),
            max: sum.latency.max().unwrap_or(0),
            percentiles,
        },
        histogram,
    }
}
