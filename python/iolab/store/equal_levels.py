"""Levels that are two names for one setting: what the kernel made of them, as read back, is equal.

A read-ahead of 129 KiB is one of 128 KiB, since the kernel counts in pages. Comparing the two would
compare a level with itself. Levels are called equal only if every value read back agrees; a trial
whose record lacks the knob (a tunable under another scheduler) says nothing about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class EqualLevels:
    """Two levels of a factor that had the same effect."""

    factor: str
    first: str
    second: str
    effective: str

    @property
    def message(self) -> str:
        """What was found, as the beginning of a sentence."""
        return (
            f"{self.factor} {self.first} and {self.second} are the same setting: the kernel made "
            f"{self.effective} of both"
        )

    @property
    def hint(self) -> str:
        """What to do."""
        return f"leave one of {self.first} and {self.second} out"


def find_equal_levels(
    trials: Iterable[tuple[Mapping[str, str], Mapping[str, Any]]],
) -> list[EqualLevels]:
    """Compare the levels of `trials`, given as levels and knobs read back."""
    seen: dict[str, dict[str, set[str]]] = {}
    for levels, knobs in trials:
        for factor, level in levels.items():
            if knobs.get(factor) is not None:
                seen.setdefault(factor, {}).setdefault(level, set()).add(str(knobs[factor]))
    found = list[EqualLevels]()
    for factor, by_level in seen.items():
        for second, values in by_level.items():
            first = next(level for level, known in by_level.items() if known == values)
            if first != second:
                found.append(EqualLevels(factor, first, second, " or ".join(sorted(values))))
    return found
