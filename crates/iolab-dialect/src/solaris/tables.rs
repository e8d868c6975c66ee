//! The tunables that are understood, by the command or file that sets them.
//!
//! Sources: Solaris Tunable Parameters Reference Manual (Solaris 8 and 9); the manual pages named
//! in the rows; VERITAS File System administrator's guides 3.3 to 5.1, chapter on I/O tuning; Sun
//! QFS manual pages of releases 3 and 5.

use super::tunable::{MAXINT, Meaning, Tunable, Unit};

use Meaning::{
    Make, Maxcontig, Maxphys, MdMaxphys, Mount, Nothing, Own, Physmem, System, Throttle, VolMaxio,
};

type Row = Tunable;

const BOOK: &str = "Solaris Tunable Parameters Reference Manual";
const PAGING: Meaning = Nothing("paging of Solaris is not simulated");
const FSFLUSH: Meaning = Nothing("the model's fsflush has 5 s and 30 s");
const TABLES: Meaning = Nothing("tables of the kernel are not simulated");
const LAYOUT: Meaning = Nothing("rotational layout is not simulated");
const SIZED: Meaning = Nothing("the file system fills the device of the profile");
const ASKED: Meaning = Nothing("it asks or prints, and sets nothing");
const CHECKED: Meaning = Nothing("accepted, no effect in the model");
/// Largest address that /etc/system can hold.
const MOST: u64 = 1 << 40;

/// Variables of /etc/system and of adb, with the module that has them.
pub const ETC_SYSTEM: &[Row] = &[
    Row::new("maxphys", Unit::Bytes, (8192, MAXINT), Maxphys, BOOK),
    Row::new("md:md_maxphys", Unit::Bytes, (8192, MAXINT), MdMaxphys, "DiskSuite reference"),
    Row::new("vxio:vol_maxio", Unit::Sectors, (16, 65536), VolMaxio, "VxVM administrator's guide"),
    Row::new("ufs:ufs_HW", Unit::Bytes, (1, MAXINT), System, BOOK),
    Row::new("ufs:ufs_LW", Unit::Bytes, (1, MAXINT), System, BOOK),
    Row::new("ufs:ufs_WRITES", Unit::Count, (0, 1), System, BOOK),
    Row::new("ufs:freebehind", Unit::Count, (0, 1), System, BOOK),
    Row::new("physmem", Unit::Pages, (2048, 1 << 25), Physmem, BOOK),
    Row::new("sd:sd_max_throttle", Unit::Count, (1, 256), Throttle, "sd(7D)"),
    Row::new("ssd:ssd_max_throttle", Unit::Count, (1, 256), Throttle, "ssd(7D)"),
    Row::new("autoup", Unit::Seconds, (1, MAXINT), FSFLUSH, BOOK),
    Row::new("tune_t_fsflushr", Unit::Seconds, (1, MAXINT), FSFLUSH, BOOK),
    Row::new("dopageflush", Unit::Count, (0, 1), FSFLUSH, BOOK),
    Row::new("doiflush", Unit::Count, (0, 1), FSFLUSH, BOOK),
    Row::new("priority_paging", Unit::Count, (0, 1), PAGING, BOOK).in_releases(7, 7),
    Row::new("cachefree", Unit::Pages, (1, MAXINT), PAGING, BOOK).in_releases(7, 7),
    Row::new("lotsfree", Unit::Pages, (1, MAXINT), PAGING, BOOK),
    Row::new("desfree", Unit::Pages, (1, MAXINT), PAGING, BOOK),
    Row::new("minfree", Unit::Pages, (1, MAXINT), PAGING, BOOK),
    Row::new("throttlefree", Unit::Pages, (1, MAXINT), PAGING, BOOK),
    Row::new("pageout_reserve", Unit::Pages, (1, MAXINT), PAGING, BOOK),
    Row::new("slowscan", Unit::Pages, (1, MAXINT), PAGING, BOOK),
    Row::new("fastscan", Unit::Pages, (1, MAXINT), PAGING, BOOK),
    Row::new("handspreadpages", Unit::Pages, (1, MAXINT), PAGING, BOOK),
    Row::new("maxpgio", Unit::Count, (1, MAXINT), PAGING, BOOK),
    Row::new("segmap_percent", Unit::Percent, (2, 50), PAGING, BOOK).in_releases(8, 10),
    Row::new("bufhwm", Unit::Kib, (80, MAXINT), TABLES, BOOK),
    Row::new("ncsize", Unit::Count, (0, MAXINT), TABLES, BOOK),
    Row::new("maxusers", Unit::Count, (1, 4096), TABLES, BOOK),
    Row::new("ufs:ufs_ninode", Unit::Count, (0, MAXINT), TABLES, BOOK),
    Row::new("vxfs:vxfs_ninode", Unit::Count, (0, MAXINT), TABLES, "VxFS administrator's guide"),
    Row::new("zfs:zfs_arc_max", Unit::Bytes, (64 << 20, MOST), Own, BOOK).in_releases(10, 10),
    Row::new("zfs:zfs_arc_min", Unit::Bytes, (1, MOST), Own, BOOK).in_releases(10, 10),
    Row::new("zfs:zfs_vdev_max_pending", Unit::Count, (1, 256), Own, BOOK).in_releases(10, 10),
    Row::new("zfs:zfs_prefetch_disable", Unit::Count, (0, 1), Own, BOOK).in_releases(10, 10),
    Row::new("zfs:zfs_nocacheflush", Unit::Count, (0, 1), Own, BOOK).in_releases(10, 10),
];

