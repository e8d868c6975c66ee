//! The report in the layout of Filebench.

use std::fmt::Write as _;

use iolab_model::Histogram;

use super::json;
use super::plan::{Format, Plan, Show};
use super::result::{Line, PhaseResult, RowResult, Summary, lines, summary};

/// First line of the output.
pub const VERSION: &str = "Filebench Version 1.5-alpha3";
/// Buckets of a histogram: powers of two of nanoseconds.
const BUCKETS: usize = 64;
const MIB: f64 = 1024.0 * 1024.0;
const NS_PER_MS: f64 = 1e6;
/// Share of a period that is none of its own.
const REST_SHARE: f64 = 0.05;

/// Text before the run.
pub fn begin(plan: &Plan) -> String {
    if plan.show.format == Format::Json {
        return String::new();
    }
    let mut text = format!("{VERSION}\n");
    for line in &plan.show.said {
        let _ = writeln!(text, "0.000: {line}");
    }
    text
}

/// Text after a run.
pub fn row(plan: &Plan, row: &RowResult) -> String {
    if plan.show.format == Format::Json {
        return json::row(plan, row);
    }
    let (show, Some(phase)) = (&plan.show, row.phases.first()) else { return String::new() };
    let running_s = row.whole_ns.saturating_sub(phase.elapsed_ns) as f64 / 1e9;
    let mut text = layout(show, running_s);
    let elapsed_s = phase.elapsed_ns as f64 / 1e9;
    let end_s = running_s + elapsed_s;
    let failures = failures(phase, end_s);
    let is_early = show.is_timeout && early(phase).is_some();
    if failures.is_empty() {
        reports(show, phase, running_s, &mut text);
    }
    let _ = writeln!(text, "{end_s:.3}: Run took {elapsed_s:.0} seconds...");
    if let Some(name) = early(phase).filter(|_| is_early) {
        let _ = writeln!(
            text,
            "{end_s:.3}: WARNING! Run stopped early:\n                flowop {name} could not \
             obtain a file. Please\n                reduce runtime, increase fileset entries \
             ($nfiles), or switch modes."
        );
    } else if !failures.is_empty() {
        text += &failures;
        let _ =
            writeln!(text, "{end_s:.3}: NO VALID RESULTS! Filebench run terminated prematurely");
    } else {
        let all = lines(show, phase, last_parts(show, phase));
        let length_s = elapsed_s - begin_of_last(show, elapsed_s);
        report(show, &all, (end_s, length_s), phase, &mut text);
    }
    let _ = writeln!(text, "{end_s:.3}: Shutting down processes");
    text
}

/// Flowop that ended a thread before its time, as `NAME-INSTANCE`.
pub fn early(phase: &PhaseResult) -> Option<String> {
    let workers = phase.tenants.iter().flat_map(|tenant| &tenant.workers);
    let mut ended = workers.filter_map(|worker| Some((worker, worker.ended_by.as_ref()?)));
    ended.next().map(|(worker, name)| format!("{name}-{}", worker.worker + 1))
}

/// Failures of flowops, a line each.
fn failures(phase: &PhaseResult, at_s: f64) -> String {
    let workers = phase.tenants.iter().flat_map(|tenant| &tenant.workers);
    let errors: std::collections::BTreeSet<&String> =
        workers.filter_map(|worker| worker.first_error.as_ref()).collect();
    let lines = errors.iter().map(|error| format!("{at_s:.3}: {error}\n"));
    lines.collect::<Vec<_>>().concat()
}

/// Lines about the making of files, and the beginning.
fn layout(show: &Show, running_s: f64) -> String {
    let mut text = String::from("0.000: Populating and pre-allocating filesets\n");
    let mut tell = |line: String| {
        let _ = writeln!(text, "{line}");
    };
    for files in show.files.iter().rev() {
        let name = &files.name;
        if !files.is_file {
            tell(format!(
                "0.000: {name} populated: {} files, avg. dir. width = {}, avg. dir. depth = {:.1}, \
                 {} leafdirs, {:.3}MB total size",
                files.entries,
                files.width,
                files.depth,
                files.leafs,
                files.bytes as f64 / MIB
            ));
        }
        tell(format!("0.000: Removing {name} tree (if exists)"));
        tell(format!("0.000: Pre-allocating directories in {name} tree"));
        tell(format!("0.000: Pre-allocating files in {name} tree"));
    }
    let now = format!("{running_s:.3}");
    tell(format!(
        "{now}: Waiting for pre-allocation to finish (in case of a parallel pre-allocation)"
    ));
    tell(format!("{now}: Population and pre-allocation of filesets completed"));
    for (name, instances) in show.processes.iter().rev() {
        tell(format!("{now}: Starting {instances} {name} instances"));
    }
    tell(format!("{now}: Running..."));
    text
}

