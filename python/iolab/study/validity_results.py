"""Results of the tests of equivalence: for what slices and whole trials were shown to agree.

They are kept as data beside this file and written by ``python benches/validity.py --keep``, one for
each factor, program, testbed, metric and way of I/O; a later one takes the place of an older one.
Whether one counts is asked again here: a word in a file is not enough.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from iolab.frozen import frozen

FILE: Final = Path(__file__).with_name("validity_results.json")
ROUNDS_MIN: Final = 30
ALPHA: Final = 0.05


@frozen
class ValidityResult:
    """One test of slices against trials."""

    factor: str
    levels: str
    program: str
    testbed: str
    metric: str
    is_buffered: bool
    margin: float
    word: str
    rounds: int
    """Of trials."""
    units: int
    """Balanced units of slices."""
    ratio_slices: float
    ratio_trials: float
    low: float
    """90 % interval of the ratio of both."""
    high: float
    p_equivalent: float | None
    variance_ratio: float
    """Of trials to slices, in the same time."""
    kernel: str
    date: str

    @property
    def is_passed(self) -> bool:
        """Tell whether it earns what it was about: enough rounds, and inside the margin."""
        is_inside = 1 / (1 + self.margin) < self.low and self.high < 1 + self.margin
        has_p = self.p_equivalent is not None and self.p_equivalent < ALPHA
        return self.word == "shown" and self.rounds >= ROUNDS_MIN and is_inside and has_p


@cache
def validity_results() -> tuple[ValidityResult, ...]:
    """All results that are kept."""
    names = set(ValidityResult.__annotations__)
    found: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return tuple(
        ValidityResult(**{name: value for name, value in one.items() if name in names})
        for one in found
    )


def is_earned(factor: str, program: str, place: tuple[str, str], *, is_buffered: bool) -> bool:
    """Tell whether a test was passed for just this; `place` is kind of testbed and metric."""
    return any(
        one.is_passed
        and (one.factor, one.program, one.is_buffered) == (factor, program, is_buffered)
        and (one.testbed, one.metric) == place
        for one in validity_results()
    )
