//! Mount options that a testbed takes: one row each.
//!
//! Sources: Linux Documentation/admin-guide/ext4.rst and xfs.rst,
//! Documentation/filesystems/ext2.rst, btrfs(5), mount(2). Left out: whatever names a path, a
//! device, a subvolume or a quota file, whatever is mount(8)'s own (`X-…`, `helper`, `loop`),
//! read-only mounts, rescue and debugging, options that crash the machine (`errors=panic`,
//! `fatal_errors`), and `suid` and `dev`.

use nix::mount::MsFlags;

use super::Form::{Flag, Leveled, Number, Size, SizeOfTwo, Word};
use super::form::SWITCH;
use super::{Form, Row};

const EXT2: &[&str] = &["ext2"];
const EXT4: &[&str] = &["ext4"];
const EXT34: &[&str] = &["ext3", "ext4"];
const EXT: &[&str] = &["ext2", "ext3", "ext4"];
const XFS: &[&str] = &["xfs"];
const BTRFS: &[&str] = &["btrfs"];
const EXT_AND_XFS: &[&str] = &["ext2", "ext3", "ext4", "xfs"];
const EXT_AND_BTRFS: &[&str] = &["ext2", "ext3", "ext4", "btrfs"];
const EXT34_AND_BTRFS: &[&str] = &["ext3", "ext4", "btrfs"];
const EXT34_AND_XFS: &[&str] = &["ext3", "ext4", "xfs"];
const EXT34_XFS_BTRFS: &[&str] = &["ext3", "ext4", "xfs", "btrfs"];

/// An option that is no text for the file system but a flag of mount(2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Generic {
    pub name: &'static str,
    pub set: MsFlags,
    pub cleared: MsFlags,
}

const fn on(name: &'static str, set: MsFlags) -> Generic {
    Generic { name, set, cleared: MsFlags::empty() }
}

const fn off(name: &'static str, cleared: MsFlags) -> Generic {
    Generic { name, set: MsFlags::empty(), cleared }
}

/// For every file system.
pub(super) const GENERIC: &[Generic] = &[
    off("defaults", MsFlags::empty()),
    off("rw", MsFlags::MS_RDONLY),
    on("noatime", MsFlags::MS_NOATIME),
    off("atime", MsFlags::MS_NOATIME),
    on("nodiratime", MsFlags::MS_NODIRATIME),
    off("diratime", MsFlags::MS_NODIRATIME),
    on("relatime", MsFlags::MS_RELATIME),
    off("norelatime", MsFlags::MS_RELATIME),
    on("strictatime", MsFlags::MS_STRICTATIME),
    off("nostrictatime", MsFlags::MS_STRICTATIME),
    on("lazytime", MsFlags::MS_LAZYTIME),
    off("nolazytime", MsFlags::MS_LAZYTIME),
    on("sync", MsFlags::MS_SYNCHRONOUS),
    off("async", MsFlags::MS_SYNCHRONOUS),
    on("dirsync", MsFlags::MS_DIRSYNC),
    on("nodev", MsFlags::MS_NODEV),
    on("nosuid", MsFlags::MS_NOSUID),
    on("noexec", MsFlags::MS_NOEXEC),
    off("exec", MsFlags::MS_NOEXEC),
];

/// Options that mount(8) has and no testbed takes, and why.
pub(super) const NEVER: &[(&str, &str)] = &[
    ("ro", "trials write files"),
    ("dev", "device nodes on a testbed open nothing"),
    ("suid", "programs on a testbed run without rights of their own"),
    ("bind", "only its own device is mounted there"),
    ("loop", "its device is there already"),
    ("offset", "its device is there already"),
    ("remount", "it is mounted anew where options change"),
];

