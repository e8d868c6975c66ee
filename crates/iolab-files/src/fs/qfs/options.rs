//! Options of sammkfs and of mount, under their names there, in the units of the manual pages.

use super::geometry::{Family, Geometry};
use crate::api::block::DeviceId;
use crate::api::file_system::Bypass;
use crate::api::make::{MakeSpec, Solaris};
use crate::api::options::{FsOption, choice, flag, number};
use crate::error::FilesError;

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;
/// Least and longest DAU of a device of type `mr`, and its step, in KiB. [doc]
const DAU: (u64, u64, u64) = (8, 65_528, 8);
/// DAU if sammkfs is told none, in KiB. [doc]
const DAU_DEFAULT: u64 = 64;
/// Large DAUs of a device of type `md`, in KiB. [doc]
const DUAL: [u64; 3] = [16, 32, 64];
/// Range and default of `wr_throttle` in early releases, in KiB. [doc]
const THROTTLE: (u64, u64, u64) = (256, 32_768, 16_384);
/// Most of later releases, in KiB (`SAM_MAX_WR_THROTTLE`); 0: no limit. [code, doc]
const THROTTLE_MAX: u64 = 524_288;
/// Most of `readahead` and `writebehind`, in KiB. [doc]
const AHEAD_MAX: u64 = 16_777_216;

/// Options of sammkfs, and a column of mcf.
pub const MKFS: &[FsOption] = &[
    number(
        "-a",
        DAU.0,
        DAU.1,
        "KiB of an allocation unit (DAU), in steps of 8; of md 16, 32 or 64",
    ),
    choice("-t", &["mr", "md"], "type of the data device, which sammkfs reads in mcf"),
    number("-i", 1, 1 << 31, "number of inodes: no effect, they are made as they are needed"),
    flag("-P", "super-block of the release before: no effect"),
];

/// Options of mount.
pub const MOUNT: &[FsOption] = &[
    number("maxcontig", 1, 1024, "to Solaris 8: blocks of 8 KiB read ahead and written at once"),
    number("readahead", 0, AHEAD_MAX, "from Solaris 9 on: KiB read ahead, a multiple of 8"),
    number("writebehind", 8, AHEAD_MAX, "from Solaris 9 on: KiB written at once, a multiple of 8"),
    number("wr_throttle", 0, THROTTLE_MAX, "KiB of a file on their way at which its writers wait"),
    flag("qwrite", "a file may be written by several at once"),
    flag("forcedirectio", "reads and writes go past the cache"),
    flag("noatime", "reading changes no inode"),
    number("sync_meta", 0, 1, "1: changes of metadata are written at once and in order"),
    number("stripe", 0, 255, "DAUs on a device before the next: no effect with one data device"),
    number("mm_stripe", 0, 1, "the same for metadata: no effect with one device of them"),
    number("high", 0, 100, "percent in use at which files are released: no effect"),
    number("low", 0, 100, "percent in use at which that ends: no effect"),
    flag("nosam", "files are not archived: the only way here"),
    flag("rw", "writable"),
    flag("largefiles", "files above 2 GiB"),
    flag("defaults", "nothing special"),
];

/// Bytes that travel together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TravelLengths {
    /// Read ahead of a sequential reader.
    pub read: u64,
    /// One request, as long as the device takes it, is all that is read ahead.
    pub is_one_read: bool,
    /// Sent off behind a sequential writer.
    pub write: u64,
}

/// Everything that the options decide.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct QfsRules {
    /// Bytes that travel together.
    pub lengths: TravelLengths,
    /// Bytes of a file on their way above which a write(2) waits; none: no limit.
    pub throttle_bytes: Option<u64>,
    /// Writers of a file run beside each other.
    pub shares_writing: bool,
    /// Reads and writes that go past the cache.
    pub bypass: Bypass,
    /// Reading changes the inode.
    pub notes_access: bool,
    /// Changes of metadata are written at once.
    pub syncs_metadata: bool,
}

impl QfsRules {
    /// Rules and geometry of what was typed.
    pub fn new(spec: &MakeSpec) -> Result<(Self, Geometry), FilesError> {
        let device = spec
            .devices
            .first()
            .copied()
            .ok_or_else(|| refused("qfs".into(), "has no device", "give it one".into()))?;
        let family =
            spec.devices.get(1).map_or(Family::Together, |device| Family::Apart(device.bytes));
        let geometry = Geometry::new(device.bytes, allocation(spec, family)?, family);
        let geometry = geometry.map_err(|(device, least)| too_small(spec, device, least))?;
        let rules = Self {
            lengths: lengths(spec)?,
            throttle_bytes: throttle_bytes(spec)?,
            shares_writing: spec.mount.flag("qwrite").is_some(),
            bypass: Bypass {
                all: spec.mount.flag("forcedirectio").is_some(),
                extends: true,
                ..Bypass::NONE
            },
            notes_access: spec.mount.flag("noatime").is_none(),
            syncs_metadata: spec.mount.number("sync_meta") == Some(1),
        };
        Ok((rules, geometry))
    }
}

fn refused(subject: String, problem: &str, remedy: String) -> FilesError {
    FilesError::Inconsistent { subject, problem: problem.into(), remedy }
}

