"""Abilities and limits of a simulated stack: `simulated.json` beside this file, as typed rows.

Its sources are the lists of the simulator and the folder of profiles; `make docs` writes it. A
copy is kept because a study must be read and checked where the simulator is not built. What a
profile contains, and which numbers it rests on, is told by ``iolab sim profiles NAME``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolab.frozen import frozen

if TYPE_CHECKING:
    from iolab import protocol
    from iolab.protocol import AlikeLevels, SchedulerBook


@frozen
class SimulatedTunable:
    """A tunable of a scheduler: whole numbers from ``min`` to ``max``, in ``unit``.

    ``default`` is that of a rotational device at 1000 clock ticks per second.
    """

    name: str
    unit: str
    default: int
    min: int
    max: int
    about: str


@frozen
class SimulatedScheduler:
    """A scheduler and the kernel code around it: ``legacy`` or ``blk-mq``."""

    name: str
    framework: str
    tunables: tuple[SimulatedTunable, ...]


@frozen
class ProfileName:
    """A built-in profile, as in ``sim:NAME``."""

    name: str
    title: str


@frozen
class Limit:
    """Something that a simulated stack cannot do: why, and what to do instead."""

    code: str
    reason: str
    hint: str


@frozen
class PossibleLevels:
    """Levels of a factor that it can do; None is every engine with direct I/O."""

    factor: str
    levels: tuple[str, ...] | None
    limit: str
    """Code of the limit that says why no others."""
    is_without_files: bool
    """True if that holds only without a file system."""


@frozen
class Alike:
    """A factor of which these levels (empty: all) are the same on a simulated stack."""

    factor: str
    levels: tuple[str, ...]
    reason: str
    hint: str
    is_without_files: bool = False
    """True if that holds only without a file system."""


def _scheduler(row: SchedulerBook) -> SimulatedScheduler:
    tunables = tuple(SimulatedTunable(**tunable) for tunable in row["tunables"])
    return SimulatedScheduler(row["name"], row["framework"], tunables)


def _possible(row: protocol.PossibleLevels) -> PossibleLevels:
    levels = row["levels"]
    known = None if levels is None else tuple(levels)
    return PossibleLevels(row["factor"], known, row["limit"], row["is_without_files"])


def _alike(row: AlikeLevels) -> Alike:
    levels = tuple(row["levels"])
    return Alike(row["factor"], levels, row["reason"], row["hint"], row["is_without_files"])


_TABLES: Final[dict[str, list[Any]]] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
SCHEDULERS: Final = tuple(_scheduler(row) for row in _TABLES["schedulers"])
KNOBS: Final[tuple[str, ...]] = tuple(_TABLES["knobs"])
"""Knobs of a simulated queue under the names of the real ones, tunables aside."""
PROFILES: Final = tuple(ProfileName(**row) for row in _TABLES["profiles"])
LIMITS: Final = tuple(Limit(**row) for row in _TABLES["limits"])
POSSIBLE: Final = tuple(_possible(row) for row in _TABLES["levels"])
ALIKE: Final = tuple(_alike(row) for row in _TABLES["alike"])
FLAGS: Final[frozenset[str]] = frozenset(_TABLES["flags"])
"""Flags of transfers that mean something there."""
