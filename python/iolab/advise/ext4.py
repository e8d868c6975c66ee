"""Rules for ext4: stride and stripe width, and the journal on a device of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.advise import linux
from iolab.advise.advice import (
    BLOCK_SIZE,
    DIRECT,
    EXISTING,
    LOG,
    NEW,
    Note,
    Proof,
    Step,
    TunedFileSystem,
    TuningAdvice,
)
from iolab.advise.common import common_notes
from iolab.advise.request import KIB, RandomRequest, StripeRequest, size_check
from iolab.units import format_bytes, format_bytes_rounded
from iolab.wording import counted

BLOCK_BYTES: Final = 4 * KIB
BLOCK_BYTES_MIN: Final = 1 * KIB
GROUP_BLOCKS: Final = 32768
"""Blocks of a group of 4 KiB blocks; a wider stripe is ignored (Linux fs/ext4/super.c,
ext4_get_stripe_size)."""


def geometry(request: StripeRequest) -> str:
    """Extended options of mke2fs: ``stride=32,stripe_width=224``; empty for a mirror."""
    if not request.level.is_striped:
        return ""
    stride = request.unit_bytes // BLOCK_BYTES
    return f"stride={stride},stripe_width={stride * request.data_disks}"


def _stripe(request: StripeRequest) -> TuningAdvice:
    size_check(
        request.cluster_bytes,
        (BLOCK_BYTES, GROUP_BLOCKS * BLOCK_BYTES, BLOCK_BYTES),
        f"a stripe that ext4 looks at, and {counted(request.data_disks, 'data disk')} x"
        f" {format_bytes(request.unit_bytes)} are that",
        lambda: "give the array a smaller unit, or fewer disks",
    )
    typed, steps = geometry(request), list[Step]()
    if typed:
        unit, stripe = (
            format_bytes_rounded(value) for value in (request.unit_bytes, request.cluster_bytes)
        )
        reason = (
            f"In blocks of 4 KiB: a unit is {unit}, the data of a stripe are {stripe}; allocation"
            " begins at stripes where it can, and bitmaps are spread over the disks."
        )
        steps += [
            Step(NEW, f"mke2fs -t ext4 -b 4096 -E {typed} DEVICE", reason, "mke2fs(8)"),
            Step(
                EXISTING,
                f"tune2fs -E {typed} DEVICE",
                "The same numbers for files written from the next mount on.",
                "tune2fs(8)",
            ),
        ]
    else:
        steps.append(
            Step(NEW, "mke2fs -t ext4 DEVICE", "The defaults are right for a mirror.", "mke2fs(8)")
        )
    steps += [*linux.device_steps(request), *_own_log(LOG)]
    return TuningAdvice(tuple(steps), tuple(_notes(request)))


def _own_log(where: str) -> Iterator[Step]:
    yield Step(
        where,
        "mke2fs -b 4096 -O journal_dev LOG_DEVICE",
        "The journal is written in small pieces that are waited for: on a mirror of its own they"
        " neither move the data's arms nor, on parity arrays, read parity.",
        "mke2fs(8), ext4(5)",
    )
    yield Step(
        where,
        "tune2fs -O ^has_journal DEVICE && tune2fs -J device=LOG_DEVICE DEVICE",
        "Attaches it to the unmounted file system, in place of the journal inside.",
        "tune2fs(8)",
    )


def _notes(request: StripeRequest) -> Iterator[Note]:
    yield from linux.array_notes(request)
    if request.level.is_striped:
        yield Note(
            "ext4 aligns only allocations whose length is a multiple of the stripe; the usual ones"
            " are powers of two of blocks and begin anywhere, unless the number of data disks is"
            " a power of two as well.",
            "Linux fs/ext4/mballoc.c",
        )
    yield from common_notes(request, "ext4")


def _random(request: RandomRequest) -> TuningAdvice:
    block = min(max(request.app_io_bytes, BLOCK_BYTES_MIN), BLOCK_BYTES)
    size = format_bytes_rounded(request.app_io_bytes)
    return TuningAdvice(
        (
            Step(
                BLOCK_SIZE,
                f"mke2fs -t ext4 -b {block} DEVICE",
                f"Blocks of {format_bytes_rounded(block)} for I/O of {size}: a write of whole"
                " blocks reads nothing first (1024, 2048 or 4096; a page at most).",
                "mke2fs(8)",
            ),
            linux.partition_step(request.app_io_bytes),
            linux.read_ahead_step(),
            *_own_log(DIRECT),
        ),
        (linux.direct_note("ext4"),),
    )


def _stripe_proofs(request: StripeRequest) -> tuple[Proof, ...]:
    return linux.stripe_proofs(request, f"-E {geometry(request)}")


EXT4: Final = TunedFileSystem("ext4", "ext4", _stripe, _random, _stripe_proofs, linux.random_proofs)
