//! Properties of pool and file system, parameters of the module, and the releases that have them.

use iolab_model::Ns;

use super::admission::{INFLATION, ThrottleRules};
use crate::api::file_system::Promise;
use crate::api::make::{Kernel, MakeSpec};
use crate::api::options::{FsOption, choice, flag, number, size};
use crate::api::own_cache::{DeviceQueue, DirectIo, OwnCache, QueueOrder};
use crate::error::FilesError;
use crate::readahead::zfetch::FetchRules;

const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;
/// A block of the model.
pub const BLOCK: u64 = 4096;
/// Bytes in front of the data: two labels and the place of a boot block (`VDEV_LABEL_START_SIZE`).
const FRONT: u64 = 4 * MIB;
/// Bytes behind the data: two labels.
const BACK: u64 = 512 * KIB;
/// Least pool (`SPA_MINDEVSIZE`).
const DEVICE_MIN: u64 = 64 * MIB;
/// A tick of the clock: kernels with HZ 1000. [doc]
const TICK: Ns = Ns::from_ms(1);

/// Words of `zpool create`: properties of the pool (`-o`) and of its file system (`-O`).
pub const MKFS: &[FsOption] = &[
    flag("-f", "no questions: no effect"),
    choice("-o ashift", &["9", "10", "11", "12"], "no effect: places are multiples of 4 KiB"),
    size("-O recordsize", 4 * KIB, MIB, "bytes of a record, a power of two; above 128k from 0.8"),
    choice("-O compression", &["off"], "data are stored as they are"),
    choice("-O checksum", &["on", "off", "fletcher2", "fletcher4", "sha256"], "no effect"),
    choice("-O atime", &["on", "off"], "reading changes the time of access"),
    choice("-O sync", &["standard", "always", "disabled"], "promises that writes keep"),
    choice("-O logbias", &["latency", "throughput"], "use of the intent log by large writes"),
    choice("-O primarycache", &["all", "metadata"], "data stay in the cache after reading"),
];

/// Options of mount.
pub const MOUNT: &[FsOption] = &[
    flag("noatime", "reading changes no times"),
    flag("atime", "reading changes the time of access"),
    flag("rw", "writable"),
    flag("defaults", "nothing special"),
];

/// Parameters of the module.
pub const SYSTEM: &[FsOption] = &[
    number("zfs_arc_max", 64 * MIB, 1 << 50, "bytes of the cache"),
    number("zfs_txg_timeout", 1, 3600, "seconds after which the open group is closed"),
    number("zfs_prefetch_disable", 0, 1, "1: records are not read ahead"),
    number("zfs_nocacheflush", 0, 1, "1: devices are not told to flush their write cache"),
    number("zfs_immediate_write_sz", 0, 1 << 30, "bytes: longer writes are named in the log"),
    number("zfs_vdev_aggregation_limit", 0, 16 * MIB, "bytes of an aggregated request"),
    number("zfs_vdev_read_gap_limit", 0, 16 * MIB, "bytes of holes that aggregated reads bridge"),
    number("zfetch_max_streams", 1, 1000, "sequential readers of a file that are read ahead"),
    number("zfetch_min_sec_reap", 1, 3600, "seconds after which a stream may be replaced"),
    number("zfetch_block_cap", 1, 65536, "records that are read ahead (0.6)"),
    number("zfetch_array_rd_sz", KIB, 1 << 30, "bytes: longer requests are not read ahead"),
    number("zfetch_max_distance", 4 * KIB, 1 << 30, "bytes that are read ahead (from 0.8)"),
    number("zfs_vdev_min_pending", 1, 1000, "active requests below which one goes at once (0.6)"),
    number("zfs_vdev_max_pending", 1, 1000, "most active requests (0.6)"),
    number("zfs_vdev_ramp_rate", 1, 1000, "requests that the end of one lets go (0.6)"),
    number("zfs_vdev_time_shift", 0, 30, "ticks of a step of priority, as a power of two (0.6)"),
    number("zfs_txg_synctime_ms", 100, 60_000, "ms that writing a group should take (0.6)"),
    number("zfs_write_limit_min", MIB, 1 << 50, "least bytes of a group, times 24 (0.6)"),
    number("zfs_write_limit_max", MIB, 1 << 50, "most bytes of a group, times 24 (0.6)"),
    number("zfs_write_limit_override", MIB, 1 << 50, "bytes of a group, times 24, always (0.6)"),
    number("zfs_write_limit_shift", 1, 20, "memory / 2^N is the most of a group (0.6)"),
    number("zfs_no_write_throttle", 0, 1, "1: writers are never held back (0.6)"),
    number("zfs_dirty_data_max", MIB, 1 << 50, "bytes of dirty data at which writers stop"),
    number("zfs_dirty_data_max_percent", 1, 100, "the same as a share of memory"),
    number("zfs_dirty_data_sync_percent", 1, 100, "share of it that closes the open group"),
    number("zfs_delay_min_dirty_percent", 1, 99, "share of it from which writers are delayed"),
    number("zfs_delay_scale", 1, 1 << 40, "ns of delay in the middle between the two"),
    number("zfs_vdev_sync_read_min_active", 1, 1000, "requests of the class that always go"),
    number("zfs_vdev_sync_read_max_active", 1, 1000, "most active requests of the class"),
    number("zfs_vdev_sync_write_min_active", 1, 1000, "requests of the class that always go"),
    number("zfs_vdev_sync_write_max_active", 1, 1000, "most active requests of the class"),
    number("zfs_vdev_async_read_min_active", 1, 1000, "requests of the class that always go"),
    number("zfs_vdev_async_read_max_active", 1, 1000, "most active requests of the class"),
    number("zfs_vdev_async_write_min_active", 1, 1000, "requests of the class that always go"),
    number("zfs_vdev_async_write_max_active", 1, 1000, "most active requests of the class"),
    number("zfs_vdev_async_write_active_min_dirty_percent", 0, 100, "dirty share: least active"),
    number("zfs_vdev_async_write_active_max_dirty_percent", 1, 100, "dirty share: most active"),
];

