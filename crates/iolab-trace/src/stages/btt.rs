//! The text of btt(1): `-A`, or without it.
//!
//! Source of the layout: recorded output of btt 1.2.0. Use it with [`Rules::Btt`] and
//! [`By::Process`](super::By::Process). Differences: where several distances are equally frequent
//! btt prints the first in the order of its tree, here it is the smallest; what btt calls the
//! median is a distance that at least half of all have, or 0, and is printed as such.
//!
//! [`Rules::Btt`]: super::Rules::Btt

use std::collections::BTreeMap;
use std::fmt::Write as _;

use iolab_model::histogram::Histogram;

use super::groups::{Stage, StageSet};
use super::pairing::{OfDevice, Pairing};
use super::periods::{Covered, Ranges};
use super::report::stages_of;
use super::seeks::Seeks;

const RULE: &str = "--------------- ------------- ------------- ------------- -----------";
const NAME_SHOWN: usize = 14;

/// Seconds of nanoseconds, added up as btt does it.
fn seconds(ns: u128) -> f64 {
    (ns / 1_000_000_000) as f64 + (ns % 1_000_000_000) as f64 / 1.0e9
}

fn ns_seconds(ns: u64) -> f64 {
    seconds(u128::from(ns))
}

fn header(device: &OfDevice) -> String {
    format!("({:3},{:3})", device.device.major(), device.device.minor())
}

struct Text<'a> {
    pairing: &'a Pairing,
    sets: Vec<StageSet>,
    out: String,
}

/// The whole text; `is_all` as by `-A`.
pub fn text(pairing: &Pairing, is_all: bool) -> String {
    let sets = pairing.devices.iter().map(|device| stages_of(pairing, device)).collect();
    let mut text = Text { pairing, sets, out: String::new() };
    if is_all {
        text.processes();
        text.devices();
    }
    text.everything();
    text.overhead();
    text.merges();
    text.seeks("Device Q2Q Seek Information", |device| &device.queue_seeks);
    text.seeks("Device D2D Seek Information", |device| &device.issue_seeks);
    text.plugs();
    text.active();
    text.live();
    if is_all {
        text.q2d();
    }
    text.ranges();
    text.out
}

/// Sections of stages: name, stage, whether of devices that only map.
const MAPPED: [(&str, Stage); 3] =
    [("Q2Qdm", Stage::Q2Q), ("Q2Adm", Stage::Q2A), ("Q2Cdm", Stage::Q2C)];
const PLAIN: [Stage; 9] = [
    Stage::Q2Q,
    Stage::Q2A,
    Stage::Q2G,
    Stage::S2G,
    Stage::G2I,
    Stage::Q2M,
    Stage::I2D,
    Stage::D2C,
    Stage::Q2C,
];

/// Tell whether btt counts a stage apart for devices that only map.
const fn is_split(stage: Stage) -> bool {
    matches!(stage, Stage::Q2Q | Stage::Q2A | Stage::Q2C)
}

