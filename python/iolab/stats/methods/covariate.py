"""The mean of paired differences, freed of what a second measured difference explains.

Model: y = effect + slope * x + error, one y and one x per round; the effect is the value at x = 0,
where both sides had the same of x. Given the x the estimate is unbiased and its t interval covers
as promised, whatever the slope is. It is the effect *at equal x*: where the level itself changes x,
that is another question, and the caller must not ask it.

Source: Cochran (1957), Analysis of covariance: its nature and uses, Biometrics 13(3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from iolab.frozen import frozen
from iolab.stats.methods.student import t_quantile_real

ROUNDS_MIN: Final = 6
"""Below this a slope of its own costs more than it gives."""


@frozen
class Adjusted:
    """An effect at equal x."""

    mean: float
    """In the unit of y."""
    error: float
    """Standard error of `mean`."""
    slope: float
    """Of y over x."""
    n: int

    def half_width(self, confidence: float) -> float:
        """Return half the width of the two-sided t interval, with n - 2 degrees of freedom."""
        return t_quantile_real(0.5 + confidence / 2, self.n - 2) * self.error


def adjusted_mean(values: Sequence[float], others: Sequence[float]) -> Adjusted | None:
    """Fit `values` over `others`, round by round.

    Returns
    -------
    Adjusted, or None with fewer than `ROUNDS_MIN` rounds or without any spread of `others`.
    """
    n = len(values)
    if n < ROUNDS_MIN:
        return None
    mean_y, mean_x = math.fsum(values) / n, math.fsum(others) / n
    spread = math.fsum((x - mean_x) ** 2 for x in others)
    if spread <= 0:
        return None
    both = zip(values, others, strict=True)
    slope = math.fsum((y - mean_y) * (x - mean_x) for y, x in both) / spread
    mean = mean_y - slope * mean_x
    both = zip(values, others, strict=True)
    left = math.fsum((y - mean - slope * x) ** 2 for y, x in both)
    error = math.sqrt(left / (n - 2) * (1 / n + mean_x**2 / spread))
    return Adjusted(mean, error, slope, n)
