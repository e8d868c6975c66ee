"""What one trial did over time: flat, warming up, decaying, cyclic or never steady; and stalls.

Work per slice of time, without the last slice, which is cut off by the end. Five shapes:

- `flat`: one level, and the last half is steady by SNIA's two bounds;
- `warm_up`: the level rises in steps and then stays;
- `decay`: the level falls (a full write cache, a device that begins to collect garbage);
- `cyclic`: a period repeats at least three times;
- `never_steady`: anything else. Below `SLICES_MIN` slices it is `too_short` to say.

A stall is a slice that completes less than a tenth of the median slice; slices are first joined
until the median one completes `OPS_MIN` operations, so that slow operations are no stalls.
Left out: causes; shapes shorter than a slice.

Source: classes after Barrett et al. (2017), OOPSLA; warm-up by `mser`, levels by
`change_points`, bounds by `steady_state`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from iolab.stats.methods.change_points import change_points
from iolab.stats.methods.mser import truncate_warm_up
from iolab.stats.methods.steady_state import SteadyState, steady_state

ShapeClass = Literal["flat", "warm_up", "decay", "cyclic", "never_steady", "too_short"]

SLICES_MIN: Final = 40
POINTS_MAX: Final = 120
"""Longer series are joined to at most this many points before levels are looked for."""
PARTS: Final = 10
"""Equal parts of a trial that stand for the rounds of SNIA's rule."""
LEVEL_CHANGE_MIN: Final = 0.10
"""Smaller changes of level are within SNIA's bound for the slope."""
CYCLE_CORRELATION_MIN: Final = 0.5
CYCLE_SPREAD_MIN: Final = 0.05
CYCLES_MIN: Final = 3
STALL_SHARE: Final = 0.10
OPS_MIN: Final = 5
"""With fewer operations in the median slice, an empty one is chance."""


@dataclass(frozen=True, slots=True)
class Stalls:
    """Slices in which (almost) nothing was completed."""

    longest_ns: int
    total_ns: int
    share: float
    """Of the time looked at."""
    resolution_ns: int
    """Shorter stalls cannot be seen."""


@dataclass(frozen=True, slots=True)
class TrialShape:
    """How one operation of one trial went over time."""

    shape: ShapeClass
    warm_up_ns: int
    """What MSER-5 would drop at the beginning; 0 if it is too short or never settles."""
    change: float
    """Mean after the warm-up over the mean of everything."""
    steady: SteadyState | None
    """SNIA's rule over ten equal parts."""
    stalls: Stalls


def trial_shape(work: Sequence[int], ops: Sequence[int], interval_ns: int) -> TrialShape:
    """Describe one series.

    Parameters
    ----------
    work : bytes (or operations) per slice, in order.
    ops : operations completed per slice, as many.
    interval_ns : length of a slice.
    """
    stalls = find_stalls(ops[:-1], interval_ns)
    values = [float(value) for value in work[:-1]] if len(work) > SLICES_MIN else []
    total = math.fsum(values)
    if not total > 0:
        return TrialShape("too_short", 0, 1.0, None, stalls)
    cut = truncate_warm_up(values)
    dropped = cut.n_dropped if cut is not None and cut.is_settled else 0
    rest = values[dropped:]
    steady = steady_state(joined(values, PARTS))
    return TrialShape(
        shape=_classify(joined(values, POINTS_MAX), steady),
        warm_up_ns=dropped * interval_ns,
        change=math.fsum(rest) / len(rest) / (total / len(values)),
        steady=steady,
        stalls=stalls,
    )


def find_stalls(ops: Sequence[int], interval_ns: int) -> Stalls:
    """Find the slices in which less than a tenth of the median slice was completed."""
    slices, width = list(ops), interval_ns
    middle = 0
    while len(slices) >= SLICES_MIN and (middle := _median(slices)) < OPS_MIN:
        slices = [a + b for a, b in zip(slices[::2], slices[1::2], strict=False)]
        width *= 2
    if len(slices) < SLICES_MIN:
        return Stalls(0, 0, 0.0, width)
    limit = STALL_SHARE * middle
    if min(slices) >= limit:
        return Stalls(0, 0, 0.0, width)
    longest = current = total = 0
    for completed in slices:
        current = current + 1 if completed < limit else 0
        total += completed < limit
        longest = max(longest, current)
    return Stalls(longest * width, total * width, total / len(slices), width)


def joined(values: Sequence[float], parts: int) -> list[float]:
    """Average neighbours, so that at most `parts` values of (almost) equal width are left."""
    if len(values) <= parts:
        return list(values)
    edges = [i * len(values) // parts for i in range(parts + 1)]
    return [math.fsum(values[a:b]) / (b - a) for a, b in pairwise(edges)]


def _median(values: Sequence[int]) -> int:
    return sorted(values)[len(values) // 2]


def _classify(values: list[float], steady: SteadyState | None) -> ShapeClass:
    if _is_cyclic(values):
        return "cyclic"
    is_steady = steady is not None and steady.is_steady_at_end
    places = change_points(values, smallest_change=LEVEL_CHANGE_MIN)
    edges = [0, *places, len(values)]
    levels = [math.fsum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    steps = [after - before for before, after in pairwise(levels)]
    if not steps:
        return "flat" if is_steady else "never_steady"
    if all(step < 0 for step in steps):
        return "decay"
    if all(step > 0 for step in steps):
        return "warm_up" if is_steady else "never_steady"
    # A dip or a peak that is over: what counts is whether the end is steady, and where it lies.
    if not is_steady or abs(levels[-1] - levels[0]) <= LEVEL_CHANGE_MIN * levels[0]:
        return "never_steady"
    return "warm_up" if levels[-1] > levels[0] else "decay"


def _is_cyclic(values: list[float]) -> bool:
    """Whether the series, its straight line taken off, is like itself one period later."""
    n = len(values)
    mean, middle = math.fsum(values) / n, (n - 1) / 2
    spread = math.fsum((i - middle) ** 2 for i in range(n))
    slope = math.fsum((i - middle) * value for i, value in enumerate(values)) / spread
    rest = [value - mean - slope * (i - middle) for i, value in enumerate(values)]
    power = math.fsum(value * value for value in rest)
    if math.sqrt(power / n) < CYCLE_SPREAD_MIN * mean:
        return False
    correlations = [
        math.fsum(map(operator.mul, rest, rest[lag:])) / power * n / (n - lag)
        for lag in range(n // CYCLES_MIN + 1)
    ]
    below = next((lag for lag, r in enumerate(correlations) if r < 0), None)
    return below is not None and max(correlations[below:]) >= CYCLE_CORRELATION_MIN
