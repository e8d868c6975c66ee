//! Results as JSON in fio's form: its keys in its order, `"key" : value`, six decimals.

use std::fmt::Write as _;

use iolab_model::Histogram;

use super::plan::{Show, UnitShow};
use super::result::{
    Entry, RowResult, Side, bins, deviation, entries, no_times, percentiles, spread,
};
use super::rules::steady_told;

/// A value.
enum Value {
    Text(String),
    Whole(u64),
    Real(f64),
    Object(Vec<(String, Self)>),
    List(Vec<Self>),
}

use Value::{List, Object, Real, Text, Whole};

/// Limits of the buckets of microseconds and milliseconds; below the first: nanoseconds.
const LIMITS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

fn write(text: &mut String, value: &Value, depth: usize) {
    let blanks = "  ".repeat(depth + 1);
    match value {
        Text(value) => {
            let quoted = serde_json::to_string(value).unwrap_or_default();
            text.push_str(&quoted);
        }
        Whole(value) => {
            let _ = write!(text, "{value}");
        }
        Real(value) => {
            let _ = write!(text, "{value:.6}");
        }
        Object(fields) => {
            text.push('{');
            for (index, (key, value)) in fields.iter().enumerate() {
                text.push_str(if index == 0 { "\n" } else { ",\n" });
                let key = serde_json::to_string(key).unwrap_or_default();
                let _ = write!(text, "{blanks}{key} : ");
                write(text, value, depth + 1);
            }
            let _ = write!(text, "\n{}}}", "  ".repeat(depth));
        }
        List(values) => {
            text.push('[');
            for (index, value) in values.iter().enumerate() {
                text.push_str(if index == 0 { "\n" } else { ",\n" });
                text.push_str(&blanks);
                write(text, value, depth + 1);
            }
            let _ = write!(text, "\n{}]", "  ".repeat(depth));
        }
    }
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Vec<(String, Value)> {
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn options(all: &[(String, String)]) -> Value {
    Object(all.iter().map(|(key, value)| (key.clone(), Text(value.clone()))).collect())
}

/// The whole document; `is_plus`: with histograms.
pub fn json(show: &Show, row: &RowResult, is_plus: bool) -> String {
    let all = entries(show, row);
    let mut fields = object([
        ("fio version", Text(super::render::VERSION.to_owned())),
        ("timestamp", Whole(row.ended_ms / 1000)),
        ("timestamp_ms", Whole(row.ended_ms)),
        ("time", Text(row.ended.clone())),
    ]);
    if !show.globals.is_empty() {
        fields.push(("global options".to_owned(), options(&show.globals)));
    }
    let jobs = all.iter().map(|one| Object(job(one, &all, row, is_plus))).collect();
    fields.push(("jobs".to_owned(), List(jobs)));
    let has_disks = show.units.iter().any(|unit| !unit.is_null);
    if has_disks {
        fields.push(("disk_util".to_owned(), List(disks(row))));
    }
    let mut text = String::new();
    write(&mut text, &Object(fields), 0);
    text.push('\n');
    text
}

fn job(one: &Entry<'_>, all: &[Entry<'_>], row: &RowResult, is_plus: bool) -> Vec<(String, Value)> {
    let unit = one.unit;
    let mut fields = object([
        ("jobname", Text(unit.name.clone())),
        ("groupid", Whole(u64::from(unit.group))),
        ("error", Whole(u64::from(one.error))),
        ("eta", Whole(i32::MAX as u64)),
        ("elapsed", Whole(row.elapsed_s)),
    ]);
    if !unit.options.is_empty() {
        fields.push(("job options".to_owned(), options(&unit.options)));
    }
    if let Some(text) = &unit.description {
        fields.push(("desc".to_owned(), Text(text.clone())));
    }
    let total = |place: usize| -> f64 {
        let same = all.iter().filter(|other| other.unit.group == unit.group);
        same.map(|other| other.sides[place].bytes_per_s() as f64 / 1024.0).sum()
    };
    let side = |side: &Side, total: f64| Object(direction(side, total, unit, is_plus));
    if !unit.is_unified || unit.is_told_twice {
        fields.push(("read".to_owned(), side(&one.sides[0], total(0))));
        fields.push(("write".to_owned(), side(&one.sides[1], total(1))));
        fields.push(("trim".to_owned(), side(&one.sides[2], total(2))));
        let is_told = unit.percentiles[1] || unit.percentiles[2];
        let list = is_told.then_some((&*unit.percentile_list, is_plus));
        let flushes = latency(one.flushes(), list);
        let sync =
            object([("total_ios", Whole(one.flushes().count())), ("lat_ns", Object(flushes))]);
        fields.push(("sync".to_owned(), Object(sync)));
    }
    if unit.is_unified {
        let mut sum = one.sides[0].clone();
        one.sides[1..].iter().for_each(|side| sum.add(side));
        fields.push(("mixed".to_owned(), side(&sum, total(0) + total(1) + total(2))));
    }
    fields.extend(object([
        ("job_runtime", Whole(one.job_runtime_ms)),
        ("usr_cpu", Real(one.cpu.0)),
        ("sys_cpu", Real(one.cpu.1)),
        ("ctx", Whole(one.events[0])),
        ("majf", Whole(one.events[1])),
        ("minf", Whole(one.events[2])),
    ]));
    for (key, shares) in [
        ("iodepth_level", depths(unit)),
        ("iodepth_submit", calls(unit)),
        ("iodepth_complete", calls(unit)),
    ] {
        let of = |(key, share): (&str, f64)| (key.to_owned(), Real(share));
        fields.push((key.to_owned(), Object(shares.into_iter().map(of).collect())));
    }
    for (key, shares) in latency_shares(one) {
        let of = |(key, share): (String, f64)| (key, Real(share));
        fields.push((key.to_owned(), Object(shares.into_iter().map(of).collect())));
    }
    add_rules(&mut fields, one);
    fields
}

/// Results of the rules of a job; fio has the depth and the target of every job.
fn add_rules(fields: &mut Vec<(String, Value)>, one: &Entry<'_>) {
    let unit = one.unit;
    if unit.rules.has_errors {
        let (total, first) = one.rules.errors;
        fields.extend(object([
            ("total_err", Whole(total)),
            ("first_error", Whole(u64::from(first))),
        ]));
    }
    fields.extend(object([
        ("latency_depth", Whole(u64::from(one.rules.depth.unwrap_or(unit.depth)))),
        ("latency_target", Whole(unit.rules.target_ns)),
        ("latency_percentile", Real(unit.rules.percent.unwrap_or(100.0))),
        ("latency_window", Whole(unit.rules.window_ns / 1000)),
    ]));
    let Some(told) = steady_told(one) else { return };
    let list = |pick: fn(&(u64, u64)) -> u64| {
        List(told.samples.iter().map(|sample| Whole(pick(sample))).collect())
    };
    let data = object([
        ("bw_mean", Whole(told.means.0.round() as u64)),
        ("iops_mean", Whole(told.means.1.round() as u64)),
        ("iops", list(|sample| sample.0)),
        ("bw", list(|sample| sample.1)),
    ]);
    let steady = object([
        ("ss", Text(told.rule.clone())),
        ("duration", Whole(told.duration)),
        ("attained", Whole(u64::from(told.is_attained))),
        ("criterion", Text(told.criterion.clone())),
        ("max_deviation", Real(told.deviation)),
        ("slope", Real(told.slope)),
        ("data", Object(data)),
    ]);
    fields.push(("steadystate".to_owned(), Object(steady)));
}

fn direction(side: &Side, total: f64, unit: &UnitShow, is_plus: bool) -> Vec<(String, Value)> {
    let mut fields = object([
        ("io_bytes", Whole(side.bytes)),
        ("io_kbytes", Whole(side.bytes / 1024)),
        ("bw_bytes", Whole(side.bytes_per_s())),
        ("bw", Whole(side.bytes_per_s() / 1024)),
        ("iops", Real(side.ios_per_s())),
        ("runtime", Whole(side.runtime_ms)),
        ("total_ios", Whole(side.ios)),
        ("short_ios", Whole(0)),
        ("drop_ios", Whole(0)),
    ]);
    let none = no_times();
    let told = [side.submission(), side.completion(), side.times()];
    for (place, name) in ["slat_ns", "clat_ns", "lat_ns"].into_iter().enumerate() {
        let list = unit.percentiles[place].then_some((&*unit.percentile_list, is_plus));
        let shown = if unit.disabled[place] { none } else { told[place] };
        fields.push((name.to_owned(), Object(latency(shown, list))));
    }
    if let Some(response) = &side.response {
        let list = Some((&*unit.percentile_list, is_plus));
        fields.push(("response_ns".to_owned(), Object(latency(response, list))));
    }
    let (bw, iops): (&[f64], &[f64]) =
        if unit.disabled[3] { (&[], &[]) } else { (&side.bw, &side.iops) };
    let (low, high, mean, dev) = spread(bw);
    let share = if total > 0.0 { (mean * 100.0 / total).min(100.0) } else { 0.0 };
    fields.extend(object([
        ("bw_min", Whole(low as u64)),
        ("bw_max", Whole(high as u64)),
        ("bw_agg", Real(share)),
        ("bw_mean", Real(mean)),
        ("bw_dev", Real(dev)),
        ("bw_samples", Whole(bw.len() as u64)),
    ]));
    let (low, high, mean, dev) = spread(iops);
    fields.extend(object([
        ("iops_min", Whole(low as u64)),
        ("iops_max", Whole(high as u64)),
        ("iops_mean", Real(mean)),
        ("iops_stddev", Real(dev)),
        ("iops_samples", Whole(iops.len() as u64)),
    ]));
    fields
}

fn latency(latency: &Histogram, list: Option<(&[f64], bool)>) -> Vec<(String, Value)> {
    let mut fields = object([
        ("min", Whole(latency.min().unwrap_or(0))),
        ("max", Whole(latency.max().unwrap_or(0))),
        ("mean", Real(latency.mean().unwrap_or(0.0))),
        ("stddev", Real(deviation(latency))),
        ("N", Whole(latency.count())),
    ]);
    let Some((list, is_plus)) = list.filter(|_| latency.count() > 0) else { return fields };
    let of = |(percent, ns): (f64, u64)| (format!("{percent:.6}"), Whole(ns));
    let told = percentiles(latency, list).into_iter().map(of).collect();
    fields.push(("percentile".to_owned(), Object(told)));
    if is_plus {
        let of = |(ns, count): (u64, u64)| (ns.to_string(), Whole(count));
        fields.push(("bins".to_owned(), Object(bins(latency).into_iter().map(of).collect())));
    }
    fields
}

/// Shares of transfers by how many were under way: all at the depth that was asked for.
pub fn depths(unit: &UnitShow) -> Vec<(&'static str, f64)> {
    let names = ["1", "2", "4", "8", "16", "32", ">=64"];
    let mine = (unit.depth.max(1).ilog2() as usize).min(6);
    let share = |index| if index == mine { 100.0 } else { 0.0 };
    names.into_iter().enumerate().map(|(index, name)| (name, share(index))).collect()
}

/// Shares of system calls by how many transfers they were about: single ones.
pub fn calls(unit: &UnitShow) -> Vec<(&'static str, f64)> {
    let names = ["0", "4", "8", "16", "32", "64", ">=64"];
    let share = |name| if name == "4" && !unit.is_null { 100.0 } else { 0.0 };
    names.into_iter().map(|name| (name, share(name))).collect()
}

/// Percent of all transfers in fio's buckets of nanoseconds, microseconds and milliseconds.
pub fn latency_shares(one: &Entry<'_>) -> [(&'static str, Vec<(String, f64)>); 3] {
    let total: u64 = one.sides.iter().map(|side| side.ios).sum();
    let limits = |unit: u64| LIMITS.iter().map(move |limit| limit * unit);
    let all: Vec<u64> = limits(1).chain(limits(1000)).chain(limits(1_000_000)).collect();
    let mut counts = vec![0_u64; all.len() + 2];
    for (low, high, count) in one
        .sides
        .iter()
        .filter(|_| !one.unit.disabled[1])
        .flat_map(|side| side.completion().buckets())
    {
        let middle = low.midpoint(high);
        let index = all.iter().position(|limit| middle < *limit);
        let rest = if middle < 2_000_000_000 { all.len() } else { all.len() + 1 };
        counts[index.unwrap_or(rest)] += count;
    }
    // What occurred is told, however rare it was.
    let least = |count: u64| if count > 0 { 0.01 } else { 0.0 };
    let share = |count: u64| (100.0 * count as f64 / total.max(1) as f64).max(least(count));
    let part = |first: usize| -> Vec<(String, f64)> {
        let counts = &counts[first..first + LIMITS.len()];
        LIMITS.iter().zip(counts).map(|(l, count)| (l.to_string(), share(*count))).collect()
    };
    let (ns, us, mut ms) = (part(0), part(10), part(20));
    ms.push(("2000".to_owned(), share(counts[30])));
    ms.push((">=2000".to_owned(), share(counts[31])));
    [("latency_ns", ns), ("latency_us", us), ("latency_ms", ms)]
}

fn disks(row: &RowResult) -> Vec<Value> {
    super::render::disks(row)
        .into_iter()
        .map(|disk| {
            let [read_ticks, write_ticks, in_queue] = disk.ticks_ms();
            Object(object([
                ("name", Text(disk.name)),
                ("read_ios", Whole(disk.reads)),
                ("write_ios", Whole(disk.writes)),
                ("read_merges", Whole(disk.requests.read_merges)),
                ("write_merges", Whole(disk.requests.write_merges)),
                ("read_ticks", Whole(read_ticks)),
                ("write_ticks", Whole(write_ticks)),
                ("in_queue", Whole(in_queue)),
                ("util", Real(disk.util)),
            ]))
        })
        .collect()
}