impl Text<'_> {
    fn section(&mut self, title: &str) {
        let _ = write!(self.out, "==================== {title} ====================\n\n");
    }

    fn head(&mut self, title: &str) {
        let _ = writeln!(
            self.out,
            "{title:>15} {:>13} {:>13} {:>13} {:>11}\n{RULE}",
            "MIN", "AVG", "MAX", "N"
        );
    }

    fn row(&mut self, name: &str, durations: Option<&Histogram>) {
        let Some(durations) = durations else { return };
        let (Some(min), Some(max)) = (durations.min(), durations.max()) else { return };
        let mean = seconds(durations.sum()) / durations.count() as f64;
        let _ = writeln!(
            self.out,
            "{name:<15} {:13.9} {mean:13.9} {:13.9} {:11}",
            ns_seconds(min),
            ns_seconds(max),
            durations.count()
        );
    }

    /// Sum of a stage over the groups of a process.
    fn of_process(&self, process: u32, stage: Stage, is_mapped: bool) -> Option<Histogram> {
        let owner = &self.pairing.processes.all[process as usize];
        if stage == Stage::Q2Q {
            return owner.between[usize::from(is_mapped)].as_deref().cloned();
        }
        let devices = self
            .pairing
            .devices
            .iter()
            .filter(|device| !is_split(stage) || device.is_mapper() == is_mapped);
        let mut sum: Option<Histogram> = None;
        for group in devices.filter_map(|device| device.groups.get(&process)) {
            if let Some(durations) = self.pairing.groups[*group as usize].stages.get(stage) {
                sum.get_or_insert_default().merge(durations);
            }
        }
        sum
    }

    fn processes(&mut self) {
        self.section("Per Process");
        let mut tables: Vec<(&str, Stage, bool)> =
            MAPPED.iter().map(|(name, stage)| (*name, *stage, true)).collect();
        tables.extend(PLAIN.iter().map(|stage| (stage.name(), *stage, false)));
        for (index, (name, stage, is_mapped)) in tables.into_iter().enumerate() {
            if index == MAPPED.len() {
                self.out.push('\n');
            }
            self.head(name);
            for process in self.pairing.processes.sorted() {
                let durations = self.of_process(process, stage, is_mapped);
                let whole = &self.pairing.processes.all[process as usize].name;
                let shown: String = whole.chars().take(NAME_SHOWN).collect();
                self.row(&shown, durations.as_ref());
            }
            self.out.push('\n');
        }
    }

    fn of_device(&self, index: usize, stage: Stage, is_mapped: bool) -> Option<Histogram> {
        let device = &self.pairing.devices[index];
        if is_split(stage) && device.is_mapper() != is_mapped {
            return None;
        }
        match stage {
            Stage::Q2Q => Some(device.between.clone()),
            stage => self.sets[index].get(stage).cloned(),
        }
    }

    fn devices(&mut self) {
        self.section("Per Device");
        let mut tables: Vec<(&str, Stage, bool)> =
            MAPPED.iter().map(|(name, stage)| (*name, *stage, true)).collect();
        tables.extend(PLAIN.iter().map(|stage| (stage.name(), *stage, false)));
        for (place, (name, stage, is_mapped)) in tables.into_iter().enumerate() {
            if place == MAPPED.len() {
                self.out.push('\n');
            }
            self.head(name);
            for index in 0..self.pairing.devices.len() {
                let durations = self.of_device(index, stage, is_mapped);
                let title = header(&self.pairing.devices[index]);
                self.row(&title, durations.as_ref());
            }
            self.out.push('\n');
        }
    }

    fn everything(&mut self) {
        self.section("All Devices");
        self.head("ALL");
        for (name, stage) in MAPPED {
            let durations = self.of_all(stage, true);
            self.row(name, durations.as_ref());
        }
        self.out.push('\n');
        let is_told = |stage: &&Stage| !matches!(stage, Stage::Q2D | Stage::Flush);
        for stage in Stage::ALL.iter().filter(is_told) {
            let durations = self.of_all(*stage, false);
            self.row(stage.name(), durations.as_ref());
        }
        self.out.push('\n');
    }

    fn of_all(&self, stage: Stage, is_mapped: bool) -> Option<Histogram> {
        if stage == Stage::Q2Q {
            return Some(self.pairing.between[usize::from(is_mapped)].clone());
        }
        let mut sum: Option<Histogram> = None;
        for index in 0..self.pairing.devices.len() {
            if let Some(durations) = self.of_device(index, stage, is_mapped) {
                sum.get_or_insert_default().merge(&durations);
            }
        }
        sum
    }

    fn overhead(&mut self) {
        const PARTS: [Stage; 5] = [Stage::Q2G, Stage::G2I, Stage::Q2M, Stage::I2D, Stage::D2C];
        const LINE: &str = "---------- | --------- --------- --------- --------- ---------";
        self.section("Device Overhead");
        let names = PARTS.map(|stage| format!("{:>9}", stage.name())).join(" ");
        let _ = writeln!(self.out, "{:>10} | {names}\n{LINE}", "DEV");
        let (mut sums, mut whole) = ([0_u128; 5], 0_u128);
        for index in 0..self.pairing.devices.len() {
            let Some(all) = self.of_device(index, Stage::Q2C, false) else { continue };
            let sum = |stage| self.sets[index].get(stage).map_or(0, Histogram::sum);
            let parts = PARTS.map(sum);
            if all.sum() == 0 {
                continue;
            }
            let title = header(&self.pairing.devices[index]);
            push_shares(&mut self.out, &title, parts, all.sum());
            for (total, part) in sums.iter_mut().zip(parts) {
                *total += part;
            }
            whole += all.sum();
        }
        if sums != [0; 5] {
            let _ = writeln!(self.out, "{LINE}");
            push_shares(&mut self.out, "Overall", sums, whole);
        }
        self.out.push('\n');
    }

    fn merges(&mut self) {
        const HEAD: &str =
            "       DEV |       #Q       #D   Ratio |   BLKmin   BLKavg   BLKmax    Total";
        const LINE: &str =
            "---------- | -------- -------- ------- | -------- -------- -------- --------";
        self.section("Device Merge Information");
        let _ = writeln!(self.out, "{HEAD}\n{LINE}");
        let mut rows: Vec<(u64, u64, u64, u64, u64)> = Vec::new();
        for device in &self.pairing.devices {
            let (entered, issued) = (device.entered.max(device.issues), device.issues);
            if device.entered == 0 || issued == 0 {
                continue;
            }
            let (min, max) = (device.sectors.min().unwrap_or(0), device.sectors.max().unwrap_or(0));
            let total = device.sectors.sum() as u64;
            let ratio = entered as f64 / issued as f64;
            let mean = (total as f64 / issued as f64) as u64;
            let _ = writeln!(
                self.out,
                "{:>10} | {entered:8} {issued:8} {ratio:7.1} | {min:8} {mean:8} {max:8} {total:8}",
                header(device)
            );
            rows.push((entered, issued, min, max, total));
        }
        if rows.len() > 1 {
            let sum = |of: fn(&(u64, u64, u64, u64, u64)) -> u64| rows.iter().map(of).sum::<u64>();
            let (entered, issued, total) = (sum(|row| row.0), sum(|row| row.1), sum(|row| row.4));
            let min = rows.iter().map(|row| row.2).min().unwrap_or(0);
            let max = rows.iter().map(|row| row.3).max().unwrap_or(0);
            let ratio = entered as f32 / issued as f32;
            let _ = writeln!(
                self.out,
                "{LINE}\n{HEAD}\n{:>10} | {entered:8} {issued:8} {ratio:7.1} | {min:8} {:8} \
                 {max:8} {total:8}",
                "TOTAL",
                total / issued
            );
        }
        self.out.push('\n');
    }

    fn seeks(&mut self, title: &str, of: fn(&OfDevice) -> &Seeks) {
        const LINE: &str =
            "---------- | --------------- --------------- --------------- | ---------------";
        let head = |name: &str| {
            format!(
                "{name:>10} | {:>15} {:>15} {:>15} | {:<15}",
                "NSEEKS", "MEAN", "MEDIAN", "MODE"
            )
        };
        self.section(title);
        let _ = writeln!(self.out, "{}\n{LINE}", head("DEV"));
        let (mut count, mut sum, mut median) = (0, 0.0, 0_u128);
        let mut modes: BTreeMap<u64, u64> = BTreeMap::new();
        for device in &self.pairing.devices {
            let seeks = of(device);
            let Some(mean) = seeks.distances.mean() else { continue };
            let (own, most) = seeks.modes();
            push_seek(&mut self.out, &header(device), (seeks, mean), (&own, most));
            count += seeks.count();
            sum += seeks.count() as f64 * mean;
            median += u128::from(seeks.count()) * u128::from(seeks.btt_median());
            for mode in own {
                *modes.entry(mode).or_default() += most;
            }
        }
        if count > 0 {
            let most = modes.values().copied().max().unwrap_or(0);
            let mut best = modes.iter().filter(|(_, n)| **n == most).map(|(mode, _)| *mode);
            let first = best.next().unwrap_or(0);
            let others = best.count();
            let _ = write!(
                self.out,
                "{LINE}\n{}\n{:>10} | {count:15} {:15.1} {:15} | {first}({most})",
                head("Overall"),
                "Average",
                sum / count as f64,
                median / u128::from(count)
            );
            if others > 0 {
                let _ = write!(self.out, "\n{:62}...({others} more)", ' ');
            }
            self.out.push('\n');
        }
        self.out.push('\n');
    }

    fn plugs(&mut self) {
        const LINE: &str = "---------- | ---------- ----------  | ----------------";
        const SHORT: &str = "---------- | ----------   ----------";
        let heads = format!("{:>10} {:>10}  | % Time Q Plugged", "# Plugs", "# Timer Us");
        self.section("Plug Information");
        let _ = writeln!(self.out, "{:>10} | {heads}\n{LINE}", "DEV");
        let (mut n, mut plugs, mut timers, mut shares) = (0, 0, 0, 0.0);
        for device in &self.pairing.devices {
            let [count, timer] = device.plugs.count;
            if count + timer == 0 {
                continue;
            }
            let span = ns_seconds(device.span_ns.1) - ns_seconds(device.span_ns.0);
            let share = 100.0 * (ns_seconds(device.plugs.plugged_ns) / span);
            let _ = writeln!(
                self.out,
                "{:>10} | {count:10}({timer:10}) | {share:13.9}%",
                header(device)
            );
            (n, plugs, timers, shares) = (n + 1, plugs + count, timers + timer, shares + share);
        }
        if n > 1 {
            let _ = writeln!(
                self.out,
                "{LINE}\n{:>10} | {heads}\n{:>10} | {:10}({:10}) | {:13.9}%",
                "Overall",
                "Average",
                plugs / n,
                timers / n,
                shares / n as f64
            );
        }
        let heads = format!("{:>10}   {:>10}", "IOs/Unp", "IOs/Unp(to)");
        let _ = writeln!(self.out, "\n{:>10} | {heads}\n{SHORT}", "DEV");
        let mut sums = [(0, 0); 2];
        for device in &self.pairing.devices {
            let mut means = [0.0; 2];
            for kind in [0, 1] {
                let (count, requests) = (device.plugs.count[kind], device.plugs.requests[kind]);
                if count > 0 && requests > 0 {
                    means[kind] = requests as f64 / count as f64;
                    sums[kind] = (sums[kind].0 + count, sums[kind].1 + requests);
                }
            }
            let [plain, timer] = means;
            let _ = writeln!(self.out, "{:>10} | {plain:10.1}   {timer:10.1}", header(device));
        }
        if sums[0].0 + sums[1].0 > 0 {
            let [plain, timer] =
                sums.map(|(count, n)| if count > 0 { n as f64 / count as f64 } else { 0.0 });
            let _ = writeln!(
                self.out,
                "{SHORT}\n{:>10} | {heads}\n{:>10} | {plain:10.1}   {timer:10.1}",
                "Overall", "Average"
            );
        }
        self.out.push('\n');
    }

    fn active(&mut self) {
        self.section("Active Requests At Q Information");
        let _ = writeln!(
            self.out,
            "{:>10} | {:>13}\n---------- | -------------",
            "DEV", "Avg Reqs @ Q"
        );
        let (mut n, mut entered, mut waiting) = (0, 0, 0);
        for device in &self.pairing.devices {
            if device.entered == 0 || device.is_mapper() {
                continue;
            }
            let is_issued = device.issues > 0;
            let count = if is_issued { device.entered.max(device.issues) } else { device.entered };
            let mean = device.waiting.1 as f64 / count as f64;
            let _ = writeln!(self.out, "{:>10} | {mean:13.1}", header(device));
            (n, entered, waiting) = (n + 1, entered + count, waiting + device.waiting.1);
        }
        if n > 1 {
            let mean = waiting as f64 / entered as f64;
            let _ = writeln!(
                self.out,
                "---------- | -------------\n{:>10} | {:>13}\n{:>10} | {mean:13.1}",
                "Overall", "Avgs Reqs @ Q", "Average"
            );
        }
        self.out.push('\n');
    }

    fn live(&mut self) {
        const LINE: &str = "---------- | ---------- ------------- ------------- ------";
        self.section("I/O Active Period Information");
        let _ = writeln!(
            self.out,
            "{:>10} | {:>10} {:>13} {:>13} {:>6}\n{LINE}",
            "DEV", "# Live", "Avg. Act", "Avg. !Act", "% Live"
        );
        for device in &self.pairing.devices {
            push_live(&mut self.out, &header(device), &device.covered);
        }
        let _ = writeln!(self.out, "{LINE}");
        push_live(&mut self.out, "Total Sys", &self.pairing.covered);
        self.out.push('\n');
    }

    fn q2d(&mut self) {
        const BINS: &str = "<.005 <.010 <.025 <.050 <.075 <.100 <.250 <.500 < 1.0 >=1.0";
        let line = "===== ".repeat(10);
        self.section("Q2D Histogram");
        let _ = writeln!(self.out, "{:>10} | {BINS}\n --------- | {line}", "DEV");
        let mut sum = [0; 10];
        for device in &self.pairing.devices {
            let bins = device.q2d_bins;
            if bins != [0; 10] {
                push_bins(&mut self.out, &header(device), &bins);
                for (total, count) in sum.iter_mut().zip(bins) {
                    *total += count;
                }
            }
        }
        if sum != [0; 10] {
            let _ = writeln!(self.out, "========== | {line}");
            push_bins(&mut self.out, "AVG", &sum);
            self.out.push('\n');
        }
    }

    fn ranges(&mut self) {
        self.out.push_str("# Total System\n");
        let mut base = 0;
        if push_regions(&mut self.out, "Total System", &self.pairing.ranges, base) {
            base += 10;
        }
        if self.pairing.devices.len() > 1 {
            self.out.push_str("# Per device\n");
            for device in &self.pairing.devices {
                let name = device.device.to_string();
                if push_regions(&mut self.out, &name, &device.ranges, base) {
                    base += 10;
                }
            }
        }
        self.out.push_str("# Per process\n");
        for process in self.pairing.processes.sorted() {
            let process = &self.pairing.processes.all[process as usize];
            let ranges = [process.queued.clone(), process.completed.clone()];
            push_regions(&mut self.out, &process.name, &ranges, base);
            base += 10;
        }
    }
}

