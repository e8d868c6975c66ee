//! Options of mkfs and of vxtunefs (both follow `-o`), of mount, and of /etc/system, under their
//! names there.

use iolab_model::{Bytes, Ns};

use super::geometry::Geometry;
use crate::api::block::DeviceId;
use crate::api::file_system::{Bypass, Promise};
use crate::api::make::{DeviceFacts, MakeSpec, Solaris, StripeFacts};
use crate::api::options::{FsOption, choice, flag, number, size};
use crate::error::FilesError;
use crate::fs::journal::LogArea;

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;
/// Largest size that a tunable takes. [assume]
const MOST: u64 = 1 << 30;

/// Options of mkfs, and tunables of vxtunefs.
pub const MKFS: &[FsOption] = &[
    choice("-o bsize", &["1024", "2048", "4096", "8192"], "size of a block in bytes"),
    number("-o logsize", 32, 16384, "blocks of the intent log; 16 MiB at most"),
    size("-o align", KIB, MOST, "bytes at whose multiples extents begin"),
    choice("-o inosize", &["256", "512"], "size of an inode in bytes"),
    flag("-o largefiles", "files above 2 GiB: no effect, they are always possible"),
    flag("-o nolargefiles", "files up to 2 GiB alone: no effect"),
    size("-o read_pref_io", KIB, MOST, "size of a request that reads ahead"),
    number("-o read_nstream", 1, 4096, "requests of read_pref_io that are read ahead at once"),
    size("-o write_pref_io", KIB, MOST, "size of a request that flushes behind a writer"),
    number("-o write_nstream", 1, 4096, "requests of write_pref_io that are flushed at once"),
    size("-o max_diskq", 8 * KIB, MOST, "bytes of a file on their way at which its writers wait"),
    size("-o discovered_direct_iosz", KIB, MOST, "longer transfers go past the cache"),
    size("-o max_direct_iosz", 8 * KIB, MOST, "longest request of a transfer past the cache"),
    number("-o initial_extent_size", 1, MIB, "blocks of the first extent of a file, at least"),
    number("-o max_seqio_extent_size", 1, MIB, "blocks at which extents stop growing"),
    choice("-o max_buf_data_size", &["8192", "65536", "8k", "64k"], "size of a synchronous write"),
    number("-o write_throttle", 0, MIB, "dirty pages of a file at which it is flushed; 0: none"),
    size("-o read_unit_io", KIB, MOST, "no effect (disk layouts before 4)"),
    size("-o write_unit_io", KIB, MOST, "no effect (disk layouts before 4)"),
    size("-o buf_breakup_size", KIB, MOST, "no effect (HP-UX)"),
    number("-o default_indir_size", 1, MIB, "no effect (disk layouts before 4)"),
    number("-o pref_strength", 0, 100, "no effect (disk layouts before 4)"),
    number("-o hsm_write_prealloc", 0, 1, "no effect (migration of files)"),
    number("-o qio_cache_enable", 0, 1, "no effect (Quick I/O)"),
];

const MODES: [&str; 4] = ["log", "delaylog", "tmplog", "nolog"];

/// Options of mount.
pub const MOUNT: &[FsOption] = &[
    flag("log", "a change is in the log when its call returns"),
    flag("delaylog", "a change is in the log within 3 s, a rename at once"),
    flag("tmplog", "a change is in the log within 30 s; data are not flushed before it"),
    flag("nolog", "no log; from Solaris 9 on the same as tmplog"),
    flag("nodatainlog", "data of synchronous writes are not logged: the only way here"),
    flag("blkclear", "blocks inside a file are filled with zeros before it gets them"),
    choice(
        "mincache",
        &["closesync", "direct", "dsync", "unbuffered", "tmpcache"],
        "treatment of plain reads and writes",
    ),
    choice(
        "convosync",
        &["closesync", "delay", "direct", "dsync", "unbuffered"],
        "treatment of files opened with O_SYNC or O_DSYNC",
    ),
    flag("noatime", "reading changes no inode"),
    flag("rw", "writable"),
    flag("largefiles", "files above 2 GiB"),
    flag("defaults", "nothing special"),
];

