//! Parameters of a volume in a stack file, with units and defaults, and the faults of their values.
//!
//! Source of a default: [doc] manual, [code] constant of the named program, [assume] our choice.

use iolab_model::Sector;
use serde::{Deserialize, Serialize};

use super::list::VolumeKind;
use crate::api::layer::Layer;
use crate::error::SimError;

iolab_model::registry! {
    /// Place of parity and data in a row of RAID 5 and 6.
    pub enum ParityLayout as "parity layout" {
        /// Parity moves left from row to row, data start after it and wrap.
        LeftSymmetric = "left-symmetric",
        /// Parity moves left, data keep the order of the disks.
        LeftAsymmetric = "left-asymmetric",
        /// Parity moves right, data start after it and wrap.
        RightSymmetric = "right-symmetric",
        /// Parity moves right, data keep the order of the disks.
        RightAsymmetric = "right-asymmetric",
    }
}

iolab_model::registry! {
    /// Rule by which the way to update a row's parity is chosen.
    pub enum WriteRule as "write rule" {
        /// The way that reads less (Linux md).
        ReadCount = "read-count",
        /// Read-modify-write below half a stripe, reconstruct from there (Sun-era managers).
        HalfStripe = "half-stripe",
    }
}

iolab_model::registry! {
    /// Choice when both ways read the same number of units.
    pub enum Tie as "tie rule" {
        /// Reconstruct-write (Linux md).
        Reconstruct = "rcw",
        /// Read-modify-write.
        ReadModify = "rmw",
    }
}

/// A volume's description. Options that are absent take their default; options that mean nothing
/// for the layout are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeParameters {
    /// Arrangement of the members.
    pub layout: VolumeKind,
    /// Stripe unit (chunk, interlace) in bytes; 524288. Of raidz: sector of the pool; 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_bytes: Option<u64>,
    /// Longest command sent to a member, in bytes (`maxphys`); no limit but the member's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_transfer_bytes: Option<u64>,
    /// Index of a member that has failed; none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_member: Option<u16>,
    /// RAID 1: a write is done with its first copy; false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_behind: Option<bool>,
    /// RAID 5, 6: rotation of parity; left-symmetric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parity_layout: Option<ParityLayout>,
    /// RAID 5, 6: rule for partial rows; read-count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_rule: Option<WriteRule>,
    /// RAID 5, 6: choice when the counts are equal; rcw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tie: Option<Tie>,
    /// RAID 5, 6: height of the columns to which the rule is applied, in bytes; the unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granularity_bytes: Option<u64>,
    /// RAID 6: read-modify-write is allowed; true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid6_rmw: Option<bool>,
    /// RAID 5, 6: XOR cost in ns per KiB of input and parity; 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xor_ns_per_kib: Option<u64>,
    /// RAID 5, 6: how long a partial row waits for more writes, in us; 0 (rest of the instant).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_delay_us: Option<u64>,
    /// RAID 5, 6: stripe cache per member in bytes, it bounds the rows in work; 1048576.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_cache_bytes: Option<u64>,
    /// RAID 5, 6: controller's non-volatile write cache in bytes; 0 (none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvram_bytes: Option<u64>,
    /// Time to store a write in (or read it from) the NVRAM, in us; 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvram_latency_us: Option<u64>,
    /// Rate of the controller's link to the host for what the NVRAM takes or gives, in MB/s; 400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvram_rate_mb_s: Option<u64>,
    /// Fill above which the NVRAM is emptied although the host is busy, in percent; 80.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvram_high_percent: Option<u64>,
    /// Time without a request after which the NVRAM is emptied, in us; 50000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvram_idle_us: Option<u64>,
    /// Rows that are emptied at the same time when the NVRAM is above its limit; 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destage_rows: Option<u64>,
    /// RAID 5, 6: the lost member has been replaced and is filled again; false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<bool>,
    /// Rebuild at least this fast while others use the volume, in KiB/s per member; 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild_min_kib_s: Option<u64>,
    /// Rebuild at most this fast, in KiB/s per member; 200000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild_max_kib_s: Option<u64>,
    /// Rebuilt in one go, in bytes per member; 1048576.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild_window_bytes: Option<u64>,
}

/// mdadm(8), `--chunk`: 512 KiB since 3.1.1. [doc]
const UNIT_BYTES: u64 = 512 << 10;
/// Sector of a pool on disks that say they have such (`ashift` 12). [doc]
const POOL_SECTOR_BYTES: u64 = 4096;
/// Assumed. [assume]
const XOR_NS_PER_KIB: u64 = 100;
/// Linux drivers/md/raid5.c: 256 stripes of one 4 KiB page per disk. [code]
const STRIPE_CACHE_BYTES: u64 = 256 * 4096;
/// Assumed. [assume]
const NVRAM_LATENCY_US: u64 = 300;
/// Assumed: payload of 4 Gb/s Fibre Channel, the class of such controllers. [assume]
const NVRAM_RATE_MB_S: u64 = 400;
/// Assumed. [assume]
const NVRAM_HIGH_PERCENT: u64 = 80;
/// Assumed: longer than a host thinks between two writes of a stream. [assume]
const NVRAM_IDLE_US: u64 = 50_000;
/// Assumed. [assume]
const DESTAGE_ROWS: u64 = 8;
/// Linux md(4): `speed_limit_min`, KiB/s. [doc]
const REBUILD_MIN_KIB_S: u64 = 1_000;
/// Linux md(4): `speed_limit_max`, KiB/s. [doc]
const REBUILD_MAX_KIB_S: u64 = 200_000;
/// Assumed. [assume]
const REBUILD_WINDOW_BYTES: u64 = 1 << 20;

