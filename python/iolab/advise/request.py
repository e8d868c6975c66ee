"""Questions about tuning: the array and what runs on it, with the checks of every number.

A bare number is bytes, as everywhere in iolab; manuals count some of these in KiB, in blocks or in
512-byte sectors, and the lines of the answer have the manual's unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.wording import counted, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB
SECTOR_BYTES: Final = 512

UNIT_BYTES_MIN: Final = 4 * KIB
"""Smallest chunk of Linux md and a page of most systems (md(4))."""
UNIT_BYTES_MAX: Final = 16 * MIB
APP_IO_BYTES_MIN: Final = 512
APP_IO_BYTES_MAX: Final = 16 * MIB
APP_IO_BYTES: Final = 8 * KIB
"""Block of most databases: the default of `iolab advise random`."""
MEMORY_BYTES_MIN: Final = 16 * MIB
MEMORY_BYTES_MAX: Final = 64 * GIB
"""A 64th of it must fit into ufs_HW, a signed 32-bit number of bytes."""
DISKS_MAX: Final = 255
MIRROR_UNIT_BYTES: Final = 128 * KIB
"""Longest transfer of one disk that a mirror is tuned for: maxphys of SPARC, in whose place
`--unit` may give another one."""


@frozen
class RaidLevel:
    """Layout of an array, by the rules that follow from it."""

    name: str
    """Word of ``--raid``."""
    disks_min: int
    parity_disks: int = 0
    """Units of parity per stripe."""
    is_striped: bool = True
    """Consecutive units lie on different disks."""
    is_mirrored: bool = False
    """Every disk has a copy of itself beside it (all the same if it is not striped)."""
    is_zfs: bool = False
    """ZFS' own layout, without a stripe unit."""
    layout: str = ""
    """Name in a stack file of the simulator; empty: no proof."""
    vdev: str = ""
    """Word of `zpool create`."""

    @property
    def title(self) -> str:
        """Name in sentences: ``RAID 5``, ``raidz1``."""
        return self.name if self.is_zfs else f"RAID {self.name}"

    def data_disks(self, disks: int) -> int:
        """Disks that hold the data of one stripe."""
        if self.is_mirrored:
            return disks // 2 if self.is_striped else 1
        return disks - self.parity_disks


RAID_LEVELS: Final[tuple[RaidLevel, ...]] = (
    RaidLevel("0", 2, layout="raid0"),
    RaidLevel("1", 2, is_striped=False, is_mirrored=True, layout="raid1", vdev="mirror"),
    RaidLevel("5", 3, parity_disks=1, layout="raid5", vdev="raidz1"),
    RaidLevel("6", 4, parity_disks=2, layout="raid6", vdev="raidz2"),
    RaidLevel("10", 4, is_mirrored=True, layout="raid10", vdev="mirror"),
    RaidLevel("raidz1", 2, parity_disks=1, is_zfs=True, layout="raidz1", vdev="raidz1"),
    RaidLevel("raidz2", 3, parity_disks=2, is_zfs=True, layout="raidz2", vdev="raidz2"),
    RaidLevel("raidz3", 4, parity_disks=3, is_zfs=True, layout="raidz3", vdev="raidz3"),
)
"""All levels; the names of the first five are those of Patterson, Gibson and Katz (1988)."""


@frozen
class StripeRequest:
    """Array that a file system is made on."""

    level: RaidLevel
    disks: int
    unit_bytes: int
    """Bytes on one disk before the next one; 0 on ZFS, which has none."""
    app_io_bytes: int | None = None
    """Size of the application's reads and writes, if they have one."""
    memory_bytes: int | None = None
    is_degraded: bool = False
    """One disk is lost."""

    @property
    def data_disks(self) -> int:
        """Disks that hold the data of one stripe."""
        return self.level.data_disks(self.disks)

    @property
    def cluster_bytes(self) -> int:
        """Bytes of data in one stripe: what one transfer should be."""
        return self.data_disks * self.unit_bytes

    @property
    def has_parity(self) -> bool:
        """Tell whether a write of less than a stripe must read first."""
        return self.level.parity_disks > 0


@frozen
class RandomRequest:
    """Application that reads and writes at random places."""

    app_io_bytes: int = APP_IO_BYTES


def find_level(text: str) -> RaidLevel:
    """Layout by its word: ``5``, ``raid5``, ``raidz2``.

    Raises
    ------
    IolabError : there is none of this name.
    """
    known = {level.name: level for level in RAID_LEVELS}
    plain = text.strip().lower()
    name = {"raidz": "raidz1"}.get(plain, plain)
    if name not in known and name.startswith("raid"):
        name = name.removeprefix("raid").lstrip(" -")
    if name not in known:
        raise IolabError(
            f"--raid {text}: there is no such layout{nearest(plain, known)}",
            f"layouts are {', '.join(known)}",
        )
    return known[name]


