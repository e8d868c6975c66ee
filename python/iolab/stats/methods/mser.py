"""End of the warm-up. MSER-5: the truncation that makes the rest's mean most certain.

The series is cut into batches of five; of all ways to drop the first d batch means, at most half of
them, the one is taken whose rest has the smallest squared standard error, ``SS(rest) / n**2``.
A minimum at the last allowed place means that the series has not settled. Left out: more than
one transient, trends to the very end (see `trial_shape`).

Source: White (1997), Simulation 69(6) (MSER); White, Cobb and Spratt (2000), Winter Simulation
Conference (batches of five).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from iolab.frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

BATCH: Final = 5
BATCHES_MIN: Final = 4


@frozen
class Truncation:
    """Part of the beginning to drop."""

    n_dropped: int
    """Values (not batches) at the beginning."""
    is_settled: bool
    """True if the best place lies before the last one allowed."""


def truncate_warm_up(values: Sequence[float], *, batch: int = BATCH) -> Truncation | None:
    """Find the end of the warm-up.

    Parameters
    ----------
    values : shape (n,), in order of time, any unit; a last incomplete batch is ignored.

    Returns
    -------
    None with fewer than four batches.
    """
    if len(values) // batch < BATCHES_MIN:
        return None
    import numpy as np

    dropped, is_settled = truncate_warm_ups(np.asarray([values], dtype=np.float64), batch=batch)
    return Truncation(int(dropped[0]), bool(is_settled[0]))


def truncate_warm_ups(
    series: npt.NDArray[np.float64], *, batch: int = BATCH
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Find the end of the warm-up of many series of equal length.

    Parameters
    ----------
    series : shape (m, n), one per row, each of at least four batches.

    Returns
    -------
    Values to drop, and whether that place lies before the last one allowed: shape (m,) each.
    """
    import numpy as np

    count = series.shape[1] // batch
    means = series[:, : count * batch].reshape(len(series), count, batch).sum(axis=2) / batch
    # What all batches have in common is taken off first: equal ones then differ by exactly 0.
    means = means - means[:, -1:]
    errors = np.empty((len(series), count // 2 + 1))
    for dropped in range(count // 2 + 1):
        rest = means[:, dropped:]
        apart = rest - rest.mean(axis=1, keepdims=True)
        errors[:, dropped] = (apart * apart).sum(axis=1) / rest.shape[1] ** 2
    best = errors.argmin(axis=1)
    return best * batch, best < count // 2
