"""Rules of tuning: every number that is printed, against one that was computed by hand.

Published ones: D3 (an article on file systems of Solaris) has 7 data disks of 128 KiB each, so 896
KiB: ``newfs -C 112``, ``read_pref_io=128k`` with ``read_nstream=7``, ``vol_maxio`` in 512-byte
units, and for 1 GiB of memory ufs_HW 16777216 and ufs_LW 8388608, wr_throttle 16384.
"""

from fractions import Fraction

import pytest

from iolab.advise import FILE_SYSTEMS
from iolab.advise.advice import RULES
from iolab.advise.common import degraded_reads, small_write
from iolab.advise.request import (
    GIB,
    KIB,
    MIB,
    RAID_LEVELS,
    RandomRequest,
    StripeRequest,
    find_level,
    stripe_request,
)
from iolab.advise.zfs import allocated_sectors
from iolab.errors import IolabError

ROWS = {row.name: row for row in FILE_SYSTEMS}


def lines(fs, level="5", disks=8, unit="128k", **more):
    """Lines of an answer, in order."""
    request = stripe_request(level, str(disks), unit, is_zfs=fs == "zfs", **more)
    return [step.line for step in ROWS[fs].stripe(request).steps]


def notes(fs, level="5", disks=8, unit="128k", **more):
    request = stripe_request(level, str(disks), unit, is_zfs=fs == "zfs", **more)
    return " ".join(note.text for note in ROWS[fs].stripe(request).notes)


@pytest.mark.parametrize(
    ("level", "disks", "data"),
    [("0", 8, 8), ("1", 2, 1), ("1", 3, 1), ("5", 8, 7), ("5", 3, 2), ("6", 8, 6), ("10", 8, 4)],
)
def test_a_cluster_is_the_data_of_a_stripe(level, disks, data):
    request = stripe_request(level, str(disks), "128k")
    assert (request.data_disks, request.cluster_bytes) == (data, data * 128 * KIB)


def test_ufs_has_the_lines_of_the_article():
    assert lines("ufs", memory="1g") == [
        "set maxphys=1048576",
        "set md:md_maxphys=1048576",
        "set vxio:vol_maxio=2048",
        "set ufs:ufs_HW=16777216",
        "set ufs:ufs_LW=8388608",
        "newfs -C 112 RAW_DEVICE",
        "tunefs -a 112 RAW_DEVICE",
        "mount -F ufs -o logging DEVICE MOUNT_POINT",
        "metainit TRANS_DEVICE -t DATA_DEVICE LOG_DEVICE",
    ]


def test_ufs_says_what_it_cannot_do_and_what_it_was_not_told():
    assert "UFS cannot align clusters to stripes" in notes("ufs")
    assert "give --memory" in notes("ufs")
    assert not any("ufs_HW" in line for line in lines("ufs"))
    assert "cannot align" not in notes("ufs", "1", 2)
    assert "less than two clusters" in notes("ufs", memory="64m")  # 1 MiB, a cluster is 896 KiB.


@pytest.mark.parametrize(
    ("level", "disks", "unit", "maxphys"),
    [("0", 4, "32k", 131072), ("0", 8, "32k", 262144), ("5", 4, "64k", 262144)],
)
def test_transfers_hold_a_cluster(level, disks, unit, maxphys):
    found = lines("ufs", level, disks, unit)
    assert found[0] == f"set maxphys={maxphys}"
    assert found[2] == f"set vxio:vol_maxio={maxphys // 512}"


@pytest.mark.parametrize(
    ("level", "tunables"),
    [
        ("0", "read_pref_io=128k,read_nstream=8,write_pref_io=128k,write_nstream=8,max_diskq=16m"),
        ("5", "read_pref_io=128k,read_nstream=7,write_pref_io=896k,write_nstream=1,max_diskq=14m"),
        ("6", "read_pref_io=128k,read_nstream=6,write_pref_io=768k,write_nstream=1,max_diskq=12m"),
        ("10", "read_pref_io=128k,read_nstream=4,write_pref_io=128k,write_nstream=4,max_diskq=8m"),
        ("1", "read_pref_io=128k,read_nstream=1,write_pref_io=128k,write_nstream=1,max_diskq=2m"),
    ],
)
def test_vxfs_writes_whole_stripes_where_there_is_parity(level, tunables):
    found = lines("vxfs", level)
    assert f"vxtunefs -o {tunables} MOUNT_POINT" in found
    assert f"BLOCK_DEVICE {tunables}" in found