/// Parameters that only releases before 0.6.3 have, and those that only later ones have.
const OLD: &[&str] = &[
    "zfetch_block_cap",
    "zfs_vdev_min_pending",
    "zfs_vdev_max_pending",
    "zfs_vdev_ramp_rate",
    "zfs_vdev_time_shift",
    "zfs_txg_synctime_ms",
    "zfs_write_limit_min",
    "zfs_write_limit_max",
    "zfs_write_limit_override",
    "zfs_write_limit_shift",
    "zfs_no_write_throttle",
];
const NEW: &[&str] = &[
    "zfetch_max_distance",
    "zfs_dirty_data_max",
    "zfs_dirty_data_max_percent",
    "zfs_dirty_data_sync_percent",
    "zfs_delay_min_dirty_percent",
    "zfs_delay_scale",
    "zfs_vdev_sync_read_min_active",
    "zfs_vdev_sync_read_max_active",
    "zfs_vdev_sync_write_min_active",
    "zfs_vdev_sync_write_max_active",
    "zfs_vdev_async_read_min_active",
    "zfs_vdev_async_read_max_active",
    "zfs_vdev_async_write_min_active",
    "zfs_vdev_async_write_max_active",
    "zfs_vdev_async_write_active_min_dirty_percent",
    "zfs_vdev_async_write_active_max_dirty_percent",
];

/// Release of the module, by the kernel of its time. [assume]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// 0.6.0-rc11, September 2012: kernels before 3.15.
    V0_6,
    /// 0.8.6: kernels before 6.5.
    V0_8,
    /// 2.2.7: kernels before 6.12.
    V2_2,
    /// 2.3.0, January 2025.
    V2_3,
}

impl Release {
    /// The one of a kernel's time.
    pub fn of(kernel: Kernel) -> Self {
        if kernel < Kernel::new(3, 15) {
            Self::V0_6
        } else if kernel < Kernel::new(6, 5) {
            Self::V0_8
        } else if kernel < Kernel::new(6, 12) {
            Self::V2_2
        } else {
            Self::V2_3
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::V0_6 => "0.6.0-rc11",
            Self::V0_8 => "0.8.6",
            Self::V2_2 => "2.2.7",
            Self::V2_3 => "2.3.0",
        }
    }
}

/// Sizes of the pool.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// First block of the data.
    pub first: u64,
    /// Blocks of the data.
    pub blocks: u64,
    /// Bytes of the device.
    pub device_bytes: u64,
    /// Metaslabs at low addresses are preferred.
    pub prefers_low: bool,
}

/// Everything that the options decide.
#[derive(Clone, Debug)]
pub struct ZfsRules {
    /// Bytes of a record.
    pub record_bytes: u64,
    /// Reading changes the time of access.
    pub notes_access: bool,
    /// Property `sync`.
    pub sync: &'static str,
    /// `logbias=throughput`.
    pub is_throughput: bool,
    /// Bytes: longer writes are named in the log.
    pub immediate_bytes: u64,
    /// Size of a device of the log alone.
    pub log_bytes: Option<u64>,
    /// Time of the timer of groups.
    pub period: Ns,
    /// Devices are told to flush.
    pub flushes: bool,
    /// Limits of writers.
    pub throttle: ThrottleRules,
    /// The cache.
    pub cache: OwnCache,
}