const NEWFS_1M: &str = "newfs(1M)";
/// Blocks of a cluster: 8 MiB are beyond any driver of the time.
const CLUSTER: (u64, u64) = (1, 1024);

/// Options of newfs.
pub const NEWFS: &[Row] = &[
    Row::new("-C", Unit::Blocks, CLUSTER, Maxcontig, NEWFS_1M),
    Row::new("-b", Unit::Bytes, (4096, 8192), Make("-b"), NEWFS_1M).in_steps(4096),
    Row::new("-f", Unit::Bytes, (512, 8192), Make("-f"), NEWFS_1M).in_steps(512),
    Row::new("-i", Unit::Bytes, (1024, 1 << 26), Make("-i"), NEWFS_1M),
    Row::new("-c", Unit::Count, (16, 256), Make("-c"), NEWFS_1M),
    Row::new("-m", Unit::Percent, (0, 99), Make("-m"), NEWFS_1M),
    Row::new("-o", Unit::Word(&["time", "space"]), (0, 0), Make("-o"), NEWFS_1M),
    Row::new("-a", Unit::Count, (0, 32), LAYOUT, NEWFS_1M),
    Row::new("-d", Unit::Ms, (0, 1000), LAYOUT, NEWFS_1M),
    Row::new("-n", Unit::Count, (1, 64), LAYOUT, NEWFS_1M),
    Row::new("-r", Unit::Count, (600, 30_000), LAYOUT, NEWFS_1M),
    Row::new("-t", Unit::Count, (1, 1024), LAYOUT, NEWFS_1M),
    Row::new("-s", Unit::Sectors, (2048, MOST), SIZED, NEWFS_1M),
    Row::new("-N", Unit::Flag, (0, 0), ASKED, NEWFS_1M),
    Row::new("-v", Unit::Flag, (0, 0), ASKED, NEWFS_1M),
    Row::new("-T", Unit::Flag, (0, 0), CHECKED, NEWFS_1M),
];

const TUNEFS_1M: &str = "tunefs(1M)";

/// Options of tunefs.
pub const TUNEFS: &[Row] = &[
    Row::new("-a", Unit::Blocks, CLUSTER, Maxcontig, TUNEFS_1M),
    Row::new("-e", Unit::Blocks, (1, 1 << 20), Make("-e"), TUNEFS_1M),
    Row::new("-d", Unit::Ms, (0, 1000), LAYOUT, TUNEFS_1M),
    Row::new("-m", Unit::Percent, (0, 99), Make("-m"), TUNEFS_1M),
    Row::new("-o", Unit::Word(&["time", "space", "s", "t"]), (0, 0), CHECKED, TUNEFS_1M),
];

const MKFS_UFS_1M: &str = "mkfs_ufs(1M)";

