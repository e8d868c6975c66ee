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

from iolab.frozen import frozen
from iolab.stats.methods.student import MeanEstimate, estimate_mean


@frozen
class DifferenceEstimate(MeanEstimate):
    """Difference of two means; ``n`` is the smaller sample, ``sd`` its standard error x sqrt(n)."""

    freedom: float = 1.0
    """Degrees of freedom of the standard error."""

    def freedom_of(self, count: int) -> float:
        """Return the degrees of freedom that `count` runs a side would have."""
        return self.freedom * (count - 1) / (self.n - 1)


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
    return DifferenceEstimate(a.mean - b.mean, math.sqrt(variance * n), n, freedom=freedom)
