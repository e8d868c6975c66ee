"""What a simulated queue has: `simulated.json` beside this file, as typed rows.

Its sources are the lists of the simulator and the folder of profiles; `make docs` writes it. A
copy is kept because a study must be read and checked where the simulator is not built. What a
profile contains, and which numbers it rests on, is told by ``iolab sim profiles NAME``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from iolab.frozen import frozen


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


def _scheduler(row: dict[str, Any]) -> SimulatedScheduler:
    tunables = tuple(SimulatedTunable(**tunable) for tunable in row["tunables"])
    return SimulatedScheduler(row["name"], row["framework"], tunables)


_TABLES: Final[dict[str, list[Any]]] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
SCHEDULERS: Final = tuple(_scheduler(row) for row in _TABLES["schedulers"])
KNOBS: Final[tuple[str, ...]] = tuple(_TABLES["knobs"])
"""Knobs of a simulated queue under the names of the real ones, tunables aside."""
PROFILES: Final = tuple(ProfileName(**row) for row in _TABLES["profiles"])