/// Variables of the kernel (/etc/system).
pub const SYSTEM: &[FsOption] =
    &[number("vol_maxio", 16, MIB, "longest request of the volume manager, in 512-byte sectors")];

/// Mode of the intent log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A change of structure is in the log when its call returns.
    Log,
    /// Within [`VxRules::DELAY`].
    Delayed,
    /// Within [`VxRules::TEMPORARY`], and data need not go before it.
    Temporary,
    /// None.
    Without,
}

/// Everything that the options decide.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct VxRules {
    /// Mode of the log.
    pub mode: Mode,
    /// Device and size of a log that does not lie with the data.
    pub log_device: Option<LogArea>,
    /// Bytes that a request of read-ahead has, and requests.
    pub read: (u64, u64),
    /// Bytes that a request of flush-behind has, and requests.
    pub write: (u64, u64),
    /// Bytes of a file on their way at which its writers wait.
    pub queue_bytes: u64,
    /// Dirty bytes of a file at which it is flushed.
    pub dirty_bytes: Option<u64>,
    /// Bytes of a synchronous write's request.
    pub sync_bytes: u64,
    /// Longest request past the cache.
    pub direct_bytes: u64,
    /// Longest request that the volume manager passes on.
    pub request_bytes: u64,
    /// Reads and writes that go past the cache.
    pub bypass: Bypass,
    /// Data of extending writes are flushed before their transaction ("enhanced flushing").
    pub flushes_first: bool,
    /// Blocks inside a file are cleared before it gets them.
    pub clears: bool,
    /// The last close of a writer waits for everything.
    pub syncs_at_close: bool,
    /// Reading changes the inode.
    pub notes_access: bool,
    /// Units of the first extent, at least, and of the longest one.
    pub growth: (u64, u64),
    plain: Option<&'static str>,
    synchronous: Option<&'static str>,
}

impl VxRules {
    /// Time after which the log has a change with `delaylog`. [doc]
    pub const DELAY: Ns = Ns::from_ms(3_000);
    /// The same with `tmplog`. [assume]
    pub const TEMPORARY: Ns = Ns::from_ms(30_000);

    /// Rules and geometry of what was typed.
    pub fn new(spec: &MakeSpec) -> Result<(Self, Geometry), FilesError> {
        let device = spec
            .devices
            .first()
            .copied()
            .ok_or_else(|| refused("vxfs".into(), "has no device", "give it one".into()))?;
        let block = block_bytes(spec, device);
        let mode = mode(spec);
        let log_bytes = log_bytes(spec, device, block)?;
        let log_device = log_device(spec, mode, log_bytes)?;
        let beside = if mode == Mode::Without || log_device.is_some() { 0 } else { log_bytes };
        let align = align_bytes(spec, block)?;
        let inode = choice_number(spec, "-o inosize").unwrap_or(256);
        let geometry = Geometry::new(device.bytes, (block, align, inode), beside);
        let geometry = geometry.ok_or_else(|| {
            let subject = format!("vxfs on {} KiB", device.bytes >> 10);
            let remedy = "use a larger device, or a smaller log (-o logsize)".into();
            refused(subject, "is too small for its metadata", remedy)
        })?;
        let (plain, synchronous) = (spec.mount.choice("mincache"), spec.mount.choice("convosync"));
        let tunables = Tunables { spec, stripe: device.stripe };
        let units = |name, least: u64, block: u64| {
            spec.mkfs.number(name).unwrap_or(0).max(least) * (block / Geometry::UNIT)
        };
        let rules = Self {
            mode,
            log_device,
            read: tunables.read(),
            write: tunables.write(),
            queue_bytes: spec.mkfs.number("-o max_diskq").unwrap_or(MIB),
            dirty_bytes: spec
                .mkfs
                .number("-o write_throttle")
                .filter(|&pages| pages > 0)
                .map(|pages| pages * Geometry::CACHE_UNIT),
            sync_bytes: choice_number(spec, "-o max_buf_data_size").unwrap_or(8 * KIB),
            direct_bytes: spec.mkfs.number("-o max_direct_iosz").unwrap_or(MIB),
            request_bytes: spec.system.number("vol_maxio").map_or(u64::MAX, |count| count * 512),
            bypass: bypass(spec),
            flushes_first: matches!(mode, Mode::Log | Mode::Delayed) && plain != Some("tmpcache"),
            clears: clears(spec, mode)?,
            syncs_at_close: plain == Some("closesync") || synchronous == Some("closesync"),
            notes_access: spec.mount.flag("noatime").is_none(),
            // Tunable: a smaller value than 2048 blocks means 2048. [doc]
            growth: (
                units("-o initial_extent_size", 1, block).max(8 * KIB / Geometry::UNIT),
                units("-o max_seqio_extent_size", 2048, block),
            ),
            plain,
            synchronous,
        };
        Ok((rules, geometry))
    }

