//! Measured values, as they come back from the front end, and the numbers that fio makes of them.

use std::mem::take;
use std::sync::OnceLock;

use iolab_model::Histogram;
use iolab_workload::report::{SteadyReport, Tolerated};
use serde::{Deserialize, Serialize};

use super::plan::{Show, UnitShow};
use super::program::{READ, TRIM, WRITE};
use super::rules::RuleResults;

/// Name of the event; of a row the rest is a [`RowResult`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioEvent")]
pub struct Event {
    /// Kind of the event.
    pub event: EventKind,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FioEventKind")]
pub enum EventKind {
    /// Before the first run.
    Begin,
    /// All jobs were measured, or as much of them as there is.
    Row,
    /// While they run, for a line of progress.
    Progress,
    /// After the last run.
    End,
}

/// Phases of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioRowResult")]
pub struct RowResult {
    /// Measured phases.
    pub phases: Vec<PhaseResult>,
    /// Time of the end, in ms since 1970.
    #[serde(default)]
    pub ended_ms: u64,
    /// The same as ctime(3) writes it.
    #[serde(default)]
    pub ended: String,
    /// Seconds that all of it took.
    #[serde(default)]
    pub elapsed_s: u64,
    /// Number of the process that is told.
    #[serde(default)]
    pub pid: u64,
    /// Reason why it failed, if it did.
    #[serde(default)]
    pub error: Option<String>,
}

/// One phase of a record.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioPhaseResult")]
pub struct PhaseResult {
    /// Its name.
    pub name: String,
    /// From the release of the workers to the end of the last one.
    pub elapsed_ns: u64,
    /// CPU time of all workers.
    #[serde(default)]
    pub cpu: Cpu,
    /// Work of devices.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// Tenants that worked.
    pub tenants: Vec<TenantResult>,
}

/// CPU time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioCpu")]
pub struct Cpu {
    /// In user space.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// Switches to another task.
    #[serde(default)]
    pub context_switches: u64,
    /// Page faults that waited for storage.
    #[serde(default)]
    pub major_faults: u64,
    /// Other page faults.
    #[serde(default)]
    pub minor_faults: u64,
}

impl Cpu {
    /// That of a thread in so long: what is more, it used while it waited for the others.
    fn within(self, elapsed_ns: u64) -> Self {
        let share = elapsed_ns as f64 / (self.user_ns + self.system_ns).max(1) as f64;
        let part = |ns: u64| (ns as f64 * share.min(1.0)) as u64;
        Self { user_ns: part(self.user_ns), system_ns: part(self.system_ns), ..self }
    }

    /// That of both.
    fn and(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            context_switches: self.context_switches + other.context_switches,
            major_faults: self.major_faults + other.major_faults,
            minor_faults: self.minor_faults + other.minor_faults,
        }
    }
}

/// Work of a device.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioDevice")]
pub struct Device {
    /// Kernel name.
    pub name: String,
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Time with at least one request.
    pub io_ticks_ns: u64,
    /// Merges and times of its requests, if they were counted.
    #[serde(default)]
    pub requests: Option<DeviceRequests>,
}

/// Merges and times of the requests of a device.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioDeviceRequests")]
pub struct DeviceRequests {
    /// Reads that joined a request which was there.
    pub read_merges: u64,
    /// Writes that joined a request which was there.
    pub write_merges: u64,
    /// Sum of the times of the reads.
    pub read_ticks_ns: u64,
    /// Sum of the times of the writes.
    pub write_ticks_ns: u64,
    /// Sum of the times of all requests.
    pub in_queue_ns: u64,
}

/// Equal workers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioTenantResult")]
pub struct TenantResult {
    /// Their name.
    pub name: String,
    /// Each of them.
    pub workers: Vec<WorkerResult>,
    /// Service times.
    pub service: Classes,
    /// Response times from the intended start, under a rate.
    #[serde(default)]
    pub response: Option<Classes>,
    /// Submission and completion apart, if they were asked for.
    #[serde(default)]
    pub submissions: Option<Submissions>,
    /// Over time.
    pub series: Series,
    /// Between the cuts of the phase.
    #[serde(default)]
    pub segments: Vec<Segment>,
    /// Operations of its program, in order.
    #[serde(default)]
    pub operations: Vec<Operation>,
}

