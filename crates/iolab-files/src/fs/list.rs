//! The list of file systems: a row for each.

use iolab_model::nearest::did_you_mean;

use crate::api::file_system::FileSystem;
use crate::api::make::MakeSpec;
use crate::api::options::FsOption;
use crate::api::own_cache::DeviceQueue;
use crate::error::FilesError;
use crate::fs::{ext, qfs, ufs, vxfs, xfs, zfs};

/// Kernel that a file system belongs to: its memory, its daemons, its read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Linux.
    Linux,
    /// Solaris.
    Solaris,
}

/// Maker of a file system's own queue.
pub type MakeQueue = fn(&MakeSpec) -> Result<DeviceQueue, FilesError>;

/// Key of a stack for the device of a log.
pub const LOG_DEVICE: &str = "log_device";
/// Key of a stack for the device of metadata.
pub const META_DEVICE: &str = "meta_device";

/// A file system that can be made.
pub struct FileSystemRow {
    /// Name, as in `fs = "ext4"`.
    pub name: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// Options of mkfs that the model knows.
    pub mkfs: &'static [FsOption],
    /// Options of mount that the model knows.
    pub mount: &'static [FsOption],
    /// Variables of the kernel that the model knows (/etc/system).
    pub system: &'static [FsOption],
    /// Machine that it ran on.
    pub home: Home,
    /// Key of a stack for the second device that it can have; none: it has one.
    pub second_device: Option<&'static str>,
    /// The queue of its own in front of each device.
    pub device_queue: Option<MakeQueue>,
    /// Makes and mounts a fresh one.
    pub make: fn(&MakeSpec) -> Result<Box<dyn FileSystem>, FilesError>,
}

/// Every file system, in the order in which they are named.
pub const FILE_SYSTEMS: &[FileSystemRow] = &[
    ext::make::EXT2,
    ext::make::EXT3,
    ext::make::EXT4,
    FileSystemRow {
        name: "xfs",
        title: "allocation groups, blocks chosen at write-back, a log of changes",
        mkfs: xfs::options::MKFS,
        mount: xfs::options::MOUNT,
        system: &[],
        home: Home::Linux,
        second_device: None,
        device_queue: None,
        make: |spec| Ok(Box::new(xfs::Xfs::make(spec)?)),
    },
    FileSystemRow {
        name: "ufs",
        title: "Solaris: clusters of blocks, a throttle for each file, read-ahead for each inode",
        mkfs: ufs::options::MKFS,
        mount: ufs::options::MOUNT,
        system: ufs::options::SYSTEM,
        home: Home::Solaris,
        second_device: Some(LOG_DEVICE),
        device_queue: None,
        make: |spec| Ok(Box::new(ufs::UfsFs::make(spec)?)),
    },
    FileSystemRow {
        name: "vxfs",
        title: "VERITAS on Solaris: extents that grow, parallel read-ahead and flush-behind, a log",
        mkfs: vxfs::options::MKFS,
        mount: vxfs::options::MOUNT,
        system: vxfs::options::SYSTEM,
        home: Home::Solaris,
        second_device: Some(LOG_DEVICE),
        device_queue: None,
        make: |spec| Ok(Box::new(vxfs::VxFs::make(spec)?)),
    },
    FileSystemRow {
        name: "qfs",
        title: "QFS of Sun on Solaris: allocation units, a throttle for each file, metadata apart",
        mkfs: qfs::options::MKFS,
        mount: qfs::options::MOUNT,
        system: &[],
        home: Home::Solaris,
        second_device: Some(META_DEVICE),
        device_queue: None,
        make: |spec| Ok(Box::new(qfs::QfsFs::make(spec)?)),
    },
    FileSystemRow {
        name: "zfs",
        title: "ZFS on Linux: copy on write in transaction groups, a cache and a queue of its own",
        mkfs: zfs::options::MKFS,
        mount: zfs::options::MOUNT,
        system: zfs::options::SYSTEM,
        home: Home::Linux,
        second_device: Some(LOG_DEVICE),
        device_queue: Some(zfs::options::device_queue),
        make: |spec| Ok(Box::new(zfs::Zfs::make(spec)?)),
    },
];

/// The row of a name.
pub fn find(name: &str) -> Result<&'static FileSystemRow, FilesError> {
    FILE_SYSTEMS.iter().find(|row| row.name == name).ok_or_else(|| {
        let known: Vec<&str> = FILE_SYSTEMS.iter().map(|row| row.name).collect();
        FilesError::Inconsistent {
            subject: format!("fs {name:?}"),
            problem: format!("is not simulated{}", did_you_mean(name, known.iter().copied())),
            remedy: format!("known: {}", known.join(", ")),
        }
    })
}