def test_vxfs_extents_begin_at_stripes():
    assert "mkfs -F vxfs -o align=917504 RAW_DEVICE" in lines("vxfs")
    assert not any("align=" in line for line in lines("vxfs", "1", 2))
    assert "discovered_direct_iosz" in notes("vxfs", app_io="512k")
    assert "discovered_direct_iosz" not in notes("vxfs", app_io="256k")


def test_qfs_has_units_of_a_stripe_and_metadata_apart():
    found = lines("qfs", memory="1g")
    assert "sammkfs -a 896 FS_NAME" in found
    assert "mount -F samfs -o maxcontig=112,wr_throttle=16384 FS_NAME MOUNT_POINT" in found
    assert "META_DEVICE 11 mm FS_NAME on" in found
    later = "readahead=896,writebehind=896,wr_throttle=16384"
    assert f"mount -F samfs -o {later} FS_NAME MOUNT_POINT" in found


@pytest.mark.parametrize(
    ("memory", "unit", "throttle"),
    [("16m", "8k", 256), ("64g", "128k", 32768), ("16m", "128k", 1792), (None, "128k", 16384)],
)
def test_wr_throttle_stays_in_its_range(memory, unit, throttle):
    found = lines("qfs", unit=unit, memory=memory)
    assert any(f"wr_throttle={throttle} " in line for line in found), found


def test_ext4_counts_in_blocks():
    found = lines("ext4")
    assert found[:4] == [
        "mke2fs -t ext4 -b 4096 -E stride=32,stripe_width=224 DEVICE",
        "tune2fs -E stride=32,stripe_width=224 DEVICE",
        "echo 896 > /sys/block/NAME/queue/max_sectors_kb",
        "blockdev --setra 3584 DEVICE",  # 2 x 896 KiB in sectors.
    ]
    assert lines("ext4", "0", 4, "16k")[2] == "echo 512 > /sys/block/NAME/queue/max_sectors_kb"
    assert "setra" not in " ".join(lines("ext4", "5", 3, "4k"))  # 16 KiB: the default is more.
    assert lines("ext4", "1", 2, None)[0] == "mke2fs -t ext4 DEVICE"


def test_xfs_counts_data_disks_and_keeps_the_unit_of_its_log():
    assert lines("xfs")[:3] == [
        "mkfs.xfs -d su=128k,sw=7 -l su=128k DEVICE",
        "mount -o sunit=256,swidth=1792 DEVICE MOUNT_POINT",
        "mount -o swalloc,logbsize=128k DEVICE MOUNT_POINT",
    ]
    assert lines("xfs", unit="512k")[0] == "mkfs.xfs -d su=512k,sw=7 -l su=32k DEVICE"
    assert lines("xfs", "0", unit="16k")[2] == "mount -o logbsize=32k DEVICE MOUNT_POINT"
    assert lines("xfs", "1", 2, None)[0] == "mkfs.xfs DEVICE"


def test_zfs_makes_its_own_volumes():
    disks = " ".join(f"DISK{number}" for number in range(1, 9))
    for level, vdev in (("5", "raidz1"), ("raidz2", "raidz2"), ("6", "raidz2")):
        assert f"zpool create -o ashift=12 POOL {vdev} {disks}" in lines("zfs", level, unit=None)
    pairs = "mirror DISK1 DISK2 mirror DISK3 DISK4"
    assert f"zpool create -o ashift=12 POOL {pairs}" in lines("zfs", "10", 4, None)
    assert lines("zfs", "0", 2, None)[0] == "zpool create -o ashift=12 POOL DISK1 DISK2"
    assert any("recordsize=1M " in line for line in lines("zfs"))
    assert any("recordsize=8K " in line for line in lines("zfs", app_io="8k"))
    assert "raidz1 wants no stripe alignment" in notes("zfs")
    assert "--unit 128k changes no line" in notes("zfs")


@pytest.mark.parametrize(
    ("record", "disks", "parity", "sectors"),
    [(8 * KIB, 5, 1, 4), (128 * KIB, 5, 1, 40), (128 * KIB, 6, 2, 48), (4 * KIB, 6, 2, 3)],
)
def test_space_of_raidz(record, disks, parity, sectors):
    """Checks ZFS-14 and ZFS-15 of the specification."""
    assert allocated_sectors(record, disks, parity) == sectors


@pytest.mark.parametrize(
    ("level", "disks", "app_io", "expected"),
    [
        ("5", 5, "128k", (2, 2)),  # RAID-1 of the specification: one of four units.
        ("5", 5, "256k", (2, 3)),
        ("5", 5, "512k", (0, 5)),
        ("5", 8, "8k", (2, 2)),
        ("6", 6, "128k", (3, 3)),  # RAID-6.
        ("10", 8, "8k", (0, 2)),
        ("0", 8, "8k", (0, 1)),
    ],
)
def test_cost_of_a_small_write(level, disks, app_io, expected):
    assert small_write(stripe_request(level, str(disks), "128k", app_io=app_io)) == expected