/// Words behind `mkfs -F ufs -o`.
pub const MKFS_UFS: &[Row] = &[
    Row::new("maxcontig", Unit::Blocks, CLUSTER, Maxcontig, MKFS_UFS_1M),
    Row::new("bsize", Unit::Bytes, (4096, 8192), Make("-b"), MKFS_UFS_1M).in_steps(4096),
    Row::new("fragsize", Unit::Bytes, (512, 8192), Make("-f"), MKFS_UFS_1M).in_steps(512),
    Row::new("nbpi", Unit::Bytes, (1024, 1 << 26), Make("-i"), MKFS_UFS_1M),
    Row::new("cgsize", Unit::Count, (1, 256), Make("-c"), MKFS_UFS_1M),
    Row::new("free", Unit::Percent, (0, 99), Make("-m"), MKFS_UFS_1M),
    Row::new("opt", Unit::Word(&["s", "t"]), (0, 0), CHECKED, MKFS_UFS_1M),
    Row::new("nsect", Unit::Count, (1, 4096), LAYOUT, MKFS_UFS_1M),
    Row::new("ntrack", Unit::Count, (1, 1024), LAYOUT, MKFS_UFS_1M),
    Row::new("rps", Unit::Count, (1, 500), LAYOUT, MKFS_UFS_1M),
    Row::new("apc", Unit::Count, (0, 32), LAYOUT, MKFS_UFS_1M),
    Row::new("gap", Unit::Ms, (0, 1000), LAYOUT, MKFS_UFS_1M),
    Row::new("nrpos", Unit::Count, (1, 64), LAYOUT, MKFS_UFS_1M),
    Row::new("N", Unit::Flag, (0, 0), ASKED, MKFS_UFS_1M),
];

const MKFS_VXFS_1M: &str = "mkfs_vxfs(1M)";

/// Words behind `mkfs -F vxfs -o`.
pub const MKFS_VXFS: &[Row] = &[
    Row::new("bsize", Unit::Bytes, (1024, 8192), Own, MKFS_VXFS_1M).in_steps(1024),
    Row::new("logsize", Unit::FsBlocks, (256, 32_768), Own, MKFS_VXFS_1M),
    Row::new("align", Unit::Bytes, (512, 1 << 30), Own, MKFS_VXFS_1M).in_steps(512),
    Row::new("ninode", Unit::Count, (0, MAXINT), TABLES, MKFS_VXFS_1M),
    Row::new("inosize", Unit::Bytes, (256, 512), CHECKED, MKFS_VXFS_1M).in_steps(256),
    Row::new("version", Unit::Count, (1, 9), CHECKED, MKFS_VXFS_1M),
    Row::new("largefiles", Unit::Flag, (0, 0), CHECKED, MKFS_VXFS_1M),
    Row::new("nolargefiles", Unit::Flag, (0, 0), CHECKED, MKFS_VXFS_1M),
    Row::new("N", Unit::Flag, (0, 0), ASKED, MKFS_VXFS_1M),
];

/// Options of mount that every file system takes.
pub const MOUNT_ALL: &[Row] = &[
    Row::new("rw", Unit::Flag, (0, 0), CHECKED, "mount(1M)"),
    Row::new("suid", Unit::Flag, (0, 0), CHECKED, "mount(1M)"),
    Row::new("nosuid", Unit::Flag, (0, 0), CHECKED, "mount(1M)"),
    Row::new("largefiles", Unit::Flag, (0, 0), CHECKED, "mount(1M)"),
    Row::new("nolargefiles", Unit::Flag, (0, 0), CHECKED, "mount(1M)"),
    Row::new("defaults", Unit::Flag, (0, 0), CHECKED, "mount(1M)"),
    Row::new("remount", Unit::Flag, (0, 0), CHECKED, "mount(1M)"),
    Row::new("quota", Unit::Flag, (0, 0), Nothing("quotas are not simulated"), "mount(1M)"),
];

const MOUNT_UFS_1M: &str = "mount_ufs(1M)";

/// Options of `mount -F ufs`.
pub const MOUNT_UFS: &[Row] = &[
    Row::new("logging", Unit::Flag, (0, 0), Mount, MOUNT_UFS_1M),
    Row::new("nologging", Unit::Flag, (0, 0), Mount, MOUNT_UFS_1M),
    Row::new("forcedirectio", Unit::Flag, (0, 0), Mount, MOUNT_UFS_1M),
    Row::new("noforcedirectio", Unit::Flag, (0, 0), Mount, MOUNT_UFS_1M),
    Row::new("noatime", Unit::Flag, (0, 0), Mount, MOUNT_UFS_1M),
    Row::new("onerror", Unit::Word(&["panic", "lock", "umount"]), (0, 0), CHECKED, MOUNT_UFS_1M),
    Row::new("intr", Unit::Flag, (0, 0), CHECKED, MOUNT_UFS_1M),
    Row::new("nointr", Unit::Flag, (0, 0), CHECKED, MOUNT_UFS_1M),
    Row::new("dfratime", Unit::Flag, (0, 0), CHECKED, MOUNT_UFS_1M),
    Row::new("nodfratime", Unit::Flag, (0, 0), CHECKED, MOUNT_UFS_1M),
];

