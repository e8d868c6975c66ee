//! Measured values, as plain data.

use iolab_model::histogram::Histogram;
use serde::Serialize;

use crate::event::Device;
use crate::names::cleaned;

use super::activity::{Level, SliceRow};
use super::calls::{CallRow, PointRow};
use super::counts::Counts;
use super::groups::{Amount, By, DIRECTIONS, Stage, StageSet, size_class_name};
use super::pairing::{OfDevice, Pairing};
use super::seeks::Seeks;

/// Durations of one stage.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct StageRow {
    /// The stage.
    pub stage: Stage,
    /// Number of them.
    pub count: u64,
    /// Shortest, exact.
    pub min_ns: u64,
    /// Arithmetic mean of the exact values.
    pub mean_ns: f64,
    /// Half of all are at most this long; percentiles are at most 1/128 too long.
    pub p50_ns: u64,
    /// Nine of ten.
    pub p90_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// 999 of 1000.
    pub p999_ns: u64,
    /// Longest, exact.
    pub max_ns: u64,
    /// Sum of the exact values.
    pub sum_ns: u64,
}

impl StageRow {
    fn of(stage: Stage, durations: &Histogram) -> Option<Self> {
        let quantile = |share| durations.quantile(share).unwrap_or(0);
        Some(Self {
            stage,
            count: durations.count(),
            min_ns: durations.min()?,
            mean_ns: durations.mean()?,
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns: durations.max()?,
            sum_ns: u64::try_from(durations.sum()).unwrap_or(u64::MAX),
        })
    }
}

/// Rows of all stages of a set; times between bios stand apart.
pub fn rows_of(between: Option<&Histogram>, stages: &StageSet) -> Vec<StageRow> {
    let durations = |stage: Stage| match stage {
        Stage::Q2Q => between,
        stage => stages.get(stage),
    };
    Stage::ALL.iter().filter_map(|stage| StageRow::of(*stage, durations(*stage)?)).collect()
}

/// One group of a device.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct GroupRow {
    /// Its name: a process, a direction, a class of sizes.
    pub name: String,
    /// Bios that entered the queue.
    pub queued: Amount,
    /// Bios that were completed.
    pub completed: Amount,
    /// Share of the bytes that the device completed, without discards, which move none.
    pub bytes_share: f64,
    /// Its stages.
    pub stages: Vec<StageRow>,
}

/// Distances.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SeekRow {
    /// Number of them.
    pub count: u64,
    /// Share that begins exactly where the one before ended.
    pub sequential_share: f64,
    /// Mean distance in sectors.
    pub mean_sectors: f64,
    /// Half of all are at most this far.
    pub p50_sectors: u64,
    /// Nine of ten.
    pub p90_sectors: u64,
    /// Most frequent distance.
    pub mode_sectors: u64,
    /// Number of its occurrences.
    pub mode_count: u64,
    /// True if there were too many different distances to be sure of the most frequent one.
    pub is_mode_rough: bool,
}

impl SeekRow {
    fn of(seeks: &Seeks) -> Option<Self> {
        let (modes, mode_count) = seeks.modes();
        Some(Self {
            count: seeks.count(),
            sequential_share: seeks.sequential as f64 / seeks.count() as f64,
            mean_sectors: seeks.distances.mean()?,
            p50_sectors: seeks.distances.quantile(0.5)?,
            p90_sectors: seeks.distances.quantile(0.9)?,
            mode_sectors: modes.first().copied().unwrap_or(0),
            mode_count,
            is_mode_rough: seeks.is_mode_rough(),
        })
    }
}

/// A depth over the whole trace.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DepthRow {
    /// Mean over time.
    pub mean: f64,
    /// Largest.
    pub max: u64,
    /// Share of the time at which it was not zero.
    pub busy_share: f64,
    /// At the end.
    pub at_end: u64,
}

impl DepthRow {
    fn of(level: &Level, span_ns: u64) -> Self {
        let span = span_ns.max(1) as f64;
        Self {
            mean: level.integral as f64 / span,
            max: level.max,
            busy_share: level.busy_ns as f64 / span,
            at_end: level.now,
        }
    }
}

/// One device.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "StagesOfDevice")]
pub struct DeviceRow {
    /// `MAJOR,MINOR`.
    pub device: String,
    /// Its name, if the trace has one.
    pub name: Option<String>,
    /// Counts of events.
    pub counts: Counts,
    /// Sectors per completion: smallest, mean, largest.
    pub sectors_per_completion: Option<(u64, f64, u64)>,
    /// Bios between queue and completion.
    pub outstanding: DepthRow,
    /// Requests between issue and completion; all zero where the trace has no issues.
    pub in_flight: DepthRow,
    /// Time at which the device had nothing to do: no request, or no bio where there are no issues.
    pub idle_ns: u64,
    /// Mean number of bios by Little's law: completions per second times their mean time; differs
    /// from `outstanding` by what was not completed in the trace.
    pub outstanding_by_little: f64,
    /// Distances between bios that enter.
    pub queue_seeks: Option<SeekRow>,
    /// Distances between requests that are issued.
    pub issue_seeks: Option<SeekRow>,
    /// Time at which a plug was set.
    pub plugged_ns: u64,
    /// Stages.
    pub stages: Vec<StageRow>,
    /// Groups, the one with the most bytes first.
    pub groups: Vec<GroupRow>,
    /// Depths and completions over time.
    pub series: Vec<SliceRow>,
}

