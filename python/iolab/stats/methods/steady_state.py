"""Steady in the sense of SNIA's Performance Test Specification: five values, two bounds.

A window of five values of the tracking variable is steady if their range is at most 20 % of their
mean, and the least-squares line through them changes by at most 10 % of it from the first to the
last (five values span four intervals). Left out: which variable to track, preconditioning.

Source: SNIA Solid State Storage Performance Test Specification, "steady state".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from iolab.frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

WINDOW: Final = 5
RANGE_MAX: Final = 0.20
SLOPE_MAX: Final = 0.10


@frozen
class SteadyState:
    """The first steady window, or what the last one lacks."""

    reached_at: int | None
    """Values taken until the first steady window was full; None if none is steady."""
    is_steady_at_end: bool
    """True if the last window is steady."""
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
    import numpy as np

    return steady_states(np.asarray([values], dtype=np.float64))[0]


def steady_states(series: npt.NDArray[np.float64]) -> list[SteadyState | None]:
    """Judge many series of equal length, as `steady_state` does each.

    Parameters
    ----------
    series : shape (m, n), one per row, n at least `WINDOW`.
    """
    import numpy as np

    windows = np.lib.stride_tricks.sliding_window_view(series, WINDOW, axis=1)
    means = windows.sum(axis=2) / WINDOW
    is_known = means > 0
    safe = np.where(is_known, means, 1.0)
    ranges = (windows.max(axis=2) - windows.min(axis=2)) / safe
    # Least squares at -2, -1, 0, 1, 2, whose squares add up to 10.
    slopes = (2 * (windows[..., 4] - windows[..., 0]) + (windows[..., 3] - windows[..., 1])) / 10
    changes = slopes * (WINDOW - 1) / safe
    is_steady = is_known & (ranges <= RANGE_MAX) & (np.abs(changes) <= SLOPE_MAX)
    first = np.where(is_steady.any(axis=1), is_steady.argmax(axis=1) + WINDOW, 0)
    return [
        SteadyState(reached or None, at_end, range_share, change) if known else None
        for reached, at_end, range_share, change, known in zip(
            first.tolist(),
            is_steady[:, -1].tolist(),
            ranges[:, -1].tolist(),
            changes[:, -1].tolist(),
            is_known[:, -1].tolist(),
            strict=True,
        )
    ]
