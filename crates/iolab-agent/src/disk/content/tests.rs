use super::*;

const SIZE: u64 = 96 << 20;

fn blank() -> Ends {
    let edge = EDGE_BYTES as usize;
    Ends { total_bytes: SIZE, begin: vec![0; edge], end: vec![0; edge] }
}

fn with(offset: u64, bytes: &[u8]) -> Ends {
    let mut ends = blank();
    let start = SIZE - EDGE_BYTES;
    let (side, place) =
        if offset >= start { (&mut ends.end, offset - start) } else { (&mut ends.begin, offset) };
    side[place as usize..place as usize + bytes.len()].copy_from_slice(bytes);
    ends
}

fn names(ends: &Ends) -> Vec<&'static str> {
    match verdict(ends) {
        Verdict::Labels(found) => found.iter().map(|one| one.name).collect(),
        other => panic!("{other:?}"),
    }
}

/// The offsets are those of the formats, written by hand (sources are in `signature.rs`).
#[test]
fn labels_are_found_at_both_ends() {
    let md = b"\xFC\x4E\x2B\xA9";
    let uberblock = 0x00BA_B10C_u64.to_le_bytes();
    let swapped = 0x00BA_B10C_u64.to_be_bytes();
    let bcache = b"\xC6\x85\x73\xF6\x4E\x1A\x45\xCA\x82\x65\xF5\x7F\x48\xBA\x6D\x81";
    let cases: &[(&str, u64, &[u8])] = &[
        ("GPT", 512, b"EFI PART"),
        ("GPT partition table (backup)", SIZE - 512, b"EFI PART"),
        ("GPT partition table (backup)", SIZE - 4096, b"EFI PART"),
        ("MBR", 510, b"\x55\xAA"),
        ("ext2, ext3 or ext4", 1024 + 0x38, b"\x53\xEF"),
        ("xfs", 0, b"XFSB"),
        ("btrfs", 0x1_0040, b"_BHRfS_M"),
        ("NTFS", 3, b"NTFS    "),
        ("FAT", 82, b"FAT32   "),
        ("FAT", 54, b"FAT16   "),
        ("swap", 4086, b"SWAPSPACE2"),
        ("LVM", 512, b"LABELONE"),
        ("md RAID member (0.90)", SIZE - 65_536, md),
        ("md RAID member (1.0)", SIZE - 8192, md),
        ("md RAID member (1.1)", 0, md),
        ("md RAID member (1.2)", 4096, md),
        ("LUKS", 0, b"LUKS\xBA\xBE\x00\x01"),
        ("LUKS", 0, b"LUKS\xBA\xBE\x00\x02"),
        ("LUKS2 (second header)", 0x4000, b"SKUL\xBA\xBE"),
        ("ZFS", 128 << 10, &uberblock),
        ("ZFS", (384 << 10) + 5 * 1024, &swapped),
        ("ZFS", SIZE - (384 << 10), &uberblock),
        ("ZFS", SIZE - (128 << 10), &uberblock),
        ("bcache", 4096 + 24, bcache),
        ("Ceph BlueStore", 0, b"bluestore block device\n"),
        ("Intel RAID", SIZE - 1024, b"Intel Raid ISM Cfg Sig. "),
    ];
    for (name, offset, bytes) in cases {
        let found = names(&with(*offset, bytes));
        assert!(found.iter().any(|one| one.starts_with(name)), "{name} at {offset}: {found:?}");
    }
}

#[test]
fn places_that_depend_on_an_odd_size_are_computed() {
    let mut ends = blank();
    ends.total_bytes = SIZE + 3 * 512;
    let start = ends.total_bytes - EDGE_BYTES;
    let old = (ends.total_bytes & !0xFFFF) - 0x1_0000 - start;
    ends.end[old as usize..old as usize + 4].copy_from_slice(b"\xFC\x4E\x2B\xA9");
    assert_eq!(names(&ends), ["md RAID member (0.90)"]);
}

#[test]
fn only_zeros_and_our_marker_count_as_nothing() {
    assert_eq!(verdict(&blank()), Verdict::Blank);
    assert_eq!(verdict(&with(700_000, b"x")), Verdict::Data(700_000));
    assert_eq!(verdict(&with(SIZE - 1, b"x")), Verdict::Data(SIZE - 1));
    let marker = Marker::new("S1", SIZE, 1_000, "run-1");
    let ours = with(0, &marker.to_bytes());
    assert_eq!(verdict(&ours), Verdict::Marked(marker));
    let mut with_more = ours.clone();
    with_more.begin[Marker::BYTES] = 1;
    assert_eq!(verdict(&with_more), Verdict::Data(Marker::BYTES as u64));
    let mut with_label = ours;
    with_label.begin[1080..1082].copy_from_slice(b"\x53\xEF");
    assert_eq!(names(&with_label), ["ext2, ext3 or ext4"]);
}

#[test]
fn the_command_blanks_both_ends() {
    let command = wipe_command("/dev/sdx", 10 << 20);
    assert!(command.starts_with("wipefs -a /dev/sdx && dd "), "{command}");
    assert!(command.contains("seek=9437184 oflag=seek_bytes"), "{command}");
}
