"""A typical ratio that one bad round cannot move: Hodges-Lehmann with Wilcoxon's exact interval.

The median of all pairwise means of the rounds' ln-ratios; the interval is cut from the same sorted
means by the exact null distribution of the signed-rank statistic. Used for quantiles of latency,
whose per-trial values have heavier tails than throughput. Needs six rounds for 95 %.

Source: Hodges and Lehmann (1963), Ann. Math. Statist. 34(2); Hollander, Wolfe and Chicken,
Nonparametric Statistical Methods, chapter 3.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shift:
    """Estimate and interval, unit of the sample."""

    estimate: float
    low: float | None
    """None with too few values for the confidence."""
    high: float | None
    confidence: float | None
    """Exact, at least what was asked."""


def hodges_lehmann(differences: Sequence[float], *, confidence: float = 0.95) -> Shift | None:
    """Estimate the middle of paired differences; None for no value."""
    n = len(differences)
    if n == 0:
        return None
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