    /// Bytes that a sequential writer fills before they are sent off.
    pub const fn flush_bytes(&self) -> u64 {
        self.write.0 * self.write.1
    }

    /// Promise of a write whose caller asked for another one.
    pub fn promise(&self, asked: Option<Promise>) -> Option<Promise> {
        match (asked, self.synchronous) {
            (None, _) => (self.plain == Some("dsync")).then_some(Promise::Data),
            (Some(_), Some("delay" | "closesync")) => None,
            (Some(_), Some("dsync")) => Some(Promise::Data),
            (Some(asked), _) => Some(asked),
        }
    }
}

/// Preferred sizes: typed, or from the stripes of the volume, or 64 KiB and one stream.
struct Tunables<'a> {
    spec: &'a MakeSpec,
    stripe: Option<StripeFacts>,
}

impl Tunables<'_> {
    const PREFERRED: (u64, u64) = (64 * KIB, 1);

    fn typed(&self, (size, streams): (&str, &str), default: (u64, u64)) -> (u64, u64) {
        let size = self.spec.mkfs.number(size).unwrap_or(default.0);
        // The unit of the cache is the least that travels.
        let size = size.next_multiple_of(Geometry::CACHE_UNIT);
        (size, self.spec.mkfs.number(streams).unwrap_or(default.1))
    }

    fn read(&self) -> (u64, u64) {
        let of_volume = self.stripe.map(|stripe| (stripe.unit_bytes, stripe.columns));
        let names = ("-o read_pref_io", "-o read_nstream");
        self.typed(names, of_volume.unwrap_or(Self::PREFERRED))
    }

    fn write(&self) -> (u64, u64) {
        let of_volume = self.stripe.map(|stripe| {
            if stripe.has_parity {
                (stripe.unit_bytes * stripe.columns, 1)
            } else {
                (stripe.unit_bytes, stripe.columns)
            }
        });
        let names = ("-o write_pref_io", "-o write_nstream");
        self.typed(names, of_volume.unwrap_or(Self::PREFERRED))
    }
}

fn refused(subject: String, problem: &str, remedy: String) -> FilesError {
    FilesError::Inconsistent { subject, problem: problem.into(), remedy }
}

fn choice_number(spec: &MakeSpec, name: &str) -> Option<u64> {
    let word = spec.mkfs.choice(name)?;
    word.parse::<Bytes>().ok().map(|bytes| bytes.0)
}

/// Multiples at which extents begin.
fn align_bytes(spec: &MakeSpec, block: u64) -> Result<u64, FilesError> {
    let align = spec.mkfs.number("-o align").unwrap_or(Geometry::ALIGN);
    if align.is_multiple_of(block) {
        return Ok(align);
    }
    Err(refused(
        format!("vxfs: mkfs option -o align={align}"),
        &format!("is no multiple of the block of {block} bytes"),
        format!("next are {} and {}", align / block * block, align.next_multiple_of(block)),
    ))
}