impl ZfsRules {
    /// Rules and geometry of what was typed.
    pub fn new(spec: &MakeSpec) -> Result<(Self, Geometry), FilesError> {
        let release = Release::of(spec.kernel);
        check_release(spec, release)?;
        let geometry = geometry(spec, release)?;
        let record_bytes = record_bytes(spec, release)?;
        let system = |name, default| spec.system.number(name).unwrap_or(default);
        let atime = spec.mkfs.choice("-O atime").unwrap_or("on") == "on";
        let rules = Self {
            record_bytes,
            notes_access: spec.mount.either("atime", "noatime").unwrap_or(atime),
            sync: spec.mkfs.choice("-O sync").unwrap_or("standard"),
            is_throughput: spec.mkfs.choice("-O logbias") == Some("throughput"),
            immediate_bytes: system("zfs_immediate_write_sz", 32 * KIB),
            log_bytes: spec.devices.get(1).map(|device| device.bytes / BLOCK * BLOCK),
            period: Ns::from_ms(1000 * system("zfs_txg_timeout", 5)),
            flushes: system("zfs_nocacheflush", 0) == 0,
            throttle: throttle(spec, release),
            cache: cache(spec, release, record_bytes),
        };
        Ok((rules, geometry))
    }

    /// Tell whether a write of so many bytes is named in the log, not copied into it.
    pub const fn names_data(&self, bytes: u64) -> bool {
        self.is_throughput || self.log_bytes.is_none() && bytes > self.immediate_bytes
    }

    /// Promise of a write whose caller asked for another one.
    pub fn promise(&self, asked: Option<Promise>) -> Option<Promise> {
        match self.sync {
            "disabled" => None,
            "always" => Some(Promise::Full),
            _ => asked,
        }
    }
}

fn refused(subject: String, problem: &str, remedy: String) -> FilesError {
    FilesError::Inconsistent { subject, problem: problem.into(), remedy }
}

