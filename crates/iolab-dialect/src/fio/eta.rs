//! The line of progress (`--eta`): which jobs run, the share that is done, rates, the time left.
//!
//! Facts: fio 3.33 as it behaves. What it writes over the same place of standard output is a line
//! on standard error here. The time left of jobs that have not begun is guessed from the rate so
//! far, where their amount is known and their time is not.

use iolab_workload::Workload;
use iolab_workload::spec::{Limit, Tenant};
use serde::{Deserialize, Serialize};

use super::normal::{binary, count};
use super::plan::{Show, UnitShow};
use super::result::PhaseResult;

/// Occasion on which a line of progress is shown.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FioEta")]
pub enum When {
    /// If standard error is a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// State of a running job.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioProgress")]
pub struct Progress {
    /// Phases that have ended, then the one that runs.
    pub phases: Vec<PhaseResult>,
    /// Number of those that have ended.
    pub ended: usize,
    /// Bytes read and written, ops read and written, when the last line was made.
    #[serde(default)]
    pub before: Transferred,
    /// Time since then.
    pub interval_ns: u64,
    /// Time since the phase that runs began.
    pub phase_ns: u64,
    /// Time since the first phase began.
    pub elapsed_ns: u64,
}

/// Bytes and transfers of reads and writes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioTransferred")]
pub struct Transferred {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

/// A line, and what the next one is compared with.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioProgressLine")]
pub struct Line {
    /// The line.
    pub line: String,
    /// Counts so far.
    pub moved: Transferred,
}

/// Amount of work of a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Goal {
    bytes: Option<u64>,
    ns: Option<u64>,
}

impl Goal {
    fn of(tenant: &Tenant) -> Self {
        // Where all that is written is read back, as much is read.
        let twice = 1 + u64::from(tenant.manner.read_back.is_some());
        let workers = u64::from(tenant.workers) * twice;
        let all = |bytes: u64| Some(bytes.saturating_mul(workers));
        if let Some(program) = &tenant.program {
            let limit = &program.limit;
            let bytes = limit.total_bytes.and_then(|bytes| all(bytes.0));
            return Self { bytes, ns: limit.time_ns.map(|ns| ns.0) };
        }
        let io = tenant.io_size_bytes.0;
        match tenant.limit {
            Limit::Time { duration_ns } => Self { bytes: None, ns: Some(duration_ns.0) },
            Limit::Ops { ops, within_ns } => {
                Self { bytes: all(ops.saturating_mul(io)), ns: within_ns.map(|ns| ns.0) }
            }
            Limit::Once => {
                let region =
                    tenant.region.as_ref().map_or(tenant.file_bytes, |region| region.bytes);
                Self { bytes: all(region.0), ns: None }
            }
        }
    }

