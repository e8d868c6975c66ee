"""Rules for QFS: allocation units as long as a stripe, metadata on devices of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.advise import solaris
from iolab.advise.advice import (
    BLOCK_SIZE,
    DIRECT,
    MOUNT,
    NEW,
    READ_AHEAD,
    Note,
    Step,
    TunedFileSystem,
    TuningAdvice,
)
from iolab.advise.common import common_notes
from iolab.advise.request import KIB, RandomRequest, StripeRequest, size_check
from iolab.units import format_bytes, format_bytes_rounded
from iolab.wording import counted

BLOCK_BYTES: Final = 8 * KIB
"""Step of an allocation unit, and block of maxcontig."""
UNIT_BYTES_MAX: Final = 65528 * KIB
"""Longest disk allocation unit (sammkfs(1M))."""
THROTTLE_KIB_MIN: Final = 256
THROTTLE_KIB_MAX: Final = 32768
THROTTLE_KIB: Final = 16384
"""Range and default of wr_throttle (mount_samfs(1M), release 3)."""
MEMORY_SHARE: Final = 64
"""Part of memory, as for ufs_HW."""
_CLUSTERS: Final = 2
"""Clusters that must fit, so that one is prepared while the other is written."""


def _stripe(request: StripeRequest) -> TuningAdvice:
    cluster = size_check(
        request.cluster_bytes,
        (BLOCK_BYTES, UNIT_BYTES_MAX, BLOCK_BYTES),
        f"an allocation unit of QFS, and {counted(request.data_disks, 'data disk')} x"
        f" {format_bytes(request.unit_bytes)} are that",
        lambda: "give the array another unit, or another number of disks",
    )
    kib, blocks, throttle = cluster // KIB, cluster // BLOCK_BYTES, throttle_kib(request)
    size = format_bytes_rounded(cluster)
    steps = [
        *solaris.transfer_steps(cluster),
        *_devices("/etc/opt/SUNWsamfs/mcf (metadata on a device of their own)"),
        Step(
            NEW,
            f"sammkfs -a {kib} FS_NAME",
            f"Files get space in units of {size}, one stripe (KiB; 8 to 65528 in steps of 8), and"
            " each unit begins at a stripe.",
            "sammkfs(1M)",
        ),
        Step(
            MOUNT,
            f"mount -F samfs -o maxcontig={blocks},wr_throttle={throttle} FS_NAME MOUNT_POINT",
            f"Early releases: {blocks} blocks of 8 KiB are one stripe, and one file may have"
            f" {throttle} KiB on the way (256 to 32768).",
            "mount_samfs(1M), release 3",
        ),
        Step(
            MOUNT,
            f"mount -F samfs -o readahead={kib},writebehind={kib},wr_throttle={throttle} FS_NAME"
            " MOUNT_POINT",
            f"Later releases have no maxcontig: both clusters are {size}, in KiB (defaults 1024 and"
            " 512).",
            "mount_samfs(1M), release 5",
        ),
    ]
    return TuningAdvice(tuple(steps), tuple(_notes(request)))


def throttle_kib(request: StripeRequest) -> int:
    """Outstanding writes of one file, KiB: 1/64 of the memory, two clusters at least."""
    wanted = THROTTLE_KIB
    if request.memory_bytes is not None:
        wanted = request.memory_bytes // MEMORY_SHARE // KIB
    wanted = max(wanted, _CLUSTERS * request.cluster_bytes // KIB)
    return min(max(wanted, THROTTLE_KIB_MIN), THROTTLE_KIB_MAX)


def _devices(where: str) -> Iterator[Step]:
    """Rows of the file of devices: metadata apart from data."""
    yield Step(where, "FS_NAME 10 ma FS_NAME on", "The file system, of the rows below.", "mcf(4)")
    yield Step(
        where,
        "META_DEVICE 11 mm FS_NAME on",
        "Metadata on a mirror of their own never come between long transfers of data.",
        "mcf(4)",
    )
    yield Step(where, "DATA_DEVICE 12 mr FS_NAME on", "The array, for data alone.", "mcf(4)")


def _notes(request: StripeRequest) -> Iterator[Note]:
    if request.memory_bytes is None:
        yield Note(
            "wr_throttle is the default here; with --memory it is 1/64 of the memory.",
            "mount_samfs(1M)",
        )
    if _CLUSTERS * request.cluster_bytes > THROTTLE_KIB_MAX * KIB:
        yield Note(
            "wr_throttle cannot hold two clusters (32768 KiB at most in release 3): the array often"
            " waits for the writer.",
            "mount_samfs(1M)",
        )
    yield Note(
        "Files smaller than the allocation unit waste the rest of it; a second file system with"
        " `md` devices (units of 4 KiB first) is better for them.",
        "mcf(4)",
    )
    yield from common_notes(request, "qfs")


def _random(request: RandomRequest) -> TuningAdvice:
    unit = max(8, request.app_io_bytes // KIB)
    return TuningAdvice(
        (
            Step(
                BLOCK_SIZE,
                f"sammkfs -a {unit} FS_NAME",
                f"The allocation unit is one I/O, {unit} KiB (8 to 65528 in steps of 8): nothing"
                " more is read before a write.",
                "sammkfs(1M)",
            ),
            solaris.slice_step(request.app_io_bytes),
            Step(
                READ_AHEAD,
                "mount -F samfs -o forcedirectio FS_NAME MOUNT_POINT",
                "Direct I/O reads nothing ahead.",
                "mount_samfs(1M)",
            ),
            Step(
                DIRECT,
                "mount -F samfs -o forcedirectio,qwrite FS_NAME MOUNT_POINT",
                "A database has a cache of its own; qwrite lets several writers into one file at"
                " the same time.",
                "mount_samfs(1M)",
            ),
            *_devices(DIRECT),
        ),
        (
            Note(
                "qwrite gives up the order of writes to one file: only for applications that lock"
                " for themselves, as databases do.",
                "mount_samfs(1M)",
            ),
        ),
    )


QFS: Final = TunedFileSystem("qfs", "QFS (Sun)", _stripe, _random)
