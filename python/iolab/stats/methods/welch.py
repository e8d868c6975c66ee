"""Welch's t for the difference of two independent samples of ln-values, one value per run.

For runs that nobody interleaved: pairing them by number would be an invention. The variances of
the two sides may differ. The result behaves like the mean of one sample of differences, so that
the verdict rule reads it as it is; planning for n further runs scales the degrees of freedom with
n - 1. Left out: anything but independence of the runs, which an unknown order cannot promise.

Source: Welch (1947), Biometrika 34(1/2); degrees of freedom: Satterthwaite (1946), Biometrics
Bulletin 2(6).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iolab.stats.methods.student import MeanEstimate, estimate_mean


@dataclass(frozen=True, slots=True)
class DifferenceEstimate(MeanEstimate):
    """Difference of two means; ``n`` is the smaller sample, ``sd`` its standard error x sqrt(n)."""

    freedom: float = 1.0
    """Degrees of freedom of the standard error."""

    def half_width(self, confidence: float, *, n: int | None = None) -> float:
        """Return half the width of the two-sided t interval; infinite below two values a side."""
        count = self.n if n is None else n
        if self.sd is None or count < 2 or self.n < 2:
            return math.inf
        freedom = self.freedom * (count - 1) / (self.n - 1)
        return _t_quantile(0.5 + confidence / 2, freedom) * self.sd / math.sqrt(count)

    def p_value(self) -> float | None:
        """Return the two-sided p of "no difference"; None below two values a side."""
        if self.sd is None or self.n < 2:
            return None
        if self.sd == 0:
            return 1.0 if self.mean == 0 else 0.0
        return 2 * _t_cdf(-abs(self.mean) * math.sqrt(self.n) / self.sd, self.freedom)


def _t_quantile(probability: float, freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def _t_cdf(value: float, freedom: float) -> float:
    from scipy.special import stdtr

    return float(stdtr(freedom, value))


def estimate_difference(ours: Sequence[float], theirs: Sequence[float]) -> DifferenceEstimate:
    """Reduce two samples (shapes (n,), (m,), at least one value each) to mean(ours) - mean(theirs).

    Raises
    ------
    ValueError : a side has no value.
    """
    a, b = estimate_mean(ours), estimate_mean(theirs)
    n = min(a.n, b.n)
    if a.sd is None or b.sd is None:
        return DifferenceEstimate(a.mean - b.mean, None, n)
    part_a, part_b = a.sd**2 / a.n, b.sd**2 / b.n
    variance = part_a + part_b
    freedom = float(a.n + b.n - 2)
    if variance > 0:
        share_a, share_b = part_a / variance, part_b / variance
        freedom = 1 / (share_a**2 / (a.n - 1) + share_b**2 / (b.n - 1))
    return DifferenceEstimate(a.mean - b.mean, math.sqrt(variance * n), n, freedom)