const MOUNT_VXFS_1M: &str = "mount_vxfs(1M)";
const MINCACHE: Unit = Unit::Word(&["closesync", "direct", "dsync", "tmpcache", "unbuffered"]);
const CONVOSYNC: Unit = Unit::Word(&["closesync", "delay", "direct", "dsync", "unbuffered"]);

/// Options of `mount -F vxfs`.
pub const MOUNT_VXFS: &[Row] = &[
    Row::new("log", Unit::Flag, (0, 0), Mount, MOUNT_VXFS_1M),
    Row::new("delaylog", Unit::Flag, (0, 0), Mount, MOUNT_VXFS_1M),
    Row::new("tmplog", Unit::Flag, (0, 0), Mount, MOUNT_VXFS_1M),
    Row::new("nolog", Unit::Flag, (0, 0), Mount, MOUNT_VXFS_1M),
    Row::new("nodatainlog", Unit::Flag, (0, 0), Mount, MOUNT_VXFS_1M),
    Row::new("blkclear", Unit::Flag, (0, 0), Mount, MOUNT_VXFS_1M),
    Row::new("mincache", MINCACHE, (0, 0), Mount, MOUNT_VXFS_1M),
    Row::new("convosync", CONVOSYNC, (0, 0), Mount, MOUNT_VXFS_1M),
];

const MOUNT_SAMFS_1M: &str = "mount_samfs(1M)";

/// Options of `mount -F samfs`.
pub const MOUNT_SAMFS: &[Row] = &[
    Row::new("maxcontig", Unit::Blocks, CLUSTER, Own, "mount_samfs(1M), release 3")
        .in_releases(7, 8),
    Row::new("wr_throttle", Unit::Kib, (256, 32_768), Own, "mount_samfs(1M), release 3"),
    Row::new("readahead", Unit::Kib, (0, 16_777_216), Own, "mount_samfs(1M), release 5")
        .in_steps(8)
        .in_releases(9, 10),
    Row::new("writebehind", Unit::Kib, (8, 16_777_216), Own, "mount_samfs(1M), release 5")
        .in_steps(8)
        .in_releases(9, 10),
    Row::new("stripe", Unit::Count, (0, 255), Own, MOUNT_SAMFS_1M),
    Row::new("mm_stripe", Unit::Count, (0, 1), Own, MOUNT_SAMFS_1M),
    Row::new("sync_meta", Unit::Count, (0, 1), Own, MOUNT_SAMFS_1M),
    Row::new("qwrite", Unit::Flag, (0, 0), Own, MOUNT_SAMFS_1M),
    Row::new("noatime", Unit::Flag, (0, 0), Mount, MOUNT_SAMFS_1M),
    Row::new("nosam", Unit::Flag, (0, 0), CHECKED, MOUNT_SAMFS_1M),
    Row::new("forcedirectio", Unit::Flag, (0, 0), Mount, MOUNT_SAMFS_1M),
    Row::new("high", Unit::Percent, (0, 100), CHECKED, MOUNT_SAMFS_1M),
    Row::new("low", Unit::Percent, (0, 100), CHECKED, MOUNT_SAMFS_1M),
];

const VXTUNEFS_1M: &str = "vxtunefs(1M)";
/// Sizes of one I/O.
const IO: (u64, u64) = (512, 1 << 30);