/// One operation of a program.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioOperation")]
pub struct Operation {
    /// Its name in the program.
    #[serde(default)]
    pub id: String,
    /// Number of operations that ended.
    pub ops: u64,
    /// Latencies.
    pub latency: Histogram,
}

/// One worker.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioWorkerResult")]
pub struct WorkerResult {
    /// Transfers.
    #[serde(default)]
    pub ops: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Length of its timed region.
    pub elapsed_ns: u64,
    /// Use of its thread, if it was noted.
    #[serde(default)]
    pub used: Option<Cpu>,
    /// First failure.
    #[serde(default)]
    pub first_error: Option<String>,
    /// Blocks that were not what was written.
    #[serde(default)]
    pub mismatch_count: u64,
    /// Rate that was seen, second by second.
    #[serde(default)]
    pub steady: Option<SteadyReport>,
    /// The depth that its search came to.
    #[serde(default)]
    pub depth_found: Option<u32>,
    /// Failures that ended nothing.
    #[serde(default)]
    pub tolerated: Option<Tolerated>,
}

/// Latencies by class.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioClasses")]
pub struct Classes {
    /// Of reads.
    pub read: Option<Histogram>,
    /// Of writes.
    pub write: Option<Histogram>,
    /// Of flushes.
    pub sync: Option<Histogram>,
}

/// Times of handing transfers over, and from there to their ends.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioSubmissions")]
pub struct Submissions {
    /// Until they were handed over.
    pub submission: Classes,
    /// From there on.
    pub completion: Classes,
}

/// Operations in equal slices of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioSeries")]
pub struct Series {
    /// Width of a slice.
    pub interval_ns: u64,
    /// Operations.
    pub ops: Vec<u64>,
    /// Bytes.
    pub bytes: Vec<u64>,
}

/// Counts between two cuts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioSegment")]
pub struct Segment {
    /// From the beginning of the phase on.
    pub from_ns: u64,
    /// Latencies.
    pub service: Classes,
}

/// Numbers of one direction.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Transfers.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// Longest of its jobs.
    pub runtime_ms: u64,
    /// Service times; absent: none.
    pub latency: Option<Histogram>,
    /// Of these the time until a transfer was handed over, and the rest; absent: not told apart.
    pub apart: Option<(Histogram, Histogram)>,
    /// Response times under a rate.
    pub response: Option<Histogram>,
    /// KiB/s of slices of half a second.
    pub bw: Vec<f64>,
    /// Transfers per second of the same.
    pub iops: Vec<f64>,
}

/// Results that are told together.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The first of its units.
    pub unit: &'a UnitShow,
    /// Clones of all its units.
    pub jobs: u64,
    /// errno of the first failure, or 0.
    pub error: u32,
    /// Reads, writes and trims.
    pub sides: [Side; 3],
    /// Flushes that were asked for; absent: none.
    pub sync: Option<Histogram>,
    /// Longest of its jobs.
    pub runtime_ms: u64,
    /// The same, of all clones together.
    pub job_runtime_ms: u64,
    /// Percent of a CPU.
    pub cpu: (f64, f64),
    /// Switches to another task, page faults that waited for storage, and others.
    pub events: [u64; 3],
    /// Results of its rules.
    pub rules: RuleResults,
}

/// Errors of Linux, by its numbers.
const EIO: u32 = 5;
pub(super) const EILSEQ: u32 = 84;
const EOPNOTSUPP: u32 = 95;

