//! `Geometry`: where groups, inodes and the log lie. Addresses are fragments of 1 KiB.

use crate::api::block::BlockRun;

/// Layout of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Fragments of the device, whole blocks.
    pub fragments: u64,
    /// Blocks of a group.
    pub group_blocks: u64,
    /// Groups; the last one may be shorter.
    pub groups: u32,
    /// Inodes of a group.
    pub group_inodes: u32,
    /// Blocks of metadata at the beginning of a group.
    pub head_blocks: u64,
    /// The log: first fragment, fragments.
    pub log: Option<(u64, u64)>,
}

impl Geometry {
    /// Size of a block.
    pub const BLOCK: u64 = 8192;
    /// Size of a fragment.
    pub const FRAGMENT: u64 = 1024;
    /// Fragments of a block.
    pub const PER_BLOCK: u64 = 8;
    /// Blocks that the inode points at directly (`NDADDR`).
    pub const DIRECT: u64 = 12;
    /// Pointers of an indirect block (`NINDIR`): 4 bytes each.
    pub const POINTERS: u64 = 2048;
    /// Inodes of a block: 128 bytes each.
    pub const INODES_PER_BLOCK: u32 = 64;
    /// Longest file: Solaris 8 and 9 end at 1 TiB, with all three levels of pointers.
    pub const FILE_MAX: u64 = 1 << 40;
    /// Copy of the superblock and the group's own block.
    const FIXED_BLOCKS: u64 = 2;
    /// Boot block and superblock lie before the first group's own.
    const BOOT_BLOCKS: u64 = 2;

    /// The layout of a fresh file system; `None`: there is no room for it.
    pub fn new(bytes: u64, group_bytes: u64, inode_bytes: u64, log_bytes: u64) -> Option<Self> {
        let blocks = bytes / Self::BLOCK;
        let group_blocks = (group_bytes / Self::BLOCK).min(blocks);
        let wanted = (group_blocks * Self::BLOCK / inode_bytes).max(1);
        let per_block = u64::from(Self::INODES_PER_BLOCK);
        let inode_blocks = wanted.div_ceil(per_block);
        let head_blocks = Self::BOOT_BLOCKS + Self::FIXED_BLOCKS + inode_blocks;
        if group_blocks < head_blocks + 8 {
            return None;
        }
        // A rest that would be all metadata belongs to nobody.
        let (whole, rest) = (blocks / group_blocks, blocks % group_blocks);
        let groups = whole + u64::from(rest >= head_blocks + 8);
        let used = if groups > whole { blocks } else { whole * group_blocks };
        let mut geometry = Self {
            fragments: used * Self::PER_BLOCK,
            group_blocks,
            groups: u32::try_from(groups).ok()?,
            group_inodes: u32::try_from(inode_blocks * per_block).ok()?,
            head_blocks,
            log: None,
        };
        if log_bytes > 0 {
            let first = geometry.data_start(0) * Self::PER_BLOCK;
            let fragments = log_bytes / Self::FRAGMENT;
            if log_bytes / Self::BLOCK + 8 > used - geometry.data_start(0) {
                return None;
            }
            geometry.log = Some((first, fragments));
        }
        Some(geometry)
    }

    /// Blocks of the device.
    pub const fn blocks(&self) -> u64 {
        self.fragments / Self::PER_BLOCK
    }

    /// First block of a group.
    pub const fn start(&self, group: u32) -> u64 {
        group as u64 * self.group_blocks
    }

    /// First block of a group behind its metadata.
    pub const fn data_start(&self, group: u32) -> u64 {
        self.start(group) + self.head_blocks
    }

    /// The block after a group's last one.
    pub fn end(&self, group: u32) -> u64 {
        (self.start(group) + self.group_blocks).min(self.blocks())
    }

    /// Group of a block.
    pub const fn group_of(&self, block: u64) -> u32 {
        (block / self.group_blocks) as u32
    }

    /// Group of an inode.
    pub const fn inode_group(&self, inode: u32) -> u32 {
        inode / self.group_inodes
    }

    /// Block that holds an inode.
    pub const fn inode_block(&self, inode: u32) -> BlockRun {
        let group = self.inode_group(inode);
        let within = (inode % self.group_inodes / Self::INODES_PER_BLOCK) as u64;
        let block = self.start(group) + Self::BOOT_BLOCKS + Self::FIXED_BLOCKS + within;
        run_of(block)
    }

    /// Block with the maps of a group.
    pub const fn group_block(&self, group: u32) -> BlockRun {
        run_of(self.start(group) + Self::BOOT_BLOCKS + 1)
    }
}

/// A block as a run of fragments.
pub const fn run_of(block: u64) -> BlockRun {
    BlockRun::new(block * Geometry::PER_BLOCK, Geometry::PER_BLOCK)
}

/// Indirect blocks on the way to a block of a file, outermost first: level and number. The first
/// level maps one stretch of [`Geometry::POINTERS`] blocks, the second as many, and so on.
pub fn indirect_path(block: u64) -> Vec<(u8, u64)> {
    let Some(mut at) = block.checked_sub(Geometry::DIRECT) else { return Vec::new() };
    let mut span = Geometry::POINTERS;
    for depth in 1_u8..=3 {
        if at < span {
            // Keys hold the depth of the tree, so that its levels do not collide.
            return (0..depth)
                .map(|level| {
                    let below = Geometry::POINTERS.pow(u32::from(depth - level));
                    (depth * 4 + level, at / below)
                })
                .collect();
        }
        at -= span;
        span = span.saturating_mul(Geometry::POINTERS);
    }
    Vec::new()
}
