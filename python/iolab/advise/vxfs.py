"""Rules for VxFS: preferred sizes and numbers of streams, and extents that are aligned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.advise import solaris
from iolab.advise.advice import (
    BLOCK_SIZE,
    DIRECT,
    EXISTING,
    MOUNT,
    NEW,
    READ_AHEAD,
    Note,
    Proof,
    Step,
    TunedFileSystem,
    TuningAdvice,
)
from iolab.advise.common import common_notes, proved_file_size
from iolab.advise.request import KIB, RandomRequest, StripeRequest
from iolab.units import format_bytes, format_bytes_rounded

_GUIDE: Final = "VERITAS File System administrator's guide, I/O tuning"
DISK_QUEUE_FLUSHES: Final = 16
"""Flushes under way per file by default: max_diskq 1 MiB of 64 KiB each."""
DIRECT_BYTES: Final = 256 * KIB
"""Default of discovered_direct_iosz."""
BLOCK_BYTES_MIN: Final = 1 * KIB
BLOCK_BYTES_MAX: Final = 8 * KIB


def _stripe(request: StripeRequest) -> TuningAdvice:
    tunables = _tunables(request)
    typed = ",".join(f"{key}={value}" for key, value in tunables)
    cluster = format_bytes_rounded(request.cluster_bytes)
    steps = list(solaris.transfer_steps(request.cluster_bytes))
    if request.level.is_striped:
        steps.append(
            Step(
                NEW,
                f"mkfs -F vxfs -o align={request.cluster_bytes} RAW_DEVICE",
                f"Extents begin at multiples of one stripe ({cluster}, here in bytes), so that a"
                " flush of that size is one whole stripe.",
                "mkfs_vxfs(1M) of the releases that have align=",
            )
        )
    steps += [
        Step(
            EXISTING,
            f"vxtunefs -o {typed} MOUNT_POINT",
            f"{_reason(request)} max_diskq lets {DISK_QUEUE_FLUSHES} flushes wait, as by default.",
            f"vxtunefs(1M); {_GUIDE}",
        ),
        Step(
            "/etc/vx/tunefstab (read at each mount)",
            f"BLOCK_DEVICE {typed}",
            "The same for every later mount.",
            "tunefstab(4)",
        ),
        _delayed_log(MOUNT),
    ]
    return TuningAdvice(tuple(steps), tuple(_notes(request)))


def _tunables(request: StripeRequest) -> tuple[tuple[str, str], ...]:
    unit, data = format_bytes(request.unit_bytes), request.data_disks
    cluster = format_bytes(request.cluster_bytes)
    write, streams = (cluster, 1) if request.has_parity else (unit, data)
    return (
        ("read_pref_io", unit),
        ("read_nstream", str(data)),
        ("write_pref_io", write),
        ("write_nstream", str(streams)),
        ("max_diskq", format_bytes(DISK_QUEUE_FLUSHES * request.cluster_bytes)),
    )


def _reason(request: StripeRequest) -> str:
    """Reason for these numbers, in one sentence."""
    unit, cluster = (
        format_bytes_rounded(value) for value in (request.unit_bytes, request.cluster_bytes)
    )
    if not request.level.is_striped:
        return f"Read-ahead and flushes of {cluster}, as for one disk."
    read = f"Read-ahead asks {request.data_disks} disks for {unit} each"
    if request.has_parity:
        return f"{read}; a write goes out as one whole stripe ({cluster}), so no parity is read."
    return f"{read}, and flushes give each of them as much."


def _delayed_log(where: str) -> Step:
    return Step(
        where,
        "mount -F vxfs -o delaylog BLOCK_DEVICE MOUNT_POINT",
        "The intent log lies at the start of the volume: delaylog gathers its small writes, where"
        " log lets each change move the arms there and wait.",
        "mount_vxfs(1M)",
    )


def _notes(request: StripeRequest) -> Iterator[Note]:
    yield Note(
        "On a VxVM volume these values are set from its geometry at mount; elsewhere (hardware"
        " array, DiskSuite) VxFS knows nothing of the stripe and reads ahead 64 KiB.",
        _GUIDE,
    )
    if (request.app_io_bytes or 0) > DIRECT_BYTES:
        yield Note(
            "I/O above discovered_direct_iosz (256 KiB by default) bypasses the cache: raise it if"
            " such reads are repeated.",
            _GUIDE,
        )
    yield _QUICK_LOG
    if request.memory_bytes is not None:
        yield Note(
            "--memory changes no line here: VxFS limits a file by max_diskq, and its write_throttle"
            " (dirty pages per file) is off by default.",
            _GUIDE,
        )
    yield from common_notes(request, "vxfs")


def _random(request: RandomRequest) -> TuningAdvice:
    block = min(max(request.app_io_bytes, BLOCK_BYTES_MIN), BLOCK_BYTES_MAX)
    size = format_bytes_rounded(request.app_io_bytes)
    steps = (
        Step(
            BLOCK_SIZE,
            f"mkfs -F vxfs -o bsize={block} RAW_DEVICE",
            f"Blocks of {format_bytes_rounded(block)} for I/O of {size}: nothing more is read or"
            " written (1024 to 8192 bytes are possible).",
            "mkfs_vxfs(1M)",
        ),
        solaris.slice_step(request.app_io_bytes),
        Step(
            READ_AHEAD,
            "vxtunefs -o read_ahead=0 MOUNT_POINT",
            "Nothing is read that nobody asked for.",
            f"vxtunefs(1M) of releases that have read_ahead; {_GUIDE}",
        ),
        Step(
            READ_AHEAD,
            f"vxtunefs -o read_pref_io={format_bytes(request.app_io_bytes)},read_nstream=1"
            " MOUNT_POINT",
            "The same for older releases: what is read ahead is one I/O.",
            f"vxtunefs(1M); {_GUIDE}",
        ),
        Step(
            DIRECT,
            "mount -F vxfs -o mincache=direct,convosync=direct BLOCK_DEVICE MOUNT_POINT",
            "A database has a cache of its own; a second copy of its blocks costs memory and CPU"
            " time.",
            "mount_vxfs(1M)",
        ),
        _delayed_log(DIRECT),
    )
    return TuningAdvice(steps, (_LOGS, _QUICK_LOG))


_QUICK_LOG: Final = Note(
    "VxFS alone keeps its intent log on the same volume; a device of its own needs VERITAS QuickLog"
    " (Solaris, releases 3.3 to 4.0).",
    "VERITAS File System administrator's guide, QuickLog",
)
_LOGS: Final = Note(
    "Put the database's own log files on a file system on other disks: they are written in order"
    " and waited for, data files are not."
)


def _stripe_proofs(request: StripeRequest) -> tuple[Proof, ...]:
    words = (("align", str(request.cluster_bytes)), *_tunables(request))
    options = "-o " + ",".join(f"{key}={value}" for key, value in words)
    held = {"mount_options": "delaylog"}
    found = solaris.stripe_proofs(request, options, held)
    return (*found, *_log_proof(request)) if found else ()


def _log_proof(request: StripeRequest) -> Iterator[Proof]:
    yield Proof(
        "log",
        "a file written from front to back: mounted with log or with delaylog",
        "mount_options",
        "log",
        "delaylog",
        ("write",),
        {"file_size": proved_file_size(request), "record_size": "64k", "direct": "false"},
    )


def _random_proofs(request: RandomRequest) -> tuple[Proof, ...]:
    return solaris.random_proofs(request, "mincache=direct,convosync=direct")


VXFS: Final = TunedFileSystem(
    "vxfs",
    "VxFS (VERITAS)",
    _stripe,
    _random,
    _stripe_proofs,
    _random_proofs,
    transfer_bytes=solaris.transfer_bytes,
)