/// The whole trace.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "StagesReport")]
pub struct Report {
    /// Events that are no notes.
    pub events: u64,
    /// Packet commands, which have no stages.
    pub packets: u64,
    /// Events of devices that were too many.
    pub events_left_out: u64,
    /// Places where events were lost: counts are too low, and what was under way there is left out.
    pub gaps: u64,
    /// Events that were earlier than one before them.
    pub times_back: u64,
    /// From the first event to the last.
    pub span_ns: u64,
    /// Property by which groups are told apart.
    pub by: By,
    /// Stages over all devices.
    pub stages: Vec<StageRow>,
    /// Devices in the order in which they appear.
    pub devices: Vec<DeviceRow>,
    /// Events of other layers by their names, if such were recorded.
    pub points: Vec<PointRow>,
    /// System calls by their names, if such were recorded.
    pub calls: Vec<CallRow>,
}

impl Report {
    /// Gives the devices the names that the trace has for them.
    pub fn name_devices(&mut self, names: &[(Device, String)]) {
        for row in &mut self.devices {
            let known = names.iter().find(|(device, _)| device.to_string() == row.device);
            row.name =
                known.map(|(_, name)| cleaned(name.as_bytes())).filter(|name| !name.is_empty());
        }
    }

    /// Everything that was measured.
    pub fn of(pairing: &Pairing) -> Self {
        let mut all = StageSet::default();
        for group in &pairing.groups {
            all.merge(&group.stages);
        }
        let mut between = pairing.between[0].clone();
        between.merge(&pairing.between[1]);
        let devices = pairing.devices.iter().filter(|device| is_used(device));
        Self {
            events: pairing.events,
            packets: pairing.packets,
            events_left_out: pairing.events_left_out,
            gaps: pairing.gaps,
            times_back: pairing.times_back,
            span_ns: pairing.end_ns,
            by: pairing.by(),
            stages: rows_of(Some(&between), &all),
            devices: devices.map(|device| device_row(pairing, device)).collect(),
            points: pairing.layers.point_rows(),
            calls: pairing.layers.call_rows(),
        }
    }
}

impl DeviceRow {
    /// Its name and its number, as in `loop0 (7,0)`.
    pub fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("{name} ({})", self.device),
            None => self.device.clone(),
        }
    }
}

fn is_used(device: &OfDevice) -> bool {
    let counts = &device.counts;
    counts.flushes_issued > 0
        || counts.queued.iter().any(|amount| amount.count > 0)
        || counts.issued.count > 0
        || counts.completed.count > 0
}

/// Stages of a device over all its groups.
pub fn stages_of(pairing: &Pairing, device: &OfDevice) -> StageSet {
    let mut all = StageSet::default();
    for group in device.groups.values() {
        all.merge(&pairing.groups[*group as usize].stages);
    }
    all
}

fn device_row(pairing: &Pairing, device: &OfDevice) -> DeviceRow {
    let all = stages_of(pairing, device);
    let span_ns = pairing.end_ns;
    let activity = &device.activity;
    let busy_ns =
        if device.issues > 0 { activity.in_flight.busy_ns } else { activity.outstanding.busy_ns };
    let whole = all.get(Stage::Q2C).map_or(0, Histogram::sum);
    let sectors = &device.sectors;
    let extremes = (sectors.min(), sectors.mean(), sectors.max());
    DeviceRow {
        device: device.device.to_string(),
        name: None,
        counts: device.counts,
        sectors_per_completion: match extremes {
            (Some(min), Some(mean), Some(max)) => Some((min, mean, max)),
            _ => None,
        },
        outstanding: DepthRow::of(&activity.outstanding, span_ns),
        in_flight: DepthRow::of(&activity.in_flight, span_ns),
        idle_ns: span_ns.saturating_sub(busy_ns),
        outstanding_by_little: whole as f64 / span_ns.max(1) as f64,
        queue_seeks: SeekRow::of(&device.queue_seeks),
        issue_seeks: SeekRow::of(&device.issue_seeks),
        plugged_ns: device.plugs.plugged_ns,
        stages: rows_of(Some(&device.between), &all),
        groups: group_rows(pairing, device),
        series: activity.rows(),
    }
}

fn group_rows(pairing: &Pairing, device: &OfDevice) -> Vec<GroupRow> {
    if pairing.by() == By::Device {
        return Vec::new();
    }
    let groups = |key: &u32| &pairing.groups[device.groups[key] as usize];
    let all: u64 = device.groups.keys().map(|key| groups(key).transferred_bytes).sum();
    let mut rows: Vec<GroupRow> = Vec::new();
    for key in device.groups.keys() {
        let group = groups(key);
        rows.push(GroupRow {
            name: group_name(pairing, *key),
            queued: group.queued,
            completed: group.completed,
            bytes_share: group.transferred_bytes as f64 / all.max(1) as f64,
            stages: rows_of(None, &group.stages),
        });
    }
    if pairing.by() != By::Size {
        rows.sort_by_key(|row| std::cmp::Reverse(row.completed.bytes));
    }
    rows
}

fn group_name(pairing: &Pairing, key: u32) -> String {
    match pairing.by() {
        By::Device => String::new(),
        By::Direction => DIRECTIONS[key as usize].to_owned(),
        By::Size => size_class_name(key),
        By::Process => {
            let process = &pairing.processes.all[key as usize];
            let more = if process.is_shared { ", ..." } else { "" };
            format!("{} ({}{more})", process.name, process.pid)
        }
    }
}
