"""Set of levels that may be the best: every level with the best of the others, each by its own
spread.

A level stays in the winner set unless it is shown to be worse than some other: by one-sided bounds
at .05 / (K - 1) of its differences to the other K - 1 levels, each with the spread of that pair
(paired by round, or Welch's). The truly best level is thrown out in at most 5 % of studies, however
unequally noisy the levels are; one spread for all of them would throw out a best that is 7 to 15
times noisier in 9 to 18 %. The set says what cannot be ruled out; `best_set` says what is shown to
be as good.

Source: Edwards and Hsu (1983), Journal of the American Statistical Association 78(384): multiple
comparisons with the best from intervals of the pairs; Hsu (1996), Multiple Comparisons, chapter 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from iolab.frozen import frozen
from iolab.stats.methods.student import MeanEstimate

Estimate = Callable[[str, str], MeanEstimate | None]
"""Ln-ratio of the first level to the second."""


@frozen
class WithBest:
    """One level against the best of the others; ln of a ratio, above 0 is better."""

    level: str
    difference: float
    low: float
    """At most 0."""
    high: float
    """At least 0; 0 where the level is ruled out."""

    @property
    def may_be_best(self) -> bool:
        """Tell whether it cannot be ruled out."""
        return self.high > 0


def hsu_mcb(
    levels: Sequence[str], estimate: Estimate, *, confidence: float = 0.95
) -> list[WithBest]:
    """Compare every level with the best of the others.

    Returns
    -------
    In the order given; empty below two levels, or where no pair has two shared rounds.
    """
    if len(levels) < 2:
        return []
    # One-sided bounds: the two-sided interval of twice the error.
    two_sided = 1 - 2 * (1 - confidence) / (len(levels) - 1)
    found: list[WithBest] = []
    for level in levels:
        known = [e for other in levels if other != level and (e := estimate(level, other))]
        ends = [(e.mean, e.half_width(two_sided)) for e in known]
        if not any(math.isfinite(half) for _, half in ends):
            return []
        difference = min(mean for mean, _ in ends)
        low = min(0.0, *(mean - half for mean, half in ends))
        high = max(0.0, min(mean + half for mean, half in ends))
        # With no spread at all a tie has no interval: both are the best.
        high = max(high, 1e-300) if difference == 0 else high
        found.append(WithBest(level, difference, low, high))
    return found