/// Number of the error that a sentence ends with: `... (os error 28)`. A target that lacks an
/// ability (`Error::Unsupported`) has none, and the kernel's would be that of no support.
fn error_of(text: &str) -> u32 {
    let behind = text.rsplit_once("(os error ").and_then(|(_, rest)| rest.split_once(')'));
    let is_unable = text.contains("target ") && text.contains(" cannot ");
    let usual = if is_unable { EOPNOTSUPP } else { EIO };
    behind.and_then(|(number, _)| number.parse().ok()).unwrap_or(usual)
}

fn milliseconds(ns: u64) -> u64 {
    (ns / 1_000_000).max(1)
}

impl Entry<'_> {
    /// Times of flushes, perhaps none.
    pub fn flushes(&self) -> &Histogram {
        self.sync.as_ref().unwrap_or_else(|| no_times())
    }
}

impl Side {
    /// Service times, perhaps none.
    pub fn times(&self) -> &Histogram {
        self.latency.as_ref().unwrap_or_else(|| no_times())
    }

    /// Times until a transfer was handed over, perhaps none.
    pub fn submission(&self) -> &Histogram {
        self.apart.as_ref().map_or_else(|| no_times(), |apart| &apart.0)
    }

    /// Times from there to the end.
    pub fn completion(&self) -> &Histogram {
        self.apart.as_ref().map_or_else(|| self.times(), |apart| &apart.1)
    }

    /// Bytes per second.
    pub fn bytes_per_s(&self) -> u64 {
        (u128::from(self.bytes) * 1000 / u128::from(self.runtime_ms.max(1))) as u64
    }

    /// Transfers per second.
    pub fn ios_per_s(&self) -> f64 {
        self.ios as f64 * 1000.0 / self.runtime_ms.max(1) as f64
    }

    /// Adds what the same clones did later.
    fn go_on(&mut self, later: &Self) {
        let before = self.runtime_ms;
        let (bw, iops) = (take(&mut self.bw), take(&mut self.iops));
        self.runtime_ms = 0;
        self.add(later);
        self.runtime_ms += before;
        self.bw.splice(..0, bw);
        self.iops.splice(..0, iops);
    }

    /// Adds the numbers of others that ran at the same time.
    pub fn add(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.runtime_ms = self.runtime_ms.max(other.runtime_ms);
        self.add_apart(other);
        add_times(&mut self.latency, other.latency.as_ref());
        add_times(&mut self.response, other.response.as_ref());
        for (mine, theirs) in [(&mut self.bw, &other.bw), (&mut self.iops, &other.iops)] {
            if mine.len() < theirs.len() {
                mine.resize(theirs.len(), 0.0);
            }
            mine.iter_mut().zip(theirs).for_each(|(sum, one)| *sum += one);
        }
    }
}

impl Side {
    /// Adds another one's times of submission; where only one has any, the other's transfers were
    /// handed over at once.
    fn add_apart(&mut self, other: &Self) {
        if self.apart.is_none() && other.apart.is_none() {
            return;
        }
        let before = self.completion().clone();
        let (submission, completion) = self.apart.get_or_insert_with(|| (Histogram::new(), before));
        submission.merge(other.submission());
        completion.merge(other.completion());
    }
}

/// Times of nothing: a histogram takes 36 KiB, and most directions of most jobs have none.
pub fn no_times() -> &'static Histogram {
    static NONE: OnceLock<Histogram> = OnceLock::new();
    NONE.get_or_init(Histogram::new)
}

fn add_times(sum: &mut Option<Histogram>, more: Option<&Histogram>) {
    match (sum.as_mut(), more) {
        (Some(sum), Some(more)) => sum.merge(more),
        (None, Some(more)) => *sum = Some(more.clone()),
        (_, None) => {}
    }
}

