"""The five documents: every published number, the trial that repeats it, and the rule.

Tolerances: those that the specification of the simulator states for each case, decided before the
simulated numbers were seen. A row whose word is `missed` or `not simulated` names what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from iolab.reproduced.model import Document, Figure, RepeatedTrial, Row
from iolab.reproduced.published import MEAN, Place, published
from iolab.reproduced.rules import Agreement, Between, Like, Loss, Trend, Within, Word
from iolab.units import format_bytes

# D1: averages over seven operations of IOzone.

_D1_TABLE: Final = "iozone_ubuntu1604_averages"
_KIB: Final = 1024
_D1_SIZES: Final = tuple(kib * _KIB for kib in (8, 16, 32, 64, 128, 256, 512, 8192, 16384))
_D1_AGAINST: Final = {16384 * _KIB}
"""Sizes whose simulated average goes the other way."""


def _d1() -> Iterator[Row]:
    for number, size in enumerate(_D1_SIZES):
        record = f"{size // _KIB}k"
        command = f"iozone -R -i 0 -i 1 -i 2 -i 6 -I -r {record} -s 1g -t 1 -F testfile"
        yield Row(
            f"noop, {format_bytes(size)}, mean of 7",
            Place(_D1_TABLE, "noop", "mean of 7 operations", size),
            "missed" if size in _D1_AGAINST else "agrees",
            RepeatedTrial("guest-ext4.toml", command, "noop"),
            figure="mean_throughput",
            of="fwrite",
            rule=Trend(),
            other=number - 1 if number else None,
            why="one run for each size, and a device of which nothing is told; the simulated one "
            "has no limit that large requests reach"
            if size in _D1_AGAINST
            else "",
        )


# D2: seven operations of IOzone in a guest.

_D2_TABLE: Final = "iozone_vmware_pc601"
_D2_OPERATIONS: Final = {
    **{"Initial write": "write", "Rewrite": "rewrite", "Read": "read", "Re-read": "reread"},
    **{"Stride read": "stride-read", "Random read": "random-read"},
    "Random write": "random-write",
}
_D2_SIZES: Final = (4 * _KIB, 32 * _KIB)
_D2_FITTED: Final = ("Initial write", "Read")
_IDLE: Final = "the timer and the worker that cfq needs for every request of a lone process"
_D2_CFQ: Final[dict[tuple[str, int], tuple[Word, str]]] = {
    ("Re-read", 4 * _KIB): (
        "missed",
        "a loss of 21 %, where reads of the same blocks, by the same requests, lost 13 %: the "
        "published runs differ by more than their operations do",
    ),
    ("Stride read", 4 * _KIB): (
        "missed",
        "a loss of 21 %; nothing in cfq tells strides from random places",
    ),
}
"""Rows of cfq that are known not to come out, with the reason."""


def _d2() -> Iterator[Row]:
    places = [(size, operation) for size in _D2_SIZES for operation in _D2_OPERATIONS]
    for scheduler in ("noop", "deadline", "cfq"):
        for number, (size, operation) in enumerate(places):
            place = Place(_D2_TABLE, scheduler, operation, size, MEAN)
            command = f"iozone -I -s 16m -r {size // _KIB}k -i 0 -i 1 -i 2 -i 5"
            rule, word, why = _d2_rule(scheduler, size, operation)
            yield Row(
                f"{scheduler}, {format_bytes(size)}, {operation}",
                place,
                word if _is_comparable(place) else "lost",
                RepeatedTrial("vmware-guest", command, scheduler),
                of=_D2_OPERATIONS[operation],
                rule=rule,
                other=None if scheduler == "noop" else number,
                why=why,
            )


def _is_comparable(place: Place) -> bool:
    """Tell whether the number is known, and of cfq also that of noop, which its loss is against."""
    against = Place(place.table, "noop", place.operation, place.record_size_bytes, place.run)
    places = (place, against) if place.option == "cfq" else (place,)
    return all(published(each).value is not None for each in places)


def _d2_rule(scheduler: str, size: int, operation: str) -> tuple[Agreement, Word, str]:
    if scheduler == "noop":
        is_fitted = operation in _D2_FITTED
        return Within(0.01 if is_fitted else 0.07), "fitted" if is_fitted else "agrees", ""
    if scheduler == "deadline":
        return Like(0.02, "noop"), "agrees", ""
    word, why = _D2_CFQ.get((operation, size), ("agrees", _IDLE))
    return Loss(math.inf if operation == "Initial write" else 2.0, "noop"), word, why


# D3: Solaris' iostat while mkfile writes.

_D3_TABLE: Final = "solaris_iostat"
_UFS: Final = RepeatedTrial("solaris-ufs.toml", "mkfile 500m testfile")
_UFS_OPTION: Final = "UFS maxcontig=16 (128 KB clusters)"
_VXFS_OPTION: Final = "VxFS nolog"
_VXFS: Final = RepeatedTrial("solaris-vxfs.toml", "mkfile 150m testfile")
_NO_CPU: Final = "what the program and the file system take of a SPARC has no model yet"
_D3_UFS: Final[tuple[tuple[str, Agreement, Word, str], ...]] = (
    ("r/s", Within(0.03), "agrees", ""),
    (
        "w/s",
        Within(0.03),
        "missed",
        "borders of indirect blocks and metadata add about one write a second, which the "
        "published interval of 5 s lacks",
    ),
    ("kr/s", Within(0.03), "agrees", ""),
    ("kw/s", Within(0.03), "agrees", "clusters of 128 KiB on a disk of 7200 turns a minute"),
    ("wait", Within(0.03), "agrees", ""),
    ("actv", Within(0.10), "fitted", "ufs_LW was chosen for it"),
    ("svc_t", Within(0.10), "fitted", "queue length and rate decide it"),
    ("%w", Within(0.03), "agrees", ""),
    ("%b", Within(0.03), "agrees", ""),
)


_D3_VXFS: Final[tuple[tuple[str, Agreement, Word, str], ...]] = (
    ("r/s", Within(0.05), "agrees", ""),
    ("w/s", Within(0.05), "agrees", "preferred I/O of 64 KiB"),
    ("kr/s", Within(0.05), "agrees", ""),
    ("kw/s", Within(0.05), "agrees", "writes of 64 KiB on a disk of 7200 turns a minute"),
    ("wait", Within(0.05), "agrees", ""),
    ("actv", Within(0.10), "agrees", "max_diskq of 1 MiB, in writes of 64 KiB"),
    (
        "svc_t",
        Within(0.10),
        "missed",
        "a processor that takes as long for 64 KiB as the disk keeps one request less on its way, "
        "and the simulated disk is 2 % slower",
    ),
    ("%w", Within(0.05), "agrees", ""),
    ("%b", Within(0.05), "agrees", ""),
)


def _d3() -> Iterator[Row]:
    for column, rule, word, why in _D3_UFS:
        yield Row(
            f"UFS: {column}",
            Place(_D3_TABLE, _UFS_OPTION, f"ssd64 {column}"),
            *(word, _UFS, "iostat", column, rule),
            why=why,
        )
    for column, rule, word, why in _D3_VXFS:
        yield Row(
            f"VxFS nolog: {column}",
            Place(_D3_TABLE, _VXFS_OPTION, f"ssd3 {column}"),
            *(word, _VXFS, "iostat", column, rule),
            why=why,
        )
    yield Row(
        "VxFS nolog: mkfile 150m, real",
        Place("solaris_mkfile", _VXFS_OPTION, "real"),
        *("agrees", _VXFS, "elapsed", "mkfile", Between(-0.35, 0.05)),
        why="the document's disk is at its full rate for 24 s of the 32.5",
    )
    for name in ("user", "sys"):
        place = Place("solaris_mkfile", _VXFS_OPTION, name)
        yield Row(f"VxFS nolog: mkfile 150m, {name}", place, "not simulated", why=_NO_CPU)
    for name in ("us", "sy", "wt", "id"):
        place = Place("solaris_cpu", _VXFS_OPTION, f"cpu {name}")
        yield Row(f"VxFS nolog: iostat -c, {name}", place, "not simulated", why=_NO_CPU)


# D5: bonnie++ on ZFS.

_D5: Final = RepeatedTrial(
    "zfs-ssd.toml",
    "bonnie++ -s 15464 -r 7732 -n 16 -u root -z 1352637907",
    scheduler="cfq",
)
_CREATES: Final = "100 us of a processor for a file, assumed before"
_REMOVES: Final = "40 us of a processor for a file, assumed before"
_D5_ROWS: Final[tuple[tuple[str, str, Figure, Agreement, Word, str], ...]] = (
    ("put_block", "block write", "throughput", Within(0.05), "fitted", "program_time of the drive"),
    (
        "rewrite",
        "rewrite",
        "throughput",
        Within(0.10),
        "agrees",
        "a rewrite is a read and a write in turn",
    ),
    ("get_block", "block read", "throughput", Within(0.05), "fitted", "channel_rate of the drive"),
    ("seeks", "seeks", "operations", Within(0.25), "agrees", ""),
    (
        "putc",
        "write by characters",
        "throughput",
        Within(0.05),
        "fitted",
        "time of a processor for a write in a record, after the drive and the calls",
    ),
    ("getc", "read by characters", "throughput", Within(0.05), "fitted", "time of a call"),
    ("seq_create", "sequential create", "operations", Within(0.25), "agrees", _CREATES),
    ("seq_del", "sequential delete", "operations", Within(0.25), "agrees", _REMOVES),
    ("ran_create", "random create", "operations", Within(0.25), "agrees", _CREATES),
    ("ran_del", "random delete", "operations", Within(0.25), "agrees", _REMOVES),
)
_D5_NO_CPU: Final = {
    **{"put_block_cpu": "block write, processor", "rewrite_cpu": "rewrite, processor"},
    **{"get_block_cpu": "block read, processor", "seeks_cpu": "seeks, processor"},
    **{"putc_cpu": "write by characters, processor", "getc_cpu": "read by characters, processor"},
}
_D5_LATENCIES: Final = {
    **{"put_block_latency": "block write, longest", "rewrite_latency": "rewrite, longest"},
    **{"get_block_latency": "block read, longest", "seeks_latency": "seeks, longest"},
}


def _d5() -> Iterator[Row]:
    for column, name, figure, rule, word, why in _D5_ROWS:
        place = Place("bonnie_zfs_t510", "cfq", column)
        yield Row(f"cfq, {name}", place, word, _D5, figure, column, rule, why=why)
    for column, name in _D5_NO_CPU.items():
        place = Place("bonnie_zfs_t510", "cfq", column)
        yield Row(
            f"cfq, {name}",
            place,
            "not simulated",
            why="checksums and threads of the module take no time of a processor in the model",
        )
    for column, name in _D5_LATENCIES.items():
        place = Place("bonnie_zfs_t510", "cfq", column)
        yield Row(
            f"cfq, {name}",
            place,
            "not simulated",
            why="the longest of a million times in one run says nothing that could be compared",
        )


DOCUMENTS: Final = (
    Document(
        "d1",
        "IOzone in a guest of Ubuntu 16.04: averages of seven operations",
        "A report of a university course: IOzone 3.429 in throughput mode, one process, a file of "
        "1 GiB, records of 8 KiB to 16 MiB, direct I/O but for fwrite, one run for each point. "
        "Device, memory and file system are not stated.",
        tuple(_d1()),
        (
            "vmware-guest: fitted to noop's initial writes and reads of D2, to no number of D1",
            "memory and calls: the machine on which the simulator's own costs were measured",
        ),
        "Six of the seven operations go to the device and one, fwrite, into the page cache. Their "
        "mean is mainly the speed of copying memory where records are small, so that it says next "
        "to nothing about schedulers: compare the six, each for itself.",
    ),
    Document(
        "d2",
        "IOzone in a VMware guest: noop, deadline and cfq",
        "A report of a university course: seven operations of IOzone, records of 4 KiB to 32 KiB, "
        "three runs each, in a guest with a virtual SCSI disk on an NVMe drive. Command, size of "
        "the file, kernel and file system are not stated; the numbers are those of one request at "
        "a time that bypasses the page cache.",
        tuple(_d2()),
        (
            "vmware-guest: one delay for each request and one for each byte, fitted to noop's "
            "initial writes and reads",
            "costs of cfq and deadline: the table hosted-guest, to which no row of D2 was fitted",
        ),
        "A request takes about 190 us whatever it does, in a guest and its host; deadline makes no "
        "difference, and cfq loses the time of a timer for each request. With one request at a "
        "time there is nothing to sort, so that none of it is a reason to choose a scheduler.",
    ),
    Document(
        "d3",
        "mkfile on UFS and on VxFS of Solaris, seen by iostat",
        "A magazine series on Solaris file systems of about 2000: iostat -x 5 while mkfile writes "
        "500 MB to UFS with clusters of 128 KiB, and 150 MB to VxFS mounted without its log. Each "
        "table is one interval of 5 s; models of the disks are not stated.",
        tuple(_d3()),
        (
            "scsi7200-1995: a class of disk, of its time",
            "atlas3: a disk of 1997 from its data sheet, with a fitted seek curve",
            "write_pref_io, write_nstream, max_diskq: the defaults of their manual",
            "maxcontig = 16, ufs_HW = 6 MiB: quoted in the document",
            "ufs_LW = 3.6 MiB: fitted to actv; the printed 256 KiB gives 26 requests in the queue",
        ),
        "The rate is that of a disk that is always busy with clusters of 128 KiB; queue and time "
        "of service follow from what the file system lets wait. A disk that shows 924 ms for a "
        "request is not slow: 39 others are before it. VxFS stops its writer earlier, at 1 MiB.",
    ),
    Document(
        "d4",
        "Delayed allocation of ext4: fio, Filebench and YCSB",
        "Slides: ext4 with and without nodelalloc on a SATA SSD, kernel 5.4, five runs of an hour. "
        "Its numbers are not among those that are kept here.",
        (),
        (),
        "Its question is asked again by "
        "`iolab run examples/09-delayed-allocation-applications/study.toml`, in simulation or on a "
        "loop device; `examples/08-delayed-allocation` asks writers that were made for it.",
    ),
    Document(
        "d5",
        "bonnie++ on ZFS with cfq",
        "A blog of November 2012: bonnie++ 1.96 on a pool of one SATA SSD, ZFS on Linux, CentOS 6; "
        "one run for each scheduler. Drive and command are not stated. The module of that month "
        "sets the scheduler of a whole disk to noop by itself, so that cfq on it means a partition "
        "or a switch after the import.",
        tuple(_d5()),
        (
            "sata-2009: a class of drive, with program_time fitted to the block write and "
            "channel_rate to the block read",
            "call_ns: fitted to the reads by characters; work of ZFS for a write in a record: "
            "fitted to the writes by characters",
            "15464 MB with 7732 MB of memory: bonnie++ takes twice the memory by itself; -z is the "
            "seed that it printed",
            "zfs_vdev_max_pending, write limits, records and cache: the module's defaults",
        ),
        "The rates are those of a drive behind groups of one second: a rewrite costs a read and a "
        "write, and characters are calls. One run for each scheduler does not tell a difference "
        "from chance. The simulation of the same command with all three, round by round: "
        "`examples/13-zfs-schedulers`.",
    ),
)


def document(key: str) -> Document | None:
    """The document of a key, in any case of letters; None if there is none."""
    return next((found for found in DOCUMENTS if found.key == key.casefold()), None)
