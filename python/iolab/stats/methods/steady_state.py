"""Steady in the sense of SNIA's Performance Test Specification: five values, two bounds.

A window of five values of the tracking variable is steady if their range is at most 20 % of their
mean, and the least-squares line through them changes by at most 10 % of it from the first to the
last (five values span four intervals). Left out: which variable to track, preconditioning.

Source: SNIA Solid State Storage Performance Test Specification, "steady state".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WINDOW: Final = 5
RANGE_MAX: Final = 0.20
SLOPE_MAX: Final = 0.10


@dataclass(frozen=True, slots=True)
class SteadyState:
    """The first steady window, or what the last one lacks."""

    reached_at: int | None
    """Values taken until the first steady window was full; None if none is steady."""
    is_steady_at_end: bool
    """Whether the last window is steady."""
    range_share: float
    """Range over mean in the last window."""
    slope_share: float
    """Change of the fitted line over the last window, over the mean; negative when falling."""


def steady_state(values: Sequence[float]) -> SteadyState | None:
    """Judge a series of one value per round (or per equal part of a trial).

    Returns
    -------
    None with fewer values than a window has, or if a window's mean is not above zero.
    """
    if len(values) < WINDOW:
        return None
    windows = [_window(values[i : i + WINDOW]) for i in range(len(values) - WINDOW + 1)]
    last = windows[-1]
    if last is None:
        return None
    steady = [i for i, window in enumerate(windows) if window and _is_steady(window)]
    reached = steady[0] + WINDOW if steady else None
    return SteadyState(reached, _is_steady(last), last[0], last[1])


def _window(values: Sequence[float]) -> tuple[float, float] | None:
    """Return range and fitted change, both over the mean."""
    mean = math.fsum(values) / WINDOW
    if not mean > 0:
        return None
    # Least squares at -2, -1, 0, 1, 2, whose squares add up to 10.
    slope = (2 * (values[4] - values[0]) + (values[3] - values[1])) / 10
    return (max(values) - min(values)) / mean, slope * (WINDOW - 1) / mean


def _is_steady(window: tuple[float, float]) -> bool:
    return window[0] <= RANGE_MAX and abs(window[1]) <= SLOPE_MAX
