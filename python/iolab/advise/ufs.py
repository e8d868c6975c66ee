"""Rules for UFS of Solaris: clusters of maxcontig blocks, and the write throttle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.advise import solaris
from iolab.advise.advice import (
    BLOCK_SIZE,
    DIRECT,
    ETC_SYSTEM,
    EXISTING,
    LOG,
    MOUNT,
    NEW,
    READ_AHEAD,
    Note,
    Proof,
    Step,
    TunedFileSystem,
    TuningAdvice,
)
from iolab.advise.common import common_notes
from iolab.advise.request import KIB, MIB, UNIT_BYTES_MIN, RandomRequest, StripeRequest, size_check
from iolab.units import format_bytes, format_bytes_rounded
from iolab.wording import counted

BLOCK_BYTES: Final = 8 * KIB
CLUSTER_BYTES_MAX: Final = MIB
"""UFS moves no more at once, whatever maxphys is (Solaris Tunable Parameters Reference Manual,
maxphys)."""
HIGH_WATER_SHARE: Final = 64
"""Part of memory that one file may have on its way to the disk; the rule of thumb of the Solaris
literature (R. McDougall)."""
LOW_WATER_SHARE: Final = 128
_SOURCE: Final = "OpenSolaris uts/common/fs/ufs"


def _stripe(request: StripeRequest) -> TuningAdvice:
    cluster = size_check(
        request.cluster_bytes,
        (BLOCK_BYTES, CLUSTER_BYTES_MAX, BLOCK_BYTES),
        f"a cluster of UFS, and {counted(request.data_disks, 'data disk')} x"
        f" {format_bytes(request.unit_bytes)} are that; UFS moves 1 MiB at once at most",
        lambda: _other_unit(request),
    )
    blocks = cluster // BLOCK_BYTES
    reason = f"{blocks} blocks of 8 KiB are {format_bytes_rounded(cluster)}, one stripe of data"
    steps = [
        *solaris.transfer_steps(cluster),
        *_throttle(request),
        Step(
            NEW,
            f"newfs -C {blocks} RAW_DEVICE",
            f"{reason} (maxcontig; the default is 16).",
            "newfs(1M)",
        ),
        Step(
            EXISTING,
            f"tunefs -a {blocks} RAW_DEVICE",
            f"{reason}; it counts for files written from then on, so unmount first.",
            "tunefs(1M)",
        ),
        Step(
            MOUNT,
            "mount -F ufs -o logging DEVICE MOUNT_POINT",
            "Changes of metadata are gathered in a log instead of being written one by one, each a"
            " partial stripe.",
            "mount_ufs(1M), Solaris 7 and later",
        ),
        _own_log(LOG),
    ]
    return TuningAdvice(tuple(steps), tuple(_notes(request)))


def _other_unit(request: StripeRequest) -> str:
    """Hint with the nearest unit that would do for these disks."""
    fitting = [
        unit
        for unit in (UNIT_BYTES_MIN << doublings for doublings in range(9))
        if unit * request.data_disks <= CLUSTER_BYTES_MAX
        and unit * request.data_disks % BLOCK_BYTES == 0
    ]
    if not fitting:
        return "give the array fewer disks"
    if request.cluster_bytes > CLUSTER_BYTES_MAX:
        return f"give the array a unit of {format_bytes(max(fitting))} or less, or fewer disks"
    return f"give the array a unit of {format_bytes(min(fitting))} or more"


def _throttle(request: StripeRequest) -> Iterator[Step]:
    if request.memory_bytes is None:
        return
    high, low = (request.memory_bytes // share for share in (HIGH_WATER_SHARE, LOW_WATER_SHARE))
    memory = format_bytes_rounded(request.memory_bytes)
    manual = f"{solaris.MANUAL}, ufs_HW and ufs_LW"
    yield Step(
        ETC_SYSTEM,
        f"set ufs:ufs_HW={high}",
        f"A writer sleeps when so many bytes of its file are on the way: 1/64 of {memory}; the old"
        " default of 384 KiB leaves an array idle.",
        manual,
    )
    yield Step(
        ETC_SYSTEM,
        f"set ufs:ufs_LW={low}",
        f"It wakes when so many are left: 1/128 of {memory}, so that the disks never run dry; it"
        " must lie below ufs_HW.",
        manual,
    )


def _own_log(where: str) -> Step:
    return Step(
        where,
        "metainit TRANS_DEVICE -t DATA_DEVICE LOG_DEVICE",
        "Log writes are small and wait for each other; on disks of their own they neither move the"
        " data's arms nor, on parity arrays, read parity.",
        "metainit(1M), trans metadevices of DiskSuite; Solaris 10 has none",
    )


def _notes(request: StripeRequest) -> Iterator[Note]:
    cost = (
        "so most clusters cover parts of two stripes, and parity is read before it is written"
        if request.has_parity
        else "so most clusters begin and end inside a unit"
    )
    if request.level.is_striped:
        yield Note(
            "UFS cannot align clusters to stripes: blocks begin anywhere, and clusters end at the"
            f" 12th block (96 KiB) and at each indirect block (every 16 MiB), {cost}. A controller"
            " with a write cache hides that; VxFS and QFS can align.",
            f"{_SOURCE}/ufs_bmap.c",
        )
    yield Note(
        "Mapped files are read ahead in 64 KiB, whatever the cluster is.", f"{_SOURCE}/ufs_vnops.c"
    )
    if request.memory_bytes is None:
        yield Note(
            "ufs_HW and ufs_LW follow from the memory (1/64 and 1/128): give --memory, as in"
            " --memory 1g.",
            f"{solaris.MANUAL}, ufs_HW and ufs_LW",
        )
    elif request.memory_bytes // HIGH_WATER_SHARE < 2 * request.cluster_bytes:
        yield Note(
            "With this memory ufs_HW holds less than two clusters, so the array often waits for"
            " the writer: a smaller unit, or more memory, helps."
        )
    yield from common_notes(request, "ufs")


def _random(request: RandomRequest) -> TuningAdvice:
    size = format_bytes_rounded(request.app_io_bytes)
    steps = (
        Step(
            BLOCK_SIZE,
            "newfs -b 8192 RAW_DEVICE",
            "The block is 8 KiB, and SPARC has no other: a write that is smaller, or not aligned"
            " to it, reads the block first.",
            "newfs(1M)",
        ),
        solaris.slice_step(request.app_io_bytes),
        Step(
            READ_AHEAD,
            "mount -F ufs -o forcedirectio DEVICE MOUNT_POINT",
            "Direct I/O reads nothing ahead: each read asks the disk for its own bytes only.",
            "mount_ufs(1M), directio(3C)",
        ),
        Step(
            DIRECT,
            "mount -F ufs -o forcedirectio,logging DEVICE MOUNT_POINT",
            "A database has a cache of its own: without a second copy memory and CPU time are"
            " saved, and writers of one file need not wait for each other.",
            "mount_ufs(1M), directio(3C)",
        ),
        _own_log(DIRECT),
    )
    notes = [
        Note(
            "UFS has no switch for read-ahead alone: a jump ends it, but two reads that happen to"
            " follow each other start a whole cluster again.",
            f"{_SOURCE}/ufs_vnops.c",
        )
    ]
    if request.app_io_bytes < BLOCK_BYTES:
        notes.append(
            Note(
                f"I/O of {size} is smaller than the block: let the application use 8 KiB, or each"
                " write costs a read as well."
            )
        )
    return TuningAdvice(steps, tuple(notes))


def _stripe_proofs(request: StripeRequest) -> tuple[Proof, ...]:
    return solaris.stripe_proofs(request, f"-C {request.cluster_bytes // BLOCK_BYTES}")


def _random_proofs(request: RandomRequest) -> tuple[Proof, ...]:
    return solaris.random_proofs(request, "forcedirectio")


UFS: Final = TunedFileSystem(
    "ufs",
    "UFS of Solaris",
    _stripe,
    _random,
    _stripe_proofs,
    _random_proofs,
    transfer_bytes=solaris.transfer_bytes,
)
