//! `Geometry`: the shape that mkfs.xfs gives a device.
//!
//! Sources: mkfs.xfs 6.1 (`mkfs/xfs_mkfs.c`, libxfs/topology.c), checked against what it prints and
//! what `xfs_db` shows of a fresh file system.

use crate::api::make::MakeSpec;
use crate::error::FilesError;

/// Bytes of a block; other sizes are refused.
pub const BLOCK_BYTES: u64 = 4096;
/// Bytes of an inode.
pub const INODE_BYTES: u64 = 512;
/// Inodes of a chunk.
pub const CHUNK_INODES: u32 = 64;
/// Blocks of a chunk.
pub const CHUNK_BLOCKS: u32 = (CHUNK_INODES as u64 * INODE_BYTES / BLOCK_BYTES) as u32;
/// Inodes of a block.
pub const BLOCK_INODES: u32 = (BLOCK_BYTES / INODE_BYTES) as u32;
/// First blocks of a group: its four headers share one, then the roots of five trees.
pub const HEADER_BLOCKS: u32 = 6;
/// Blocks that mkfs puts into each group's list.
pub const LIST_BLOCKS: u32 = 4;

/// Least size that mkfs.xfs accepts.
const DEVICE_BYTES_MIN: u64 = 300 << 20;
/// Largest group: 1 TiB less a block.
const GROUP_BLOCKS_MAX: u64 = (1 << 28) - 1;
/// Smallest group: 16 MiB.
const GROUP_BLOCKS_MIN: u64 = 4096;
/// Devices from here on have one group per 1 TiB.
const LARGE_BYTES: u64 = 4 << 40;
const LOG_BYTES_MIN: u64 = 64 << 20;
/// Largest log that mkfs.xfs chooses, 2038 MiB.
const LOG_BLOCKS_MAX: u64 = 521_728;

/// Shape of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Blocks of the device.
    pub blocks: u64,
    /// Number of groups.
    pub groups: u32,
    /// Blocks of a group; the last one may have fewer.
    pub group_blocks: u32,
    /// Group that holds the log.
    pub log_group: u32,
    /// First block of the log in its group.
    pub log_first: u32,
    /// Blocks of the log.
    pub log_blocks: u32,
    /// Unit of a striped volume in blocks; 0: none.
    pub unit_blocks: u32,
    /// Width of a striped volume in blocks; 0: none.
    pub width_blocks: u32,
}

impl Geometry {
    /// Geometry of a device with these options.
    pub fn new(spec: &MakeSpec) -> Result<Self, FilesError> {
        let refuse = |problem: String, remedy: &str| FilesError::Inconsistent {
            subject: "xfs".into(),
            problem,
            remedy: remedy.into(),
        };
        let device = spec
            .devices
            .first()
            .ok_or_else(|| refuse("has no device".into(), "give the file system one"))?;
        if device.bytes < DEVICE_BYTES_MIN {
            return Err(refuse(
                format!("a device of {} MiB is too small", device.bytes >> 20),
                "mkfs.xfs asks for 300 MiB",
            ));
        }
        let blocks = device.bytes / BLOCK_BYTES;
        let (unit, width) = stripe(spec)?;
        let (groups, group_blocks) = groups(spec, blocks, unit, width)?;
        let blocks = blocks.min(u64::from(groups) * u64::from(group_blocks));
        let log_blocks = spec
            .mkfs
            .number("-l size")
            .map_or_else(|| default_log(blocks, group_blocks), |bytes| bytes / BLOCK_BYTES)
            .next_multiple_of(u64::from(unit.max(1)));
        if log_blocks + u64::from(HEADER_BLOCKS + LIST_BLOCKS) >= u64::from(group_blocks) {
            return Err(refuse(
                format!("a log of {log_blocks} blocks does not fit into a group of {group_blocks}"),
                "choose fewer groups or a smaller log",
            ));
        }
        Ok(Self {
            blocks,
            groups,
            group_blocks,
            log_group: groups / 2,
            log_first: if unit > 0 { HEADER_BLOCKS.next_multiple_of(unit) } else { HEADER_BLOCKS },
            log_blocks: log_blocks as u32,
            unit_blocks: unit,
            width_blocks: width,
        })
    }

    /// Blocks of a group.
    pub fn blocks_of(&self, group: u32) -> u32 {
        let before = u64::from(group) * u64::from(self.group_blocks);
        (self.blocks - before).min(u64::from(self.group_blocks)) as u32
    }