fn push_shares(out: &mut String, title: &str, parts: [u128; 5], whole: u128) {
    let shares = parts.map(|part| format!("{:8.4}%", 100.0 * part as f64 / whole as f64));
    let _ = writeln!(out, "{title:>10} | {}", shares.join(" "));
}

fn push_seek(out: &mut String, title: &str, (seeks, mean): (&Seeks, f64), modes: (&[u64], u64)) {
    let (own, most) = modes;
    let first = own.first().copied().unwrap_or(0);
    let _ = write!(
        out,
        "{title:>10} | {:15} {mean:15.1} {:15} | {first}({most})",
        seeks.count(),
        seeks.btt_median()
    );
    if own.len() > 2 {
        let _ = write!(out, "\n{:62}...({} more)", ' ', own.len() - 1);
    } else if let Some(second) = own.get(1) {
        let _ = write!(out, " {second}");
    }
    out.push('\n');
}

/// btt takes the time from the beginning of the trace, not from the first request.
fn push_live(out: &mut String, title: &str, covered: &Covered) {
    let (count, live) = (covered.count(), ns_seconds(covered.total_ns()));
    let whole = ns_seconds(covered.end_ns());
    let (act, idle, share) = match count {
        0 => (0.0, 0.0, 0.0),
        1 => (0.0, 0.0, 100.0),
        n => (live / n as f64, (whole - live) / (n - 1) as f64, 100.0 * (live / whole)),
    };
    let _ = writeln!(out, "{title:>10} | {count:10} {act:13.9} {idle:13.9} {share:6.2}");
}

fn push_bins(out: &mut String, title: &str, bins: &[u64; 10]) {
    let all: u64 = bins.iter().sum();
    let _ = write!(out, "{title:>10} | ");
    for count in bins {
        let _ = write!(out, "{:5.1} ", 100.0 * *count as f64 / all as f64);
    }
    out.push('\n');
}

/// `base` in tenths.
fn push_regions(out: &mut String, name: &str, ranges: &[Ranges; 2], base: u32) -> bool {
    if ranges.iter().all(|kind| kind.0.is_empty()) {
        return false;
    }
    for (kind, letter) in [(0, 'q'), (1, 'c')] {
        let low = f64::from(base + kind * 5) / 10.0;
        let high = f64::from(base + kind * 5 + 4) / 10.0;
        let _ = writeln!(out, "# {name:>16} : {letter} activity");
        for (begin, end) in &ranges[kind as usize].0 {
            for (time, y) in [(begin, low), (begin, high), (end, high), (end, low)] {
                let _ = writeln!(out, "{:13.9} {y:5.1}", ns_seconds(*time));
            }
        }
        out.push('\n');
    }
    true
}
