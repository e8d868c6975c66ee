//! Labels that tell whose a device is, at its begin and at its end.
//!
//! Facts only: where a label lies and which bytes it begins with, from the specification or the
//! header that is named in each row. Left out: what the labels say, and labels in between.

use super::content::Ends;

/// From where an offset counts.
#[derive(Clone, Copy, Debug)]
enum Place {
    Begin(u64),
    End(u64),
}

/// A label at one place.
struct Row(&'static str, Place, &'static [u8]);

/// A label that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Name of the format.
    pub name: &'static str,
    /// Offset from the begin of the device.
    pub offset: u64,
}

use Place::{Begin, End};

/// The more telling ones first: a boot sector of FAT or NTFS ends like a partition table.
const ROWS: &[Row] = &[
    // UEFI specification 5.3.2: the header is in block 1, its copy in the last block.
    Row("GPT partition table", Begin(512), b"EFI PART"),
    Row("GPT partition table", Begin(4096), b"EFI PART"),
    Row("GPT partition table (backup)", End(512), b"EFI PART"),
    Row("GPT partition table (backup)", End(4096), b"EFI PART"),
    // Linux fs/ext4/ext4.h: s_magic at 0x38 of the superblock at 1024.
    Row("ext2, ext3 or ext4", Begin(1080), b"\x53\xEF"),
    // Linux fs/xfs/libxfs/xfs_format.h: XFS_SB_MAGIC.
    Row("xfs", Begin(0), b"XFSB"),
    // Linux include/uapi/linux/btrfs_tree.h: BTRFS_MAGIC at 64 of the superblock at 64 KiB.
    Row("btrfs", Begin(65_536 + 64), b"_BHRfS_M"),
    // Linux fs/ntfs3/ntfs.h, exFAT specification 3.1.2, FAT specification (boot sector).
    Row("NTFS", Begin(3), b"NTFS    "),
    Row("exFAT", Begin(3), b"EXFAT   "),
    Row("FAT", Begin(82), b"FAT32   "),
    Row("FAT", Begin(54), b"FAT12   "),
    Row("FAT", Begin(54), b"FAT16   "),
    // Linux include/linux/swap.h: union swap_header, the last 10 bytes of the first page.
    Row("swap", Begin(4096 - 10), b"SWAPSPACE2"),
    Row("swap", Begin(4096 - 10), b"SWAP-SPACE"),
    Row("swap", Begin(65_536 - 10), b"SWAPSPACE2"),
    // LVM2 lib/label/label.h: LABEL_ID in one of the first four sectors.
    Row("LVM physical volume", Begin(0), b"LABELONE"),
    Row("LVM physical volume", Begin(512), b"LABELONE"),
    Row("LVM physical volume", Begin(1024), b"LABELONE"),
    Row("LVM physical volume", Begin(1536), b"LABELONE"),
    // Linux include/uapi/linux/raid/md_p.h: MD_SB_MAGIC; 1.1 at the begin, 1.2 at 4 KiB.
    Row("md RAID member (1.1)", Begin(0), MD),
    Row("md RAID member (1.2)", Begin(4096), MD),
    // LUKS on-disk formats 1 and 2; the second header of LUKS2 lies behind the first.
    Row("LUKS", Begin(0), b"LUKS\xBA\xBE"),
    Row("LUKS2 (second header)", Begin(0x4000), b"SKUL\xBA\xBE"),
    Row("LUKS2 (second header)", Begin(0x8000), b"SKUL\xBA\xBE"),
    Row("LUKS2 (second header)", Begin(0x1_0000), b"SKUL\xBA\xBE"),
    Row("LUKS2 (second header)", Begin(0x2_0000), b"SKUL\xBA\xBE"),
    Row("LUKS2 (second header)", Begin(0x4_0000), b"SKUL\xBA\xBE"),
    Row("LUKS2 (second header)", Begin(0x8_0000), b"SKUL\xBA\xBE"),
    // Linux drivers/md/bcache/util.h and fs/bcachefs/bcachefs_format.h: magic at 24 of 4 KiB.
    Row("bcache", Begin(4096 + 24), b"\xC6\x85\x73\xF6\x4E\x1A\x45\xCA"),
    Row("bcachefs", Begin(4096 + 24), b"\xC6\x85\x73\xF6\x66\xCE\x90\xA9"),
    // Ceph src/os/bluestore/BlueStore.cc: the label's first line.
    Row("Ceph BlueStore", Begin(0), b"bluestore block device"),
    // Linux include/uapi/linux/magic.h and the format header of each.
    Row("f2fs", Begin(1024), b"\x10\x20\xF5\xF2"),
    Row("nilfs2", Begin(1024 + 6), b"\x34\x34"),
    Row("erofs", Begin(1024), b"\xE2\xE1\xF5\xE0"),
    Row("squashfs", Begin(0), b"hsqs"),
    Row("reiserfs", Begin(65_536 + 52), b"ReIsEr"),
    Row("JFS", Begin(32_768), b"JFS1"),
    Row("APFS", Begin(32), b"NXSB"),
    Row("HFS+", Begin(1024), b"H+\x00\x04"),
    Row("ISO 9660", Begin(32_769), b"CD001"),
    Row("Oracle ASM", Begin(32), b"ORCLDISK"),
    // SNIA DDF 2.0: the anchor is the last block. mdadm super-intel.c: two sectors before the end.
    Row("DDF RAID member", End(512), b"\xDE\x11\xDE\x11"),
    Row("Intel RAID member", End(1024), b"Intel Raid ISM Cfg Sig. "),
];

