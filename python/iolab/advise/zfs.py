"""Rules for ZFS: record size, and why there is no stripe to align to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.advise.advice import (
    ALIGNMENT,
    BLOCK_SIZE,
    DIRECT,
    LOG,
    NEW,
    READ_AHEAD,
    Note,
    Proof,
    Step,
    TunedFileSystem,
    TuningAdvice,
)
from iolab.advise.request import KIB, MIB, RandomRequest, StripeRequest
from iolab.errors import IolabError
from iolab.units import format_bytes, format_bytes_rounded
from iolab.wording import counted

ASHIFT: Final = 12
SECTOR_BYTES: Final = 1 << ASHIFT
RECORD_BYTES_MAX: Final = MIB
"""Longest record without a module parameter (zfsprops(7))."""
RECORD_BYTES: Final = 128 * KIB
"""Default record."""
RECOMMENDED_MAX: Final = 9
"""Disks of one raidz group (zpoolconcepts(7): 3 to 9)."""


def allocated_sectors(record_bytes: int, disks: int, parity: int) -> int:
    """Sectors that one record takes on raidz, parity and padding included.

    s data sectors need p parity sectors per row of n - p, and the sum is rounded up to a multiple
    of p + 1 (OpenZFS vdev_raidz.c, vdev_raidz_asize).
    """
    data = -(-record_bytes // SECTOR_BYTES)
    total = data + parity * -(-data // (disks - parity))
    return -(-total // (parity + 1)) * (parity + 1)


def record_bytes(app_io_bytes: int | None) -> int:
    """Record for the application's I/O; the longest if files are read and written in order.

    Raises
    ------
    IolabError : longer than a record can be.
    """
    if app_io_bytes is None:
        return RECORD_BYTES_MAX
    if app_io_bytes > RECORD_BYTES_MAX:
        raise IolabError(
            f"--app-io {format_bytes(app_io_bytes)} is longer than a record of ZFS"
            " (recordsize, 512 bytes to 1 MiB)",
            "use 1m; such I/O then is several records",
        )
    return app_io_bytes


def vdevs(request: StripeRequest) -> str:
    """Words of `zpool create` for the disks: ``raidz1 DISK1 ... DISK8``."""
    names = [f"DISK{number}" for number in range(1, request.disks + 1)]
    if request.level.is_mirrored and request.level.is_striped:
        return " ".join(f"mirror {a} {b}" for a, b in zip(names[::2], names[1::2], strict=True))
    return " ".join([*([request.level.vdev] if request.level.vdev else []), *names])


def _stripe(request: StripeRequest) -> TuningAdvice:
    record = record_bytes(request.app_io_bytes)
    why = (
        "records are as long as the application's I/O, so none is read before it is written"
        if request.app_io_bytes is not None
        else f"for long files read and written in order: each of {request.data_disks} data disks"
        f" gets {format_bytes_rounded(record / request.data_disks)} at once (default 128K)"
    )
    steps = (
        Step(
            NEW,
            f"zpool create -o ashift={ASHIFT} POOL {vdevs(request)}",
            "Sectors of 4 KiB cannot be changed later; whole disks let ZFS see and order each of"
            " them, which a hardware array hides.",
            "zpool-create(8), zpoolprops(7)",
        ),
        Step(
            NEW,
            f"zfs create POOL/DATASET && zfs set recordsize={_upper(record)} POOL/DATASET",
            f"{why[:1].upper()}{why[1:]}; it counts for files written from then on.",
            "zfsprops(7)",
        ),
        _own_log(LOG),
    )
    return TuningAdvice(steps, tuple(_notes(request, record)))


def _upper(value: int) -> str:
    return format_bytes(value).upper()


def _own_log(where: str) -> Step:
    return Step(
        where,
        "zpool add POOL log mirror LOG_DISK1 LOG_DISK2",
        "Synchronous writes are acknowledged from there, instead of being written into the pool"
        " twice; it must keep what it has acknowledged when the power fails.",
        "zpool-add(8), zpoolconcepts(7)",
    )


def _notes(request: StripeRequest, record: int) -> Iterator[Note]:
    level = request.level
    if level.is_zfs:
        yield Note(
            f"{level.title} wants no stripe alignment: it has no fixed stripe. Every record is a"
            " stripe of its own, written to new places with its own parity, so nothing is ever read"
            " before a write.",
            "OpenZFS module/zfs/vdev_raidz.c",
        )
        yield _space(request, record)
        yield _spread(request, record)
        if request.disks > RECOMMENDED_MAX:
            yield Note(
                f"{counted(request.disks, 'disk')} are many for one group (3 to 9 are recommended):"
                " two groups in one pool read at random twice as fast.",
                "zpoolconcepts(7)",
            )
    if request.unit_bytes:
        yield Note(
            f"--unit {format_bytes(request.unit_bytes)} changes no line: ZFS has no stripe unit. On"
            " a hardware array of that unit use the same lines with its one device; records of 1M"
            " hide most of its partial stripes."
        )
    if request.memory_bytes is not None:
        dirty = format_bytes_rounded(min(request.memory_bytes // 10, 4 << 30))
        yield Note(
            f"--memory changes no line: ZFS takes its limits from it (dirty data up to {dirty},"
            " then writers are slowed down).",
            "zfs(4), zfs_dirty_data_max",
        )
    if request.is_degraded:
        yield Note(
            "Keep these lines while a disk is missing; reads of its part are computed from the"
            " others, and the resilver copies only what is used (`zpool replace`).",
            "zpool-replace(8)",
        )


def _space(request: StripeRequest, record: int) -> Note:
    sectors = allocated_sectors(record, request.disks, request.level.parity_disks)
    taken = sectors * SECTOR_BYTES
    stored = format_bytes_rounded(max(record, SECTOR_BYTES))
    return Note(
        f"A record of {format_bytes_rounded(record)} takes {format_bytes_rounded(taken)} on"
        f" {counted(request.disks, 'disk')} ({sectors} sectors of 4 KiB):"
        f" {100 * record / taken:.0f} % of the space is data."
        if record >= SECTOR_BYTES
        else f"Records below a sector of 4 KiB take {format_bytes_rounded(taken)}, as those of"
        f" {stored} do.",
        "OpenZFS vdev_raidz_asize",
    )


def _spread(request: StripeRequest, record: int) -> Note:
    disks = min(request.data_disks, -(-record // SECTOR_BYTES))
    rate = f"{request.disks / disks:.2g} disks" if disks < request.disks - 1 else "one disk"
    return Note(
        f"A read of a record asks {disks} of the disks at once, so random reads of this"
        f" {request.level.title} group are about as fast as {rate}; mirrors (--raid 10) are as fast"
        " as all of theirs.",
        "OpenZFS module/zfs/vdev_raidz.c",
    )


def _random(request: RandomRequest) -> TuningAdvice:
    record = record_bytes(request.app_io_bytes)
    steps = (
        Step(
            BLOCK_SIZE,
            f"zfs set recordsize={_upper(record)} POOL/DATASET",
            f"A write of a part of a record reads the rest first: with the default of 128K a write"
            f" of {format_bytes_rounded(record)} moves {format_bytes_rounded(RECORD_BYTES)} twice."
            if record < RECORD_BYTES
            else "A write of a part of a record reads the rest first; set before files are made.",
            "zfsprops(7)",
        ),
        Step(
            ALIGNMENT,
            f"zpool create -o ashift={ASHIFT} POOL mirror DISK1 DISK2",
            "Whole disks are partitioned at 1 MiB by ZFS itself, and all blocks are multiples of"
            " 4 KiB; mirrors read at random as fast as all their disks.",
            "zpoolprops(7)",
        ),
        Step(
            READ_AHEAD,
            "echo 1 > /sys/module/zfs/parameters/zfs_prefetch_disable",
            "Linux, for all pools: nothing is read that nobody asked for (/etc/system on Solaris:"
            " set zfs:zfs_prefetch_disable=1).",
            "zfs(4)",
        ),
        Step(
            DIRECT,
            "zfs set primarycache=metadata POOL/DATASET",
            "A database has a cache of its own; ZFS then keeps only metadata in memory.",
            "zfsprops(7)",
        ),
        _own_log(DIRECT),
    )
    note = Note(
        "Before OpenZFS 2.3 there is no direct I/O: O_DIRECT is accepted and goes through the"
        " cache. From 2.3 on `zfs set direct=always POOL/DATASET` bypasses it.",
        "zfsprops(7)",
    )
    small = Note(
        "Records below 4 KiB take a whole sector each (ashift 12): let the application use 4 KiB."
    )
    return TuningAdvice(steps, (note, small) if record < SECTOR_BYTES else (note,))


def _record_proof(name: str, about: str, record: int, tests: tuple[str, ...], size: str) -> Proof:
    return Proof(
        name,
        f"{about}: records of {format_bytes(RECORD_BYTES)} or {format_bytes(record)}",
        "mkfs_options",
        f"-O recordsize={RECORD_BYTES}",
        f"-O recordsize={record}",
        tests,
        # Most of the file is not in memory, as most of a database is not.
        {"file_size": "512m", "record_size": size, "direct": "false", "memory_limit": "128m"},
    )


def _stripe_proofs(request: StripeRequest) -> tuple[Proof, ...]:
    if request.app_io_bytes is None:
        record = record_bytes(None)
        about = "a file written and read in order"
        found = _record_proof("records", about, record, ("write", "read"), "1m")
        return (found,)
    return random_proofs(RandomRequest(request.app_io_bytes))


def random_proofs(request: RandomRequest) -> tuple[Proof, ...]:
    """Comparison of records as long as the application's I/O with the default."""
    size = format_bytes(request.app_io_bytes)
    record = max(record_bytes(request.app_io_bytes), SECTOR_BYTES)
    if record == RECORD_BYTES or record.bit_count() != 1:
        return ()
    about = f"reads and writes of {size} at random places"
    return (_record_proof("records", about, record, ("random-read", "random-write"), size),)


ZFS: Final = TunedFileSystem(
    "zfs", "ZFS", _stripe, _random, _stripe_proofs, random_proofs, has_own_volumes=True
)