impl VolumeParameters {
    /// All defaults.
    pub const fn new(layout: VolumeKind) -> Self {
        Self {
            layout,
            unit_bytes: None,
            max_transfer_bytes: None,
            lost_member: None,
            write_behind: None,
            parity_layout: None,
            write_rule: None,
            tie: None,
            granularity_bytes: None,
            raid6_rmw: None,
            xor_ns_per_kib: None,
            batch_delay_us: None,
            stripe_cache_bytes: None,
            nvram_bytes: None,
            nvram_latency_us: None,
            nvram_rate_mb_s: None,
            nvram_high_percent: None,
            nvram_idle_us: None,
            destage_rows: None,
            rebuild: None,
            rebuild_min_kib_s: None,
            rebuild_max_kib_s: None,
            rebuild_window_bytes: None,
        }
    }

    /// Stripe unit in bytes, that of the file or the default.
    pub(crate) fn stripe_unit_bytes(&self) -> u64 {
        self.unit_bytes.unwrap_or(UNIT_BYTES)
    }

    /// Stripe unit in sectors.
    pub(super) fn unit_sectors(&self) -> Result<u32, SimError> {
        self.sectors_of("unit_bytes", self.unit_bytes.unwrap_or(UNIT_BYTES))
    }

    /// Sector of a pool.
    pub(super) fn pool_sector(&self) -> Result<u32, SimError> {
        self.sectors_of("unit_bytes", self.unit_bytes.unwrap_or(POOL_SECTOR_BYTES))
    }

    /// Longest command in sectors.
    pub(super) fn transfer_max(&self) -> Result<u32, SimError> {
        self.max_transfer_bytes
            .map_or(Ok(u32::MAX), |bytes| self.sectors_of("max_transfer_bytes", bytes))
    }

    /// Height of a column in sectors; divides the unit.
    pub(super) fn granularity_sectors(&self) -> Result<u32, SimError> {
        let unit = self.unit_sectors()?;
        let Some(bytes) = self.granularity_bytes else { return Ok(unit) };
        let granularity = self.sectors_of("granularity_bytes", bytes)?;
        if !unit.is_multiple_of(granularity) {
            let problem =
                format!("granularity_bytes = {bytes} does not divide the unit of {unit} sectors");
            return Err(self.wrong(problem, "give a divisor of unit_bytes, for example 4096"));
        }
        Ok(granularity)
    }

    pub(super) fn xor_ns_per_kib(&self) -> u64 {
        self.xor_ns_per_kib.unwrap_or(XOR_NS_PER_KIB)
    }

    pub(super) fn batch_delay_us(&self) -> u64 {
        self.batch_delay_us.unwrap_or(0)
    }

    pub(super) fn stripe_cache_sectors(&self) -> u64 {
        self.stripe_cache_bytes.unwrap_or(STRIPE_CACHE_BYTES) / Sector::SIZE.0
    }

    pub(super) fn nvram_sectors(&self) -> u64 {
        self.nvram_bytes.unwrap_or(0) / Sector::SIZE.0
    }

    pub(super) fn nvram_latency_us(&self) -> u64 {
        self.nvram_latency_us.unwrap_or(NVRAM_LATENCY_US)
    }

    pub(super) fn nvram_rate_mb_s(&self) -> Result<u64, SimError> {
        let rate = self.nvram_rate_mb_s.unwrap_or(NVRAM_RATE_MB_S);
        in_range("nvram_rate_mb_s", rate, (1, 1_000_000), "MB/s")
    }

    pub(super) fn nvram_high_percent(&self) -> Result<u64, SimError> {
        let value = self.nvram_high_percent.unwrap_or(NVRAM_HIGH_PERCENT);
        in_range("nvram_high_percent", value, (0, 100), "percent")
    }

    pub(super) fn nvram_idle_us(&self) -> u64 {
        self.nvram_idle_us.unwrap_or(NVRAM_IDLE_US)
    }

    pub(super) fn destage_rows(&self) -> Result<u64, SimError> {
        in_range("destage_rows", self.destage_rows.unwrap_or(DESTAGE_ROWS), (1, 1 << 16), "rows")
    }

