"""Rules that do not depend on the file system: what partial writes and lost disks cost."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from iolab.advise.advice import Note, Proof
from iolab.advise.request import StripeRequest
from iolab.units import format_bytes, format_bytes_rounded
from iolab.wording import counted

_STRIPES_PROVED: Final = 128
_FILE_BYTES_MIN: Final = 16 << 20
_PARITY = "Chen et al., RAID (ACM Computing Surveys, 1994)"


def small_write(request: StripeRequest) -> tuple[int, int]:
    """Reads and writes of members for one aligned write of the application's size.

    By columns of 4 KiB, as Linux md counts: read-modify-write reads old data and old parity,
    reconstruct-write the data that stay, and the way with fewer reads is taken (raid5.c).
    """
    assert request.app_io_bytes is not None, "the caller has asked"
    if not request.has_parity:
        copies = 2 if request.level.is_mirrored else 1
        return 0, copies * _touched(request)
    touched, parity = _touched(request), request.level.parity_disks
    reads = min(touched + parity, request.data_disks - touched)
    return reads, touched + parity


def _touched(request: StripeRequest) -> int:
    """Data units under one aligned write, at most a stripe of them."""
    assert request.app_io_bytes is not None, "the caller has asked"
    return min(request.data_disks, -(-request.app_io_bytes // request.unit_bytes))


def degraded_reads(request: StripeRequest) -> Fraction:
    """Reads of members per random read of one unit, over all data, with one disk lost.

    A read of the lost disk reads as many others as there are data units; any other costs one.
    """
    n = request.disks
    return Fraction(n - 1, n) + Fraction(request.data_disks, n)


def proved_file_size(request: StripeRequest) -> str:
    """Size of the file of a proof: whole stripes, 16 MiB at least."""
    n_stripes = max(_STRIPES_PROVED, -(-_FILE_BYTES_MIN // request.cluster_bytes))
    return format_bytes(n_stripes * request.cluster_bytes)


def cluster_proof(request: StripeRequest) -> Proof:
    """Comparison of the rule itself, on an array without a file system."""
    unit, stripe = format_bytes(request.unit_bytes), format_bytes(request.cluster_bytes)
    return Proof(
        "cluster",
        f"the rule itself, on the array without a file system: writes of one unit ({unit}) or of"
        f" one stripe ({stripe})",
        "record_size",
        unit,
        stripe,
        ("write",),
        {"file_size": proved_file_size(request), "direct": "true", "fs": "none"},
    )


def common_notes(request: StripeRequest, name: str) -> Iterator[Note]:
    """Notes about the array below any file system but ZFS.

    Parameters
    ----------
    request : the array.
    name : word of ``--fs``, for the command that is named.
    """
    if request.app_io_bytes is not None:
        yield _about_app_io(request, name)
    if request.is_degraded:
        yield from _about_lost_disk(request)


def _about_app_io(request: StripeRequest, name: str) -> Note:
    assert request.app_io_bytes is not None, "the caller has asked"
    reads, writes = small_write(request)
    size = format_bytes_rounded(request.app_io_bytes)
    cost = f"{counted(reads, 'read')} and {counted(writes, 'write')}" if reads else ""
    cost = cost or counted(writes, "write")
    hint = f"`iolab advise random --fs {name}` has the rules for that"
    return Note(
        f"A random write of {size} costs {cost} on the disks, whatever the cluster is; {hint}.",
        _PARITY,
    )


def _about_lost_disk(request: StripeRequest) -> Iterator[Note]:
    yield Note(
        "Keep these lines while a disk is missing: the geometry does not change, and the set is"
        " the same again after the rebuild."
    )
    if not request.has_parity:
        yield Note("Until then all reads of the lost disk go to its copy alone.")
        return
    mean = degraded_reads(request)
    yield Note(
        f"Until then a random read costs {float(mean):.2f} reads on average instead of 1, for the"
        f" {counted(request.data_disks, 'unit')} that give the lost one are read; a read of a whole"
        " stripe costs no more than before, so large read-ahead pays even more.",
        _PARITY,
    )
