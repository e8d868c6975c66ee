//! Alternating slices on the wire: what is asked of a session, and what it leaves behind.

use std::collections::BTreeMap;

use iolab_drive::recorder::ClassHistograms;
use iolab_model::op::Access;
use iolab_workload::Workload;
use iolab_workload::operation::OperationKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Stack, StackRecord};

/// An hour: nobody alternates more slowly.
const LENGTH_NS_MAX: u64 = 3_600_000_000_000;

/// A session that alternates treatments in slices, on files that are made once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairsSpec {
    /// Alternated treatments, the first one first where order matters.
    pub treatments: Vec<PairsTreatment>,
    /// Shortest slice.
    pub slice_min_ns: u64,
    /// Longest slice that operations and switches may ask for.
    pub slice_max_ns: u64,
    /// Before each slice, driven and not counted.
    pub washout_ns: u64,
    /// Before the first slice on a device whose knobs were changed, in place of the washout: what
    /// keeps state settles.
    #[serde(default)]
    pub settle_ns: u64,
    /// Length of a balanced unit; it is longer where two slices of each cell (on twin devices: one
    /// of each cell on each device) take longer.
    pub unit_ns: u64,
    /// Balanced units after which it ends.
    pub units: u32,
    /// No unit is begun that would not end within this, from the beginning of the first; 0: no such
    /// limit.
    pub time_ns: u64,
    /// Of the order of treatments.
    pub seed: u64,
    /// File systems in the order in which they are made, one on each device made alike; each
    /// treatment names its own. Empty: all treatments have the trial's, and devices are exchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<PairsImage>,
}

/// A file system of a session, on one of several devices made alike.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairsImage {
    /// Index of the device.
    pub place: usize,
    /// Stack that is made there.
    pub stack: Stack,
}

/// One of what is alternated.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairsTreatment {
    /// Knobs by name.
    pub knobs: BTreeMap<String, String>,
    /// Its work; each phase is a cell.
    pub workload: Workload,
    /// Index of the device with its file system, where treatments have their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
}

impl PairsSpec {
    /// Tell whether knobs change from slice to slice.
    pub fn is_switching(&self) -> bool {
        self.treatments.windows(2).any(|pair| pair[0].knobs != pair[1].knobs)
    }

    /// Tell whether knobs could change more often than once a second.
    pub fn may_switch_fast(&self) -> bool {
        self.is_switching() && self.slice_min_ns < 1_000_000_000
    }

    /// Part of the request that could not be measured as it says, and the reason.
    ///
    /// A knob that only one treatment names would keep that treatment's value in the slices of the
    /// others.
    pub fn problem(&self) -> Option<String> {
        let names = |it: &PairsTreatment| it.knobs.keys().cloned().collect::<Vec<_>>();
        let first = self.treatments.first().map(names).unwrap_or_default();
        if self.treatments.iter().any(|it| names(it) != first) {
            return Some("treatments of one session name different knobs".into());
        }
        if let Some(problem) = self.problem_of_images() {
            return Some(problem);
        }
        let lengths = [
            ("slice_min_ns", self.slice_min_ns),
            ("slice_max_ns", self.slice_max_ns),
            ("washout_ns", self.washout_ns),
            ("settle_ns", self.settle_ns),
            ("unit_ns", self.unit_ns),
        ];
        let long = lengths.iter().find(|(_, ns)| *ns > LENGTH_NS_MAX);
        long.map(|(name, ns)| format!("{name} = {ns} is longer than an hour"))
    }
}

impl PairsSpec {
    /// Each device has one file system, each treatment one of these, and no knob alternates: a
    /// device that kept its file system could not be exchanged for it.
    fn problem_of_images(&self) -> Option<String> {
        let mut places: Vec<usize> = self.images.iter().map(|image| image.place).collect();
        places.sort_unstable();
        let named = self.treatments.iter().filter_map(|it| it.place);
        if places.iter().enumerate().any(|(index, place)| index != *place) {
            Some("images are not one on each device".into())
        } else if named.clone().any(|place| place >= places.len()) {
            Some("a treatment names a device without an image".into())
        } else if !places.is_empty() && named.count() < self.treatments.len() {
            Some("a treatment of a session with images names none".into())
        } else if places
            .iter()
            .any(|place| self.treatments.iter().all(|it| it.place != Some(*place)))
        {
            Some("an image that no treatment works on".into())
        } else if !places.is_empty() && self.is_switching() {
            Some("images and knobs alternate in one session".into())
        } else {
            None
        }
    }
}