def checked_disks(text: str, level: RaidLevel) -> int:
    """Number of disks of an array, parity and copies included.

    Raises
    ------
    IolabError : not a number, or not one that the layout can have.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise IolabError(
            f"--disks {text} is not a number of disks",
            "write a whole number without a unit, all disks of the set counted: --disks 8",
        )
    disks, least = int(text), level.disks_min
    if disks < least:
        raise IolabError(
            f"--disks {disks}: {level.title} {_reason_for_more(level)}, so it needs {least} disks"
            f" at least ({least} to {DISKS_MAX})",
            "count all disks of the set, those for parity too",
        )
    if disks > DISKS_MAX:
        raise IolabError(
            f"--disks {disks} is more than one set can have ({least} to {DISKS_MAX})",
            "name the disks of one set only",
        )
    if level.is_mirrored and level.is_striped and disks % 2:
        raise IolabError(
            f"--disks {disks}: {level.title} stripes over pairs, so it needs an even number of"
            f" disks ({least} to {DISKS_MAX - 1})",
            f"as in --disks {disks + 1}",
        )
    return disks


def _reason_for_more(level: RaidLevel) -> str:
    if level.is_zfs:
        return f"keeps {counted(level.parity_disks, 'disk')} of parity and one of data at least"
    if level.parity_disks:
        return f"has {counted(level.parity_disks, 'unit')} of parity beside two of data at least"
    if level.is_mirrored:
        return "stripes over pairs of disks" if level.is_striped else "keeps a copy"
    return "stripes over disks"


def checked_unit(text: str | None, level: RaidLevel) -> int:
    """Bytes of a stripe unit.

    Raises
    ------
    IolabError : not a size, not a power of two, out of range, or missing.
    """
    if text is None:
        if level.is_striped:
            raise IolabError(
                f"{level.title} has a stripe unit, and --unit is not given",
                "as in --unit 128k; it is the chunk of mdadm, the interlace of metainit",
            )
        return MIRROR_UNIT_BYTES
    return _power_of_two("--unit", text, UNIT_BYTES_MIN, UNIT_BYTES_MAX)


def checked_app_io(text: str) -> int:
    """Bytes of an application's I/O.

    Raises
    ------
    IolabError : not a size, not a power of two, or out of range.
    """
    return _power_of_two("--app-io", text, APP_IO_BYTES_MIN, APP_IO_BYTES_MAX)


def checked_memory(text: str) -> int:
    """Bytes of memory of the machine.

    Raises
    ------
    IolabError : not a size, or out of range.
    """
    value = _size("--memory", text)
    if not MEMORY_BYTES_MIN <= value <= MEMORY_BYTES_MAX:
        raise IolabError(
            f"--memory {text} is not between {_named(MEMORY_BYTES_MIN)} and"
            f" {_named(MEMORY_BYTES_MAX)}",
            "the memory of the machine with its letter, as in --memory 1g",
        )
    return value


def _power_of_two(flag: str, text: str, least: int, most: int) -> int:
    value = _size(flag, text)
    example = f"as in {flag} {'128k' if flag == '--unit' else '8k'}"
    if not least <= value <= most:
        bare = (
            "; a bare number is bytes, neither KiB nor 512-byte sectors"
            if text.strip().isdigit()
            else ""
        )
        raise IolabError(
            f"{flag} {text} is {_named(value)}, not between {_named(least)} and {_named(most)}",
            f"{example}{bare}",
        )
    if value & (value - 1):
        below = 1 << (value.bit_length() - 1)
        raise IolabError(
            f"{flag} {text} is no power of two, as units and blocks are ({_named(least)} to"
            f" {_named(most)})",
            f"next are {units.format_bytes(below)} and {units.format_bytes(2 * below)}",
        )
    return value


def _size(flag: str, text: str) -> int:
    try:
        return units.parse_bytes(text)
    except ValueError as error:
        raise IolabError(f"{flag}: {error}", f"as in {flag} 128k") from None


def _named(value: int) -> str:
    return units.format_bytes_rounded(value)


def stripe_request(  # noqa: PLR0913 - keyword arguments, each a flag
    level: str,
    disks: str,
    unit: str | None,
    *,
    app_io: str | None = None,
    memory: str | None = None,
    is_degraded: bool = False,
    is_zfs: bool = False,
) -> StripeRequest:
    """Request from words as typed.

    Parameters
    ----------
    level, disks, unit, app_io, memory : as typed; None is not given.
    is_degraded : one disk is lost.
    is_zfs : the file system is ZFS, whose layouts have no unit.

    Raises
    ------
    IolabError : a word means nothing, or contradicts another one.
    """
    found = _level_for(find_level(level), is_zfs=is_zfs)
    if is_degraded and not (found.parity_disks or found.is_mirrored):
        raise IolabError(
            f"--degraded: {found.title} keeps nothing twice, so with a disk its data are lost",
            "layouts that can lose one are 1, 5, 6, 10 and raidz1 to raidz3",
        )
    unit_bytes = 0
    if not is_zfs or unit is not None:
        unit_bytes = checked_unit(unit, found)
    return StripeRequest(
        found,
        checked_disks(disks, found),
        unit_bytes,
        None if app_io is None else checked_app_io(app_io),
        None if memory is None else checked_memory(memory),
        is_degraded,
    )


def _level_for(level: RaidLevel, *, is_zfs: bool) -> RaidLevel:
    """Layout as the file system has it: RAID 5 of ZFS is raidz1."""
    if level.is_zfs and not is_zfs:
        raise IolabError(
            f"--raid {level.name} is a layout of ZFS alone",
            "name --fs zfs, or --raid 5 or 6 for another file system",
        )
    if not is_zfs or not level.parity_disks:
        return level
    return next(one for one in RAID_LEVELS if one.is_zfs and one.vdev == level.vdev)


def size_check(value: int, limits: tuple[int, int, int], what: str, hint: Callable[[], str]) -> int:
    """A size that must lie in limits and be a multiple.

    Parameters
    ----------
    value : bytes.
    limits : least, most and step, bytes.
    what : the size, with what sets its limit, as in ``a cluster of UFS``.
    hint : what to do.

    Raises
    ------
    IolabError : it lies outside; names the range.
    """
    least, most, step = limits
    if least <= value <= most and value % step == 0:
        return value
    span = f"{_named(least)} to {_named(most)} in steps of {_named(step)}"
    raise IolabError(f"{_named(value)} is no size of {what} ({span})", hint())
