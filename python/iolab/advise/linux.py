"""Rules of Linux below its file systems: the longest request, read-ahead, partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.advise.advice import ALIGNMENT, DEVICE, READ_AHEAD, Note, Proof, Step
from iolab.advise.common import cluster_proof, proved_file_size
from iolab.advise.request import KIB, SECTOR_BYTES, RandomRequest, StripeRequest
from iolab.units import format_bytes, format_bytes_rounded

READ_AHEAD_STRIPES: Final = 2
"""Stripes read ahead: one is used while the next is read (md does so: drivers/md/raid5.c)."""
READ_AHEAD_KIB: Final = 128
"""Default of a device that announces nothing (VM_READAHEAD_PAGES)."""
REQUEST_KIB_MIN: Final = 512
"""Shorter requests cost more commands, and arrays merge nothing."""


def read_ahead_kib(request: StripeRequest) -> int:
    """Read-ahead of a striped volume, KiB."""
    return max(READ_AHEAD_KIB, READ_AHEAD_STRIPES * request.cluster_bytes // KIB)


def request_kib(request: StripeRequest) -> int:
    """Longest request: the smallest multiple of a stripe from 512 KiB on."""
    stripe = request.cluster_bytes // KIB
    return stripe * max(1, -(-REQUEST_KIB_MIN // stripe))


def device_steps(request: StripeRequest) -> Iterator[Step]:
    """Settings of the block device that the array is."""
    if not request.level.is_striped:
        return
    kib, ahead = request_kib(request), read_ahead_kib(request)
    stripe = format_bytes_rounded(request.cluster_bytes)
    yield Step(
        DEVICE,
        f"echo {kib} > /sys/block/NAME/queue/max_sectors_kb",
        f"The block layer cuts what is longer: KiB, at least one stripe of {stripe} and a multiple"
        " of it (up to max_hw_sectors_kb beside it).",
        "Linux Documentation/ABI/stable/sysfs-block",
    )
    if ahead == READ_AHEAD_KIB:
        return
    yield Step(
        DEVICE,
        f"blockdev --setra {ahead * KIB // SECTOR_BYTES} DEVICE",
        f"Two stripes ahead, {ahead} KiB counted in 512-byte sectors: all"
        f" {request.data_disks} data disks read at once (default {READ_AHEAD_KIB} KiB).",
        "blockdev(8)",
    )


def array_notes(request: StripeRequest) -> Iterator[Note]:
    """Notes about the array below ext4 and XFS."""
    if request.level.is_striped:
        yield Note(
            "On Linux md the geometry is read from the device, and read-ahead is two stripes"
            " already; a hardware array mostly announces nothing, and then these lines count."
            " Begin the partition at a multiple of the stripe, or use none.",
            "md(4), mke2fs(8), mkfs.xfs(8)",
        )
    else:
        yield Note(
            "A mirror has no stripe: there is nothing to align but the partition (1 MiB is"
            " enough), and the defaults are right."
        )
    if request.memory_bytes is not None:
        yield Note(
            "--memory changes no line here: Linux limits dirty pages by shares of it"
            " (vm.dirty_background_ratio 10 %, vm.dirty_ratio 20 %), not file by file.",
            "Linux Documentation/admin-guide/sysctl/vm.rst",
        )


def stripe_proofs(request: StripeRequest, mkfs_options: str, limits: str = "") -> tuple[Proof, ...]:
    """Comparisons on a striped volume: the rule itself, read-ahead, and options of mkfs.

    Parameters
    ----------
    request : the array.
    mkfs_options : advised ones.
    limits : advised lines that the simulator lacks, for the question; may be empty.
    """
    if not request.level.is_striped:
        return ()
    size, stripe = proved_file_size(request), format_bytes(request.cluster_bytes)
    ahead, without = read_ahead_kib(request), f" ({limits})" if limits else ""
    found = (
        cluster_proof(request),
        Proof(
            "read-ahead",
            f"a file read from front to back: read-ahead of {READ_AHEAD_KIB} KiB or {ahead} KiB",
            "read_ahead_kb",
            str(READ_AHEAD_KIB),
            str(ahead),
            ("read",),
            {"file_size": size, "record_size": "64k", "direct": "false"},
        ),
        Proof(
            "geometry",
            f"a file written in records of one stripe ({stripe}): mkfs without the geometry or with"
            f" {mkfs_options}{without}",
            "mkfs_options",
            "defaults",
            mkfs_options,
            ("write", "rewrite"),
            {"file_size": size, "direct": "true", "record_size": stripe},
        ),
    )
    return tuple(proof for proof in found if proof.default != proof.advised)


def random_proofs(request: RandomRequest) -> tuple[Proof, ...]:
    """Comparison on one disk: read-ahead, for reads at random places."""
    size = format_bytes(request.app_io_bytes)
    return (
        Proof(
            "random-read-ahead",
            f"reads of {size} at random places: read-ahead of {READ_AHEAD_KIB} KiB or none",
            "read_ahead_kb",
            str(READ_AHEAD_KIB),
            "0",
            ("random-read",),
            {"file_size": "64m", "record_size": size, "direct": "false"},
        ),
    )


def partition_step(app_io_bytes: int) -> Step:
    """Make a partition that is aligned."""
    return Step(
        ALIGNMENT,
        "parted -a optimal DEVICE mkpart data 1MiB 100%",
        f"The partition begins at a multiple of 1 MiB, and so of {format_bytes(app_io_bytes)}"
        " and of the usual stripe units; else one I/O lies on two units and moves two disks."
        if app_io_bytes <= KIB * KIB
        else "The partition begins at a multiple of 1 MiB, and so of the usual stripe units.",
        "parted(8)",
    )


def read_ahead_step() -> Step:
    """Switch read-ahead of a device off."""
    return Step(
        READ_AHEAD,
        "blockdev --setra 0 DEVICE",
        "Nothing is read that nobody asked for; where some files are read in order, 32 (16 KiB)"
        " is a compromise.",
        "blockdev(8)",
    )


def direct_note(what: str) -> Note:
    """Note that there is no mount option for direct I/O."""
    return Note(
        f"{what} has no mount option for direct I/O: the application opens its files with O_DIRECT"
        " (innodb_flush_method=O_DIRECT, filesystemio_options=setall). Put its own log files on a"
        " file system on other disks.",
        "open(2)",
    )
