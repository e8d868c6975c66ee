"""Identity of block devices that are only read: names move from one disk to another."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from iolab import units
from iolab.errors import TestbedError

_SECTOR_BYTES: Final = 512
"""Unit of ``size`` (Linux Documentation/ABI/stable/sysfs-block)."""
_NAMES: Final = ("wwid", "device/wwid", "device/serial", "dm/uuid", "loop/backing_file")
"""Files of sysfs that name a disk; those of a partition lie with its disk."""


def identity_of(nodes: Iterable[str]) -> str:
    """Size and lasting name of each device, for people and for comparing."""
    return "; ".join(map(_identity, nodes))


def check_identity(nodes: Iterable[str], known: str) -> None:
    """Refuse devices that are others than when a study was planned.

    Raises
    ------
    TestbedError : one is; says what it was, and what it is.
    """
    found = identity_of(nodes)
    if known not in ("", found):
        raise TestbedError(
            f"{' and '.join(nodes)} was {known}, and is {found}",
            "name the device that was meant, or begin a study of its own",
        )


def _identity(node: str) -> str:
    folder = Path("/sys/class/block") / Path(node).resolve().name
    size = _read(folder / "size")
    told = units.format_bytes_rounded(int(size) * _SECTOR_BYTES) if size.isdecimal() else "no size"
    disks = (folder, folder.resolve().parent)
    names = (_read(disk / name) for disk in disks for name in _NAMES)
    return ", ".join([told, *filter(None, [next(filter(None, names), "")])])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