    /// Least and most KiB/s.
    pub(super) fn rebuild_speeds(&self) -> Result<(u64, u64), SimError> {
        let least = self.rebuild_min_kib_s.unwrap_or(REBUILD_MIN_KIB_S);
        let most = self.rebuild_max_kib_s.unwrap_or(REBUILD_MAX_KIB_S);
        in_range("rebuild_min_kib_s", least, (1, most), "KiB/s")?;
        Ok((least, most))
    }

    pub(super) fn rebuild_window_sectors(&self) -> Result<u32, SimError> {
        let bytes = self.rebuild_window_bytes.unwrap_or(REBUILD_WINDOW_BYTES);
        self.sectors_of("rebuild_window_bytes", bytes)
    }

    /// Refuses options that mean nothing for this layout.
    pub(super) fn refuse(&self, options: &[(&'static str, bool)]) -> Result<(), SimError> {
        match options.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => {
                Err(self.wrong(format!("{name} means nothing for this layout"), "leave it out"))
            }
            None => Ok(()),
        }
    }

    /// The options of RAID 5 and 6, and whether they are given.
    pub(super) const fn parity_options(&self) -> [(&'static str, bool); 18] {
        [
            ("parity_layout", self.parity_layout.is_some()),
            ("write_rule", self.write_rule.is_some()),
            ("tie", self.tie.is_some()),
            ("granularity_bytes", self.granularity_bytes.is_some()),
            ("raid6_rmw", self.raid6_rmw.is_some()),
            ("xor_ns_per_kib", self.xor_ns_per_kib.is_some()),
            ("batch_delay_us", self.batch_delay_us.is_some()),
            ("stripe_cache_bytes", self.stripe_cache_bytes.is_some()),
            ("nvram_bytes", self.nvram_bytes.is_some()),
            ("nvram_latency_us", self.nvram_latency_us.is_some()),
            ("nvram_rate_mb_s", self.nvram_rate_mb_s.is_some()),
            ("nvram_high_percent", self.nvram_high_percent.is_some()),
            ("nvram_idle_us", self.nvram_idle_us.is_some()),
            ("destage_rows", self.destage_rows.is_some()),
            ("rebuild", self.rebuild.is_some()),
            ("rebuild_min_kib_s", self.rebuild_min_kib_s.is_some()),
            ("rebuild_max_kib_s", self.rebuild_max_kib_s.is_some()),
            ("rebuild_window_bytes", self.rebuild_window_bytes.is_some()),
        ]
    }

    /// Checks the number of members.
    pub(super) fn need(&self, members: usize, least: usize) -> Result<(), SimError> {
        if members >= least {
            return Ok(());
        }
        let problem = format!("{members} members, at least {least} are needed");
        Err(self.wrong(problem, "add members or choose another layout"))
    }

    /// Size that every member has.
    pub(super) fn smallest(&self, members: &[Box<dyn Layer>]) -> Result<Sector, SimError> {
        let smallest = members.iter().map(|member| member.info().capacity).min();
        let unit = match self.layout {
            VolumeKind::Single | VolumeKind::Raid1 => 1,
            VolumeKind::Raidz1 | VolumeKind::Raidz2 | VolumeKind::Raidz3 => self.pool_sector()?,
            _ => self.unit_sectors()?,
        };
        match smallest {
            Some(smallest) if smallest.0 >= u64::from(unit) => Ok(smallest),
            _ => {
                let problem = format!("the smallest member is less than {unit} sectors");
                Err(self.wrong(problem, "reduce unit_bytes or give larger members"))
            }
        }
    }

    /// The lost member, if there is one and it exists.
    pub(super) fn lost(&self, members: usize) -> Result<Option<u16>, SimError> {
        match self.lost_member {
            Some(lost) if usize::from(lost) >= members => {
                let problem = format!("lost_member = {lost}, but there are {members} members");
                Err(self.wrong(problem, "members are counted from 0"))
            }
            lost => Ok(lost),
        }
    }

    /// An error about this volume.
    pub(super) fn wrong(&self, problem: String, remedy: &str) -> SimError {
        let subject = format!("volume {}", self.layout);
        SimError::Inconsistent { subject, problem, remedy: remedy.to_owned() }
    }

    fn sectors_of(&self, name: &str, bytes: u64) -> Result<u32, SimError> {
        if bytes == 0 || !bytes.is_multiple_of(Sector::SIZE.0) {
            let problem = format!("{name} = {bytes} is not a multiple of a sector");
            return Err(self.wrong(problem, "give a positive multiple of 512"));
        }
        let sectors = in_range(name, bytes, (Sector::SIZE.0, 1 << 40), "bytes")? / Sector::SIZE.0;
        Ok(sectors as u32)
    }
}

fn in_range(name: &str, value: u64, range: (u64, u64), unit: &str) -> Result<u64, SimError> {
    if (range.0..=range.1).contains(&value) {
        return Ok(value);
    }
    Err(SimError::OutOfRange {
        name: name.to_owned(),
        value: value as f64,
        unit: unit.to_owned(),
        min: range.0 as f64,
        max: range.1 as f64,
    })
}
