"""Logarithms of ratios, and geometric means: effects are ratios, so sums are of logarithms.

Source: Hoefler and Belli, SC'15, rule 4 (never average ratios arithmetically).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from iolab.stats.methods.student import estimate_mean


def is_usable(value: float) -> bool:
    """Say whether a value has a logarithm: finite and above zero."""
    return math.isfinite(value) and value > 0


def log_ratio(numerator: float, denominator: float) -> float:
    """Return ln(numerator / denominator); swapping the arguments flips exactly the sign.

    Parameters
    ----------
    numerator, denominator : same unit, both usable (`is_usable`).
    """
    if numerator >= denominator:
        return math.log(numerator / denominator)
    return -math.log(denominator / numerator)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of usable values, in their unit."""
    return math.exp(estimate_mean([math.log(value) for value in values]).mean)


def geometric_interval(
    values: Sequence[float], *, confidence: float = 0.95
) -> tuple[float, float] | None:
    """Return the t interval of the geometric mean (on ln), in the unit of `values`.

    Returns
    -------
    (low, high), or None below two values.
    """
    return geometric_mean_and_interval(values, confidence=confidence)[1]


def geometric_mean_and_interval(
    values: Sequence[float], *, confidence: float = 0.95
) -> tuple[float, tuple[float, float] | None]:
    """Return `geometric_mean` and `geometric_interval` at the price of one."""
    estimate = estimate_mean(list(map(math.log, values)))
    mean, half = math.exp(estimate.mean), estimate.half_width(confidence)
    if not math.isfinite(half):
        return mean, None
    return mean, (ratio_of_log(estimate.mean - half), ratio_of_log(estimate.mean + half))


def ratio_of_log(value: float) -> float:
    """Return e**value, kept inside what a float can hold (intervals of two rounds get wide)."""
    return math.exp(max(-709.0, min(value, 709.0)))
