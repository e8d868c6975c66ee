"""Rules for tuning file systems on arrays, by the name of the file system: one file, one row."""

from __future__ import annotations

from typing import Final

from iolab.advise.advice import TunedFileSystem
from iolab.advise.ext4 import EXT4
from iolab.advise.qfs import QFS
from iolab.advise.ufs import UFS
from iolab.advise.vxfs import VXFS
from iolab.advise.xfs import XFS
from iolab.advise.zfs import ZFS

FILE_SYSTEMS: Final[tuple[TunedFileSystem, ...]] = (
    UFS,
    VXFS,
    QFS,
    EXT4,
    XFS,
    ZFS,
)
"""All of them; one that has proofs is simulated."""

__all__ = ["FILE_SYSTEMS"]
