//! Results as fio's text for people.

use std::fmt::Write as _;

use iolab_model::Histogram;

use super::json::{calls, depths, latency_shares};
use super::plan::{Head, Show};
use super::render::{Disk, disks};
use super::result::{Entry, RowResult, Side, deviation, entries, percentiles, spread};
use super::rules::steady_told;

const NAMES: [&str; 3] = ["read", "write", "trim"];
/// Width of a line of percentiles.
const LINE: usize = 73;
/// Buckets of latencies on a line.
const BUCKETS: usize = 5;

/// A number with at most `digits` digits and a letter: 36.6k, 4266.
fn number(value: f64, digits: usize, base: f64, letters: &[&str]) -> String {
    let (mut value, mut power) = (value, 0);
    let most = 10_f64.powi(digits as i32);
    while value >= most && power + 1 < letters.len() {
        value /= base;
        power += 1;
    }
    let before = (value.max(1.0).log10().floor() as usize) + 1;
    let after = if power == 0 { 0 } else { digits.saturating_sub(before + 1) };
    // Not rounded upwards into another digit.
    let scale = 10_f64.powi(after as i32);
    let shown = if power == 0 { value.floor() } else { (value * scale).round() / scale };
    format!("{shown:.after$}{}", letters[power])
}

pub(super) fn count(value: f64, digits: usize) -> String {
    number(value, digits, 1000.0, &["", "k", "M", "G", "T", "P"])
}

