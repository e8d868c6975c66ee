"""Where does the warm-up end? MSER-5: the truncation that makes the rest's mean most certain.

The series is cut into batches of five; of all ways to drop the first d batch means, at most half of
them, the one is taken whose rest has the smallest squared standard error, ``SS(rest) / n**2``.
A minimum at the last allowed place means that the series has not settled. Left out: more than
one transient, trends to the very end (see `trial_shape`).

Source: White (1997), Simulation 69(6) (MSER); White, Cobb and Spratt (2000), Winter Simulation
Conference (batches of five).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

BATCH: Final = 5


@dataclass(frozen=True, slots=True)
class Truncation:
    """How much of the beginning to drop."""

    n_dropped: int
    """Values (not batches) at the beginning."""
    is_settled: bool
    """Whether the best place lies before the last one allowed."""


def truncate_warm_up(values: Sequence[float], *, batch: int = BATCH) -> Truncation | None:
    """Find the end of the warm-up.

    Parameters
    ----------
    values : shape (n,), in order of time, any unit; a last incomplete batch is ignored.

    Returns
    -------
    None with fewer than four batches.
    """
    count = len(values) // batch
    if count < 4:
        return None
    means = [math.fsum(values[i * batch : (i + 1) * batch]) / batch for i in range(count)]
    errors = [_squared_error(means[dropped:]) for dropped in range(count // 2 + 1)]
    best = min(range(len(errors)), key=lambda dropped: (errors[dropped], dropped))
    return Truncation(best * batch, best < count // 2)


def _squared_error(rest: Sequence[float]) -> float:
    mean = math.fsum(rest) / len(rest)
    return math.fsum((value - mean) ** 2 for value in rest) / len(rest) ** 2