fn too_small(spec: &MakeSpec, device: DeviceId, least: u64) -> FilesError {
    let kib = spec.devices.get(usize::from(device.0)).map_or(0, |device| device.bytes / KIB);
    let subject = match device {
        DeviceId::MAIN => format!("qfs on {kib} KiB"),
        _ => format!("qfs with a meta_device of {kib} KiB"),
    };
    let remedy = format!("it needs {least} KiB at least; a larger -a needs smaller maps");
    refused(subject, "is too small for its metadata", remedy)
}

/// Tell whether early releases hold: those with `maxcontig` (3.x). Releases of QFS follow those of
/// Solaris here: 4.0 came between Solaris 8 and 9. [assume]
fn is_early(spec: &MakeSpec) -> bool {
    spec.solaris <= Solaris(8)
}

/// Units of a DAU, and whether small ones come first (type `md`).
fn allocation(spec: &MakeSpec, family: Family) -> Result<(u64, bool), FilesError> {
    let asked = spec.mkfs.choice("-t");
    let is_together = family == Family::Together;
    if is_together && asked == Some("mr") {
        return Err(refused(
            "qfs: mkfs option -t mr".into(),
            "needs a device of metadata: where they lie among the data, those are of type md",
            "add meta_device to the stack, or leave -t out".into(),
        ));
    }
    let is_dual = is_together || asked == Some("md");
    let dau = spec.mkfs.number("-a").unwrap_or(DAU_DEFAULT);
    let subject = || format!("qfs: mkfs option -a {dau}");
    if is_dual && !DUAL.contains(&dau) {
        let remedy = if is_together {
            "write one of these, or add meta_device to the stack: its data are of type mr (8 to \
             65528 in steps of 8)"
        } else {
            "write one of these, or -t mr (8 to 65528 in steps of 8)"
        };
        let problem = "is no allocation unit of a device of type md, which has 16, 32 or 64 KiB";
        return Err(refused(subject(), problem, remedy.into()));
    }
    let (.., step) = DAU;
    if !dau.is_multiple_of(step) {
        let next = (dau / step * step).max(step);
        let remedy = format!("next are {next} and {}", dau.next_multiple_of(step));
        return Err(refused(subject(), "is no multiple of 8 KiB (sammkfs(1M))", remedy));
    }
    Ok((dau, is_dual))
}

fn lengths(spec: &MakeSpec) -> Result<TravelLengths, FilesError> {
    let is_early = is_early(spec);
    let other = |name: &'static str| spec.mount.number(name).map(|value| (name, value));
    let wrong = if is_early {
        other("readahead").or_else(|| other("writebehind"))
    } else {
        other("maxcontig")
    };
    if let Some((name, value)) = wrong {
        let subject = format!("qfs: mount option {name}={value} on {}", spec.solaris);
        return Err(if is_early {
            let remedy = "write maxcontig (blocks of 8 KiB), or kernel = \"solaris-9\"";
            refused(subject, "is of later releases (from Solaris 9 on)", remedy.into())
        } else {
            let remedy = "write readahead and writebehind (KiB), or kernel = \"solaris-8\"";
            refused(subject, "is of early releases (to Solaris 8)", remedy.into())
        });
    }
    if is_early {
        // Without a word: maxphys of SPARC, as UFS has it. [assume]
        let bytes = spec.mount.number("maxcontig").unwrap_or(16) * Geometry::CACHE_UNIT;
        return Ok(TravelLengths { read: bytes, is_one_read: true, write: bytes });
    }
    // mount_samfs(1M), release 5: 1024 and 512 KiB.
    let read = whole_pages(spec, "readahead", 1024)?;
    let write = whole_pages(spec, "writebehind", 512)?;
    Ok(TravelLengths { read, is_one_read: false, write })
}

/// Bytes of an option in KiB that must be whole pages.
fn whole_pages(spec: &MakeSpec, name: &str, default: u64) -> Result<u64, FilesError> {
    let bytes = spec.mount.number(name).unwrap_or(default) * KIB;
    if bytes.is_multiple_of(Geometry::CACHE_UNIT) {
        return Ok(bytes);
    }
    let subject = format!("qfs: mount option {name}={}", bytes / KIB);
    let next = bytes.next_multiple_of(Geometry::CACHE_UNIT) / KIB;
    let remedy = format!("next are {} and {next}", next - Geometry::CACHE_UNIT / KIB);
    Err(refused(subject, "is no multiple of 8 KiB (mount_samfs(1M))", remedy))
}

/// Early releases: 16384 KiB; later ones: 2 % of memory, in whole MiB, and 0 for no limit.
fn throttle_bytes(spec: &MakeSpec) -> Result<Option<u64>, FilesError> {
    let typed = spec.mount.number("wr_throttle");
    if !is_early(spec) {
        let default = || (spec.memory_bytes / 50).next_multiple_of(MIB);
        return Ok(Some(typed.map_or_else(default, |kib| kib * KIB)).filter(|&bytes| bytes > 0));
    }
    let (least, most, default) = THROTTLE;
    let kib = typed.unwrap_or(default);
    if !(least..=most).contains(&kib) {
        let subject = format!("qfs: mount option wr_throttle={kib} on {}", spec.solaris);
        let problem = "is outside the range of early releases (to Solaris 8)";
        let remedy = format!("it goes from {least} to {most} KiB, the default is {default}");
        return Err(refused(subject, problem, remedy));
    }
    Ok(Some(kib * KIB))
}
