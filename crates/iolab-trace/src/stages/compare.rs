//! Two traces beside each other.

use std::fmt::Write as _;

use serde::Serialize;

use super::groups::Stage;
use super::report::{DeviceRow, Report, StageRow};
use super::text::{bytes, duration};

/// A figure of both traces.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "FigurePair")]
pub struct Pair {
    /// Name of the figure, with its unit.
    pub figure: String,
    /// Of the first trace; `None` if it has none.
    pub first: Option<f64>,
    /// Of the second.
    pub second: Option<f64>,
    /// Second over first.
    pub ratio: Option<f64>,
}

impl Pair {
    fn of(figure: impl Into<String>, first: Option<f64>, second: Option<f64>) -> Self {
        let ratio = match (first, second) {
            (Some(first), Some(second)) if first != 0.0 => Some(second / first),
            _ => None,
        };
        Self { figure: figure.into(), first, second, ratio }
    }
}

/// A figure of a stage.
type Figure = fn(&StageRow) -> f64;

/// Figures that a trace of issues and completions alone has not.
const OF_QUEUES: [&str; 3] = ["bios_queued", "bytes_queued", "outstanding_mean"];

/// Figures of a report by name.
fn figures(report: &Report) -> Vec<(String, f64)> {
    let seconds = report.span_ns.max(1) as f64 / 1e9;
    // The sum of no floating-point numbers is -0.
    let sum = |of: &dyn Fn(&DeviceRow) -> f64| {
        report.devices.iter().map(of).fold(0.0, |sum: f64, value| sum + value)
    };
    let mut all: Vec<(String, f64)> = vec![
        ("span_ns".into(), report.span_ns as f64),
        ("events".into(), report.events as f64),
        ("bios_queued".into(), sum(&|d| d.counts.queued.iter().map(|a| a.count as f64).sum())),
        ("bytes_queued".into(), sum(&|d| d.counts.queued.iter().map(|a| a.bytes as f64).sum())),
        ("requests_issued".into(), sum(&|d| d.counts.issued.count as f64)),
        ("bytes_completed".into(), sum(&|d| d.counts.transferred_bytes() as f64)),
        ("bytes_discarded".into(), sum(&|d| d.counts.discarded_bytes() as f64)),
        ("completed_per_s".into(), sum(&|d| d.counts.completed.count as f64 / seconds)),
        ("completed_bytes_per_s".into(), sum(&|d| d.counts.transferred_bytes() as f64 / seconds)),
        (
            "merges".into(),
            sum(&|d| (d.counts.back_merges.count + d.counts.front_merges.count) as f64),
        ),
        ("flushes".into(), sum(&|d| d.counts.flushes_issued as f64)),
        ("requeues".into(), sum(&|d| d.counts.requeues as f64)),
        ("outstanding_mean".into(), sum(&|d| d.outstanding.mean)),
        ("in_flight_mean".into(), sum(&|d| d.in_flight.mean)),
        ("idle_ns".into(), sum(&|d| d.idle_ns as f64) / report.devices.len().max(1) as f64),
    ];
    if report.devices.iter().all(|d| d.counts.queued.iter().all(|amount| amount.count == 0)) {
        // Nothing entered, or that was not recorded.
        all.retain(|(name, _)| !OF_QUEUES.contains(&name.as_str()));
    }
    for row in &report.stages {
        for (what, value) in [
            ("count", row.count as f64),
            ("mean_ns", row.mean_ns),
            ("p50_ns", row.p50_ns as f64),
            ("p99_ns", row.p99_ns as f64),
            ("max_ns", row.max_ns as f64),
        ] {
            all.push((format!("{}_{what}", row.stage.name()), value));
        }
    }
    all
}

/// All figures of two reports.
pub fn compare(first: &Report, second: &Report) -> Vec<Pair> {
    let (mine, theirs) = (figures(first), figures(second));
    let value = |all: &[(String, f64)], name: &str| {
        all.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    };
    let mut names: Vec<&String> = mine.iter().map(|(name, _)| name).collect();
    names.extend(theirs.iter().map(|(name, _)| name).filter(|name| value(&mine, name).is_none()));
    names.iter().map(|name| Pair::of(*name, value(&mine, name), value(&theirs, name))).collect()
}

/// The comparison as a table.
pub fn text(first: &Report, second: &Report) -> String {
    let mut out = String::new();
    let head = ["", "first", "second", "second/first"];
    let _ = writeln!(out, "{:<26} {:>14} {:>14} {:>13}", head[0], head[1], head[2], head[3]);
    let devices = [first, second].map(|report| {
        let titles: Vec<String> = report.devices.iter().map(DeviceRow::title).collect();
        if titles.is_empty() { "-".to_owned() } else { titles.join(", ") }
    });
    push_row(&mut out, "device", devices, None);
    let is_of = |name: &str, stage: &Stage| {
        name.strip_prefix(stage.name()).is_some_and(|rest| rest.starts_with('_'))
    };
    let is_stage = |name: &str| Stage::ALL.iter().any(|stage| is_of(name, stage));
    for pair in compare(first, second) {
        if is_stage(&pair.figure) {
            continue;
        }
        let figure = pair.figure.as_str();
        let show = |value: Option<f64>| match value {
            None => "-".to_owned(),
            Some(ns) if figure.ends_with("_ns") => duration(ns),
            Some(value) if figure.ends_with("bytes_per_s") => format!("{}/s", bytes(value as u64)),
            Some(value) if figure.starts_with("bytes_") => bytes(value as u64),
            Some(value) if value.fract() == 0.0 => format!("{value:.0}"),
            Some(value) => format!("{value:.2}"),
        };
        let name = match figure {
            "completed_per_s" => "requests completed per s".to_owned(),
            "completed_bytes_per_s" => "bytes completed per s".to_owned(),
            _ => figure.trim_end_matches("_ns").replace('_', " "),
        };
        push_row(&mut out, &name, [show(pair.first), show(pair.second)], pair.ratio);
    }
    let find = |report: &Report, stage| report.stages.iter().find(|r| r.stage == stage).cloned();
    for stage in Stage::ALL {
        let (mine, theirs) = (find(first, *stage), find(second, *stage));
        if mine.is_none() && theirs.is_none() {
            continue;
        }
        let columns: [(&str, Figure); 3] = [
            ("mean", |row| row.mean_ns),
            ("p50", |row| row.p50_ns as f64),
            ("p99", |row| row.p99_ns as f64),
        ];
        for (name, of) in columns {
            let values = [mine.as_ref().map(of), theirs.as_ref().map(of)];
            let pair = Pair::of("", values[0], values[1]);
            let shown = values.map(|value| value.map_or("-".to_owned(), duration));
            push_row(&mut out, &format!("{stage} {name}"), shown, pair.ratio);
        }
    }
    out
}

fn push_row(out: &mut String, name: &str, values: [String; 2], ratio: Option<f64>) {
    let ratio = ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
    let [first, second] = values;
    let _ = writeln!(out, "{name:<26} {first:>14} {second:>14} {ratio:>13}");
}
