"""Location without normality: order statistics of the median, and BCa bootstrap.

Both resample or rank *rounds*, never operations. The interval of the median needs six rounds for
95 %; its ranks are the exact binomial ones. BCa needs ten; below, it is None and the caller falls
back to Student's t and says so.

Source: order statistics: David and Nagaraja, Order Statistics, 7.1. BCa: Efron (1987), JASA
82(397).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Final

from iolab.frozen import frozen

RESAMPLES: Final = 9999
BCA_ROUNDS_MIN: Final = 10
_SEED: Final = 20_871_987


@frozen
class Bounds:
    """An interval, and the confidence that it really has."""

    low: float
    high: float
    confidence: float


def median_ranks(n: int, confidence: float = 0.95) -> tuple[int, int, float] | None:
    """Return the 1-based ranks of the interval of the median, and its exact confidence.

    The narrowest symmetric pair whose binomial coverage is at least `confidence`; None if even
    the extremes cover less (n < 6 for 95 %).
    """
    tail, lower = 0.0, 0
    for rank in range(1, n // 2 + 1):
        after = tail + math.comb(n, rank - 1) / 2**n
        if 1 - 2 * after < confidence:
            break
        tail, lower = after, rank
    return (lower, n + 1 - lower, 1 - 2 * tail) if lower else None


def median_interval(values: Sequence[float], *, confidence: float = 0.95) -> Bounds | None:
    """Return the order-statistic interval of the median; None with too few values."""
    ranks = median_ranks(len(values), confidence)
    if ranks is None:
        return None
    ordered = sorted(values)
    return Bounds(ordered[ranks[0] - 1], ordered[ranks[1] - 1], ranks[2])


def mean_of(values: Sequence[float]) -> float:
    """Return the mean; the default statistic of `bca_interval`."""
    return math.fsum(values) / len(values)


def bca_interval(
    values: Sequence[float],
    statistic: Callable[[Sequence[float]], float] = mean_of,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> Bounds | None:
    """Return the bias-corrected and accelerated bootstrap interval.

    Parameters
    ----------
    values : shape (n,), one per round.
    statistic : of a sample; the mean is resampled with numpy, anything else one by one.

    Returns
    -------
    None below ten values, or if all are equal. The same values give the same interval.
    """
    n = len(values)
    if n < BCA_ROUNDS_MIN or max(values) == min(values):
        return None
    from scipy.special import ndtr, ndtri

    observed = statistic(values)
    replicates = sorted(_resampled(values, statistic, resamples))
    below = sum(value < observed for value in replicates)
    ties = sum(value == observed for value in replicates)
    share = min(max((below + ties / 2) / resamples, 1 / resamples), 1 - 1 / resamples)
    bias = float(ndtri(share))
    left_out = [statistic([*values[:i], *values[i + 1 :]]) for i in range(n)]
    middle = mean_of(left_out)
    deviations = [middle - value for value in left_out]
    squares = math.fsum(d * d for d in deviations)
    cubes = math.fsum(d**3 for d in deviations)
    acceleration = cubes / (6 * squares**1.5) if squares > 0 else 0.0

    def bound(probability: float) -> float:
        z = bias + float(ndtri(probability))
        adjusted = float(ndtr(bias + z / (1 - acceleration * z)))
        place = min(max(adjusted * resamples, 0), resamples - 1)
        return replicates[int(place)]

    tail = (1 - confidence) / 2
    return Bounds(bound(tail), bound(1 - tail), confidence)


def _resampled(
    values: Sequence[float], statistic: Callable[[Sequence[float]], float], resamples: int
) -> list[float]:
    if statistic is mean_of:
        import numpy as np

        sample = np.asarray(values, dtype=np.float64)
        places = np.random.default_rng(_SEED).integers(0, len(sample), (resamples, len(sample)))
        return [float(value) for value in sample[places].mean(axis=1)]
    rng = random.Random(_SEED)
    return [statistic(rng.choices(values, k=len(values))) for _ in range(resamples)]