const fn row(name: &'static str, fs: &'static [&'static str], form: Form) -> Row {
    Row { name, alias: None, fs, form }
}

/// Texts for the file systems.
pub(super) const ROWS: &[Row] = &[
    row("acl", EXT_AND_BTRFS, Flag),
    row("noacl", EXT_AND_BTRFS, Flag),
    row("allocsize", XFS, SizeOfTwo(4096, 1 << 30)),
    row("auto_da_alloc", EXT4, SWITCH),
    row("noauto_da_alloc", EXT4, Flag),
    row("autodefrag", BTRFS, Flag),
    row("noautodefrag", BTRFS, Flag),
    row("barrier", EXT34, SWITCH),
    row("barrier", BTRFS, Flag),
    row("nobarrier", EXT34_AND_BTRFS, Flag),
    row("block_validity", EXT4, Flag),
    row("noblock_validity", EXT4, Flag),
    row("bsddf", EXT, Flag),
    row("minixdf", EXT, Flag),
    row("commit", EXT34_AND_BTRFS, Number(0, 3600)),
    row("compress", BTRFS, Leveled(&["no", "none", "zlib", "lzo", "zstd"])),
    row("compress-force", BTRFS, Leveled(&["no", "none", "zlib", "lzo", "zstd"])),
    row("data", EXT34, Word(&["journal", "ordered", "writeback"])),
    row("data_err", EXT34, Word(&["ignore", "abort"])),
    row("datacow", BTRFS, Flag),
    row("nodatacow", BTRFS, Flag),
    row("datasum", BTRFS, Flag),
    row("nodatasum", BTRFS, Flag),
    row("dax", EXT34_AND_XFS, Word(&["always", "never", "inode"])),
    row("delalloc", EXT4, Flag),
    row("nodelalloc", EXT4, Flag),
    row("dioread_lock", EXT4, Flag),
    row("dioread_nolock", EXT4, Flag),
    row("discard", EXT34_AND_XFS, Flag),
    row("discard", BTRFS, Form::Perhaps(&Word(&["sync", "async"]))),
    row("nodiscard", EXT34_XFS_BTRFS, Flag),
    row("enospc_debug", BTRFS, Flag),
    row("noenospc_debug", BTRFS, Flag),
    row("errors", EXT, Word(&["continue", "remount-ro"])),
    row("filestreams", XFS, Flag),
    row("flushoncommit", BTRFS, Flag),
    row("noflushoncommit", BTRFS, Flag),
    row("grpid", EXT_AND_XFS, Flag),
    row("bsdgroups", EXT_AND_XFS, Flag),
    row("nogrpid", EXT_AND_XFS, Flag),
    row("sysvgroups", EXT_AND_XFS, Flag),
    row("ikeep", XFS, Flag),
    row("noikeep", XFS, Flag),
    row("init_itable", EXT4, Form::Perhaps(&Number(0, 1000))),
    row("noinit_itable", EXT4, Flag),
    row("inode32", XFS, Flag),
    row("inode64", XFS, Flag),
    row("inode_readahead_blks", EXT4, Number(0, 1 << 30)),
    row("journal_async_commit", EXT4, Flag),
    row("journal_checksum", EXT4, Flag),
    row("nojournal_checksum", EXT4, Flag),
    row("journal_ioprio", EXT34, Number(0, 7)),
    row("largeio", XFS, Flag),
    row("nolargeio", XFS, Flag),
    row("lifetime", XFS, Flag),
    row("nolifetime", XFS, Flag),
    row("logbsize", XFS, SizeOfTwo(16 << 10, 256 << 10)),
    row("logbufs", XFS, Number(2, 8)),
    row("max_atomic_write", XFS, Size),
    row("max_batch_time", EXT34, Number(0, 10_000_000)),
    row("min_batch_time", EXT34, Number(0, 10_000_000)),
    row("max_dir_size_kb", EXT, Number(0, 1 << 30)),
    row("max_inline", BTRFS, Size),
    row("mb_optimize_scan", EXT4, Number(0, 1)),
    row("metadata_ratio", BTRFS, Number(0, 1000)),
    row("no_mbcache", EXT, Flag),
    row("nombcache", EXT, Flag),
    row("noalign", XFS, Flag),
    row("nouid32", EXT, Flag),
    row("prefetch_block_bitmaps", EXT4, Flag),
    row("no_prefetch_block_bitmaps", EXT4, Flag),
    row("quota", EXT_AND_XFS, Flag),
    row("noquota", EXT_AND_XFS, Flag),
    row("usrquota", EXT_AND_XFS, Flag),
    row("uquota", XFS, Flag),
    row("uqnoenforce", XFS, Flag),
    row("qnoenforce", XFS, Flag),
    row("grpquota", EXT_AND_XFS, Flag),
    row("gquota", XFS, Flag),
    row("gqnoenforce", XFS, Flag),
    row("prjquota", EXT_AND_XFS, Flag),
    row("pquota", XFS, Flag),
    row("pqnoenforce", XFS, Flag),
    row("reservation", EXT2, Flag),
    row("noreservation", EXT2, Flag),
    row("resgid", EXT, Number(0, u32::MAX as u64)),
    row("resuid", EXT, Number(0, u32::MAX as u64)),
    row("space_cache", BTRFS, Form::Perhaps(&Word(&["v1", "v2"]))),
    row("nospace_cache", BTRFS, Flag),
    row("ssd", BTRFS, Flag),
    row("nossd", BTRFS, Flag),
    row("ssd_spread", BTRFS, Flag),
    row("nossd_spread", BTRFS, Flag),
    row("stripe", EXT4, Number(0, 1 << 30)),
    row("sunit", XFS, Number(0, 1 << 30)),
    row("swidth", XFS, Number(0, 1 << 30)),
    row("swalloc", XFS, Flag),
    row("thread_pool", BTRFS, Number(1, 1024)),
    row("treelog", BTRFS, Flag),
    row("notreelog", BTRFS, Flag),
    row("user_xattr", EXT, Flag),
    row("nouser_xattr", EXT, Flag),
    row("wsync", XFS, Flag),
];