/// Keys of vxtunefs and of /etc/vx/tunefstab.
pub const VXTUNEFS: &[Row] = &[
    Row::new("read_pref_io", Unit::Size, IO, Own, VXTUNEFS_1M).in_steps(512),
    Row::new("read_nstream", Unit::Count, (1, 256), Own, VXTUNEFS_1M),
    Row::new("read_unit_io", Unit::Size, IO, Own, VXTUNEFS_1M).in_steps(512),
    Row::new("read_ahead", Unit::Count, (0, 2), Own, VXTUNEFS_1M),
    Row::new("write_pref_io", Unit::Size, IO, Own, VXTUNEFS_1M).in_steps(512),
    Row::new("write_nstream", Unit::Count, (1, 256), Own, VXTUNEFS_1M),
    Row::new("write_unit_io", Unit::Size, IO, Own, VXTUNEFS_1M).in_steps(512),
    Row::new("pref_strength", Unit::Count, (0, 100), CHECKED, VXTUNEFS_1M),
    Row::new("buf_breakup_size", Unit::Size, IO, Own, VXTUNEFS_1M).in_steps(512),
    Row::new("buf_breakup_sz", Unit::Size, IO, Own, VXTUNEFS_1M).in_steps(512),
    Row::new("max_direct_iosz", Unit::Size, IO, Own, VXTUNEFS_1M).in_steps(512),
    Row::new("discovered_direct_iosz", Unit::Size, (0, 1 << 40), Own, VXTUNEFS_1M),
    Row::new("default_indir_size", Unit::FsBlocks, (1, 32_768), CHECKED, VXTUNEFS_1M),
    Row::new("max_diskq", Unit::Size, (8192, 1 << 40), Own, VXTUNEFS_1M),
    Row::new("initial_extent_size", Unit::FsBlocks, (1, 1 << 20), Own, VXTUNEFS_1M),
    Row::new("max_seqio_extent_size", Unit::FsBlocks, (2048, 1 << 24), Own, VXTUNEFS_1M),
    Row::new("max_buf_data_size", Unit::Size, (8192, 65_536), Own, VXTUNEFS_1M).in_steps(8192),
    Row::new("write_throttle", Unit::Pages, (0, MAXINT), Own, VXTUNEFS_1M),
    Row::new("hsm_write_prealloc", Unit::Count, (0, 1), CHECKED, VXTUNEFS_1M),
    Row::new("qio_cache_enable", Unit::Count, (0, 1), CHECKED, VXTUNEFS_1M),
];

/// Options of sammkfs.
pub const SAMMKFS: &[Row] = &[
    Row::new("-a", Unit::Kib, (8, 65_528), Own, "sammkfs(1M)").in_steps(8),
    Row::new("-i", Unit::Count, (0, MAXINT), CHECKED, "sammkfs(1M)"),
    Row::new("-P", Unit::Flag, (0, 0), ASKED, "sammkfs(1M)"),
    Row::new("-S", Unit::Flag, (0, 0), CHECKED, "sammkfs(1M)"),
    Row::new("-V", Unit::Flag, (0, 0), ASKED, "sammkfs(1M)"),
];

const ZFS_1M: &str = "zfs(1M)";
const ON_OFF: Unit = Unit::Word(&["on", "off"]);
const CACHED: Unit = Unit::Word(&["all", "metadata", "none"]);
const PACKED: Unit = Unit::Word(&["on", "off", "lzjb", "gzip", "zle", "lz4"]);
const SUMS: Unit = Unit::Word(&["on", "off", "fletcher2", "fletcher4", "sha256"]);

/// Properties of ZFS.
pub const ZFS: &[Row] = &[
    Row::new("recordsize", Unit::Size, (512, 1 << 17), Own, ZFS_1M),
    Row::new("atime", ON_OFF, (0, 0), Own, ZFS_1M),
    Row::new("checksum", SUMS, (0, 0), Own, ZFS_1M),
    Row::new("compression", PACKED, (0, 0), Own, ZFS_1M),
    Row::new("primarycache", CACHED, (0, 0), Own, ZFS_1M),
    Row::new("secondarycache", CACHED, (0, 0), Own, ZFS_1M),
    Row::new("logbias", Unit::Word(&["latency", "throughput"]), (0, 0), Own, ZFS_1M),
    Row::new("sync", Unit::Word(&["standard", "always", "disabled"]), (0, 0), Own, ZFS_1M),
    Row::new("mountpoint", Unit::Text, (0, 0), CHECKED, ZFS_1M),
    Row::new("quota", Unit::Text, (0, 0), CHECKED, ZFS_1M),
    Row::new("reservation", Unit::Text, (0, 0), CHECKED, ZFS_1M),
];
