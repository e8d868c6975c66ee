//! Options of newfs and tunefs, of mount, and of /etc/system, under their names there.

use iolab_model::Ns;

use super::geometry::Geometry;
use crate::api::block::DeviceId;
use crate::api::make::{DeviceFacts, MakeSpec, Solaris};
use crate::api::options::{FsOption, choice, flag, number};
use crate::error::FilesError;
use crate::fs::journal::LogArea;

/// Options of newfs and tunefs; those of tunefs (`-a`, `-e`) have the names that it gives them.
pub const MKFS: &[FsOption] = &[
    choice("-b", &["8192"], "size of a block in bytes"),
    choice("-f", &["1024"], "size of a fragment in bytes"),
    number("-C", 1, 1 << 16, "blocks of a cluster (maxcontig)"),
    number("-a", 1, 1 << 16, "blocks of a cluster (maxcontig), as tunefs calls it"),
    number("-e", 1, 1 << 20, "blocks of a file in a group before another group is taken (maxbpg)"),
    number("-i", 1024, 1 << 26, "bytes of the device for each inode"),
    number("-c", 1, 256, "cylinders of a group"),
    number("-m", 0, 99, "percent of the space for root alone: no effect, iolab is root"),
    choice("-o", &["time", "space"], "what fragments are placed for: no effect here"),
];

/// Options of mount.
pub const MOUNT: &[FsOption] = &[
    flag("logging", "changes of metadata go to a log first"),
    flag("nologging", "changes of names are written at once and in order"),
    flag("forcedirectio", "reads and writes go past the cache"),
    flag("noforcedirectio", "reads and writes go through the cache"),
    flag("noatime", "reading changes no inode"),
    flag("rw", "writable"),
    flag("largefiles", "files above 2 GiB"),
    flag("defaults", "nothing special"),
];

/// Variables of the kernel (`set ufs_HW=...` in /etc/system).
pub const SYSTEM: &[FsOption] = &[
    number("ufs_HW", 1, u64::MAX, "bytes of a file on their way at which its writers sleep"),
    number("ufs_LW", 1, u64::MAX, "bytes of a file on their way at which they wake up"),
    number("ufs_WRITES", 0, 1, "0: writers never sleep"),
    number("freebehind", 0, 1, "0: pages of sequential readers stay in the cache"),
];

/// Bytes of a cylinder, for want of a drive's own: newfs makes groups of 16 cylinders, 16 to 49 MiB
/// on disks of the time. [assume]
const CYLINDER_BYTES: u64 = 2 << 20;
/// Cylinders of a group (`newfs -c`, default).
const CYLINDERS: u64 = 16;
/// Longest transfer of the driver on SPARC, from which newfs derives `maxcontig`. [doc]
const MAXPHYS: u64 = 128 << 10;

/// Throttle of the writers of a file: `ufs_HW`, `ufs_LW`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// Bytes on their way above which a write(2) waits.
    pub high: u64,
    /// Bytes on their way at which it goes on.
    pub low: u64,
}

/// Everything that the options decide.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct UfsRules {
    /// Bytes of a cluster.
    pub cluster_bytes: u64,
    /// Blocks of a file in a group.
    pub maxbpg: u64,
    /// Throttle; none: `ufs_WRITES=0`.
    pub throttle: Option<Watermarks>,
    /// Changes go to a log.
    pub is_logging: bool,
    /// The log has a device of its own.
    pub log_device: Option<LogArea>,
    /// Reads and writes go past the cache.
    pub is_direct: bool,
    /// Reading changes the inode.
    pub notes_access: bool,
    /// Pages of sequential readers are given up.
    pub frees_behind: bool,
    /// Release.
    pub release: Solaris,
}

