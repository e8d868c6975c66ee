//! Options of mkfs and mount that the models of ext2, ext3 and ext4 know, and their defaults.
//!
//! Source: mke2fs(8) and `mke2fs.conf` of e2fsprogs 1.47; Linux fs/ext4/super.c.

use super::geometry::MkfsOrder;
use crate::api::options::{FsOption, FsOptions, choice, flag, number, switch};
use crate::error::FilesError;

/// Options of mkfs.ext2, mkfs.ext3 and mkfs.ext4.
pub const MKFS: &[FsOption] = &[
    choice("-b", &["1024", "2048", "4096"], "size of a block in bytes"),
    number("-i", 1024, 1 << 26, "bytes of the device for each inode"),
    number("-N", 16, (1 << 32) - 1, "number of inodes"),
    choice("-I", &["128", "256", "512", "1024"], "size of an inode in bytes"),
    number("-G", 1, 1 << 16, "groups whose metadata lie together, a power of two"),
    number("-J size", 1, 1 << 20, "size of the journal in MiB"),
    number("-E stride", 0, 1 << 20, "blocks of a chunk of the RAID volume below"),
    number("-E stripe_width", 0, 1 << 20, "blocks of a stripe of the RAID volume below"),
    flag("-E nodiscard", "no discard of the device before; simulated devices are empty"),
    number("-E lazy_itable_init", 0, 1, "1: inode tables are zeroed later; no I/O is modelled"),
    number("-E lazy_journal_init", 0, 1, "1: the journal is not zeroed; no I/O is modelled"),
    flag("-O has_journal", "a journal"),
    flag("-O extent", "files are mapped by extents"),
    flag("-O flex_bg", "metadata of several groups lie together"),
    flag("-O 64bit", "descriptors of 64 bytes"),
    flag("-O metadata_csum", "checksums of metadata; untouched bitmaps are not read"),
    flag("-O uninit_bg", "untouched bitmaps are not read"),
    flag("-O resize_inode", "descriptors are reserved for growth"),
    flag("-O sparse_super", "copies of the superblock in few groups"),
    flag("-F", "no questions"),
    flag("-q", "no output"),
    number("-m", 0, 50, "percent of blocks for root alone; iolab is root"),
];

/// Options of mount that all three know.
const COMMON: [FsOption; 8] = [
    flag("noatime", "reading changes no inode"),
    flag("relatime", "reading changes an inode that was changed after the last such change"),
    flag("strictatime", "every read changes the inode"),
    flag("nodiratime", "listing changes no inode"),
    flag("lazytime", "times are written with something else or after a day"),
    flag("nodiscard", "freed blocks are not discarded"),
    flag("rw", "writable"),
    flag("defaults", "nothing special"),
];

/// Options of mount that a file system with a journal knows.
const JOURNAL: [FsOption; 5] = [
    choice("data", &["ordered", "writeback", "journal"], "what a transaction says about data"),
    number("commit", 0, 3600, "seconds between commits; 0 is 5"),
    switch("barrier", "the journal flushes the device's cache"),
    flag("nobarrier", "the journal never flushes the device's cache"),
    flag("journal_async_commit", "the commit block does not wait for the others"),
];

/// Options of mount of ext2.
pub const MOUNT_EXT2: &[FsOption] = &join::<8, 2, 10>(
    &COMMON,
    &[
        flag("reservation", "windows against fragments (kernels before 4.3 alone)"),
        flag("noreservation", "no such windows"),
    ],
);

/// Options of mount of ext3.
pub const MOUNT_EXT3: &[FsOption] = &join::<10, 5, 15>(
    &join::<8, 2, 10>(
        &COMMON,
        &[
            flag("reservation", "windows against fragments (kernels before 4.3 alone)"),
            flag("noreservation", "no such windows"),
        ],
    ),
    &JOURNAL,
);

/// Options of mount of ext4.
pub const MOUNT_EXT4: &[FsOption] = &join::<13, 10, 23>(
    &join::<8, 5, 13>(&COMMON, &JOURNAL),
    &[
        flag("delalloc", "blocks are chosen at write-back"),
        flag("nodelalloc", "blocks are chosen at write(2)"),
        switch("auto_da_alloc", "a file that replaces another is written at close or rename"),
        flag("noauto_da_alloc", "such a file is written like others"),
        flag("dioread_nolock", "new blocks are unwritten until the data are there"),
        flag("dioread_lock", "new blocks count as written at once"),
        number("stripe", 0, 1 << 20, "blocks of a stripe of the RAID volume below"),
        number("mb_optimize_scan", 0, 1, "groups are found in lists"),
        flag("prefetch_block_bitmaps", "bitmaps are read soon after mount"),
        flag("no_prefetch_block_bitmaps", "bitmaps are read when they are needed"),
    ],
);

