"""Refusal of what is no file: a pipe without a writer would be waited for without end."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from iolab.errors import IolabError, RefusedError

_KINDS: Final = {
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_OPEN_ALREADY: Final = ("/dev/fd", "/proc/self/fd")
"""Folders of what the caller has opened: a shell's ``<(zcat runs.csv.gz)``."""
_STANDARD_INPUT: Final = "/dev/stdin"


def refuse_endless(path: Path) -> None:
    """Refuse an input file that is a pipe, a socket or a device; one that is missing passes.

    Descriptors that are open already pass, too: opening those waits for nobody.

    Raises
    ------
    IolabError : it is one.
    """
    if str(path) == _STANDARD_INPUT or str(path.parent) in _OPEN_ALREADY:
        return
    try:
        kind = _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except OSError:
        return  # Whoever opens it says so.
    if kind is not None:
        raise IolabError(f"{path} is {kind}, not a regular file", "name a file")


def refuse_among_devices(directory: Path) -> None:
    """Refuse a place where only devices have names: a file there is memory, and looks like a disk.

    Raises
    ------
    RefusedError : it is that of ``/dev`` (devtmpfs).
    """
    with suppress(OSError):
        devices = Path("/dev").stat().st_dev
        if devices == directory.stat().st_dev != Path("/").stat().st_dev:
            raise RefusedError(
                f"{directory} holds devices: a file there is memory, and no device is made by "
                "naming it",
                "name a device that is there (lsblk), or a directory on a disk",
            )
