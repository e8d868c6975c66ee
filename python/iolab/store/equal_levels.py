"""Levels that are two names for one setting: what the kernel made of them, as read back, is equal.

A read-ahead of 129 KiB is one of 128 KiB, since the kernel counts in pages. Comparing the two would
compare a level with itself. Levels are called equal only if every value read back agrees; a trial
whose record lacks the knob (a tunable under another scheduler) says nothing about it.

File systems are compared by their parameters, as their own program reads them back. That a study
is refused for it would be too much: how the device was treated while they were made (discards) is
no parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from iolab.frozen import frozen

_MKFS: Final = "mkfs_options"


@frozen
class EqualLevels:
    """Two levels of a factor that had the same effect."""

    factor: str
    first: str
    second: str
    reason: str

    @property
    def message(self) -> str:
        """Finding, as the beginning of a sentence."""
        return f"{self.factor} {self.first} and {self.second} are the same setting: {self.reason}"

    @property
    def hint(self) -> str:
        """Advice: the next thing to do."""
        return f"leave one of {self.first} and {self.second} out"


def find_equal_levels(
    trials: Iterable[tuple[Mapping[str, str], Mapping[str, str]]],
) -> list[EqualLevels]:
    """Compare the levels of `trials`, given as levels and knobs read back."""
    return [
        EqualLevels(factor, first, second, f"the kernel made {' or '.join(sorted(values))} of both")
        for factor, first, second, values in _pairs(trials)
    ]


def find_equal_file_systems(
    trials: Iterable[tuple[Mapping[str, str], Sequence[str]]],
) -> list[EqualLevels]:
    """Compare the options for mkfs of `trials`, given as levels and parameters read back."""
    known = (
        (levels, {_MKFS: "\n".join(parameters)} if parameters else {})
        for levels, parameters in trials
    )
    reason = "the file systems have the same parameters"
    return [
        EqualLevels(factor, first, second, reason) for factor, first, second, _ in _pairs(known)
    ]


def _pairs(
    trials: Iterable[tuple[Mapping[str, str], Mapping[str, str]]],
) -> Iterator[tuple[str, str, str, set[str]]]:
    """Factor, the first level with an effect, another one with it, and the effect."""
    seen: dict[str, dict[str, set[str]]] = {}
    for levels, effects in trials:
        for factor, level in levels.items():
            if effects.get(factor) is not None:
                seen.setdefault(factor, {}).setdefault(level, set()).add(str(effects[factor]))
    for factor, by_level in seen.items():
        for second, values in by_level.items():
            first = next(level for level, known in by_level.items() if known == values)
            if first != second:
                yield factor, first, second, values
