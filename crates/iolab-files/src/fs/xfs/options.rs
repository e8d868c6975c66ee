//! Options of mkfs.xfs and of mount that the model knows.

use crate::api::make::{Kernel, MakeSpec};
use crate::api::options::{FsOption, Values};
use crate::error::FilesError;

use super::geometry::{BLOCK_BYTES, Geometry};

/// Words of mkfs.xfs.
pub const MKFS: &[FsOption] = &[
    FsOption { name: "-f", values: Values::Flag, help: "overwrite what is there: no effect here" },
    FsOption { name: "-K", values: Values::Flag, help: "do not discard: no effect here" },
    FsOption { name: "-q", values: Values::Flag, help: "print nothing: no effect here" },
    FsOption {
        name: "-b size",
        values: Values::Size { min: 4096, max: 4096 },
        help: "size of a block; only 4096 is modelled",
    },
    FsOption {
        name: "-d agcount",
        values: Values::Number { min: 1, max: 1_000_000 },
        help: "number of allocation groups",
    },
    FsOption {
        name: "-d su",
        values: Values::Size { min: 0, max: 1 << 30 },
        help: "unit of a striped volume in bytes",
    },
    FsOption {
        name: "-d sw",
        values: Values::Number { min: 0, max: 1024 },
        help: "units of a stripe with data",
    },
    FsOption {
        name: "-i size",
        values: Values::Size { min: 512, max: 512 },
        help: "size of an inode; only 512 is modelled",
    },
    FsOption {
        name: "-l size",
        values: Values::Size { min: 8 << 20, max: 2 << 30 },
        help: "size of the log",
    },
    FsOption {
        name: "-m crc",
        values: Values::Number { min: 1, max: 1 },
        help: "checksums; only 1 is modelled",
    },
    FsOption {
        name: "-m reflink",
        values: Values::Number { min: 0, max: 1 },
        help: "shared blocks: no effect, for nothing shares any",
    },
];

/// Words of mount.
pub const MOUNT: &[FsOption] = &[
    FsOption { name: "defaults", values: Values::Flag, help: "no effect" },
    FsOption { name: "rw", values: Values::Flag, help: "no effect" },
    FsOption {
        name: "allocsize",
        values: Values::Size { min: 4096, max: 1 << 30 },
        help: "preallocation beyond the end of a growing file, a power of two",
    },
    FsOption { name: "noalign", values: Values::Flag, help: "ignore the unit of the volume" },
    FsOption {
        name: "logbsize",
        values: Values::Size { min: 16 << 10, max: 256 << 10 },
        help: "size of a log buffer",
    },
    FsOption {
        name: "logbufs",
        values: Values::Number { min: 2, max: 8 },
        help: "number of log buffers",
    },
    FsOption { name: "lazytime", values: Values::Flag, help: "times stay in memory" },
    FsOption { name: "noatime", values: Values::Flag, help: "reads change no times" },
    FsOption { name: "nodiratime", values: Values::Flag, help: "no effect" },
    FsOption { name: "relatime", values: Values::Flag, help: "the default" },
    FsOption { name: "nodiscard", values: Values::Flag, help: "the default" },
    FsOption { name: "noquota", values: Values::Flag, help: "the default" },
    FsOption { name: "inode64", values: Values::Flag, help: "the default" },
];

/// Meaning of the options of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Mounted {
    /// Version of the kernel.
    pub kernel: Kernel,
    /// Least preallocation.
    pub least_bytes: u64,
    /// That was given: always that much.
    pub is_least_fixed: bool,
    /// Unit and width of the volume are looked at.
    pub is_aligned: bool,
    /// Size of a log buffer.
    pub log_buffer_bytes: u64,
    /// Times are not logged.
    pub is_lazy: bool,
    /// Reads change no times.
    pub has_no_atime: bool,
}

impl Mounted {
    /// Default size of a preallocation and of a log buffer (Linux `fs/xfs/xfs_mount.h`,
    /// `xfs_log.c`).
    const LEAST: u64 = 64 << 10;
    const BUFFER: u64 = 32 << 10;

    /// Meaning of the options of a file system with this shape.
    pub fn new(spec: &MakeSpec, geometry: &Geometry) -> Result<Self, FilesError> {
        let least = spec.mount.number("allocsize");
        if let Some(bytes) = least.filter(|bytes| !bytes.is_power_of_two()) {
            return Err(FilesError::BadValue {
                file_system: "xfs",
                kind: "mount",
                name: "allocsize",
                value: bytes.to_string(),
                problem: "must be a power of two".into(),
            });
        }
        let buffer = spec.mount.number("logbsize").unwrap_or(Self::BUFFER);
        if !buffer.is_power_of_two() || buffer < BLOCK_BYTES {
            return Err(FilesError::BadValue {
                file_system: "xfs",
                kind: "mount",
                name: "logbsize",
                value: buffer.to_string(),
                problem: "must be 16k, 32k, 64k, 128k or 256k".into(),
            });
        }
        let has = |word| spec.mount.flag(word).is_some();
        Ok(Self {
            kernel: spec.kernel,
            least_bytes: least.unwrap_or(Self::LEAST),
            is_least_fixed: least.is_some(),
            is_aligned: geometry.unit_blocks > 0 && !has("noalign"),
            log_buffer_bytes: buffer,
            is_lazy: has("lazytime"),
            has_no_atime: spec.mount.either("noatime", "relatime") == Some(true),
        })
    }
}
