//! Reports of a run, from what its clients counted.

use std::fmt::Write as _;

use iolab_workload::kv::hdr::{Hdr, part_of};
use iolab_workload::kv::{KvLatency, KvRecord, KvReturned, KvSeriesRecord};
use serde::{Deserialize, Serialize};

use super::export::{Line, text};
use super::hdr_log;
use super::lower::{Plan, Show};

/// Sort of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "YcsbEventKind")]
pub enum YcsbEventKind {
    /// Before the first operation.
    Begin,
    /// A run has ended.
    Row,
    /// The histogram logs of a run are wanted.
    Logs,
    /// After the last one.
    End,
}

/// Event of a run.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "YcsbEvent")]
pub struct Event {
    /// Its sort.
    pub event: YcsbEventKind,
}

/// Results of a run, as far as a report needs them.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "YcsbRowResult")]
pub struct RowResult {
    /// Phases; of YCSB there is one.
    pub phases: Vec<PhaseResult>,
    /// Single latencies, if they were logged.
    #[serde(default)]
    pub raw: Vec<RawSeries>,
}

/// A phase of a run.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "YcsbPhaseResult")]
pub struct PhaseResult {
    /// Its tenants; there is one.
    pub tenants: Vec<ClientsResult>,
}

/// Clients of a run.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "YcsbTenantResult")]
pub struct ClientsResult {
    /// Counts of each client.
    pub workers: Vec<ClientResult>,
    /// Counts of all.
    pub kv: Option<KvRecord>,
}

/// A client.
#[derive(Clone, Copy, Debug, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "YcsbClientResult")]
pub struct ClientResult {
    /// Operations.
    pub ops: u64,
}

/// Single latencies of a series.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "YcsbRawSeries")]
pub struct RawSeries {
    /// Its name.
    pub name: String,
    /// Lines of them; empty: they are in a file of their own.
    pub lines: String,
    /// The 1st, 5th, 50th, 90th, 95th, 99th, 99.9th and 99.99th percentile, in microseconds.
    pub percentiles_us: Vec<u64>,
}

/// Names of histogram logs and their texts.
#[derive(Clone, Debug, Serialize)]
struct LogText {
    name: String,
    text: String,
}

const RAW_PERCENTILES: [&str; 8] = ["p1", "p5", "p50", "p90", "p95", "p99", "p99.9", "p99.99"];
const MS_PER_NS: u64 = 1_000_000;

/// Series that a report shows; latencies from the planned begin on have no results beside them.
struct Shown<'a> {
    name: String,
    results: &'a [KvReturned],
    latency: &'a KvLatency,
}

/// The report of a run.
pub fn report(plan: &Plan, result: &RowResult) -> String {
    let Some(tenant) = result.phases.first().and_then(|phase| phase.tenants.first()) else {
        return String::new();
    };
    let Some(record) = &tenant.kv else { return String::new() };
    let show = &plan.show;
    let ops: u64 = tenant.workers.iter().map(|client| client.ops).sum();
    let run_ms = (record.opening_ns + record.running_ns) / MS_PER_NS;
    let mut lines = vec![
        Line::whole("OVERALL", "RunTime(ms)", run_ms),
        Line::double("OVERALL", "Throughput(ops/sec)", 1000.0 * ops as f64 / run_ms.max(1) as f64),
        Line::whole("TOTAL_GCs", "Count", 0),
        Line::whole("TOTAL_GC_TIME", "Time(ms)", 0),
        Line::double("TOTAL_GC_TIME_%", "Time(%)", 0.0),
    ];
    for shown in shown(show, record) {
        match show.kind.as_str() {
            "histogram" => with_buckets(show, "", &shown, &mut lines),
            "timeseries" => with_windows(show, &shown, &mut lines),
            "raw" => with_raw(show, "", &shown, &result.raw, &mut lines),
            "hdrhistogram+histogram" => {
                with_hdr(show, "Hdr", &shown, &mut lines);
                with_buckets(show, "Bucket", &shown, &mut lines);
            }
            "hdrhistogram+raw" => {
                with_hdr(show, "Hdr", &shown, &mut lines);
                with_raw(show, "Raw", &shown, &result.raw, &mut lines);
            }
            _ => with_hdr(show, "", &shown, &mut lines),
        }
    }
    raw_lines(show, &result.raw) + &text(&show.exporter, &lines)
}