/// Result of such a session.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PairsRecord {
    /// Length of a slice, as chosen.
    pub slice_ns: u64,
    /// Rule that chose this length.
    pub chosen_by: ChosenBy,
    /// Before each slice.
    pub washout_ns: u64,
    /// Mean cost of a change of knobs, measured before the first unit; on twin devices: an exchange
    /// of them all.
    pub switch_cost_ns: u64,
    /// Devices made alike; 1: all treatments have the same.
    #[serde(default = "one")]
    pub places: u32,
    /// In place of the washout where knobs were changed just before.
    #[serde(default)]
    pub settle_ns: u64,
    /// Every knob as read back when a treatment had the device first, by treatment; empty if knobs
    /// never change.
    #[serde(default)]
    pub knobs: Vec<BTreeMap<String, String>>,
    /// Slices of each treatment and phase in a unit.
    pub slices_per_unit: u32,
    /// From the first unit to the last.
    pub elapsed_ns: u64,
    /// Cells that were measured side by side.
    pub cells: Vec<PairsCell>,
    /// Complete units only.
    pub units: Vec<PairsUnit>,
    /// All slices of them, in order.
    pub slices: PairsSlices,
}

/// A file system as it was made for a session.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PairsImageRecord {
    /// Stack that was made.
    pub stack: StackRecord,
    /// Of the mounted file system.
    pub facts: BTreeMap<String, String>,
}

/// Part of the session that a record keeps which was cut from it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionOfSlices {
    /// Number of the session in its run.
    pub number: u64,
    /// Length of a slice, as chosen.
    pub slice_ns: u64,
    /// Rule that chose this length.
    pub chosen_by: ChosenBy,
    /// Before each slice.
    pub washout_ns: u64,
    /// Mean cost of a change of knobs, measured before the first unit.
    pub switch_cost_ns: u64,
    /// Devices made alike, whose knobs are exchanged; 1: there is one device.
    #[serde(default = "one")]
    pub places: u32,
    /// In place of the washout where knobs were changed just before.
    #[serde(default)]
    pub settle_ns: u64,
    /// Slices of each treatment and phase in a unit.
    pub slices_per_unit: u32,
    /// Images made for it, one for each file system that is compared; 0: they share one.
    #[serde(default)]
    pub images: u32,
}

const fn one() -> u32 {
    1
}

/// Rule that decided the length of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChosenBy {
    /// The shortest that was allowed is enough.
    Shortest,
    /// Chosen so that a slice holds enough operations.
    Operations,
    /// Chosen so that changes of knobs do not cost too much.
    Switches,
    /// The longest that was allowed.
    Longest,
}

/// A phase of a treatment: one cell of the comparison.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PairsCell {
    /// Index of the treatment.
    pub treatment: usize,
    /// Name of the phase.
    pub name: String,
    /// Of all its tenants.
    pub kind: OperationKind,
    /// Bytes per operation; absent: several sizes.
    pub io_size_bytes: Option<u64>,
    /// The way to the data.
    pub access: Option<Access>,
    /// In order.
    pub tenants: Vec<PairsTenant>,
}

/// A tenant of a cell.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PairsTenant {
    /// Its name.
    pub name: String,
    /// Kind of its operations.
    pub kind: OperationKind,
    /// Bytes per operation.
    pub io_size_bytes: Option<u64>,
    /// The way to the data.
    pub access: Option<Access>,
}

/// A balanced unit: every cell as often as any other.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PairsUnit {
    /// From the beginning of the first unit.
    pub began_ns: u64,
    /// Time that it took, changes of knobs included.
    pub elapsed_ns: u64,
    /// By cell, then by tenant: times of operations.
    pub service: Vec<Vec<ClassHistograms>>,
}

/// All slices, column by column.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PairsSlices {
    /// Index of the unit.
    pub unit: Vec<u32>,
    /// Index of the cell.
    pub cell: Vec<u32>,
    /// Index of the tenant.
    pub tenant: Vec<u32>,
    /// Index of the device, of those made alike.
    #[serde(default)]
    pub place: Vec<u32>,
    /// From the beginning of the first unit.
    pub begin_ns: Vec<u64>,
    /// Counted time; of several workers, all added up.
    pub length_ns: Vec<u64>,
    /// Operations.
    pub ops: Vec<u64>,
    /// Bytes.
    pub bytes: Vec<u64>,
    /// The longest operation.
    pub longest_ns: Vec<u64>,
    /// Workers that worked.
    pub workers: Vec<u32>,
}
