"""The kinds of testbed as a study knows them: one row each, with what is possible there.

Whoever needs to know something of a testbed asks its row, never its name. What a simulated stack
cannot do comes from the simulator's own lists (`iolab.study.simulated`). What a testbed does, and
how it is opened, is that of `iolab.testbed.model`, which study may not know.
"""

from __future__ import annotations

from typing import Final

from iolab.frozen import frozen
from iolab.study import simulated
from iolab.study.names import ENGINES


@frozen
class Possible:
    """Levels of a factor that a kind of testbed can do, why no others, and what to do instead."""

    factor: str
    levels: tuple[str, ...]
    reason: str
    hint: str
    is_without_files: bool = False
    """True if others are possible on a file system."""


@frozen
class TestbedKind:
    """A kind of testbed.

    `limits` are reasons by code, of what a study can ask for that has no factor (streams, control
    groups, changes while it runs ...); `alike` are factors of which several levels would be equal;
    `flags` are those of transfers that mean something, None is whatever the engine passes on.
    """

    __test__ = False

    name: str
    argument_key: str
    """Key of its argument in a study file."""
    is_simulated: bool = False
    """True if trials run in virtual time, on models."""
    stores_nothing: bool = False
    """True if operations complete at once: what is measured is iolab itself."""
    no_file_system: tuple[str, str] | None = None
    """Reason why it makes no file system that could be chosen, and what to do instead."""
    possible: tuple[Possible, ...] = ()
    limits: tuple[simulated.Limit, ...] = ()
    alike: tuple[simulated.Alike, ...] = ()
    flags: frozenset[str] | None = None
    is_bare_by_default: bool = False
    """True if a study that names no file system measures the device without any."""
    needed: str = ""
    """Message where it is named without its argument; empty if it needs none."""
    next_step: str = ""
    """Testbed on which to repeat a study before its answer is used; empty if it stands for
    itself.
    """
    untested: str = "other devices"
    """Devices for which a reader might take its results to hold."""

    @property
    def has_file_system(self) -> bool:
        """Tell whether it makes a file system of its own, which a study may choose."""
        return self.no_file_system is None

    @property
    def has_queue_of_model(self) -> bool:
        """Tell whether its queue is the simulator's, with schedulers and knobs of its own."""
        return self.is_simulated

    def limit(self, code: str) -> simulated.Limit | None:
        """Reason why it cannot do something; None if it can."""
        return next((limit for limit in self.limits if limit.code == code), None)

    def why_alike(
        self, factor: str, levels: tuple[str, ...], *, is_bare: bool = True
    ) -> simulated.Alike | None:
        """Reason why these levels of a factor are the same; None if they may differ.

        `is_bare` tells that there is no file system.
        """
        for row in self.alike:
            if row.is_without_files and not is_bare:
                continue
            if row.factor == factor and (not row.levels or set(row.levels).issuperset(levels)):
                return row
        return None


def _simulated() -> TestbedKind:
    limits = {limit.code: limit for limit in simulated.LIMITS}
    direct = tuple(engine.name for engine in ENGINES if engine.has_direct)
    return TestbedKind(
        "sim",
        "name",
        is_simulated=True,
        is_bare_by_default=True,
        possible=tuple(
            Possible(
                row.factor,
                direct if row.levels is None else row.levels,
                limits[row.limit].reason,
                limits[row.limit].hint,
                is_without_files=row.is_without_files,
            )
            for row in simulated.POSSIBLE
        ),
        limits=simulated.LIMITS,
        alike=simulated.ALIKE,
        flags=simulated.FLAGS,
        needed="sim: needs a profile or a stack file, as in sim:PROFILE; `iolab sim profiles` lists"
        " them",
        next_step="Repeat on a real device before you act.",
        untested="real devices",
    )


NO_FILE_SYSTEM: Final = "none"
"""Level of ``fs`` that leaves a whole device raw."""

_FILE_SYSTEMS: Final = ("ext4", "ext2", "ext3", "xfs", "btrfs")
_OF_LINUX: Final = Possible(
    "fs",
    (*_FILE_SYSTEMS, NO_FILE_SYSTEM),
    "this kernel does not have it",
    "simulate it: --on sim:STACK (`iolab sim profiles` lists devices)",
)


def can_be_real(file_system: str) -> bool:
    """Tell whether a file system can be made on a device; the others exist in simulation alone."""
    return file_system in _OF_LINUX.levels


TESTBED_KINDS: Final = (
    TestbedKind(
        "loop",
        "size",
        possible=(
            _OF_LINUX,
            Possible(
                "fs",
                _FILE_SYSTEMS,
                "a private loop device is measured through a file system",
                "name one, or use --on device:/dev/DISK for a device without any",
            ),
        ),
        next_step="A loop device is not your disk: repeat on the device that counts.",
        untested="real disks",
    ),
    TestbedKind(
        "dir",
        "path",
        no_file_system=(
            "a directory keeps the file system it lies on",
            "use --on loop:1g, which makes its own",
        ),
    ),
    TestbedKind(
        "device",
        "path",
        possible=(
            _OF_LINUX,
            Possible(
                "external_journal",
                ("false",),
                "there is no second device for a journal",
                "leave it out, or use --on loop:1g",
            ),
        ),
        is_bare_by_default=True,
    ),
    _simulated(),
    TestbedKind(
        "null",
        "name",
        stores_nothing=True,
        untested="every device",
        no_file_system=(
            "nothing lies below the null target",
            "use --on loop:1g, which makes a file system",
        ),
        alike=(
            simulated.Alike(
                "engine",
                (),
                "the null target is an engine of its own",
                "compare engines on a device, as with --on loop:1g",
            ),
            simulated.Alike(
                "cache",
                (),
                "the null target has no page cache",
                "compare them on a device, as with --on loop:1g",
            ),
            simulated.Alike(
                "workers_as",
                (),
                "workers of the null target are threads",
                "compare them on a device, as with --on loop:1g",
            ),
        ),
    ),
)
"""All of them, in the order in which they are listed for people."""
_BY_NAME: Final = {kind.name: kind for kind in TESTBED_KINDS}


def testbed_kind(name: str) -> TestbedKind:
    """Row of the kind called `name`; one that is not known has no limits of its own."""
    return _BY_NAME.get(name) or TestbedKind(name, "path")