/// Single latencies that belong to standard output.
fn raw_lines(show: &Show, raw: &[RawSeries]) -> String {
    let prefix = if show.kind == "hdrhistogram+raw" { "Raw" } else { "" };
    let mut text = String::new();
    for series in raw.iter().filter(|series| !series.lines.is_empty()) {
        let name = format!("{prefix}{}", series.name);
        let _ = writeln!(text, "{name} latency raw data: op, timestamp(ms), latency(us)");
        for line in series.lines.lines() {
            let _ = writeln!(text, "{prefix}{line}");
        }
    }
    text
}

fn shown<'a>(show: &Show, record: &'a KvRecord) -> Vec<Shown<'a>> {
    let plain = |series: &'a KvSeriesRecord| {
        let intended = series.intended.as_ref().filter(|_| show.interval == "intended");
        let latency = intended.unwrap_or(&series.latency);
        Shown { name: series.name.clone(), results: &series.returned, latency }
    };
    let mut all: Vec<Shown<'a>> = record.series.iter().map(plain).collect();
    if show.interval == "both" {
        for series in &record.series {
            if let Some(latency) = &series.intended {
                let name = format!("Intended-{}", series.name);
                all.push(Shown { name, results: &[], latency });
            }
        }
    }
    all
}

fn hdr_of(latency: &KvLatency) -> Hdr {
    Hdr::of(&latency.hdr_parts, &latency.hdr_counts)
}

fn returned(name: &str, results: &[KvReturned], lines: &mut Vec<Line>) {
    for one in results {
        lines.push(Line::whole(name, format!("Return={}", one.status), one.count));
    }
}

fn with_hdr(show: &Show, prefix: &str, shown: &Shown<'_>, lines: &mut Vec<Line>) {
    let (name, hdr) = (format!("{prefix}{}", shown.name), hdr_of(shown.latency));
    lines.push(Line::whole(&name, "Operations", hdr.count()));
    lines.push(Line::double(&name, "AverageLatency(us)", hdr.mean()));
    lines.push(Line::whole(&name, "MinLatency(us)", hdr.min()));
    lines.push(Line::whole(&name, "MaxLatency(us)", hdr.max()));
    for typed in &show.percentiles {
        let percent: f64 = typed.parse().unwrap_or(0.0);
        let label = format!("{}PercentileLatency(us)", ordinal(typed));
        lines.push(Line::whole(&name, label, hdr.percentile(percent)));
    }
    returned(&name, shown.results, lines);
    if show.is_verbose {
        for (index, count) in hdr.parts() {
            let (lowest, size) = part_of(index);
            lines.push(Line::double(&name, (lowest + size - 1).to_string(), count as f64));
        }
    }
}

