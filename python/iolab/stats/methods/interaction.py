"""Do cells disagree about a level? F test of its ln-ratios to another level, cell by cell.

Paired: rounds x cells of ln-ratios, rounds taken off; what a cell's mean has beyond the common one
is compared with what is left (two-way analysis of variance, the interaction of level and cell of
the ln-values). Unpaired: two samples of ln-values in each cell, one spread for all.

A significant difference of sizes is not yet a disagreement: 10 % here and 20 % there are both
better. `disagreement` asks besides that a cell's own difference is beyond the margin, by its own
90 % interval not chance, and that another one's is not in that direction, by more than the margin.

Source: Cochran and Cox, Experimental Designs, chapter 4; Scheffe, The Analysis of Variance, 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

from iolab.stats.methods.student import MeanEstimate

P_MAX: Final = 0.01
CELL_CONFIDENCE: Final = 0.90
ROUNDING: Final = 1e-18
Direction = Literal["better", "worse", "same"]
_SIGNS: Final[tuple[tuple[Direction, int], ...]] = (("better", 1), ("worse", -1))


def direction_of(mean: float, edge: float) -> Direction:
    """Say on which side of the margin an ln-ratio lies."""
    return "better" if mean > edge else "worse" if mean < -edge else "same"


def paired_p(rows: Sequence[Sequence[float]]) -> float | None:
    """Return the p of "all cells have one ln-ratio"; None below two rounds or two cells.

    Parameters
    ----------
    rows : shape (rounds, cells).
    """
    n, k = len(rows), len(rows[0]) if rows else 0
    if n < 2 or k < 2:
        return None
    of_round = [math.fsum(row) / k for row in rows]
    of_cell = [math.fsum(row[c] for row in rows) / n for c in range(k)]
    grand = math.fsum(of_round) / n
    between = n * math.fsum((mean - grand) ** 2 for mean in of_cell)
    rest = math.fsum(
        (rows[r][c] - of_round[r] - of_cell[c] + grand) ** 2 for r in range(n) for c in range(k)
    )
    return _f_p(between, k - 1, rest, (k - 1) * (n - 1))


def unpaired_p(cells: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float | None:
    """Return the same for two independent samples (ours, theirs) of ln-values in each cell."""
    if len(cells) < 2:
        return None
    rest, freedom = 0.0, 0
    for sample in (s for pair in cells for s in pair):
        mean = math.fsum(sample) / len(sample)
        rest += math.fsum((value - mean) ** 2 for value in sample)
        freedom += len(sample) - 1
    effects = [math.fsum(a) / len(a) - math.fsum(b) / len(b) for a, b in cells]
    weights = [1 / (1 / len(a) + 1 / len(b)) for a, b in cells]
    total = math.fsum(weights)
    common = math.fsum(w * e for w, e in zip(weights, effects, strict=True)) / total
    between = math.fsum(w * (e - common) ** 2 for w, e in zip(weights, effects, strict=True))
    return _f_p(between, len(cells) - 1, rest, freedom)


def disagreement(cells: Sequence[MeanEstimate], p: float | None, margin: float) -> list[Direction]:
    """Return each cell's side of the margin, if cells disagree beyond it; otherwise nothing.

    Parameters
    ----------
    cells : ln-ratio of each cell.
    p : of "all cells have one ln-ratio".
    """
    if p is None or p >= P_MAX or len(cells) < 2:
        return []
    edge = math.log1p(margin)
    sides: list[Direction] = [direction_of(cell.mean, edge) for cell in cells]
    for side, sign in _SIGNS:
        sure = [
            sign * cell.mean
            for cell, s in zip(cells, sides, strict=True)
            if s == side and abs(cell.mean) > cell.half_width(CELL_CONFIDENCE)
        ]
        others = [sign * cell.mean for cell, s in zip(cells, sides, strict=True) if s != side]
        if sure and others and max(sure) - min(others) > edge:
            return sides
    return []


def _f_p(between: float, k: int, rest: float, freedom: int) -> float | None:
    if freedom < 1:
        return None
    if between <= ROUNDING:  # What is left of equal numbers.
        return 1.0
    if rest <= 0:
        return 0.0
    from scipy.special import fdtrc

    return float(fdtrc(k, freedom, between / k / (rest / freedom)))
