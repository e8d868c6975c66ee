"""Size of a difference beside the noise: probability of superiority, and Hedges' g.

Superiority: in which share of rounds the first side is better, with the exact (Clopper-Pearson)
interval; a tie counts for neither and leaves the sample. Hedges' g: mean difference over the root
of the mean of both sides' variances, with the small-sample correction for 2 (n - 1) degrees of
freedom. A ratio with its interval says more to whoever has to decide; these two say how
often the better one wins, and serve those who compare studies.

Source: Clopper and Pearson (1934), Biometrika 26(4); Hedges (1981), J. Educ. Statist. 6(2); for
paired data Lakens (2013), Frontiers in Psychology 4:863.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from iolab.frozen import frozen
from iolab.stats.methods.student import estimate_mean


@frozen
class Share:
    """A share of successes with its exact interval."""

    share: float
    low: float
    high: float
    n: int


def clopper_pearson(successes: int, n: int, *, confidence: float = 0.95) -> Share:
    """Return the exact two-sided interval of a binomial share.

    Raises
    ------
    ValueError : no trial, or more successes than trials.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} of {n} is no share")
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = float(betaincinv(successes, n - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, n - successes, 1 - tail)) if successes < n else 1.0
    return Share(successes / n, low, high, n)


def superiority(differences: Sequence[float]) -> Share | None:
    """Return in which share of rounds the first side is better; None if all are ties."""
    decided = [value for value in differences if value != 0]
    if not decided:
        return None
    return clopper_pearson(sum(value > 0 for value in decided), len(decided))


def hedges_g(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return g of paired samples (shape (n,) each); None below two pairs or without spread."""
    n = len(first)
    if n < 2 or n != len(second):
        return None
    a, b = estimate_mean(first), estimate_mean(second)
    pooled = math.sqrt(((a.sd or 0.0) ** 2 + (b.sd or 0.0) ** 2) / 2)
    if pooled == 0:
        return None
    freedom = 2 * (n - 1)
    return (a.mean - b.mean) / pooled * (1 - 3 / (4 * freedom - 1))
