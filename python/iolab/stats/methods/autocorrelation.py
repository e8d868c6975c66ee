"""Does one trial still feel the one before it? Correlation of neighbours in run order.

Lag-1 autocorrelation of what is left of ln-values when treatments are taken off. Near 0: trials
forget each other. Far above: the machine drifts or remembers; random rounds keep the verdict
honest, longer pauses or a fresh file system would make it sharper. The bounds are those of
independent values, +-1.96 / sqrt(n).

Inside a trial: does a series repeat itself? A period at which it is like itself again makes it
cyclic (`are_cyclic`).

Source: Box and Jenkins, Time Series Analysis, 2.1; Bartlett (1946) for the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from iolab.frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

CYCLE_CORRELATION_MIN: Final = 0.5
CYCLE_SPREAD_MIN: Final = 0.05
CYCLES_MIN: Final = 3


@frozen
class Autocorrelation:
    """Lag-1 correlation and how far from 0 chance alone would take it."""

    value: float
    chance: float
    n: int


def lag_one(values: Sequence[float]) -> Autocorrelation | None:
    """Return the lag-1 autocorrelation; None below four values, or if all are equal."""
    n = len(values)
    if n < 4:
        return None
    mean = math.fsum(values) / n
    rest = [value - mean for value in values]
    power = math.fsum(value * value for value in rest)
    if power == 0:
        return None
    value = math.fsum(a * b for a, b in pairwise(rest)) / power
    return Autocorrelation(value, 1.96 / math.sqrt(n), n)


def are_cyclic(series: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Say which series, their straight line taken off, are like themselves one period later.

    The period repeats at least `CYCLES_MIN` times. Series whose spread is below
    `CYCLE_SPREAD_MIN` of their mean are not looked at: nobody would call that a cycle.

    Parameters
    ----------
    series : shape (m, n), one per row, in order of time.
    """
    import numpy as np

    n = series.shape[1]
    places = np.arange(n) - (n - 1) / 2
    means = series.mean(axis=1)
    slopes = series @ places / (places @ places)
    rest = series - means[:, None] - slopes[:, None] * places
    power = (rest * rest).sum(axis=1)
    found = (power > 0) & (np.sqrt(power / n) >= CYCLE_SPREAD_MIN * means)
    rest, power = rest[found], power[found]
    lags = range(n // CYCLES_MIN + 1)
    alike = np.stack(
        [(rest[:, : n - lag] * rest[:, lag:]).sum(axis=1) / power * n / (n - lag) for lag in lags],
        axis=1,
    )
    # Only what comes after the first lag at which the series is unlike itself is a repetition.
    is_later = np.logical_or.accumulate(alike < 0, axis=1)
    found[found] = np.where(is_later, alike, -1.0).max(axis=1) >= CYCLE_CORRELATION_MIN
    return found
