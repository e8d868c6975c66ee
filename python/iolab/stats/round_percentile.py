"""Percentile of operations that were measured in rounds, with an interval that rounds decide.

Operations of one round resemble each other: a stall slows many of them, a quiet minute none. Pooled
as if they were independent, a hundred thousand of them give an interval that is far too narrow.
Here the round is the sample: the interval holds every time x of which the share of operations
slower than x may be the wanted one (Woodruff). The share is a ratio of two sums over rounds, whose
variance is that of cluster sampling (Cochran); its interval is the exact one for so many
independent operations as would have that variance (Korn and Graubard). For rare operations few
rounds decide, and where none of the bad ones was met the variance looks too small: the design
effect, variance over that of independent operations, is therefore not let fall from the slowest
5 % of operations to the slower ones. Simulated rounds with drift and stalls are the reason:
tests/stats/test_requirement_word.py.

Left out: dependence of rounds on each other, and times finer than a part of the histogram (1/128).

Sources: Woodruff (1952), JASA 47(260); Cochran (1977), Sampling Techniques, chapter 6; Korn and
Graubard (1998), Survey Methodology 24(2); Clopper and Pearson (1934), Biometrika 26(4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from iolab.frozen import frozen
from iolab.stats.methods.student import estimate_mean, t_quantile

if TYPE_CHECKING:
    from iolab.protocol import Histogram

_TAIL: Final = 0.05
"""Share of the slowest operations in which the design effect does not fall."""


@frozen
class RoundEstimate:
    """A quantity with its interval over rounds; all three in the unit of the quantity."""

    value: float
    low: float
    high: float
    """Infinite where there are too few operations, or rounds, to name an end."""
    n_rounds: int
    n_ops: int


def percentile_of_rounds(
    rounds: Sequence[Histogram], quantile: float, *, level: float = 0.95
) -> RoundEstimate:
    """Estimate a percentile from one histogram per round.

    Parameters
    ----------
    rounds : shape (k,); histograms of one resolution, those without a value left out.
    quantile : in (0, 1): 0.99 for p99.
    level : confidence, in (0, 1).

    Returns
    -------
    RoundEstimate : in the unit of the histograms (ns). With fewer than two rounds, or too few
        operations for the percentile, the interval ends at infinity.

    Raises
    ------
    ValueError : no round has a value, or resolutions differ.
    """
    filled = [one for one in rounds if one["count"]]
    bits = {int(one["sub_bucket_bits"]) for one in filled}
    if len(bits) != 1:
        raise ValueError("percentiles need histograms of one resolution, with values")
    resolution = bits.pop()
    counts = [{int(part): int(count) for part, count in one["counts"]} for one in filled]
    parts = sorted({part for one in counts for part in one})
    beyond = _beyond(counts, parts)
    n_ops = sum(sum(one.values()) for one in counts)
    lows, highs = _share_intervals(beyond, [sum(one.values()) for one in counts], level)
    edges = [_edges(part, resolution) for part in parts]
    wanted = 1 - quantile
    smallest = float(min(one["min"] for one in filled))
    largest = float(max(one["max"] for one in filled))
    at = next(i for i in range(len(parts)) if sum(row[i] for row in beyond) <= wanted * n_ops)
    value = min(max(sum(edges[at]) / 2, smallest), largest)
    low, high = smallest, math.inf
    for edge, share in zip(edges, lows, strict=True):
        if share <= wanted:
            low = max(low, float(edge[0]))  # No operation lies between it and the part before.
            break
    for edge, share in zip(reversed(edges), reversed(highs), strict=True):
        if share >= wanted:
            break
        high = min(largest, edge[1])
    return RoundEstimate(value, min(low, value), max(high, value), len(filled), n_ops)


def _beyond(counts: Sequence[Mapping[int, int]], parts: Sequence[int]) -> list[list[int]]:
    """Operations of each round that lie above each part; shape (rounds, parts)."""
    found = list[list[int]]()
    for one in counts:
        left, row = sum(one.values()), list[int]()
        for part in parts:
            left -= one.get(part, 0)
            row.append(left)
        found.append(row)
    return found


def _share_intervals(
    beyond: Sequence[Sequence[int]], sizes: Sequence[int], level: float
) -> tuple[list[float], list[float]]:
    """Both ends of the share of operations above each part; shapes (parts,)."""
    n, n_rounds, n_parts = sum(sizes), len(sizes), len(beyond[0])
    if n_rounds < 2:
        return [0.0] * n_parts, [1.0] * n_parts
    tail = (1 - level) / 2
    freedom = (t_quantile(1 - tail, max(1, n - 1)) / t_quantile(1 - tail, n_rounds - 1)) ** 2
    lows, highs, design = list[float](), list[float](), 1.0
    for column in zip(*beyond, strict=True):
        slower = sum(column)
        share = slower / n
        own = _design_effect(column, sizes)
        design = max(own, design) if share <= _TAIL else max(1.0, own)
        # Above the slowest operation nothing is known of how rounds differ.
        n_effective = n * freedom / (design if slower else 1.0)
        low, high = _exact_interval(share * n_effective, n_effective, tail)
        lows.append(low)
        highs.append(high)
    return lows, highs


def _design_effect(beyond: Sequence[int], sizes: Sequence[int]) -> float:
    """Variance of a share over rounds, over that of as many independent operations."""
    n, n_rounds, share = sum(sizes), len(sizes), sum(beyond) / sum(sizes)
    if not 0 < share < 1:
        return 1.0
    squares = math.fsum((b - share * a) ** 2 for b, a in zip(beyond, sizes, strict=True))
    return n_rounds / (n_rounds - 1) * squares / n / (share * (1 - share))


def _exact_interval(count: float, n: float, tail: float) -> tuple[float, float]:
    """Interval of a share by Clopper and Pearson, for counts that need not be whole."""
    from scipy.special import betaincinv

    low = float(betaincinv(count, n - count + 1, tail)) if count > 0 else 0.0
    high = float(betaincinv(count + 1, n - count, 1 - tail)) if count < n else 1.0
    return low, high


def mean_of_rounds(values: Sequence[float], n_ops: int, *, level: float = 0.95) -> RoundEstimate:
    """Estimate a mean from one value per round, with Student's t interval.

    Parameters
    ----------
    values : shape (k,), k >= 1; for a rate, that of each round.
    n_ops : operations behind them, to be told.
    level : confidence, in (0, 1).

    Returns
    -------
    RoundEstimate : unit of the values; from one round the interval ends at infinity.
    """
    found = estimate_mean(values)
    half = found.half_width(level)
    return RoundEstimate(found.mean, max(0.0, found.mean - half), found.mean + half, found.n, n_ops)


def _edges(part: int, bits: int) -> tuple[float, float]:
    """Smallest value of a histogram's part, and of the next one (`iolab_model::histogram`)."""
    if part < 2 << bits:
        return part, part + 1
    shift = (part >> bits) - 1
    first = (part - (shift << bits)) << shift
    return first, first + (1 << shift)