/// Beginning of what the last report is about, in seconds of the run.
fn begin_of_last(show: &Show, elapsed_s: f64) -> f64 {
    if !show.is_set_back || show.period_s == 0 {
        return 0.0;
    }
    let period = show.period_s as f64;
    period * full_periods(elapsed_s, period) as f64
}

/// Periods that a report during the run is about: all but the last one.
///
/// A run ends some time after its last second: what is left belongs to the period before.
fn full_periods(elapsed_s: f64, period_s: f64) -> usize {
    (elapsed_s / period_s - REST_SHARE).ceil().max(1.0) as usize - 1
}

/// Parts that the last report is about; absent: the whole run.
fn last_parts(show: &Show, phase: &PhaseResult) -> Option<(usize, usize)> {
    let begin = begin_of_last(show, phase.elapsed_ns as f64 / 1e9);
    let index = (begin > 0.0).then(|| (begin / show.period_s.max(1) as f64) as usize);
    index.map(|index| (index, usize::MAX))
}

/// Reports during the run.
fn reports(show: &Show, phase: &PhaseResult, running_s: f64, text: &mut String) {
    if show.period_s == 0 {
        return;
    }
    let (period, elapsed_s) = (show.period_s as f64, phase.elapsed_ns as f64 / 1e9);
    for number in 1..=full_periods(elapsed_s, period).min(100_000) {
        let until = period * number as f64;
        let from = if show.is_set_back { number - 1 } else { 0 };
        let length = until - period * from as f64;
        let all = lines(show, phase, Some((from, number)));
        report(show, &all, (running_s + until, length), phase, text);
    }
}

/// One report: rows in reverse order of their definitions, and the summary.
fn report(
    show: &Show,
    all: &[Line<'_>],
    (at_s, length_s): (f64, f64),
    phase: &PhaseResult,
    text: &mut String,
) {
    let length_s = length_s.max(1e-9);
    let _ = writeln!(text, "{at_s:.3}: Per-Operation Breakdown");
    for line in all.iter().rev() {
        let (sum, ms) = (&line.sum, |ns: u64| ns as f64 / NS_PER_MS);
        let latency = &sum.latency;
        let _ = write!(
            text,
            "{:<20} {}ops {:>8.0}ops/s {:>5.1}mb/s {:>8.3}ms/op [{:.3}ms - {:5.3}ms]",
            line.show.name,
            sum.ops,
            sum.ops as f64 / length_s,
            sum.bytes as f64 / MIB / length_s,
            latency.mean().unwrap_or(0.0) / NS_PER_MS,
            ms(latency.min().unwrap_or(0)),
            ms(latency.max().unwrap_or(0)),
        );
        if show.has_histograms {
            let counts = powers(latency).map(|count| count.to_string()).join(" ");
            let _ = write!(text, "\t[ {counts} ]");
        }
        text.push('\n');
    }
    let sum = summary(all);
    text.push_str(&match show.format {
        Format::Old => old_summary(&sum, (at_s, length_s), phase),
        Format::Text | Format::Json => new_summary(&sum, (at_s, length_s)),
    });
}

fn mean_ms(sum: &Summary) -> f64 {
    sum.latency_ns / sum.ops.max(1) as f64 / NS_PER_MS
}

fn new_summary(sum: &Summary, (at_s, length_s): (f64, f64)) -> String {
    format!(
        "{at_s:.3}: IO Summary: {:>5} ops {:.3} ops/s {:.0}/{:.0} rd/wr {:>5.1}mb/s {:.3}ms/op\n",
        sum.ops,
        sum.ops as f64 / length_s,
        sum.reads as f64 / length_s,
        sum.writes as f64 / length_s,
        sum.bytes as f64 / MIB / length_s,
        mean_ms(sum)
    )
}

/// The summary of 1.4.9.
fn old_summary(sum: &Summary, (at_s, length_s): (f64, f64), phase: &PhaseResult) -> String {
    let cpu_us = (phase.cpu.user_ns + phase.cpu.system_ns) as f64 / 1e3 / sum.ops.max(1) as f64;
    format!(
        "{at_s:.3}: IO Summary: {:>5} ops, {:.3} ops/s, ({:.0}/{:.0} r/w), {:>5.1}mb/s, {:>6.0}us \
         cpu/op, {:>5.1}ms latency\n",
        sum.ops,
        sum.ops as f64 / length_s,
        sum.reads as f64 / length_s,
        sum.writes as f64 / length_s,
        sum.bytes as f64 / MIB / length_s,
        cpu_us,
        mean_ms(sum)
    )
}

/// `CountedAs` per power of two of nanoseconds: of 2^(i-1) up to below 2^i.
pub fn powers(latency: &Histogram) -> [u64; BUCKETS] {
    let mut counts = [0; BUCKETS];
    for (low, _, count) in latency.buckets() {
        let bucket = (u64::BITS - low.leading_zeros()) as usize;
        counts[bucket.min(BUCKETS - 1)] += count;
    }
    counts
}