    /// Block of the device for a block of a group.
    pub fn block(&self, group: u32, block: u32) -> u64 {
        u64::from(group) * u64::from(self.group_blocks) + u64::from(block)
    }

    /// Group and block in it for a block of the device.
    pub fn place(&self, block: u64) -> (u32, u32) {
        let size = u64::from(self.group_blocks);
        ((block / size) as u32, (block % size) as u32)
    }

    /// Bytes of the log.
    pub fn log_bytes(&self) -> u64 {
        u64::from(self.log_blocks) * BLOCK_BYTES
    }
}

/// Unit and width of a striped volume in blocks: as typed, else what the device says.
fn stripe(spec: &MakeSpec) -> Result<(u32, u32), FilesError> {
    let refuse = |problem: &str| FilesError::Inconsistent {
        subject: "xfs: mkfs".into(),
        problem: problem.into(),
        remedy: "give both, as in -d su=64k,sw=4".into(),
    };
    let device = spec.devices.first().copied();
    let typed = (spec.mkfs.number("-d su"), spec.mkfs.number("-d sw"));
    let (unit, width) = match typed {
        (Some(unit), Some(wide)) => (unit, unit * wide),
        (None, None) => device.map_or((0, 0), |device| {
            (u64::from(device.io_min_bytes), u64::from(device.io_opt_bytes))
        }),
        _ => return Err(refuse("su and sw belong together")),
    };
    let is_useful = unit >= BLOCK_BYTES && width > unit && width % unit == 0;
    match (is_useful && unit % BLOCK_BYTES == 0, typed.0) {
        (true, _) => Ok(((unit / BLOCK_BYTES) as u32, (width / BLOCK_BYTES) as u32)),
        (false, Some(unit)) if unit % BLOCK_BYTES != 0 => {
            Err(refuse("su must be a multiple of the block"))
        }
        _ => Ok((0, 0)),
    }
}

/// Number of groups and blocks of each.
fn groups(spec: &MakeSpec, blocks: u64, unit: u32, width: u32) -> Result<(u32, u32), FilesError> {
    let bytes = blocks * BLOCK_BYTES;
    let count = match spec.mkfs.number("-d agcount") {
        Some(count) => count,
        None if bytes >= LARGE_BYTES => {
            // A last group that would be too small is left out.
            let rest = blocks % GROUP_BLOCKS_MAX;
            let count = blocks / GROUP_BLOCKS_MAX + u64::from(rest >= GROUP_BLOCKS_MIN);
            return Ok((count as u32, GROUP_BLOCKS_MAX as u32));
        }
        // A striped volume gets more groups: its members can work at once.
        None if unit > 0 => multidisk_groups(blocks),
        None => 4,
    };
    let mut size = blocks.div_ceil(count.max(1));
    if unit > 0 {
        let unit = u64::from(unit);
        size -= size % unit;
        // A group as long as whole stripes would put all headers on one member.
        if width > 0 && size % u64::from(width) == 0 {
            size -= unit;
        }
    }
    let count = if unit == 0 { blocks.div_ceil(size) } else { count };
    if count == 0 || !(GROUP_BLOCKS_MIN..=GROUP_BLOCKS_MAX).contains(&size) {
        return Err(FilesError::Inconsistent {
            subject: "xfs: mkfs option -d agcount".into(),
            problem: format!("gives groups of {size} blocks"),
            remedy: "a group has 16 MiB to 1 TiB".into(),
        });
    }
    Ok((count as u32, size as u32))
}

/// Groups of a striped volume (`calc_default_ag_geometry`: a shift by size).
fn multidisk_groups(blocks: u64) -> u64 {
    let bytes = blocks * BLOCK_BYTES;
    let shift = match bytes {
        size if size > 512 << 30 => 5,
        size if size > 8 << 30 => 4,
        _ => 3,
    };
    1 << shift
}

/// Size of the internal log in blocks: a 2048th of the device, 64 MiB to 2 GiB.
fn default_log(blocks: u64, group_blocks: u32) -> u64 {
    let wanted = (blocks * BLOCK_BYTES / 2048).max(LOG_BYTES_MIN) / BLOCK_BYTES;
    wanted
        .min(LOG_BLOCKS_MAX)
        .min(u64::from(group_blocks) - u64::from(HEADER_BLOCKS + LIST_BLOCKS) - 1)
}
