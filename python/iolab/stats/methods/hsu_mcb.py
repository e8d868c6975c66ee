"""Which levels may be the best? Multiple comparisons with the best (Hsu).

Every level is compared with the best of the others by one simultaneous one-sided bound. A level
stays in the winner set unless it is shown to be worse than some other; the truly best level is
in the set in at least 95 % of studies. The set says what cannot be ruled out; `best_set` says
what is shown to be as good.

Source: Hsu (1981), Annals of Statistics 9(5); Hsu (1996), Multiple Comparisons, chapter 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iolab.stats.methods.equicorrelated import largest_quantile
from iolab.stats.methods.round_centred import centre_rounds


@dataclass(frozen=True, slots=True)
class WithBest:
    """One level against the best of the others; ln of a ratio, above 0 is better."""

    level: str
    difference: float
    low: float
    """At most 0."""
    high: float
    """At least 0."""

    @property
    def may_be_best(self) -> bool:
        """Whether it cannot be ruled out."""
        return self.high > 0


def hsu_mcb(
    log_values: Mapping[str, Mapping[int, float]], *, confidence: float = 0.95
) -> list[WithBest]:
    """Compare every level with the best of the others; empty below two levels or two rounds."""
    table = centre_rounds(log_values)
    if table is None:
        return []
    count = len(table.means) - 1
    half = (
        largest_quantile(confidence, count, table.degrees_of_freedom, is_two_sided=False)
        * table.error
    )
    found: list[WithBest] = []
    for level, mean in table.means.items():
        difference = mean - max(m for other, m in table.means.items() if other != level)
        low, high = min(0.0, difference - half), max(0.0, difference + half)
        # With no spread at all a tie has no interval: both are the best.
        high = max(high, 1e-300) if difference == 0 else high
        found.append(WithBest(level, difference, low, high))
    return found