@pytest.mark.parametrize(
    ("level", "disks", "reads"), [("5", 5, Fraction(8, 5)), ("6", 12, Fraction(21, 12))]
)
def test_cost_of_a_lost_disk(level, disks, reads):
    """RAID-7 of the specification: 4/5 of the reads cost one, 1/5 costs four."""
    assert degraded_reads(stripe_request(level, str(disks), "128k", is_degraded=True)) == reads


def test_a_lost_disk_changes_no_line():
    for row in FILE_SYSTEMS:
        assert lines(row.name) == lines(row.name, is_degraded=True)
        assert "Keep these lines" in notes(row.name, is_degraded=True)


def test_halving_the_unit_never_makes_a_whole_stripe_a_partial_one():
    """A cluster of the larger unit is whole stripes of the smaller one."""
    for level in (one for one in RAID_LEVELS if one.layout and one.is_striped):
        for disks in range(level.disks_min, 20, 2):
            wide, narrow = (
                StripeRequest(level, disks, unit).cluster_bytes for unit in (64 * KIB, 32 * KIB)
            )
            assert wide % narrow == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("5", "2", "128k"), "RAID 5 has 1 unit of parity .* 3 disks at least .3 to 255."),
        (("6", "3", "128k"), "RAID 6 .* 4 disks at least"),
        (("10", "7", "128k"), "even number of disks .4 to 254.: as in --disks 8"),
        (("5", "8k", "128k"), "--disks 8k is not a number of disks"),
        (("5", "300", "128k"), "--disks 300 is more than one set can have .3 to 255."),
        (("5", "8", "96k"), "no power of two, .*4 KiB to 16 MiB.: next are 64k and 128k"),
        (("5", "8", "2k"), "--unit 2k is 2 KiB, not between 4 KiB and 16 MiB"),
        (("5", "8", "256"), "256 B, not between .* neither KiB nor 512-byte sectors"),
        (("5", "8", "x"), "--unit: 'x' is not a size"),
        (("5", "8", None), "--unit is not given: as in --unit 128k"),
        (("raidz1", "8", "128k"), "a layout of ZFS alone"),
        (("-1", "8", "128k"), "there is no such layout"),
        (("4", "8", "128k"), "there is no such layout.*layouts are 0, 1, 5, 6, 10"),
    ],
)
def test_wrong_words_are_told_with_their_range(words, told):
    with pytest.raises(IolabError, match=told):
        stripe_request(*words)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"app_io": "12k"}, "--app-io 12k is no power of two"),
        ({"memory": "1t"}, "--memory 1t is not between 16 MiB and 64 GiB"),
    ],
)
def test_wrong_sizes_are_told_with_their_range(more, told):
    with pytest.raises(IolabError, match=told):
        stripe_request("5", "8", "128k", **more)


def test_raidz_of_one_disk_keeps_nothing():
    with pytest.raises(IolabError, match="raidz1 keeps 1 disk of parity and one of data"):
        stripe_request("raidz1", "1", None, is_zfs=True)


@pytest.mark.parametrize(
    ("fs", "unit", "told"),
    [
        ("ufs", "1m", "7 MiB is no size of a cluster of UFS.*8 KiB to 1 MiB.*unit of 128k or less"),
        ("ufs", "4k", "28 KiB .* in steps of 8 KiB.: give the array a unit of 8k or more"),
        ("qfs", "16m", "112 MiB is no size of an allocation unit of QFS.*8 KiB to 64 MiB"),
    ],
)
def test_a_cluster_beyond_a_limit_is_told_with_what_fits(fs, unit, told):
    with pytest.raises(IolabError, match=told):
        lines(fs, unit=unit)


def test_ext4_ignores_stripes_longer_than_a_group():
    with pytest.raises(IolabError, match="160 MiB is no size of a stripe that ext4 looks at"):
        lines("ext4", "6", 12, "16m")


def test_records_of_zfs_have_a_limit():
    with pytest.raises(IolabError, match="512 bytes to 1 MiB"):
        lines("zfs", app_io="2m")


def test_nothing_survives_a_lost_disk_of_raid_0():
    with pytest.raises(IolabError, match="RAID 0 keeps nothing twice"):
        stripe_request("0", "8", "128k", is_degraded=True)