pub(super) fn binary(value: f64) -> String {
    number(value, 4, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

fn decimal(value: f64) -> String {
    number(value, 4, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// Lines that are printed of the jobs before they run.
pub fn heads(show: &Show) -> String {
    let mut text = String::new();
    let mut jobs = 0;
    for Head { name, group, rw, sizes, engine, depth, clones } in &show.heads {
        let [r, w, t] =
            sizes.map(|(low, high)| format!("{}-{}", binary(low as f64), binary(high as f64)));
        let _ = writeln!(
            text,
            "{name}: (g={group}): rw={rw}, bs=(R) {r}, (W) {w}, (T) {t}, ioengine={engine}, \
             iodepth={depth}"
        );
        if *clones > 1 {
            text.push_str("...\n");
        }
        jobs += clones;
    }
    let what = match (show.are_threads, jobs) {
        (true, 1) => "thread",
        (true, _) => "threads",
        (false, 1) => "process",
        (false, _) => "processes",
    };
    let _ = writeln!(text, "{}\nStarting {jobs} {what}", super::render::VERSION);
    text
}

/// All results.
pub fn normal(show: &Show, row: &RowResult) -> String {
    let all = entries(show, row);
    let mut text = String::new();
    text.push('\n');
    for one in &all {
        add_entry(&mut text, one, &all, row);
    }
    let mut groups: Vec<u32> = all.iter().map(|one| one.unit.group).collect();
    groups.dedup();
    for group in groups {
        let _ = writeln!(text, "\nRun status group {group} (all jobs):");
        for (place, name) in ["   READ", "  WRITE", "   TRIM"].into_iter().enumerate() {
            let same = all.iter().filter(|one| one.unit.group == group);
            let sides: Vec<&Side> =
                same.map(|one| &one.sides[place]).filter(|side| side.ios > 0).collect();
            add_group(&mut text, name, &sides);
        }
    }
    let disks: Vec<_> = disks(row).into_iter().filter(|_| has_files(show)).collect();
    if !disks.is_empty() {
        text.push_str("\nDisk stats (read/write):\n");
    }
    text.extend(disks.iter().map(disk_line));
    text
}

/// Line of a device.
fn disk_line(disk: &Disk) -> String {
    let [read_ticks, write_ticks, in_queue] = disk.ticks_ms();
    format!(
        "  {}: ios={}/{}, merge={}/{}, ticks={read_ticks}/{write_ticks}, in_queue={in_queue}, \
         util={:.2}%\n",
        disk.name,
        disk.reads,
        disk.writes,
        disk.requests.read_merges,
        disk.requests.write_merges,
        disk.util
    )
}

fn has_files(show: &Show) -> bool {
    show.units.iter().any(|unit| !unit.is_null)
}

fn add_group(text: &mut String, name: &str, sides: &[&Side]) {
    if sides.is_empty() {
        return;
    }
    let rates: Vec<f64> = sides.iter().map(|side| side.bytes_per_s() as f64).collect();
    let bytes: u64 = sides.iter().map(|side| side.bytes).sum();
    let times = || sides.iter().map(|side| side.runtime_ms);
    let (shortest, longest) = (times().min().unwrap_or(1), times().max().unwrap_or(1));
    let sum = bytes as f64 * 1000.0 / longest.max(1) as f64;
    let (low, high, ..) = spread(&rates);
    let both = |value: f64| (format!("{}/s", binary(value)), format!("{}/s", decimal(value)));
    let [(sum, sum_si), (low, low_si), (high, high_si)] = [both(sum), both(low), both(high)];
    let _ = writeln!(
        text,
        "{name}: bw={sum} ({sum_si}), {low}-{high} ({low_si}-{high_si}), io={} ({}), \
         run={shortest}-{longest}msec",
        binary(bytes as f64),
        decimal(bytes as f64)
    );
}

fn add_entry(text: &mut String, one: &Entry<'_>, all: &[Entry<'_>], row: &RowResult) {
    let unit = one.unit;
    let _ = writeln!(
        text,
        "{}: (groupid={}, jobs={}): err={:2}: pid={}: {}",
        unit.name, unit.group, one.jobs, one.error, row.pid, row.ended
    );
    if let Some(description) = &unit.description {
        let _ = writeln!(text, "  Description  : [{description}]");
    }
    let total = |place: usize| -> f64 {
        let same = all.iter().filter(|other| other.unit.group == unit.group);
        same.map(|other| other.sides[place].bytes_per_s() as f64 / 1024.0).sum()
    };
    if !unit.is_unified || unit.is_told_twice {
        for (place, side) in one.sides.iter().enumerate().filter(|(_, side)| side.ios > 0) {
            add_side(text, NAMES[place], side, one, total(place));
        }
    }
    if unit.is_unified {
        let mut sum = one.sides[0].clone();
        one.sides[1..].iter().for_each(|side| sum.add(side));
        add_side(text, "mixed", &sum, one, total(0) + total(1) + total(2));
    }
    if one.flushes().count() > 0 {
        let _ = writeln!(text, "  fsync/fdatasync/sync_file_range:");
        add_latency(text, "sync", one.flushes());
        add_percentiles(text, "sync", one.flushes(), &unit.percentile_list);
    }
    for (name, (_, shares)) in ["nsec", "usec", "msec"].into_iter().zip(latency_shares(one)) {
        let shown: Vec<String> = shares
            .iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(limit, share)| format!("{limit}={share:.2}%"))
            .collect();
        for line in shown.chunks(BUCKETS) {
            let _ = writeln!(text, "  lat ({name})   : {}", line.join(", "));
        }
    }
    let (user, system) = one.cpu;
    let [switches, major, minor] = one.events;
    let _ = writeln!(
        text,
        "  cpu          : usr={user:.2}%, sys={system:.2}%, ctx={switches}, majf={major}, \
         minf={minor}"
    );
    let shares = |all: Vec<(&str, f64)>| -> String {
        let each = all.into_iter().map(|(name, share)| format!("{name}={share:.1}%"));
        each.collect::<Vec<_>>().join(", ")
    };
    let _ = writeln!(text, "  IO depths    : {}", shares(depths(unit)));
    let _ = writeln!(text, "     submit    : {}", shares(calls(unit)));
    let _ = writeln!(text, "     complete  : {}", shares(calls(unit)));
    let _ = writeln!(
        text,
        "     issued rwts: total={},{},{},{} short=0,0,0,0 dropped=0,0,0,0",
        one.sides[0].ios,
        one.sides[1].ios,
        one.sides[2].ios,
        one.flushes().count()
    );
    add_rules(text, one);
}

/// Results of the rules of a job.
fn add_rules(text: &mut String, one: &Entry<'_>) {
    let rules = &one.unit.rules;
    if rules.has_errors {
        let (total, first) = one.rules.errors;
        let _ = write!(text, "     errors    : total={total}, first_error={first}");
        let reason = std::io::Error::from_raw_os_error(first.cast_signed()).to_string();
        let reason = reason.split(" (os error").next().unwrap_or_default();
        let _ = if first > 0 { writeln!(text, "/<{reason}>") } else { writeln!(text) };
    }
    let _ = writeln!(
        text,
        "     latency   : target={}, window={}, percentile={:.2}%, depth={}",
        rules.target_ns,
        rules.window_ns / 1000,
        rules.percent.unwrap_or(100.0),
        one.rules.depth.unwrap_or(one.unit.depth)
    );
    if let Some(told) = steady_told(one) {
        let (bytes, ops) = told.means;
        let _ = writeln!(
            text,
            "  steadystate  : attained={}, bw={}/s ({}/s), iops={}, {}={:.3}{}",
            if told.is_attained { "yes" } else { "no" },
            binary(bytes),
            decimal(bytes),
            count(ops, 4),
            told.name(),
            told.value,
            told.sign()
        );
    }
}

fn add_side(text: &mut String, name: &str, side: &Side, one: &Entry<'_>, total: f64) {
    let unit = one.unit;
    let rate = side.bytes_per_s() as f64;
    let _ = writeln!(
        text,
        "  {name}: IOPS={}, BW={}/s ({}/s)({}/{}msec){}",
        count(side.ios_per_s().floor(), 4),
        binary(rate),
        decimal(rate),
        binary(side.bytes as f64),
        side.runtime_ms,
        if name == "write" { "; 0 zone resets" } else { "" }
    );
    let times = [side.submission(), side.completion(), side.times()];
    for (place, label) in ["slat", "clat", " lat"].into_iter().enumerate() {
        if !unit.disabled[place] {
            add_latency(text, label, times[place]);
        }
    }
    for (place, label) in ["slat", "clat", "lat"].into_iter().enumerate() {
        if unit.percentiles[place] && !unit.disabled[place] && times[place].count() > 0 {
            add_percentiles(text, label, times[place], &unit.percentile_list);
        }
    }
    if side.bw.is_empty() || unit.disabled[3] {
        return;
    }
    let (low, high, mean, dev) = spread(&side.bw);
    let share = if total > 0.0 { (mean * 100.0 / total).min(100.0) } else { 0.0 };
    let (unit, scale) = if mean > 999_999.0 { ("MiB", 1024.0) } else { ("KiB", 1.0) };
    let _ = writeln!(
        text,
        "   bw ({unit:>5}/s): min={:5}, max={:5}, per={share:.2}%, avg={:5.2}, stdev={:5.2}, \
         samples={}",
        (low / scale) as u64,
        (high / scale) as u64,
        mean / scale,
        dev / scale,
        side.bw.len()
    );
    let (low, high, mean, dev) = spread(&side.iops);
    let _ = writeln!(
        text,
        "   iops        : min={:5}, max={:5}, avg={mean:5.2}, stdev={dev:5.2}, samples={}",
        low as u64,
        high as u64,
        side.iops.len()
    );
}

/// Unit of a line of latencies, and what it is in nanoseconds.
fn unit_of(low: u64, high: u64, dev: f64) -> (&'static str, f64) {
    match () {
        () if low > 2_000_000 && high > 99_999_999 && dev > 1_000_000.0 => ("msec", 1e6),
        () if low > 2_000 && high > 99_999 && dev > 1_000.0 => ("usec", 1e3),
        () => ("nsec", 1.0),
    }
}

fn add_latency(text: &mut String, label: &str, latency: &Histogram) {
    let (Some(low), Some(high), Some(mean)) = (latency.min(), latency.max(), latency.mean()) else {
        return;
    };
    let dev = deviation(latency);
    let (name, unit) = unit_of(low, high, dev);
    let shown = |ns: u64| count((ns as f64 / unit).floor(), 6);
    let _ = writeln!(
        text,
        "    {label} ({name}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        shown(low),
        shown(high),
        mean / unit,
        dev / unit
    );
}

fn add_percentiles(text: &mut String, label: &str, latency: &Histogram, list: &[f64]) {
    let told = percentiles(latency, list);
    let (Some((_, low)), Some((_, high))) = (told.first(), told.last()) else { return };
    let (name, unit) = match (*low, *high) {
        (low, high) if low > 2_000_000 && high > 99_999_999 => ("msec", 1_000_000),
        (low, high) if low > 2_000 && high > 99_999 => ("usec", 1_000),
        _ => ("nsec", 1),
    };
    let shown: Vec<(f64, u64)> = told.iter().map(|(p, ns)| (*p, (ns + unit / 2) / unit)).collect();
    let width = shown.iter().map(|(_, value)| value.to_string().len()).max().unwrap_or(1).max(5);
    // As many digits behind the point as the percentile with the most of them has.
    let digits = |p: &f64| p.to_string().split_once('.').map_or(0, |(_, behind)| behind.len());
    let decimals = list.iter().map(digits).max().unwrap_or(0);
    let names = if decimals == 0 { 3 } else { decimals + 3 };
    let _ = writeln!(text, "    {label} percentiles ({name}):");
    let lines: Vec<String> = shown
        .chunks((LINE / (12 + width)).max(1))
        .map(|line| {
            let each =
                line.iter().map(|(p, value)| format!(" {p:names$.decimals$}th=[{value:width$}]"));
            format!("     |{}", each.collect::<Vec<_>>().join(","))
        })
        .collect();
    let _ = writeln!(text, "{}", lines.join(",\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As fio 3.33 prints them.
    #[test]
    fn percentiles_have_as_many_digits_as_the_longest_of_them() {
        let mut latency = Histogram::new();
        latency.record(30);
        for (list, names) in [
            (&[50.0, 90.0, 99.9][..], "| 50.0th=[   30], 90.0th=[   30], 99.9th=["),
            (&[50.0, 90.0], "|  50th=[   30],  90th=["),
            (&[50.0, 99.999], "| 50.000th=[   30], 99.999th=["),
            (&[1.5, 99.99], "|  1.50th=[   30], 99.99th=["),
        ] {
            let mut text = String::new();
            add_percentiles(&mut text, "clat", &latency, list);
            assert!(text.contains(names), "{text}");
        }
    }

    #[test]
    fn a_device_has_the_merges_and_times_that_the_kernel_counted() {
        use super::super::result::{Device, DeviceRequests, PhaseResult};
        let requests = DeviceRequests {
            read_merges: 3,
            write_merges: 4,
            read_ticks_ns: 30_000_000,
            write_ticks_ns: 29_500_000,
            in_queue_ns: 60_999_999,
        };
        let (name, io_ticks_ns) = ("loop8".to_owned(), 50_000_000);
        let known = Device { name, reads: 1, writes: 2, io_ticks_ns, requests: Some(requests) };
        let earlier = Device { requests: None, ..known.clone() };
        let phase = |device| PhaseResult {
            elapsed_ns: 100_000_000,
            devices: vec![device],
            ..PhaseResult::default()
        };
        let row = RowResult { phases: vec![phase(known), phase(earlier)], ..RowResult::default() };
        let told: Vec<String> = disks(&row).iter().map(disk_line).collect();
        let line = "  loop8: ios=2/4, merge=3/4, ticks=30/29, in_queue=60, util=50.00%\n";
        assert_eq!(told, [line]);
    }

    #[test]
    fn numbers_have_four_digits_as_in_fio() {
        let seen = [(4266.0, "4266"), (36600.0, "36.6k"), (256_000.0, "256k"), (93_090.0, "93.1k")];
        for (value, shown) in seen {
            assert_eq!(count(value, 4), shown);
        }
        assert_eq!(count(6_830_600.0, 6), "6830.6k");
        let seen = [(1_048_576.0, "1024KiB"), (65536.0, "64.0KiB"), (11_657_216.0, "11.1MiB")];
        for (value, shown) in seen {
            assert_eq!(binary(value), shown);
        }
        assert_eq!(decimal(4_194_304.0), "4194kB");
        assert_eq!(binary(4096.0), "4096B");
    }
}