const fn join<const A: usize, const B: usize, const N: usize>(
    first: &[FsOption; A],
    second: &[FsOption; B],
) -> [FsOption; N] {
    let mut all = [flag("", ""); N];
    let mut at = 0;
    while at < N {
        all[at] = if at < A { first[at] } else { second[at - A] };
        at += 1;
    }
    all
}

/// Size below which mke2fs takes blocks of 1 KiB (`mke2fs.conf`: `small`).
const SMALL_BYTES: u64 = 512 << 20;
/// Sizes from which it makes fewer inodes (`big`, `huge`).
const BIG_BYTES: u64 = 4 << 40;
const HUGE_BYTES: u64 = 16 << 40;

/// The order for mkfs that typed options give on a device of this size.
pub fn order_from(
    name: &'static str,
    options: &FsOptions,
    bytes: u64,
) -> Result<MkfsOrder, FilesError> {
    let is_ext4 = name == "ext4";
    let word = |option| options.choice(option).and_then(|text| text.parse::<u32>().ok());
    let feature = |option, default| options.flag(option).unwrap_or(default);
    let is_small = bytes < SMALL_BYTES;
    let block_bytes = word("-b").unwrap_or(if is_small { 1024 } else { 4096 });
    let blocks = bytes / u64::from(block_bytes);
    let ratio = match bytes {
        _ if is_small => 4096,
        HUGE_BYTES.. => 65536,
        BIG_BYTES.. => 32768,
        _ => 16384,
    };
    let ratio = options.number("-i").unwrap_or(ratio).max(u64::from(block_bytes));
    let has_checksums = feature("-O metadata_csum", is_ext4) || feature("-O uninit_bg", false);
    let set_groups = match options.number("-G") {
        Some(groups) if groups.is_power_of_two() => groups as u32,
        Some(groups) => return Err(bad(name, "-G", groups, "must be a power of two")),
        None => 16,
    };
    let has_journal = feature("-O has_journal", name != "ext2");
    if let Some(mib) = options.number("-J size").filter(|_| !has_journal) {
        return Err(bad(name, "-J size", mib, "there is no journal (-O has_journal makes one)"));
    }
    let journal_blocks = match options.number("-J size") {
        _ if !has_journal => 0,
        Some(mib) => (mib << 20) / u64::from(block_bytes),
        None => journal_blocks(blocks),
    };
    // Linux fs/jbd2/journal.c: JBD2_MIN_JOURNAL_BLOCKS.
    if journal_blocks != 0 && (journal_blocks < 1024 || journal_blocks > blocks / 2) {
        return Err(FilesError::Inconsistent {
            subject: format!("{name} on {} MiB", bytes >> 20),
            problem: format!("a journal of {journal_blocks} blocks does not fit"),
            remedy: "give -J size=MIB (1024 blocks at least, half the device at most)".into(),
        });
    }
    let inodes = options.number("-N").unwrap_or(blocks * u64::from(block_bytes) / ratio);
    let inode_bytes = word("-I").unwrap_or(256);
    if inodes * u64::from(inode_bytes) >= bytes {
        return Err(bad(name, "-N", inodes, "so many inodes are larger than the device"));
    }
    Ok(MkfsOrder {
        block_bytes,
        blocks,
        inodes,
        inode_bytes,
        has_extents: feature("-O extent", is_ext4),
        is_64bit: feature("-O 64bit", is_ext4),
        has_checksums,
        can_grow: feature("-O resize_inode", true),
        has_few_copies: feature("-O sparse_super", true),
        set_groups: if feature("-O flex_bg", is_ext4) { set_groups } else { 1 },
        journal_blocks,
    })
}

/// Blocks of a journal by default (`ext2fs_default_journal_size`).
const fn journal_blocks(blocks: u64) -> u64 {
    const K: u64 = 1024;
    match blocks / K {
        0..2 => 0,
        2..32 => K,
        32..256 => 4 * K,
        256..512 => 8 * K,
        512..4096 => 16 * K,
        4096..8192 => 32 * K,
        8192..16384 => 64 * K,
        16384..32768 => 128 * K,
        _ => 256 * K,
    }
}

fn bad(file_system: &'static str, name: &'static str, value: u64, problem: &str) -> FilesError {
    FilesError::BadValue {
        file_system,
        kind: "mkfs",
        name,
        value: value.to_string(),
        problem: problem.to_owned(),
    }
}
