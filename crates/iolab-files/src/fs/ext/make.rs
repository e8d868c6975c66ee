//! mkfs and mount: from typed options to a file system.

use iolab_model::{Bytes, Ns};

use super::driver::ExtFs;
use super::geometry::Geometry;
use super::mballoc::rules::RulesFor;
use super::mode::{AccessTimes, DataMode, ExtMode};
use super::options::{MKFS, MOUNT_EXT2, MOUNT_EXT3, MOUNT_EXT4, order_from};
use crate::api::file_system::FileSystem;
use crate::api::make::{Kernel, MakeSpec};
use crate::api::options::FsOptions;
use crate::error::FilesError;
use crate::fs::journal::JournalRules;
use crate::fs::list::{FileSystemRow, Home};

/// The row of ext2.
pub const EXT2: FileSystemRow = FileSystemRow {
    name: "ext2",
    title: "no journal; blocks are chosen at write(2)",
    mkfs: MKFS,
    mount: MOUNT_EXT2,
    system: &[],
    home: Home::Linux,
    second_device: None,
    device_queue: None,
    make: |spec| make("ext2", spec),
};

/// The row of ext3.
pub const EXT3: FileSystemRow = FileSystemRow {
    name: "ext3",
    title: "a journal of metadata; blocks are chosen at write(2)",
    mkfs: MKFS,
    mount: MOUNT_EXT3,
    system: &[],
    home: Home::Linux,
    second_device: None,
    device_queue: None,
    make: |spec| make("ext3", spec),
};

/// The row of ext4.
pub const EXT4: FileSystemRow = FileSystemRow {
    name: "ext4",
    title: "a journal of metadata, extents, blocks chosen at write-back",
    mkfs: MKFS,
    mount: MOUNT_EXT4,
    system: &[],
    home: Home::Linux,
    second_device: None,
    device_queue: None,
    make: |spec| make("ext4", spec),
};

/// Last kernels with drivers of their own for ext2 and ext3 (ext3 left in 4.3; ext2 stays, but
/// distributions use the driver of ext4 for it).
const OWN_DRIVER_UNTIL: Kernel = Kernel::new(4, 2);

fn make(name: &'static str, spec: &MakeSpec) -> Result<Box<dyn FileSystem>, FilesError> {
    let device = spec.devices.first().ok_or_else(|| FilesError::Inconsistent {
        subject: name.to_owned(),
        problem: "has no device".into(),
        remedy: "give it one".into(),
    })?;
    if device.bytes > DEVICE_MAX {
        return Err(FilesError::Inconsistent {
            subject: format!("{name} on {}", Bytes(device.bytes)),
            problem: "has more groups than are simulated".into(),
            remedy: format!("use a device of at most {}", Bytes(DEVICE_MAX)),
        });
    }
    let order = order_from(name, &spec.mkfs, device.bytes)?;
    let geometry = Geometry::new(&order).ok_or_else(|| FilesError::Inconsistent {
        subject: format!("{name} on {} MiB", device.bytes >> 20),
        problem: "is too small for its metadata".into(),
        remedy: "use a larger device, or fewer inodes (-N)".into(),
    })?;
    let has_journal = order.journal_blocks > 0;
    refuse_features(name, &spec.mkfs)?;
    let mode = mode(name, spec, order.has_extents, has_journal)?;
    let stripe = spec
        .mount
        .number("stripe")
        .or_else(|| spec.mkfs.number("-E stripe_width"))
        .or_else(|| spec.mkfs.number("-E stride"))
        .unwrap_or_else(|| u64::from(device.io_opt_bytes / order.block_bytes));
    let rules_for = RulesFor {
        kernel: spec.kernel,
        groups: geometry.groups,
        set_groups: geometry.set_groups,
        cpus: u32::from(spec.cpus),
        is_rotational: device.is_rotational,
        stripe: if stripe <= u64::from(geometry.blocks_per_group) { stripe as u32 } else { 0 },
        optimize_scan: spec.mount.number("mb_optimize_scan").map(|value| value == 1),
    };
    let journal = has_journal.then(|| JournalRules {
        block_bytes: order.block_bytes,
        tag_bytes: tag_bytes(order.has_checksums, order.is_64bit),
        has_checksums: order.has_checksums,
        share: if spec.kernel >= Kernel::new(6, 10) { 3 } else { 4 },
        interval: Ns::from_ms(commit_seconds(spec) * 1000),
        has_barriers: mode.has_barriers,
        is_async: spec.mount.flag("journal_async_commit") == Some(true),
    });
    Ok(Box::new(ExtFs::new(mode, geometry, rules_for, journal)))
}

/// Largest device: 2^23 groups of 128 MiB.
const DEVICE_MAX: u64 = 1 << 50;