    /// Seconds left after `elapsed_s`, in which `bytes` were moved.
    fn left_s(self, elapsed_s: f64, bytes: u64, rate: f64) -> Option<f64> {
        let by_time = self.ns.map(|ns| (ns as f64 / 1e9 - elapsed_s).max(0.0));
        let own = if elapsed_s > 0.0 && bytes > 0 { bytes as f64 / elapsed_s } else { rate };
        let by_bytes =
            self.bytes.filter(|_| own > 0.0).map(|all| all.saturating_sub(bytes) as f64 / own);
        match (by_time, by_bytes) {
            (Some(time), Some(amount)) => Some(time.min(amount)),
            (one, other) => one.or(other),
        }
    }
}

fn moved_of(phase: &PhaseResult, tenant: usize) -> u64 {
    let workers = phase.tenants.get(tenant).map(|tenant| &tenant.workers);
    workers.into_iter().flatten().map(|one| one.read_bytes + one.write_bytes).sum()
}

fn moved(phases: &[PhaseResult], workload: &Workload) -> Transferred {
    let mut sum = Transferred::default();
    for (phase, spec) in phases.iter().zip(&workload.phases) {
        for (told, tenant) in phase.tenants.iter().zip(&spec.tenants) {
            for worker in &told.workers {
                let (read, written) = (worker.read_bytes, worker.write_bytes);
                // Of mixed jobs transfers are told apart by their bytes.
                let share = read as f64 / ((read + written) as f64).max(1.0);
                let is_named = read + written == 0 && tenant.reads();
                let share = if is_named { 1.0 } else { share };
                let reads = (worker.ops as f64 * share).round() as u64;
                sum.read_bytes += read;
                sum.write_bytes += written;
                sum.reads += reads;
                sum.writes += worker.ops.saturating_sub(reads);
            }
        }
    }
    sum
}

/// State of a unit as fio's letter.
fn letter(unit: &UnitShow, running: usize) -> &str {
    let last = unit.verified.map_or(unit.place.0, |place| place.0);
    if last < running {
        "_"
    } else if unit.place.0 > running {
        "P"
    } else if unit.verified.is_some_and(|place| place.0 == running) {
        "V"
    } else if unit.place.0 < running {
        // It has written, and others verify first.
        "_"
    } else {
        &unit.letter
    }
}

/// `[r(2),_(1)]`, and the number of clones that run.
fn states(show: &Show, running: usize) -> (String, u64) {
    let mut found: Vec<(&str, u64)> = Vec::new();
    let mut at_work = 0;
    for unit in &show.units {
        let letter = letter(unit, running);
        if !matches!(letter, "_" | "P") {
            at_work += unit.clones;
        }
        match found.last_mut() {
            Some(last) if last.0 == letter => last.1 += unit.clones,
            _ => found.push((letter, unit.clones)),
        }
    }
    let parts: Vec<String> =
        found.iter().map(|(name, clones)| format!("{name}({clones})")).collect();
    (parts.join(","), at_work)
}

/// `00m:16s`, with hours and days where there are any.
fn time_left(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (hours, minutes, seconds) = (rest / 3600, rest / 60 % 60, rest % 60);
    let mut text = String::new();
    if days > 0 {
        text = format!("{days}d:");
    }
    if days > 0 || hours > 0 {
        text = format!("{text}{hours:02}h:");
    }
    format!("{text}{minutes:02}m:{seconds:02}s")
}

/// `[r=804KiB/s,w=6KiB/s]`; empty: nothing was moved.
fn pair(values: [f64; 2], unit: &str, shown: fn(f64) -> String) -> String {
    let named = ["r", "w"].into_iter().zip(values).filter(|(_, value)| *value > 0.0);
    let parts: Vec<String> =
        named.map(|(name, value)| format!("{name}={}{unit}", shown(value))).collect();
    if parts.is_empty() { String::new() } else { format!("[{}]", parts.join(",")) }
}

/// Seconds that are left of all phases; absent: not known.
fn left_s(workload: &Workload, told: &Progress, rate: f64) -> Option<f64> {
    let mut sum = 0.0;
    for (place, phase) in workload.phases.iter().enumerate().skip(told.ended) {
        let running = told.phases.get(place);
        let of = |(index, tenant): (usize, &Tenant)| {
            let elapsed_s = running.map_or(0.0, |_| told.phase_ns as f64 / 1e9);
            let begins_s = tenant.begins_ns.0 as f64 / 1e9;
            let bytes = running.map_or(0, |phase| moved_of(phase, index));
            let waits_s = (begins_s - elapsed_s).max(0.0);
            let worked_s = (elapsed_s - begins_s).max(0.0);
            Goal::of(tenant).left_s(worked_s, bytes, rate).map(|left| left + waits_s)
        };
        let all = phase.tenants.iter().enumerate().map(of).collect::<Option<Vec<_>>>()?;
        sum += all.into_iter().fold(0.0, f64::max);
    }
    Some(sum)
}

/// The line of progress.
pub fn line(show: &Show, workload: &Workload, told: &Progress) -> Line {
    let (states, at_work) = states(show, told.ended);
    let moved = moved(&told.phases, workload);
    let elapsed_s = told.elapsed_ns as f64 / 1e9;
    let all = (moved.read_bytes + moved.write_bytes) as f64;
    let rate = if elapsed_s > 0.0 { all / elapsed_s } else { 0.0 };
    let seconds = told.interval_ns.max(1) as f64 / 1e9;
    let per_s = |now: u64, before: u64| (now.saturating_sub(before) as f64 / seconds).floor();
    let before = &told.before;
    let bytes =
        [per_s(moved.read_bytes, before.read_bytes), per_s(moved.write_bytes, before.write_bytes)];
    let ops = [per_s(moved.reads, before.reads), per_s(moved.writes, before.writes)];
    let (share, left) = match left_s(workload, told, rate) {
        Some(left) => {
            let percent = 100.0 * elapsed_s / (elapsed_s + left).max(1e-9);
            (format!("{percent:.1}%"), time_left(left.ceil() as u64))
        }
        None => ("-.-%".to_owned(), "--".to_owned()),
    };
    let rates = pair(bytes, "/s", binary);
    let ops = pair(ops, "", |value| count(value, 4)).replace(']', " IOPS]");
    let line =
        format!("Jobs: {at_work} (f={at_work}): [{states}][{share}]{rates}{ops}[eta {left}]");
    Line { line, moved }
}

#[cfg(test)]
mod tests;