/// Everything that is told, in order.
pub fn entries<'a>(show: &'a Show, row: &RowResult) -> Vec<Entry<'a>> {
    let mut found: Vec<Entry<'a>> = Vec::new();
    for unit in show.units.iter().filter(|unit| !unit.is_untold) {
        let one = entry(unit, row);
        match found.last_mut().filter(|_| unit.is_joined) {
            Some(last) => {
                last.jobs += one.jobs;
                last.error = if last.error == 0 { one.error } else { last.error };
                for (sum, side) in last.sides.iter_mut().zip(&one.sides) {
                    sum.add(side);
                }
                add_times(&mut last.sync, one.sync.as_ref());
                last.runtime_ms = last.runtime_ms.max(one.runtime_ms);
                last.job_runtime_ms += one.job_runtime_ms;
                last.cpu = (last.cpu.0.max(one.cpu.0), last.cpu.1.max(one.cpu.1));
                last.rules.merge(&one.rules);
                last.events.iter_mut().zip(one.events).for_each(|(sum, more)| *sum += more);
            }
            None => found.push(one),
        }
    }
    found
}

fn entry<'a>(unit: &'a UnitShow, row: &RowResult) -> Entry<'a> {
    let mut found = Entry {
        unit,
        jobs: unit.clones,
        error: 0,
        sides: [Side::default(), Side::default(), Side::default()],
        sync: None,
        runtime_ms: 0,
        job_runtime_ms: 0,
        cpu: (0.0, 0.0),
        events: [0; 3],
        rules: RuleResults::default(),
    };
    for place in [Some(unit.place), unit.verified].into_iter().flatten() {
        let Some(phase) = row.phases.get(place.0) else { continue };
        let Some(tenant) = phase.tenants.get(place.1) else { continue };
        add(&mut found, unit, phase, tenant);
    }
    // What never began has failed with the run.
    if row.phases.len() <= unit.place.0 && found.error == 0 {
        found.error = row.error.as_deref().map_or(0, error_of);
    }
    found
}

/// Adds CPU time and events: those of a tenant's threads, or, where they were not noted, of all
/// that ran at once a part as long as its work.
fn add_cpu(found: &mut Entry<'_>, phase: &PhaseResult, tenant: &TenantResult) {
    let time = |workers: &[WorkerResult]| workers.iter().map(|it| it.elapsed_ns).sum::<u64>();
    let mine = time(&tenant.workers);
    let noted = |worker: &WorkerResult| worker.used.map(|used| used.within(worker.elapsed_ns));
    let noted: Option<Vec<Cpu>> = tenant.workers.iter().map(noted).collect();
    let (used, busy) = match noted {
        Some(threads) => (threads.into_iter().fold(Cpu::default(), Cpu::and), mine),
        None => (phase.cpu, phase.tenants.iter().map(|tenant| time(&tenant.workers)).sum()),
    };
    let busy = busy.max(1);
    let percent = |ns: u64| 100.0 * ns as f64 / busy as f64;
    found.cpu.0 = found.cpu.0.max(percent(used.user_ns));
    found.cpu.1 = found.cpu.1.max(percent(used.system_ns));
    for (sum, all) in
        found.events.iter_mut().zip([used.context_switches, used.major_faults, used.minor_faults])
    {
        *sum += (u128::from(all) * u128::from(mine) / u128::from(busy)) as u64;
    }
}

/// Times of what a tenant did after its `ramp_time`; absent: it had none, or ended in it, and all
/// is told, as by fio.
fn warm_service<'a>(unit: &UnitShow, tenant: &'a TenantResult) -> Option<&'a Classes> {
    let warm = tenant.segments.iter().find(|part| unit.ramp_ns > 0 && part.from_ns > 0)?;
    let longest = tenant.workers.iter().map(|worker| worker.elapsed_ns).max().unwrap_or(0);
    (longest > unit.ramp_ns).then_some(&warm.service)
}

