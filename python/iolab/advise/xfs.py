"""Rules for XFS: unit and width of the stripe, and the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.advise import linux
from iolab.advise.advice import (
    BLOCK_SIZE,
    DIRECT,
    EXISTING,
    LOG,
    MOUNT,
    NEW,
    Note,
    Proof,
    Step,
    TunedFileSystem,
    TuningAdvice,
)
from iolab.advise.common import common_notes
from iolab.advise.request import KIB, SECTOR_BYTES, RandomRequest, StripeRequest
from iolab.units import format_bytes, format_bytes_rounded
from iolab.wording import sentence_case

LOG_UNIT_BYTES_MAX: Final = 256 * KIB
"""Longest log stripe unit; mkfs.xfs takes 32 KiB in place of a longer one."""
LOG_UNIT_BYTES_DEFAULT: Final = 32 * KIB
BLOCK_BYTES: Final = 4 * KIB
BLOCK_BYTES_MIN: Final = 1 * KIB
"""Smallest block with checksums."""


def geometry(request: StripeRequest) -> str:
    """Words of ``mkfs.xfs -d``: ``su=128k,sw=7``; empty for a mirror."""
    if not request.level.is_striped:
        return ""
    return f"su={format_bytes(request.unit_bytes)},sw={request.data_disks}"


def log_unit_bytes(unit_bytes: int) -> int:
    """Log stripe unit for a unit of the data."""
    return unit_bytes if unit_bytes <= LOG_UNIT_BYTES_MAX else LOG_UNIT_BYTES_DEFAULT


def _stripe(request: StripeRequest) -> TuningAdvice:
    typed = geometry(request)
    if not typed:
        steps = [
            Step(NEW, "mkfs.xfs DEVICE", "The defaults are right for a mirror.", "mkfs.xfs(8)")
        ]
    else:
        steps = list(_striped(request, typed))
    steps += [*linux.device_steps(request), *_own_log(LOG, f"-d {typed}" if typed else "")]
    return TuningAdvice(tuple(steps), tuple(_notes(request)))


def _striped(request: StripeRequest, typed: str) -> Iterator[Step]:
    log = log_unit_bytes(request.unit_bytes)
    unit, stripe = (
        format_bytes_rounded(value) for value in (request.unit_bytes, request.cluster_bytes)
    )
    why_log = (
        "the log is padded to whole units, too"
        if log == request.unit_bytes
        else "the log's unit can be 256 KiB at most, so it is the 32 KiB that mkfs.xfs itself takes"
    )
    yield Step(
        NEW,
        f"mkfs.xfs -d {typed} -l su={format_bytes(log)} DEVICE",
        f"A unit is {unit}, the data of a stripe are {stripe} (sw counts data disks only);"
        f" {why_log}.",
        "mkfs.xfs(8)",
    )
    sectors = request.unit_bytes // SECTOR_BYTES
    yield Step(
        EXISTING,
        f"mount -o sunit={sectors},swidth={sectors * request.data_disks} DEVICE MOUNT_POINT",
        "The same for a file system that was made without it, in 512-byte units; it is kept.",
        "xfs(5)",
    )
    buffer = format_bytes(max(log, LOG_UNIT_BYTES_DEFAULT))
    options = f"swalloc,logbsize={buffer}" if request.has_parity else f"logbsize={buffer}"
    buffers = "log buffers must be whole log units (32k to 256k)"
    why = (
        f"With swalloc, long files grow from stripe to stripe instead of unit to unit; {buffers}."
        if request.has_parity
        else f"{sentence_case(buffers)}."
    )
    yield Step(MOUNT, f"mount -o {options} DEVICE MOUNT_POINT", why, "xfs(5)")


def _own_log(where: str, options: str) -> Iterator[Step]:
    yield Step(
        where,
        f"mkfs.xfs {options} -l logdev=LOG_DEVICE DEVICE".replace("  ", " "),
        "The log is written in small pieces that are waited for: on a mirror of its own they"
        " neither move the data's arms nor, on parity arrays, read parity.",
        "mkfs.xfs(8)",
    )
    yield Step(
        where,
        "mount -o logdev=LOG_DEVICE DEVICE MOUNT_POINT",
        "Every mount must name the device of the log.",
        "xfs(5)",
    )


def _notes(request: StripeRequest) -> Iterator[Note]:
    yield from linux.array_notes(request)
    if request.has_parity:
        yield Note(
            "Without swalloc XFS aligns to units (su), not to stripes: a long write then covers"
            " parts of two stripes, and parity is read first unless a cache gathers the rest.",
            "xfs(5)",
        )
    yield from common_notes(request, "xfs")


def _random(request: RandomRequest) -> TuningAdvice:
    block = min(max(request.app_io_bytes, BLOCK_BYTES_MIN), BLOCK_BYTES)
    size = format_bytes_rounded(request.app_io_bytes)
    return TuningAdvice(
        (
            Step(
                BLOCK_SIZE,
                f"mkfs.xfs -b size={block} DEVICE",
                f"Blocks of {format_bytes_rounded(block)} for I/O of {size}: a write of whole"
                " blocks reads nothing first (1024 to 4096; a page at most before Linux 6.12).",
                "mkfs.xfs(8)",
            ),
            linux.partition_step(request.app_io_bytes),
            linux.read_ahead_step(),
            *_own_log(DIRECT, f"-b size={block}"),
        ),
        (linux.direct_note("XFS"),),
    )


def _stripe_proofs(request: StripeRequest) -> tuple[Proof, ...]:
    limits = "swalloc is not simulated" if request.has_parity else ""
    return linux.stripe_proofs(request, f"-d {geometry(request)}", limits)


XFS: Final = TunedFileSystem("xfs", "XFS", _stripe, _random, _stripe_proofs, linux.random_proofs)
