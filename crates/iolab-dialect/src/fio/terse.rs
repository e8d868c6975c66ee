//! Results as fio's terse lines, versions 2 to 5: fields between semicolons, times in microseconds.

use std::fmt::Write as _;

use iolab_model::Histogram;

use super::json::{depths, latency_shares};
use super::plan::{Show, UnitShow};
use super::render::disks;
use super::result::{Entry, RowResult, Side, deviation, entries, no_times, percentiles, spread};

/// Percentiles that a line has room for.
const PERCENTILES: usize = 20;

/// One line per entry.
pub fn terse(show: &Show, row: &RowResult) -> String {
    let all = entries(show, row);
    all.iter().map(|one| line(one, &all, show, row)).collect()
}

fn line(one: &Entry<'_>, all: &[Entry<'_>], show: &Show, row: &RowResult) -> String {
    let version = show.terse_version;
    let unit = one.unit;
    let mut text = version.to_string();
    if version > 2 {
        let _ = write!(text, ";{}", super::render::VERSION);
    }
    let _ = write!(text, ";{};{};{}", unit.name, unit.group, one.error);
    // Version 3 has no trims.
    let sides = if version == 3 { &one.sides[..2] } else { &one.sides[..] };
    for (place, side) in sides.iter().enumerate() {
        let same = all.iter().filter(|other| other.unit.group == unit.group);
        let of = |other: &Entry<'_>| other.sides.get(place).map_or(0, Side::bytes_per_s);
        let total: f64 = same.map(|other| of(other) as f64 / 1024.0).sum();
        add_side(&mut text, side, (total, version), unit);
    }
    let _ = write!(text, ";{:.6}%;{:.6}%", one.cpu.0, one.cpu.1);
    one.events.iter().for_each(|count| {
        let _ = write!(text, ";{count}");
    });
    for (_, share) in depths(unit) {
        let _ = write!(text, ";{share:.1}%");
    }
    let [(_, ns), (_, us), (_, ms)] = latency_shares(one);
    // What is below a microsecond counts with the first bucket.
    let below: f64 = ns.iter().map(|(_, share)| share).sum();
    for (index, (_, share)) in us.iter().chain(&ms).enumerate() {
        let share = if index == 0 { share + below } else { *share };
        let _ = write!(text, ";{share:.2}%");
    }
    for disk in disks(row).iter().filter(|_| !unit.is_null) {
        let [read_ticks, write_ticks, in_queue] = disk.ticks_ms();
        let _ = write!(
            text,
            ";{};{};{};{};{};{read_ticks};{write_ticks};{in_queue};{:.2}%",
            disk.name,
            disk.reads,
            disk.writes,
            disk.requests.read_merges,
            disk.requests.write_merges,
            disk.util
        );
    }
    if let Some(description) = &unit.description {
        text.push_str(if version == 2 { "\n;" } else { ";" });
        text.push_str(description);
    }
    text.push('\n');
    text
}

fn add_side(text: &mut String, side: &Side, (total, version): (f64, u32), unit: &UnitShow) {
    let times = [side.submission(), side.completion(), side.times()];
    let shown = |place: usize| if unit.disabled[place] { no_times() } else { times[place] };
    let bytes_per_s = side.bytes_per_s();
    let _ = write!(
        text,
        ";{};{};{};{}",
        side.bytes / 1024,
        bytes_per_s / 1024,
        side.ios_per_s() as u64,
        side.runtime_ms
    );
    add_latency(text, shown(0));
    add_latency(text, shown(1));
    let list: &[f64] = if unit.disabled[1] { &[] } else { &unit.percentile_list };
    let told = percentiles(shown(1), list);
    for index in 0..PERCENTILES {
        let _ = match told.get(index) {
            Some((percent, ns)) => write!(text, ";{percent:.6}%={}", ns / 1000),
            None => write!(text, ";0%=0"),
        };
    }
    add_latency(text, shown(2));
    let (low, high, mean, dev) = spread(&side.bw);
    let share = if total > 0.0 { (mean * 100.0 / total).min(100.0) } else { 0.0 };
    let _ = write!(text, ";{};{};{share:.6}%;{mean:.6};{dev:.6}", low as u64, high as u64);
    if version == 5 {
        let (low, high, mean, dev) = spread(&side.iops);
        let count = side.iops.len();
        let _ = write!(text, ";{count};{};{};{mean:.6};{dev:.6};{count}", low as u64, high as u64);
    }
}

fn add_latency(text: &mut String, latency: &Histogram) {
    let us = |ns: Option<u64>| ns.unwrap_or(0) / 1000;
    let mean = latency.mean().unwrap_or(0.0) / 1000.0;
    let dev = deviation(latency) / 1000.0;
    let _ = write!(text, ";{};{};{mean:.6};{dev:.6}", us(latency.min()), us(latency.max()));
}