/// Adds what a tenant did in a phase.
fn add(found: &mut Entry<'_>, unit: &UnitShow, phase: &PhaseResult, tenant: &TenantResult) {
    let warm = warm_service(unit, tenant);
    let service = warm.unwrap_or(&tenant.service);
    let longest = tenant.workers.iter().map(|worker| worker.elapsed_ns).max().unwrap_or(0);
    let measured_ns = longest.saturating_sub(warm.map_or(0, |_| unit.ramp_ns));
    let moved = tenant
        .workers
        .iter()
        .fold((0, 0), |sum, worker| (sum.0 + worker.read_bytes, sum.1 + worker.write_bytes));
    let responses = tenant.response.as_ref().filter(|_| warm.is_none());
    let classes = [
        (&service.read, moved.0, responses.and_then(|of| of.read.as_ref()), &tenant.service.read),
        (
            &service.write,
            moved.1,
            responses.and_then(|of| of.write.as_ref()),
            &tenant.service.write,
        ),
    ];
    let all = moved.0 + moved.1;
    let counted: u64 = tenant.series.ops.iter().sum();
    for (place, (latency, bytes, response, whole)) in classes.into_iter().enumerate() {
        let Some(latency) = latency.as_ref().filter(|latency| latency.count() > 0) else {
            continue;
        };
        let all_ios = whole.as_ref().map_or(1, Histogram::count).max(1);
        let one = Side {
            ios: latency.count(),
            // Of all transfers alike: the part of them that was not warming up.
            bytes: (u128::from(bytes) * u128::from(latency.count()) / u128::from(all_ios)) as u64,
            runtime_ms: milliseconds(measured_ns),
            latency: Some(latency.clone()),
            apart: apart(tenant, place, latency),
            response: response.cloned(),
            ..samples(
                &tenant.series,
                (unit.ramp_ns, longest),
                // Flushes are in the slices, too; fio counts no I/O of them.
                (bytes as f64 / all.max(1) as f64, all_ios as f64 / counted.max(1) as f64),
            )
        };
        found.sides[place].go_on(&one);
    }
    add_operations(found, unit, tenant, measured_ns);
    add_times(&mut found.sync, service.sync.as_ref());
    found.runtime_ms += milliseconds(measured_ns);
    found.job_runtime_ms += milliseconds(measured_ns) * tenant.workers.len() as u64;
    add_cpu(found, phase, tenant);
    for worker in &tenant.workers {
        found.rules.add(worker);
        let error = match &worker.first_error {
            _ if worker.mismatch_count > 0 => EILSEQ,
            Some(text) => error_of(text),
            None => 0,
        };
        found.error = if found.error == 0 { error } else { found.error };
    }
    // The first failure is told even if it ended nothing.
    found.error = if found.error == 0 { found.rules.errors.1 } else { found.error };
}

/// Times of submission and completion of reads (0) or writes, if all that count have them.
fn apart(tenant: &TenantResult, place: usize, all: &Histogram) -> Option<(Histogram, Histogram)> {
    let times = tenant.submissions.as_ref()?;
    let of =
        |classes: &Classes| if place == 0 { classes.read.clone() } else { classes.write.clone() };
    let (submission, completion) = (of(&times.submission)?, of(&times.completion)?);
    (submission.count() == all.count()).then_some((submission, completion))
}

/// Adds operations that move no data: on names, lengths and blocks, and trims.
fn add_operations(found: &mut Entry<'_>, unit: &UnitShow, tenant: &TenantResult, measured_ns: u64) {
    if let Some(named) = tenant.operations.first().filter(|_| unit.name_bytes > 0) {
        found.sides[0].add(&Side {
            ios: named.ops,
            bytes: named.ops * unit.name_bytes,
            runtime_ms: milliseconds(measured_ns),
            latency: Some(named.latency.clone()).filter(|latency| latency.count() > 0),
            ..Side::default()
        });
    }
    let [reads, writes] = unit.space_bytes;
    let kinds = [(READ, reads), (WRITE, writes), (TRIM, unit.trim_bytes)];
    for (place, (id, bytes)) in kinds.into_iter().enumerate() {
        let done = tenant.operations.iter().find(|one| one.id == id && bytes > 0);
        if let Some(done) = done {
            found.sides[place].add(&Side {
                ios: done.ops,
                bytes: done.ops * bytes,
                runtime_ms: milliseconds(measured_ns),
                latency: Some(done.latency.clone()).filter(|latency| latency.count() > 0),
                ..Side::default()
            });
        }
    }
}