/// Blocks inside a file are cleared before it gets them.
fn clears(spec: &MakeSpec, mode: Mode) -> Result<bool, FilesError> {
    let clears = spec.mount.flag("blkclear").is_some();
    if clears && mode == Mode::Without {
        return Err(refused(
            "vxfs: mount options blkclear,nolog".into(),
            "contradict each other: zeros go before a record of the log, and there is none",
            "mount it with log, delaylog or tmplog".into(),
        ));
    }
    Ok(clears)
}

/// Transfers that go past the cache unasked.
fn bypass(spec: &MakeSpec) -> Bypass {
    let (plain, synchronous) = (spec.mount.choice("mincache"), spec.mount.choice("convosync"));
    let above = spec.mkfs.number("-o discovered_direct_iosz").unwrap_or(256 * KIB);
    Bypass {
        all: matches!(plain, Some("direct" | "unbuffered")),
        promised: matches!(synchronous, Some("direct" | "unbuffered")),
        above: Bytes(above),
        extends: true,
        commits: plain == Some("direct") || synchronous == Some("direct"),
    }
}

/// Size of a block: 1 KiB below 8 GiB, twice that below 16 GiB, and so on (`mkfs_vxfs(1M)`).
fn block_bytes(spec: &MakeSpec, device: DeviceFacts) -> u64 {
    let default = match device.bytes >> 30 {
        0..8 => 1024,
        8..16 => 2048,
        16..32 => 4096,
        _ => 8192,
    };
    choice_number(spec, "-o bsize").unwrap_or(default)
}

/// The last mode that was typed; else `log`, from release 3.5 of `VxFS` on `delaylog`. Releases of
/// `VxFS` follow those of Solaris here: 3.5 came with Solaris 9. [assume]
fn mode(spec: &MakeSpec) -> Mode {
    let is_late = spec.solaris >= Solaris(9);
    match spec.mount.last_of(&MODES) {
        Some("log") => Mode::Log,
        Some("delaylog") => Mode::Delayed,
        Some("nolog") if !is_late => Mode::Without,
        Some(_) => Mode::Temporary,
        None if is_late => Mode::Delayed,
        None => Mode::Log,
    }
}

/// Bytes of the log: 256 blocks below 8 MiB, 1024 up to 512 MiB, then 16384 (`fs_vxfs(4)`); never
/// more than 16 MiB.
fn log_bytes(spec: &MakeSpec, device: DeviceFacts, block: u64) -> Result<u64, FilesError> {
    const LOG_MAX: u64 = 16 * MIB;
    if let Some(blocks) = spec.mkfs.number("-o logsize") {
        let bytes = blocks * block;
        if bytes > LOG_MAX {
            return Err(refused(
                format!("vxfs: mkfs option -o logsize={blocks}"),
                &format!("is more than 16 MiB in blocks of {block} bytes"),
                format!("it goes from 32 to {}", LOG_MAX / block),
            ));
        }
        return Ok(bytes);
    }
    let blocks = if device.bytes < 8 * MIB {
        256
    } else if device.bytes <= 512 * MIB {
        1024
    } else {
        16384
    };
    Ok((blocks * block).min(LOG_MAX))
}

/// The second device holds the log.
fn log_device(spec: &MakeSpec, mode: Mode, bytes: u64) -> Result<Option<LogArea>, FilesError> {
    let Some(device) = spec.devices.get(1) else { return Ok(None) };
    if mode == Mode::Without {
        let remedy = "mount it with log, delaylog or tmplog, or leave log_device out".into();
        return Err(refused("vxfs with a log device".into(), "has no log", remedy));
    }
    let sectors = bytes.min(device.bytes) / 512;
    Ok(Some(LogArea { device: DeviceId(1), first: 0, sectors }))
}
