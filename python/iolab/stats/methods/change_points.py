"""Change points of a series: E-divisive splits, accepted by Welch's t and by size.

A segment is split where the energy distance of its two parts, ``mn / (m + n) * E``, is largest.
A split stays if Welch's t test finds the parts different at p < .001 and their means differ
by a share that matters; then weak splits between what became neighbours are merged again. Left
out: permutation tests (slow, and as wrong as t under autocorrelation), changes of spread alone.

Source: Matteson and James (2014), JASA 109(505) (alpha = 1); t instead of permutations as in
Fleming et al. (2023), Hunter, ICPE.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from iolab.stats.methods.student import t_cdf_real

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

P_MAX: Final = 0.001
SEGMENT_MIN: Final = 4


def change_points(
    values: Sequence[float], *, smallest_change: float, segment_min: int = SEGMENT_MIN
) -> list[int]:
    """Find the places where the level changes.

    Parameters
    ----------
    values : shape (n,), in order.
    smallest_change : relative difference of neighbouring means below which a change is ignored.
    segment_min : values that a segment has at least.

    Returns
    -------
    Indices at which a new level begins, increasing.
    """
    if len(values) < 2 * segment_min:
        return []
    import numpy as np

    series = np.asarray(values, dtype=np.float64)
    if not may_change(series[None, :], smallest_change, segment_min)[0]:
        return []
    found: list[int] = []
    pending = [(0, len(series))]
    while pending:
        begin, end = pending.pop()
        place = _best_split(series[begin:end], segment_min)
        if place is None or not _differ(series, (begin, begin + place, end), smallest_change):
            continue
        found.append(begin + place)
        pending += [(begin, begin + place), (begin + place, end)]
    return _without_weak(series, sorted(found), smallest_change)


def may_change(
    series: npt.NDArray[np.float64], smallest_change: float, segment_min: int = SEGMENT_MIN
) -> npt.NDArray[np.bool_]:
    """Say of many series whether any split has means that differ enough; if not, none can stay.

    Parameters
    ----------
    series : shape (m, n), one per row, n at least twice `segment_min`.
    """
    import numpy as np

    n = series.shape[1]
    sizes = np.arange(segment_min, n - segment_min + 1)
    sums = np.cumsum(series, axis=1)
    left = sums[:, sizes - 1] / sizes
    right = (sums[:, -1:] - sums[:, sizes - 1]) / (n - sizes)
    largest = np.maximum(np.abs(left), np.abs(right))
    return (np.abs(left - right) > smallest_change * largest * (1 - 1e-9)).any(axis=1)


def energy_statistics(series: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return ``mn / (m + n) * E`` for every split with at least two values a side.

    Entry i belongs to the split whose first part has i + 2 values.
    """
    import numpy as np

    n = len(series)
    distance = np.abs(series[:, None] - series[None, :])
    # Sums over pairs inside the first m values, by m; each pair once.
    inside = np.cumsum(np.tril(distance, -1).sum(axis=1))
    total, rows = inside[-1], distance.sum(axis=1)
    sizes = np.arange(2, n - 1)
    left = inside[sizes - 1]
    # Pairs with an end in the first part: each inner one counted twice by the row sums.
    across = np.cumsum(rows)[sizes - 1] - 2 * left
    right = total - left - across
    m, k = sizes.astype(np.float64), (n - sizes).astype(np.float64)
    energy = 2 * across / (m * k) - 2 * left / (m * (m - 1)) - 2 * right / (k * (k - 1))
    return m * k / (m + k) * energy


def _best_split(series: npt.NDArray[np.float64], segment_min: int) -> int | None:
    if len(series) < 2 * segment_min:
        return None
    import numpy as np

    statistics = energy_statistics(series)[segment_min - 2 : len(series) - segment_min - 1]
    return int(np.argmax(statistics)) + segment_min


def _differ(
    series: npt.NDArray[np.float64], places: tuple[int, int, int], smallest_change: float
) -> bool:
    begin, middle, end = places
    left, right = series[begin:middle], series[middle:end]
    a, b = float(left.mean()), float(right.mean())
    if abs(a - b) <= smallest_change * max(abs(a), abs(b)):
        return False
    va, vb = float(left.var(ddof=1)) / len(left), float(right.var(ddof=1)) / len(right)
    if va + vb == 0:
        return True
    freedom = (va + vb) ** 2 / (va**2 / (len(left) - 1) + vb**2 / (len(right) - 1))
    return 2 * t_cdf_real(-abs(a - b) / math.sqrt(va + vb), freedom) < P_MAX


def _without_weak(
    series: npt.NDArray[np.float64], found: list[int], smallest_change: float
) -> list[int]:
    """Merge segments that are not different from their neighbours, now that all are known."""
    kept = list(found)
    while kept:
        edges = [0, *kept, len(series)]
        weak = [
            i
            for i in range(len(kept))
            if not _differ(series, (edges[i], edges[i + 1], edges[i + 2]), smallest_change)
        ]
        if not weak:
            break
        del kept[weak[0]]
    return kept
