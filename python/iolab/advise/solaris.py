"""Rules of Solaris below its file systems: the longest transfer, and slices that are aligned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolab.advise.advice import ALIGNMENT, ETC_SYSTEM, Proof, Step
from iolab.advise.common import cluster_proof, proved_file_size
from iolab.advise.request import KIB, SECTOR_BYTES, RandomRequest, StripeRequest
from iolab.units import format_bytes, format_bytes_rounded

MAXPHYS_BYTES: Final = 128 * KIB
"""Default on sun4u; 57 344 on x86."""
MANUAL: Final = "Solaris Tunable Parameters Reference Manual"


def transfer_bytes(cluster_bytes: int) -> int:
    """Limit of a transfer that holds a cluster: the next power of two, 128 KiB at least."""
    return max(MAXPHYS_BYTES, 1 << (cluster_bytes - 1).bit_length())


def transfer_steps(cluster_bytes: int) -> Iterator[Step]:
    """Limits of driver and volume managers that must hold a cluster."""
    limit, cluster = transfer_bytes(cluster_bytes), format_bytes_rounded(cluster_bytes)
    yield Step(
        ETC_SYSTEM,
        f"set maxphys={limit}",
        f"The driver cuts what is longer: bytes, at least one cluster of {cluster} (default"
        " 131072 on SPARC, 57344 on x86).",
        f"{MANUAL}, maxphys",
    )
    yield Step(
        ETC_SYSTEM,
        f"set md:md_maxphys={limit}",
        "Only under DiskSuite (Solaris Volume Manager), which cuts for itself: bytes.",
        "Solstice DiskSuite reference, md_maxphys",
    )
    yield Step(
        ETC_SYSTEM,
        f"set vxio:vol_maxio={limit // SECTOR_BYTES}",
        f"Only under VxVM, which counts in 512-byte units: {limit // SECTOR_BYTES} x 512 ="
        f" {limit} bytes.",
        "VERITAS Volume Manager administrator's guide, vol_maxio",
    )


def slice_step(app_io_bytes: int) -> Step:
    """Look at the start of a slice."""
    sectors = max(1, app_io_bytes // SECTOR_BYTES)
    return Step(
        ALIGNMENT,
        "prtvtoc RAW_DEVICE",
        f"The first sector of the slice must be a multiple of {sectors} (I/O size / 512), better of"
        " the stripe unit too; else one I/O lies on two units and moves two disks.",
        "prtvtoc(1M), format(1M)",
    )


def stripe_proofs(
    request: StripeRequest, options: str, held: Mapping[str, str] | None = None
) -> tuple[Proof, ...]:
    """Comparisons on a striped volume: the rule itself, and a file written and read in order.

    Parameters
    ----------
    request : the array.
    options : advised words of mkfs and of tuning.
    held : further factors of the comparisons of files.
    """
    if not request.level.is_striped:
        return ()
    settings = {
        "file_size": proved_file_size(request),
        "record_size": "64k",
        "direct": "false",
        **(held or {}),
    }
    return (
        cluster_proof(request),
        *(
            Proof(
                name,
                f"a file {word} from front to back: the defaults or {options}",
                "mkfs_options",
                "defaults",
                options,
                tests,
                settings,
            )
            for name, word, tests in (
                ("write-clusters", "written", ("write",)),
                ("read-ahead", "read", ("read",)),
            )
        ),
    )


def random_proofs(request: RandomRequest, options: str) -> tuple[Proof, ...]:
    """Comparison on one disk: reads at random places through the cache or past it.

    Parameters
    ----------
    request : the application.
    options : advised words of mount.
    """
    size = format_bytes(request.app_io_bytes)
    return (
        Proof(
            "random-direct",
            f"reads of {size} at random places: mounted as by default or with {options}",
            "mount_options",
            "defaults",
            options,
            ("random-read",),
            {"file_size": "64m", "record_size": size, "direct": "false"},
        ),
    )
