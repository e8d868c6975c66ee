"""Number of trials until the median is known to a few percent: CONFIRM, by resampling a pilot.

For s = 10, 11, ... n: draw many subsets of s values without replacement, take each subset's
order-statistic interval of the median, average lower and upper bounds; the answer is the smallest
s whose averaged bounds lie within the wanted share of the median. Nothing normal is assumed. Left
out: extrapolation; if n values do not suffice the answer is "more than n".

Source: Maricq et al. (2018), Taming Performance Variability, OSDI; ranks as printed there.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Final

from iolab.frozen import frozen

SUBSETS: Final = 200
SMALLEST: Final = 10
_Z: Final = 1.96
_SEED: Final = 20_180_909


@frozen
class Confirmation:
    """The recommended number of trials."""

    n_recommended: int | None
    """Recommended number; None: more than the pilot has."""
    half_width_share: float
    """Of the averaged bounds at that number, or with all values."""


def confirm(values: Sequence[float], *, share: float = 0.03) -> Confirmation | None:
    """Recommend a number of trials for one treatment.

    Parameters
    ----------
    values : pilot, shape (n,), above 0; in any order.
    share : wanted half width as a share of the median.

    Returns
    -------
    None below ten values.
    """
    if len(values) < SMALLEST:
        return None
    rng = random.Random(_SEED)
    middle = _median(sorted(values))
    width = math.inf
    for size in range(SMALLEST, len(values) + 1):
        lows, highs = 0.0, 0.0
        for _ in range(SUBSETS):
            subset = sorted(rng.sample(list(values), size))
            low, high = _ranks(size)
            lows += subset[low - 1]
            highs += subset[high - 1]
        width = max(middle - lows / SUBSETS, highs / SUBSETS - middle) / middle
        if width <= share:
            return Confirmation(size, width)
    return Confirmation(None, width)


def _ranks(n: int) -> tuple[int, int]:
    """1-based ranks of the interval of the median."""
    low = math.floor((n - _Z * math.sqrt(n)) / 2)
    high = math.ceil(1 + (n + _Z * math.sqrt(n)) / 2)
    return max(1, low), min(n, high)


def _median(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