@pytest.mark.parametrize(
    ("typed", "name"), [("raid5", "5"), ("RAID-10", "10"), ("raidz", "raidz1")]
)
def test_layouts_have_the_names_that_people_type(typed, name):
    assert find_level(typed).name == name


@pytest.mark.parametrize("row", FILE_SYSTEMS, ids=lambda row: row.name)
def test_every_file_system_has_a_line_for_each_of_the_four_rules(row):
    advice = row.random(RandomRequest(8 * KIB))
    assert {step.where for step in advice.steps} == set(RULES)


@pytest.mark.parametrize(
    ("fs", "app_io", "line"),
    [
        ("ufs", 8 * KIB, "newfs -b 8192 RAW_DEVICE"),
        ("vxfs", 8 * KIB, "mkfs -F vxfs -o bsize=8192 RAW_DEVICE"),
        ("vxfs", 2 * KIB, "mkfs -F vxfs -o bsize=2048 RAW_DEVICE"),
        ("vxfs", 64 * KIB, "mkfs -F vxfs -o bsize=8192 RAW_DEVICE"),
        ("qfs", 16 * KIB, "sammkfs -a 16 FS_NAME"),
        ("ext4", 8 * KIB, "mke2fs -t ext4 -b 4096 DEVICE"),
        ("ext4", 512, "mke2fs -t ext4 -b 1024 DEVICE"),
        ("xfs", 2 * KIB, "mkfs.xfs -b size=2048 DEVICE"),
        ("zfs", 16 * KIB, "zfs set recordsize=16K POOL/DATASET"),
    ],
)
def test_blocks_are_as_long_as_the_io(fs, app_io, line):
    assert ROWS[fs].random(RandomRequest(app_io)).steps[0].line == line


def every_advice():
    """Answers over many arrays and sizes."""
    for row in FILE_SYSTEMS:
        for app_io in (512, 8 * KIB, MIB):
            yield row.random(RandomRequest(app_io))
        for level in RAID_LEVELS:
            if level.is_zfs != row.has_own_volumes and level.parity_disks:
                continue
            for more in ({}, {"is_degraded": level.name != "0", "app_io_bytes": 8 * KIB}):
                unit = 0 if row.has_own_volumes else 64 * KIB
                request = StripeRequest(level, 8, unit, memory_bytes=GIB, **more)
                yield row.stripe(request)


def test_every_line_has_one_sentence_and_a_source():
    for advice in every_advice():
        assert advice.steps
        for step in advice.steps:
            assert step.reason.endswith("."), step
            assert step.source, step
            assert step.line == step.line.strip(), step
            assert "\n" not in step.line, step
        assert all(note.text.endswith(".") for note in advice.notes)


def test_proofs_compare_two_levels_of_what_is_advised():
    request = stripe_request("5", "8", "128k")
    for name, options in (("ext4", "-E stride=32,stripe_width=224"), ("xfs", "-d su=128k,sw=7")):
        cluster, ahead, geometry = ROWS[name].stripe_proofs(request)
        assert (cluster.default, cluster.advised) == ("128k", "896k")
        assert (ahead.default, ahead.advised) == ("128", "1792")
        assert (geometry.default, geometry.advised) == ("defaults", options)
        assert cluster.settings["file_size"] == "112m"  # 128 stripes.
    assert ROWS["xfs"].stripe_proofs(stripe_request("1", "2", None)) == ()
    small = ROWS["xfs"].stripe_proofs(stripe_request("5", "3", "4k"))
    assert [proof.name for proof in small] == ["cluster", "geometry"]
    assert ROWS["qfs"].stripe_proofs is None


def test_proofs_of_solaris_write_and_read_a_file_with_what_is_advised():
    request = stripe_request("5", "8", "128k")
    tuned = (
        "-o align=917504,read_pref_io=128k,read_nstream=7,write_pref_io=896k,write_nstream=1,"
        "max_diskq=14m"
    )
    for name, options in (("ufs", "-C 112"), ("vxfs", tuned)):
        cluster, write, ahead, *_ = ROWS[name].stripe_proofs(request)
        assert (cluster.default, cluster.advised) == ("128k", "896k")
        for proof in (write, ahead):
            assert (proof.factor, proof.default) == ("mkfs_options", "defaults")
            assert proof.advised == options
            assert proof.settings["direct"] == "false"
        assert ROWS[name].stripe_proofs(stripe_request("1", "2", None)) == ()
    log = ROWS["vxfs"].stripe_proofs(request)[-1]
    assert (log.factor, log.default, log.advised) == ("mount_options", "log", "delaylog")
