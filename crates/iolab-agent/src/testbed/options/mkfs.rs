//! Options for mkfs that a testbed takes: one row each.
//!
//! Sources: mke2fs(8) of e2fsprogs 1.47, mkfs.xfs(8) of xfsprogs 6, mkfs.btrfs(8) of btrfs-progs 6.
//! Sizes of blocks and inodes are powers of two: mke2fs rounds `-b 1025` to 1024 without a word, so
//! that a study would compare a level with itself, and mkfs.btrfs makes nodes of 12 KiB that the
//! kernel does not mount. Bounds are those that the programs name.
//!
//! Left out: whatever names a path or a device (`-d etc`, `-l etc`, `-z`, `-p`, `--rootdir`,
//! `-J device=`, `-l logdev=`), whatever ends without a file system (`-n`, `-N`, `-V`, `-S`), what
//! is ours to set (`-F`, `-f`, `-q`, `-K`, `-U`, `-m uuid=`), tests and other platforms' (`-E
//! offset=`, `-E android_sparse`), and profiles that need several devices.

use super::Form::{
    Features, Flag, Joined, Label, List, Names, Number, Percent, PowerOfTwo, Size, SizeOfTwo, Word,
};
use super::form::SWITCH;
use super::{Form, Row};

const EXT: &[&str] = &["ext2", "ext3", "ext4"];
const XFS: &[&str] = &["xfs"];
const BTRFS: &[&str] = &["btrfs"];
const PROFILES: Form = Word(&["single", "dup"]);

const EXT_FEATURES: &[&str] = &[
    "64bit",
    "bigalloc",
    "casefold",
    "dir_index",
    "dir_nlink",
    "ea_inode",
    "encrypt",
    "ext_attr",
    "extent",
    "extents",
    "extra_isize",
    "fast_commit",
    "filetype",
    "flex_bg",
    "has_journal",
    "huge_file",
    "inline_data",
    "large_dir",
    "large_file",
    "meta_bg",
    "metadata_csum",
    "metadata_csum_seed",
    "mmp",
    "orphan_file",
    "project",
    "quota",
    "resize_inode",
    "sparse_super",
    "sparse_super2",
    "stable_inodes",
    "uninit_bg",
    "uninit_groups",
    "verity",
];

const BTRFS_FEATURES: &[&str] = &[
    "block-group-tree",
    "extref",
    "free-space-tree",
    "mixed-bg",
    "no-holes",
    "quota",
    "raid-stripe-tree",
    "skinny-metadata",
    "squota",
];