/// After all others: many boot sectors end with these bytes, too (UEFI specification 5.2.1).
const BOOT_SECTOR: Row = Row("MBR partition table", Begin(510), b"\x55\xAA");

/// Linux `include/uapi/linux/raid/md_p.h`: `MD_SB_MAGIC` 0xa92b4efc, little-endian.
const MD: &[u8] = b"\xFC\x4E\x2B\xA9";

/// Every label on a device, the more telling ones first.
pub fn find(ends: &Ends) -> Vec<Found> {
    let mut found = Vec::new();
    for row in ROWS {
        found.extend(look(ends, row));
    }
    found.extend(md_at_end(ends));
    found.extend(zfs(ends));
    if found.is_empty() {
        found.extend(look(ends, &BOOT_SECTOR));
    }
    found.dedup_by_key(|one| one.name);
    found
}

fn look(ends: &Ends, Row(name, place, bytes): &Row) -> Option<Found> {
    let offset = match *place {
        Begin(offset) => offset,
        End(distance) => ends.total_bytes.checked_sub(distance)?,
    };
    (ends.at(offset, bytes.len())? == *bytes).then_some(Found { name, offset })
}

/// Linux drivers/md/md.c: version 0.90 lies in the last whole 64 KiB but one boundary
/// (`MD_NEW_SIZE_SECTORS`), version 1.0 at least 8 KiB before the end, on a 4 KiB boundary.
fn md_at_end(ends: &Ends) -> Vec<Found> {
    let size = ends.total_bytes;
    let old = (size & !0xFFFF).checked_sub(0x1_0000);
    let new = ((size >> 9).checked_sub(16)).map(|sector| (sector & !7) << 9);
    let places = [("md RAID member (0.90)", old), ("md RAID member (1.0)", new)];
    let hit = |(name, offset): (&'static str, Option<u64>)| {
        let offset = offset?;
        (ends.at(offset, MD.len())? == MD).then_some(Found { name, offset })
    };
    places.into_iter().filter_map(hit).collect()
}

/// `OpenZFS` `vdev_impl.h` and `uberblock_impl.h`: four labels of 256 KiB, two at each end
/// (the size rounded down to whole labels); the second half of a label is a ring of uberblocks.
fn zfs(ends: &Ends) -> Option<Found> {
    const LABEL: u64 = 256 << 10;
    const MAGIC: u64 = 0x00BA_B10C;
    let whole = ends.total_bytes / LABEL * LABEL;
    let labels = [Some(0), Some(LABEL), whole.checked_sub(2 * LABEL), whole.checked_sub(LABEL)];
    for label in labels.into_iter().flatten() {
        for slot in 0..128 {
            let offset = label + LABEL / 2 + slot * 1024;
            let Some(word) = ends.at(offset, 8) else { continue };
            let word = u64::from_le_bytes(word.try_into().expect("8 bytes"));
            if word == MAGIC || word.swap_bytes() == MAGIC {
                return Some(Found { name: "ZFS", offset });
            }
        }
    }
    None
}