/// Rates in the whole slices of a run, of shares of the bytes and of the operations in them.
fn samples(series: &Series, (ramp_ns, longest_ns): (u64, u64), (bytes, ops): (f64, f64)) -> Side {
    let width = series.interval_ns.max(1);
    let (first, end) = (ramp_ns.div_ceil(width), longest_ns / width);
    let slices = |values: &[u64], share: f64, unit: f64| -> Vec<f64> {
        let seconds = width as f64 / 1e9;
        let range = first as usize..(end as usize).min(values.len()).max(first as usize);
        let whole = values.get(range).unwrap_or_default();
        whole.iter().map(|value| *value as f64 * share / unit / seconds).collect()
    };
    Side {
        bw: slices(&series.bytes, bytes, 1024.0),
        iops: slices(&series.ops, ops, 1.0),
        ..Side::default()
    }
}

/// Smallest, largest, mean and deviation of values.
pub fn spread(values: &[f64]) -> (f64, f64, f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0, 0.0, 0.0);
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    // Shown as whole numbers, between which the mean lies.
    (least.floor(), most.ceil(), mean, deviation)
}

/// Deviation of latencies, from the middles of their buckets.
pub fn deviation(latency: &Histogram) -> f64 {
    let (Some(mean), count) = (latency.mean(), latency.count()) else { return 0.0 };
    if count < 2 {
        return 0.0;
    }
    let squares: f64 = latency
        .buckets()
        .map(|(low, high, count)| {
            let middle = low.midpoint(high) as f64;
            (middle - mean).powi(2) * count as f64
        })
        .sum();
    (squares / (count - 1) as f64).sqrt()
}

/// The value that fio tells for all that it counts together with `ns`.
pub fn representative(ns: u64) -> u64 {
    if ns < 128 {
        return ns;
    }
    let top = ns.ilog2();
    let width = top - 6;
    (ns >> width << width) + (1 << width >> 1)
}

/// fio's buckets: representative values and counts.
pub fn bins(latency: &Histogram) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for (low, high, count) in latency.buckets() {
        let value = representative(low.midpoint(high));
        match found.last_mut() {
            Some(last) if last.0 == value => last.1 += count,
            _ => found.push((value, count)),
        }
    }
    found
}

/// Values of percentiles.
pub fn percentiles(latency: &Histogram, list: &[f64]) -> Vec<(f64, u64)> {
    let bins = bins(latency);
    let total = latency.count() as f64;
    let of = |percent: f64| {
        let mut seen = 0;
        let wanted = percent / 100.0 * total;
        let found = bins.iter().find(|(_, count)| {
            seen += count;
            seen as f64 >= wanted
        });
        found.or(bins.last()).map_or(0, |(value, _)| *value)
    };
    list.iter().map(|percent| (*percent, of(*percent))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_fio() {
        // Seen in fio's own results.
        for (ns, shown) in [(22, 22), (127, 127), (6240, 6240), (49346, 49408), (313_344, 313_344)]
        {
            assert_eq!(representative(ns), shown);
        }
        let mut latency = Histogram::new();
        (0..1000).for_each(|value| latency.record(value * 1000));
        let told = percentiles(&latency, &[50.0, 99.9, 100.0]);
        assert_eq!(told.iter().map(|(p, _)| *p).collect::<Vec<_>>(), [50.0, 99.9, 100.0]);
        assert!((told[0].1 as f64 / 499_000.0 - 1.0).abs() < 0.016, "{told:?}");
        assert_eq!(bins(&latency).iter().map(|(_, count)| count).sum::<u64>(), 1000);
    }

    #[test]
    fn a_spread_has_fios_deviation() {
        let (least, most, mean, deviation) = spread(&[1024.0, 1024.0, 1032.0]);
        assert_eq!((least, most), (1024.0, 1032.0));
        assert!((mean - 1026.67).abs() < 0.01 && (deviation - 4.62).abs() < 0.01);
    }
}