/// Features that mounts as ext2 and as ext3 do not know (Linux fs/ext4/ext4.h,
/// `EXT3_FEATURE_INCOMPAT_SUPP`, `EXT3_FEATURE_RO_COMPAT_SUPP`).
fn refuse_features(name: &'static str, mkfs: &FsOptions) -> Result<(), FilesError> {
    let newer = ["-O extent", "-O flex_bg", "-O 64bit", "-O metadata_csum", "-O uninit_bg"];
    let found = newer.iter().find(|feature| name != "ext4" && mkfs.flag(feature) == Some(true));
    match found {
        None => Ok(()),
        Some(feature) => Err(FilesError::Inconsistent {
            subject: format!("{name}: {feature}"),
            problem: format!("makes a file system that does not mount as {name}"),
            remedy: "leave it out, or use ext4".into(),
        }),
    }
}

/// Bytes of a tag (`journal_tag_bytes`).
const fn tag_bytes(has_checksums: bool, is_64bit: bool) -> u32 {
    match (has_checksums, is_64bit) {
        (true, _) => 16,
        (false, true) => 12,
        (false, false) => 8,
    }
}

fn mode(
    name: &'static str,
    spec: &MakeSpec,
    has_extents: bool,
    has_journal: bool,
) -> Result<ExtMode, FilesError> {
    let mount = &spec.mount;
    let data = match mount.choice("data") {
        Some("writeback") => DataMode::Writeback,
        Some("journal") => DataMode::Journal,
        _ if !has_journal => DataMode::Writeback,
        _ => DataMode::Ordered,
    };
    // Linux fs/ext4/super.c: a mount without a journal refuses what is about one.
    let about_journal = [
        ("data=", mount.choice("data").is_some()),
        ("commit=", mount.number("commit").is_some_and(|seconds| seconds != 0 && seconds != 5)),
        ("journal_async_commit", mount.flag("journal_async_commit") == Some(true)),
    ];
    if let Some((word, _)) = about_journal.iter().find(|(_, is_there)| *is_there && !has_journal) {
        return Err(FilesError::Inconsistent {
            subject: format!("{name}: {word}"),
            problem: "is about the journal, and there is none".into(),
            remedy: format!("leave one of {word} and -O ^has_journal out"),
        });
    }
    refuse_contradictions(name, mount, data)?;
    let wants_delay = mount.either("delalloc", "nodelalloc").unwrap_or(name == "ext4");
    let is_delayed = wants_delay && data != DataMode::Journal;
    let unwritten = mount.either("dioread_nolock", "dioread_lock");
    let access_times = match (mount.flag("noatime"), mount.flag("strictatime")) {
        (Some(true), _) => AccessTimes::Never,
        (_, Some(true)) => AccessTimes::Always,
        _ => AccessTimes::Relative,
    };
    // Before 3.1 barriers were off in ext3 unless asked for.
    let barriers_by_default = name == "ext4" || spec.kernel >= Kernel::new(3, 1);
    let block_bytes = spec.mkfs.choice("-b");
    Ok(ExtMode {
        name,
        has_extents,
        is_delayed,
        is_unwritten_first: has_extents
            && is_delayed
            && unwritten.unwrap_or(spec.kernel >= Kernel::new(5, 6)),
        data,
        replaces_at_once: mount.either("auto_da_alloc", "noauto_da_alloc").unwrap_or(true)
            && name == "ext4",
        access_times,
        is_lazy: mount.flag("lazytime") == Some(true),
        has_barriers: mount.either("barrier", "nobarrier").unwrap_or(barriers_by_default),
        has_large_folios: spec.kernel >= Kernel::new(6, 16)
            && data != DataMode::Journal
            && block_bytes != Some("1024"),
        shares_direct: spec.kernel >= Kernel::new(5, 5),
        own_driver: name != "ext4" && spec.kernel <= OWN_DRIVER_UNTIL && !has_extents,
        has_windows: mount.either("reservation", "noreservation").unwrap_or(true),
        map_cost: spec.map_cost,
        learns_at: if mount.either("prefetch_block_bitmaps", "no_prefetch_block_bitmaps")
            == Some(false)
        {
            Ns::MAX
        } else {
            LEARNS_AT
        },
    })
}

/// Combinations that the kernel refuses as well (`ext4_check_opt_consistency`).
fn refuse_contradictions(
    name: &'static str,
    mount: &FsOptions,
    data: DataMode,
) -> Result<(), FilesError> {
    let pairs = [
        ("delalloc", DataMode::Journal, "data=journal"),
        ("dioread_nolock", DataMode::Journal, "data=journal"),
        ("journal_async_commit", DataMode::Ordered, "data=ordered"),
    ];
    for (word, mode, text) in pairs {
        if mount.flag(word) == Some(true) && data == mode {
            return Err(FilesError::Inconsistent {
                subject: format!("{name}: {word}"),
                problem: format!("does not go together with {text}"),
                remedy: "leave one of them out".into(),
            });
        }
    }
    Ok(())
}

/// Time after mount at which the kernel's thread has read all bitmaps: it begins after 0 to 5 s
/// (`EXT4_DEF_LI_MAX_START_DELAY`), the mean of which is taken.
const LEARNS_AT: Ns = Ns::from_ms(2_500);

/// Seconds between commits (Linux fs/ext4/super.c: 0 means the usual ones).
fn commit_seconds(spec: &MakeSpec) -> u64 {
    spec.mount.number("commit").filter(|&seconds| seconds > 0).unwrap_or(5)
}