const fn row(name: &'static str, fs: &'static [&'static str], form: Form) -> Row {
    Row { name, alias: None, fs, form }
}

const fn btrfs(name: &'static str, alias: &'static str, form: Form) -> Row {
    Row { name, alias: Some(alias), fs: BTRFS, form }
}

const fn sub(name: &'static str, form: Form) -> Row {
    Row { name, alias: None, fs: &[], form }
}

const NUMBER: Form = Number(0, u64::MAX);

/// `mke2fs -E`.
const EXT_EXTENDED: &[Row] = &[
    sub("assume_storage_prezeroed", SWITCH),
    sub("desc_size", PowerOfTwo(32, 1024)),
    sub("desc-size", PowerOfTwo(32, 1024)),
    sub("discard", Flag),
    sub("encoding", Names),
    sub("encoding_flags", Word(&["strict", "no_strict"])),
    sub("lazy_itable_init", SWITCH),
    sub("lazy_journal_init", SWITCH),
    sub("mmp_update_interval", Number(0, 300)),
    sub("no_copy_xattrs", Flag),
    sub("nodiscard", Flag),
    sub("num_backup_sb", Number(0, 2)),
    sub("orphan_file_size", Size),
    sub("packed_meta_blocks", SWITCH),
    sub("quotatype", Joined(&["usrquota", "grpquota", "prjquota"])),
    sub("resize", NUMBER),
    sub("stride", NUMBER),
    sub("stripe-width", NUMBER),
    sub("stripe_width", NUMBER),
];

/// `mke2fs -J`.
const EXT_JOURNAL: &[Row] =
    &[sub("fast_commit_size", NUMBER), sub("location", Size), sub("size", NUMBER)];

/// Sectors of XFS.
const SECTOR: Form = SizeOfTwo(512, 32768);

const XFS_DATA: &[Row] = &[
    sub("agcount", NUMBER),
    sub("agsize", Size),
    sub("concurrency", NUMBER),
    sub("cowextsize", Size),
    sub("daxinherit", SWITCH),
    sub("extszinherit", Size),
    sub("noalign", SWITCH),
    sub("sectsize", SECTOR),
    sub("size", Size),
    sub("su", Size),
    sub("sunit", NUMBER),
    sub("sw", NUMBER),
    sub("swidth", NUMBER),
    sub("unwritten", SWITCH),
];

const XFS_INODE: &[Row] = &[
    sub("align", SWITCH),
    sub("attr", Number(0, 2)),
    sub("exchange", SWITCH),
    sub("maxpct", Number(0, 100)),
    sub("nrext64", SWITCH),
    sub("perblock", PowerOfTwo(2, 128)),
    sub("projid32bit", SWITCH),
    sub("size", SizeOfTwo(256, 2048)),
    sub("sparse", SWITCH),
];

const XFS_LOG: &[Row] = &[
    sub("agnum", NUMBER),
    sub("concurrency", NUMBER),
    sub("internal", SWITCH),
    sub("lazy-count", SWITCH),
    sub("sectsize", SECTOR),
    sub("size", Size),
    sub("su", Size),
    sub("sunit", NUMBER),
    sub("version", Number(1, 2)),
];

const XFS_META: &[Row] = &[
    sub("autofsck", SWITCH),
    sub("bigtime", SWITCH),
    sub("crc", SWITCH),
    sub("finobt", SWITCH),
    sub("inobtcount", SWITCH),
    sub("metadir", SWITCH),
    sub("reflink", SWITCH),
    sub("rmapbt", SWITCH),
];

const XFS_NAMING: &[Row] = &[
    sub("ftype", SWITCH),
    sub("parent", SWITCH),
    sub("size", SizeOfTwo(4096, 65536)),
    sub("version", Word(&["2", "ci"])),
];

const XFS_BLOCK: &[Row] = &[sub("size", SizeOfTwo(512, 65536))];
const XFS_SECTOR: &[Row] = &[sub("size", SECTOR)];

/// Every option.
pub(super) const ROWS: &[Row] = &[
    row("-b", EXT, SizeOfTwo(1024, 65536)),
    row("-C", EXT, SizeOfTwo(2048, 1 << 29)),
    row("-D", EXT, Flag),
    row("-E", EXT, List(EXT_EXTENDED)),
    row("-e", EXT, Word(&["continue", "remount-ro"])),
    row("-G", EXT, PowerOfTwo(1, 1 << 31)),
    row("-g", EXT, NUMBER),
    row("-I", EXT, PowerOfTwo(128, 65536)),
    row("-i", EXT, Number(1024, 64 << 20)),
    row("-J", EXT, List(EXT_JOURNAL)),
    row("-j", EXT, Flag),
    row("-L", EXT, Label),
    row("-m", EXT, Percent),
    row("-N", EXT, NUMBER),
    row("-O", EXT, Features(EXT_FEATURES)),
    row("-T", EXT, Names),
    row("-b", XFS, List(XFS_BLOCK)),
    row("-d", XFS, List(XFS_DATA)),
    row("-i", XFS, List(XFS_INODE)),
    row("-L", XFS, Label),
    row("-l", XFS, List(XFS_LOG)),
    row("-m", XFS, List(XFS_META)),
    row("-n", XFS, List(XFS_NAMING)),
    row("-s", XFS, List(XFS_SECTOR)),
    btrfs("-d", "--data", PROFILES),
    btrfs("-L", "--label", Label),
    btrfs("-M", "--mixed", Flag),
    btrfs("-m", "--metadata", PROFILES),
    btrfs("-n", "--nodesize", SizeOfTwo(4096, 65536)),
    btrfs("-O", "--features", Features(BTRFS_FEATURES)),
    btrfs("-R", "--runtime-features", Features(BTRFS_FEATURES)),
    btrfs("-s", "--sectorsize", SizeOfTwo(2048, 65536)),
    btrfs("--csum", "--checksum", Word(&["crc32c", "xxhash", "sha256", "blake2"])),
];
