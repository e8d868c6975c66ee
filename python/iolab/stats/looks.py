"""At which level a study is judged that looks before its end.

A study with planned looks (`looks` in its file) may end at each of them. Its intervals have the
O'Brien-Fleming level of the look that its complete rounds have reached, so that all looks together
err as often as one. Between two looks the level of the earlier one holds, before the first look
that of the first: both are stricter than what the next look will grant.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Final

from iolab.stats.methods.group_sequential import nominal_levels
from iolab.store.rows import StudyRow
from iolab.study.plan import look_rounds

ALPHA: Final = 0.05


@dataclass(frozen=True, slots=True)
class Look:
    """Where a study stands among its looks."""

    number: int
    """1-based; 1 also before the first."""
    planned: int
    level: float
    """Two-sided; 0.05 without planned looks."""

    @property
    def divisor(self) -> float:
        """What alpha is divided by."""
        return ALPHA / self.level


def look_of(study: StudyRow, rounds_complete: int) -> Look:
    """Find the look that a study has reached."""
    try:
        table = tomllib.loads(study.spec_toml)
    except tomllib.TOMLDecodeError:  # An imported study has no file of ours.
        table = {}
    looks, rounds = table.get("looks"), table.get("rounds")
    if not looks or not rounds:
        return Look(1, 1, ALPHA)
    places = look_rounds(rounds, looks)
    number = max(1, sum(place <= rounds_complete for place in places))
    return Look(number, len(places), nominal_levels(len(places), "obrien_fleming")[number - 1])
