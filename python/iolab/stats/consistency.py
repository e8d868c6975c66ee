"""Check that the numbers of a published table agree with each other, as far as their rounding
allows.

Two checks: a printed mean against the mean of its printed runs, and a printed product against the
product of its factors (rate x size = bandwidth, rate x latency = queue). A printed number stands
for every number that rounds to it: half a unit of its last place either way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from decimal import Decimal


@dataclasses.dataclass(frozen=True)
class Check:
    """One comparison: what was printed, what follows from the other numbers, and how far off."""

    subject: str
    printed: Decimal
    derived: Decimal
    tolerance: Decimal

    @property
    def is_consistent(self) -> bool:
        """Tell whether rounding alone explains the difference."""
        return abs(self.printed - self.derived) <= self.tolerance

    def __str__(self) -> str:
        """Say it in one line."""
        word = "agrees with" if self.is_consistent else "does not agree with"
        return (
            f"{self.subject}: printed {self.printed} {word} {self.derived:.6g} "
            f"from the other numbers (rounding allows {self.tolerance:.2g})"
        )


def half_unit(printed: str) -> Decimal:
    """Half a unit of the last printed place."""
    exponent = Decimal(printed).as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError(f"{printed!r} is not a number")
    return Decimal(5).scaleb(exponent - 1)


def check_mean(subject: str, printed: str, runs: Sequence[str]) -> Check:
    """Compare a printed mean with the mean of printed runs."""
    mean = sum(map(Decimal, runs), Decimal(0)) / len(runs)
    slack = sum(map(half_unit, runs), Decimal(0)) / len(runs)
    return Check(subject, Decimal(printed), mean, half_unit(printed) + slack)


def check_product(subject: str, printed: str, factors: tuple[str, str], scale: str = "1") -> Check:
    """Compare a printed number with the product of two others, times `scale` for their units."""
    (a, b), unit = map(Decimal, factors), Decimal(scale)
    slack_a, slack_b = map(half_unit, factors)
    slack = (abs(a) * slack_b + abs(b) * slack_a + slack_a * slack_b) * unit
    return Check(subject, Decimal(printed), a * b * unit, half_unit(printed) + slack)