impl UfsRules {
    /// Rules and geometry of what was typed.
    pub fn new(spec: &MakeSpec) -> Result<(Self, Geometry), FilesError> {
        let device = device(spec)?;
        let maxcontig = spec.mkfs.number("-a").or_else(|| spec.mkfs.number("-C"));
        let rules = Self {
            cluster_bytes: maxcontig.map_or(MAXPHYS, |blocks| blocks * Geometry::BLOCK),
            maxbpg: spec.mkfs.number("-e").unwrap_or(Geometry::BLOCK / 4),
            throttle: throttle(spec),
            is_logging: spec.mount.either("logging", "nologging").unwrap_or(false),
            log_device: log_device(spec)?,
            is_direct: spec.mount.either("forcedirectio", "noforcedirectio").unwrap_or(false),
            notes_access: spec.mount.flag("noatime").is_none(),
            frees_behind: spec.system.number("freebehind") != Some(0),
            release: spec.solaris,
        };
        let group_bytes = spec.mkfs.number("-c").unwrap_or(CYLINDERS) * CYLINDER_BYTES;
        let inode_bytes = spec.mkfs.number("-i").unwrap_or_else(|| bytes_per_inode(device.bytes));
        let is_beside = rules.is_logging && rules.log_device.is_none();
        let log = if is_beside { log_bytes(device.bytes) } else { 0 };
        let geometry = Geometry::new(device.bytes, group_bytes, inode_bytes, log);
        let geometry = geometry.ok_or_else(|| FilesError::Inconsistent {
            subject: format!("ufs on {} KiB", device.bytes >> 10),
            problem: "is too small for its metadata".into(),
            remedy: "use a larger device, fewer inodes (-i), or no log".into(),
        })?;
        Ok((rules, geometry))
    }

    /// Time between commits of the log: fsflush (`tune_t_fsflushr`). [doc]
    pub const COMMIT: Ns = Ns::from_ms(5_000);
}

fn device(spec: &MakeSpec) -> Result<&DeviceFacts, FilesError> {
    spec.devices.first().ok_or_else(|| FilesError::Inconsistent {
        subject: "ufs".to_owned(),
        problem: "has no device".into(),
        remedy: "give it one".into(),
    })
}

/// The second device holds the log (metatrans devices of `DiskSuite`).
fn log_device(spec: &MakeSpec) -> Result<Option<LogArea>, FilesError> {
    let Some(device) = spec.devices.get(1) else { return Ok(None) };
    if spec.mount.either("logging", "nologging") != Some(true) {
        return Err(FilesError::Inconsistent {
            subject: "ufs with a log device".into(),
            problem: "has no log".into(),
            remedy: "mount it with logging, or leave log_device out".into(),
        });
    }
    let sectors = log_bytes(spec.devices[0].bytes).min(device.bytes) / 512;
    Ok(Some(LogArea { device: DeviceId(1), first: 0, sectors }))
}

/// A high mark at or below the low one sets both back to their defaults, as the kernel does.
fn throttle(spec: &MakeSpec) -> Option<Watermarks> {
    if spec.system.number("ufs_WRITES") == Some(0) {
        return None;
    }
    // Solaris Tunable Parameters Reference Manual: 384 KiB and 256 KiB up to Solaris 8.
    let default = match spec.solaris {
        Solaris(..=8) => Watermarks { high: 384 << 10, low: 256 << 10 },
        Solaris(_) => Watermarks { high: 16 << 20, low: 8 << 20 },
    };
    let high = spec.system.number("ufs_HW").unwrap_or(default.high);
    let low = spec.system.number("ufs_LW").unwrap_or(default.low);
    Some(if high <= low { default } else { Watermarks { high, low } })
}

/// Bytes for each inode (`newfs -i`, defaults by size).
const fn bytes_per_inode(bytes: u64) -> u64 {
    match bytes >> 30 {
        0 => 2048,
        1 => 4096,
        2 => 6144,
        _ => 8192,
    }
}

/// Log of 1 MiB for each GiB, at least 1 MiB and at most 64 MiB (`mount_ufs(1M)`).
fn log_bytes(bytes: u64) -> u64 {
    (bytes >> 10).clamp(1 << 20, 64 << 20) >> 13 << 13
}