/// Refuses parameters that the release does not have.
fn check_release(spec: &MakeSpec, release: Release) -> Result<(), FilesError> {
    let is_old = release == Release::V0_6;
    let others = if is_old { NEW } else { OLD };
    match others.iter().find(|name| spec.system.number(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(refused(
            format!("zfs: {name}"),
            &format!("is no parameter of {}, the module of kernel {}", release.name(), spec.kernel),
            if is_old {
                "it came with 0.6.3: write kernel = \"3.15\" or later".into()
            } else {
                "it went with 0.6.3: write kernel = \"2.6.32\"".into()
            },
        )),
    }
}

fn geometry(spec: &MakeSpec, release: Release) -> Result<Geometry, FilesError> {
    let none = || refused("zfs".into(), "has no device", "give it one".into());
    let device = spec.devices.first().ok_or_else(none)?;
    if device.bytes < DEVICE_MIN {
        return Err(refused(
            format!("zfs on {} KiB", device.bytes >> 10),
            "is too small for a pool",
            "use a device of at least 64 MiB".into(),
        ));
    }
    Ok(Geometry {
        first: FRONT / BLOCK,
        blocks: (device.bytes - FRONT - BACK) / BLOCK,
        device_bytes: device.bytes,
        // Later releases do it on rotating devices alone (`metaslab_lba_weighting_enabled`).
        prefers_low: release == Release::V0_6 || device.is_rotational,
    })
}

fn record_bytes(spec: &MakeSpec, release: Release) -> Result<u64, FilesError> {
    let bytes = spec.mkfs.number("-O recordsize").unwrap_or(128 * KIB);
    let most = if release == Release::V0_6 { 128 * KIB } else { MIB };
    if bytes.is_power_of_two() && bytes <= most {
        return Ok(bytes);
    }
    Err(refused(
        format!("zfs: property recordsize={bytes}"),
        &format!("is no power of two up to {} KiB in {}", most >> 10, release.name()),
        "write one from 4k on, as in -O recordsize=8k".into(),
    ))
}

fn throttle(spec: &MakeSpec, release: Release) -> ThrottleRules {
    let system = |name, default| spec.system.number(name).unwrap_or(default);
    if release == Release::V0_6 {
        if system("zfs_no_write_throttle", 0) == 1 {
            return ThrottleRules::Off;
        }
        let share = spec.memory_bytes >> system("zfs_write_limit_shift", 3);
        let most = spec.system.number("zfs_write_limit_max").map_or(share, |all| all / INFLATION);
        let least = system("zfs_write_limit_min", 32 * MIB) / INFLATION;
        let always = spec.system.number("zfs_write_limit_override").map(|all| all / INFLATION);
        return ThrottleRules::Throughput {
            target: Ns::from_ms(system("zfs_txg_synctime_ms", 1000)),
            bytes: always.map_or((least, most), |all| (all, all)),
            tick: TICK,
        };
    }
    ThrottleRules::Dirty {
        most: dirty_max(spec),
        delay_percent: system("zfs_delay_min_dirty_percent", 60),
        scale: system("zfs_delay_scale", 500_000),
        group_percent: system("zfs_dirty_data_sync_percent", 20),
    }
}

/// Dirty data at which writers stop: a tenth of memory, 4 GiB at most.
fn dirty_max(spec: &MakeSpec) -> u64 {
    let percent = spec.system.number("zfs_dirty_data_max_percent").unwrap_or(10);
    let share = (spec.memory_bytes * percent / 100).min((spec.memory_bytes / 4).min(4 << 30));
    spec.system.number("zfs_dirty_data_max").unwrap_or(share)
}

/// Size of the cache: half of memory, from 2.3 on all but 1 GiB or 5/8.
fn cache_bytes(spec: &MakeSpec, release: Release) -> u64 {
    let memory = spec.memory_bytes;
    let default = if release >= Release::V2_3 {
        (memory / 8 * 5).max(memory.saturating_sub(1 << 30))
    } else {
        memory / 2
    };
    let typed = spec.system.number("zfs_arc_max").filter(|&bytes| bytes < memory);
    typed.unwrap_or(default).max((64 * MIB).min(memory))
}

fn cache(spec: &MakeSpec, release: Release, record_bytes: u64) -> OwnCache {
    let system = |name, default| spec.system.number(name).unwrap_or(default);
    let keeps_data = spec.mkfs.choice("-O primarycache") != Some("metadata");
    let is_old = release == Release::V0_6;
    let records_max = if is_old {
        system("zfetch_block_cap", 256)
    } else {
        (system("zfetch_max_distance", 8 * MIB) / record_bytes).max(1)
    };
    let fetch = FetchRules {
        streams_max: system("zfetch_max_streams", 8) as u32,
        records_max,
        reap: Ns::from_ms(1000 * system("zfetch_min_sec_reap", 2)),
        request_bytes: system("zfetch_array_rd_sz", MIB),
    };
    let is_on = system("zfs_prefetch_disable", 0) == 0 && keeps_data;
    OwnCache {
        bytes: cache_bytes(spec, release),
        keeps_data,
        direct: match release {
            Release::V0_6 => DirectIo::Refused,
            Release::V0_8 | Release::V2_2 => DirectIo::Cached,
            Release::V2_3 => DirectIo::Reads,
        },
        fetch: is_on.then_some(fetch),
    }
}

/// The queue in front of each device.
pub fn device_queue(spec: &MakeSpec) -> Result<DeviceQueue, FilesError> {
    let release = Release::of(spec.kernel);
    let system = |name, default| spec.system.number(name).unwrap_or(default);
    let is_rotational = spec.devices.first().is_some_and(|device| device.is_rotational);
    let is_old = release == Release::V0_6;
    let active = |name: &str, default: (u64, u64)| {
        let of =
            |end: &str, default| system_number(spec, &format!("zfs_vdev_{name}_{end}"), default);
        let (least, most) = (of("min_active", default.0), of("max_active", default.1));
        (least.min(most) as u32, most as u32)
    };
    let order = if is_old {
        let min_pending = system("zfs_vdev_min_pending", 4);
        let max_pending = system("zfs_vdev_max_pending", 10);
        if min_pending > max_pending {
            return Err(refused(
                format!("zfs: zfs_vdev_min_pending={min_pending}"),
                &format!("is more than zfs_vdev_max_pending={max_pending}"),
                "let it be no more than that".into(),
            ));
        }
        QueueOrder::Deadline {
            min_pending: min_pending as u32,
            max_pending: max_pending as u32,
            ramp_rate: system("zfs_vdev_ramp_rate", 2) as u32,
            tick: TICK,
            time_shift: system("zfs_vdev_time_shift", 6) as u32,
        }
    } else {
        QueueOrder::Classes {
            active: [
                active("sync_read", (10, 10)),
                active("sync_write", (10, 10)),
                active("async_read", (1, 3)),
                active("async_write", (2, 10)),
            ],
            ramp: (
                system("zfs_vdev_async_write_active_min_dirty_percent", 30),
                system("zfs_vdev_async_write_active_max_dirty_percent", 60),
            ),
            dirty_max: dirty_max(spec),
        }
    };
    let aggregation = if !is_old && is_rotational { MIB } else { 128 * KIB };
    Ok(DeviceQueue {
        order,
        aggregation_bytes: system("zfs_vdev_aggregation_limit", aggregation),
        read_gap_bytes: system("zfs_vdev_read_gap_limit", 32 * KIB),
    })
}

fn system_number(spec: &MakeSpec, name: &str, default: u64) -> u64 {
    spec.system.number(name).unwrap_or(default)
}
