"""A typical ratio that one bad round cannot move: Hodges-Lehmann with Wilcoxon's exact interval.

The median of all pairwise means of the rounds' ln-ratios; the interval is cut from the same sorted
means by the exact null distribution of the signed-rank statistic. Used for quantiles of latency,
whose per-trial values have heavier tails than throughput. Needs six rounds for 95 %. Beyond a
hundred rounds the statistic is taken as normal, and the means are counted instead of listed.

Source: Hodges and Lehmann (1963), Ann. Math. Statist. 34(2); Hollander, Wolfe and Chicken,
Nonparametric Statistical Methods, chapter 3.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

from iolab.frozen import frozen

EXACT_MAX: Final = 100
"""More values than this have a normal signed-rank statistic, to three digits of its tail."""


@frozen
class Shift:
    """Estimate and interval, unit of the sample."""

    estimate: float
    low: float | None
    """Lower end; None with too few values for the confidence."""
    high: float | None
    confidence: float | None
    """Exact, at least what was asked."""


def hodges_lehmann(differences: Sequence[float], *, confidence: float = 0.95) -> Shift | None:
    """Estimate the middle of paired differences; None for no value."""
    n = len(differences)
    if n == 0:
        return None
    if n > EXACT_MAX:
        return _many(differences, confidence)
    means = sorted((differences[i] + differences[j]) / 2 for i in range(n) for j in range(i, n))
    half = len(means) // 2
    estimate = means[half] if len(means) % 2 else (means[half - 1] + means[half]) / 2
    counts = _signed_rank_counts(n)
    below, dropped = 0, 0
    # P(W <= k) may be at most half of what is left over.
    while 2 * (below + counts[dropped]) / 2**n <= 1 - confidence:
        below += counts[dropped]
        dropped += 1
    if dropped == 0:
        return Shift(estimate, None, None, None)
    return Shift(estimate, means[dropped - 1], means[-dropped], 1 - 2 * below / 2**n)


def _many(differences: Sequence[float], confidence: float) -> Shift:
    n, pairs = len(differences), len(differences) * (len(differences) + 1) // 2
    dropped, reached = normal_cut(n, confidence)
    places = ((pairs + 1) // 2, pairs // 2 + 1, dropped, pairs + 1 - dropped)
    below, above, low, high = ordered_means(differences, places)
    return Shift((below + above) / 2, low, high, reached)


def normal_cut(n: int, confidence: float) -> tuple[int, float]:
    """Return which mean from either end bounds the interval, and the confidence it has.

    The signed-rank statistic as normal, corrected for continuity (Hollander et al., 3.3).
    """
    statistic = NormalDist(n * (n + 1) / 4, math.sqrt(n * (n + 1) * (2 * n + 1) / 24))
    dropped = math.floor(statistic.inv_cdf((1 - confidence) / 2) + 0.5)
    return dropped, 1 - 2 * statistic.cdf(dropped - 0.5)


def ordered_means(values: Sequence[float], places: Sequence[int]) -> list[float]:
    """Return the means of pairs (a value with itself included) at some places of their order.

    Parameters
    ----------
    values : at least one, any order.
    places : from 1 to n (n + 1) / 2.

    Each is found by halving an interval and counting the means up to its middle, until no number
    lies between its ends: the result is the mean itself, to the last place of its size.
    """
    import numpy as np

    ordered = np.sort(np.asarray(values, dtype=np.float64))
    ranks = np.arange(len(ordered))

    def count(limit: float) -> int:
        beyond = np.searchsorted(ordered, 2 * limit - ordered, side="right")
        return int(np.maximum(beyond - ranks, 0).sum())

    found: list[float] = []
    for place in places:
        low, high = float(ordered[0]), float(ordered[-1])
        if count(low) >= place:
            high = low
        while low < (middle := low + (high - low) / 2) < high:
            low, high = (low, middle) if count(middle) >= place else (middle, high)
        found.append(high)
    return found


@functools.lru_cache(maxsize=64)
def _signed_rank_counts(n: int) -> tuple[int, ...]:
    """Number of sign patterns by the sum of their positive ranks."""
    counts = [1]
    for rank in range(1, n + 1):
        longer = [*counts, *[0] * rank]
        for total, count in enumerate(counts):
            longer[total + rank] += count
        counts = longer
    return tuple(counts)