/// A percentile as an ordinal number; fractions stay as they are.
fn ordinal(typed: &str) -> String {
    let Ok(number) = typed.parse::<u32>() else { return typed.to_owned() };
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Counts by whole milliseconds.
fn with_buckets(show: &Show, prefix: &str, shown: &Shown<'_>, lines: &mut Vec<Line>) {
    let (name, latency) = (format!("{prefix}{}", shown.name), shown.latency);
    let ops = latency.ops as f64;
    let mean = latency.sum_us as f64 / ops;
    let variance = latency.sum_squares_us2 / ops - mean * mean;
    lines.push(Line::whole(&name, "Operations", latency.ops));
    lines.push(Line::double(&name, "AverageLatency(us)", mean));
    lines.push(Line::double(&name, "LatencyVariance(us)", variance.max(0.0)));
    lines.push(Line::whole(&name, "MinLatency(us)", latency.min_us));
    lines.push(Line::whole(&name, "MaxLatency(us)", latency.max_us));
    let buckets = show.buckets as usize;
    for (label, share) in [("95th", 0.95), ("99th", 0.99)] {
        let mut seen = 0;
        let at = latency.ms_counts.iter().take(buckets).position(|count| {
            seen += count;
            seen as f64 / ops >= share
        });
        if let Some(ms) = at {
            let label = format!("{label}PercentileLatency(us)");
            lines.push(Line::whole(&name, label, ms as u64 * 1000));
        }
    }
    // Of two measurements only the first one is told of results.
    if prefix.is_empty() {
        returned(&name, shown.results, lines);
    }
    if show.is_verbose {
        let count = |at: usize| latency.ms_counts.get(at).copied().unwrap_or(0);
        for at in 0..buckets {
            lines.push(Line::whole(&name, at.to_string(), count(at)));
        }
        lines.push(Line::whole(&name, format!(">{buckets}"), count(buckets)));
    }
}

fn with_windows(show: &Show, shown: &Shown<'_>, lines: &mut Vec<Line>) {
    let (name, latency) = (&shown.name, shown.latency);
    lines.push(Line::whole(name, "Operations", latency.ops));
    lines.push(Line::double(
        name,
        "AverageLatency(us)",
        latency.sum_us as f64 / latency.ops as f64,
    ));
    lines.push(Line::whole(name, "MinLatency(us)", latency.min_us));
    lines.push(Line::whole(name, "MaxLatency(us)", latency.max_us));
    returned(name, shown.results, lines);
    let windows = latency.window_sums_us.iter().zip(&latency.window_ops).enumerate();
    for (at, (sum, ops)) in windows.filter(|(_, (_, ops))| **ops > 0) {
        let offset = at as u64 * show.granularity_ms;
        lines.push(Line::double(name, offset.to_string(), *sum as f64 / *ops as f64));
    }
}

fn with_raw(
    show: &Show,
    prefix: &str,
    shown: &Shown<'_>,
    raw: &[RawSeries],
    lines: &mut Vec<Line>,
) {
    let (name, latency) = (format!("{prefix}{}", shown.name), shown.latency);
    lines.push(Line::whole(&name, "Total Operations", latency.ops));
    let percentiles = raw.iter().find(|one| one.name == shown.name).map(|one| &one.percentiles_us);
    if let (Some(percentiles), false) = (percentiles, show.has_no_summary) {
        let below = "Below is a summary of latency in microseconds:".to_owned();
        lines.push(Line { value: super::export::Value::Whole(-1), ..Line::whole(&name, below, 0) });
        lines.push(Line::double(&name, "Average", latency.sum_us as f64 / latency.ops as f64));
        lines.push(Line::whole(&name, "Min", latency.min_us));
        lines.push(Line::whole(&name, "Max", latency.max_us));
        for (label, value) in RAW_PERCENTILES.iter().zip(percentiles) {
            lines.push(Line::whole(&name, *label, *value));
        }
    }
    if prefix.is_empty() {
        returned(&name, shown.results, lines);
    }
}

/// Histogram logs of a run, as a JSON list of names and texts.
pub fn logs(plan: &Plan, result: &RowResult) -> String {
    let records = result.phases.iter().flat_map(|phase| &phase.tenants);
    let mut found = Vec::new();
    for record in records.filter_map(|tenant| tenant.kv.as_ref()) {
        for one in shown(&plan.show, record) {
            let length_s = record.running_ns as f64 / 1e9;
            let text =
                hdr_log::log(&one.name, &hdr_of(one.latency), record.began_unix_ms, length_s);
            found.push(LogText { name: one.name, text });
        }
    }
    serde_json::to_string(&found).expect("texts are JSON")
}
