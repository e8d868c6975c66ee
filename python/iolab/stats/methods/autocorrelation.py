"""Does one trial still feel the one before it? Correlation of neighbours in run order.

Lag-1 autocorrelation of what is left of ln-values when treatments are taken off. Near 0: trials
forget each other. Far above: the machine drifts or remembers; random rounds keep the verdict
honest, longer pauses or a fresh file system would make it sharper. The bounds are those of
independent values, +-1.96 / sqrt(n).

Source: Box and Jenkins, Time Series Analysis, 2.1; Bartlett (1946) for the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
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
