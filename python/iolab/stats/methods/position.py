"""Does the place inside a round matter? A linear position effect beside treatments and rounds.

ln(value) = treatment + round + slope * place, place running from 0 (first) to 1 (last). Treatments
and rounds are removed by alternating projection (both need no matrix, so 20,000 trials are
cheap), the slope is tested with Student's t. Left out: carry-over from one particular treatment to
the next.

Source: Frisch and Waugh (1933), Econometrica 1(4).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final

from iolab.frozen import frozen
from iolab.stats.methods.student import t_cdf

SWEEPS_MAX: Final = 500
SWEEP_TOLERANCE: Final = 1e-12


@frozen
class PlacedValue:
    """One trial: the ln of its value, and where it stood."""

    log_value: float
    treatment: Hashable
    round: int
    place: float
    """0 = first of its round, 1 = last."""


@frozen
class PositionEffect:
    """The estimated change from the first to the last place of a round."""

    ratio: float
    """Value at the last place over value at the first, everything else equal."""
    p: float
    n_trials: int


def position_effect(values: Sequence[PlacedValue]) -> PositionEffect | None:
    """Estimate and test the position effect.

    Returns
    -------
    None if there are too few trials to separate it from treatments and rounds, or if each
    treatment always stood at the same place.
    """
    treatments = _codes([value.treatment for value in values])
    rounds = _codes([value.round for value in values])
    freedom = len(values) - len(set(treatments)) - len(set(rounds))
    if freedom < 3:
        return None
    place = _project_out([value.place for value in values], treatments, rounds)
    response = _project_out([value.log_value for value in values], treatments, rounds)
    spread = math.fsum(x * x for x in place)
    if spread < 1e-9:
        return None
    slope = math.fsum(x * y for x, y in zip(place, response, strict=True)) / spread
    rest = math.fsum((y - slope * x) ** 2 for x, y in zip(place, response, strict=True))
    error = math.sqrt(rest / freedom / spread)
    if error < 1e-12:
        p = 1.0 if abs(slope) < 1e-12 else 0.0
    else:
        p = 2 * t_cdf(-abs(slope) / error, freedom)
    return PositionEffect(ratio=math.exp(slope), p=p, n_trials=len(values))


def _codes(keys: Sequence[Hashable]) -> list[int]:
    """Number the distinct keys in order of appearance."""
    seen: dict[Hashable, int] = {}
    return [seen.setdefault(key, len(seen)) for key in keys]


def _project_out(values: list[float], *groupings: list[int]) -> list[float]:
    """Subtract group means of each grouping in turn until nothing changes."""
    import numpy as np

    current = np.asarray(values, np.float64)
    parts = [np.asarray(groups) for groups in groupings]
    counts = [np.bincount(groups) for groups in parts]
    for _ in range(SWEEPS_MAX):
        largest = 0.0
        for groups, sizes in zip(parts, counts, strict=True):
            means = np.bincount(groups, weights=current) / sizes
            largest = max(largest, float(np.abs(means).max()))
            current = current - means[groups]
        if largest < SWEEP_TOLERANCE:
            break
    return current.tolist()
