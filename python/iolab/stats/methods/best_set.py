"""Which levels are as good as the best, within the margin? For a numeric factor: the plateau.

The level with the highest mean of oriented ln-values is the best; another level belongs to its set
if it is *shown* not to be worse by more than the margin: the lower bound of its ln-ratio to the
best, paired by round, lies above -ln(1 + margin). The bounds are one-sided 5 %, divided by the
number of levels tested (Bonferroni), because the best was picked from the same data.

Source: non-inferiority as in Schuirmann (1987), J. Pharmacokinet. Biopharm. 15(6).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from iolab.stats.methods.student import estimate_mean


@dataclass(frozen=True, slots=True)
class BestSet:
    """The best level and all that are shown to be within the margin of it."""

    best: str
    members: tuple[str, ...]
    """Levels in the order given, `best` among them."""
    n_rounds: int


def best_set(log_values: Mapping[str, Mapping[int, float]], margin: float) -> BestSet | None:
    """Find the best level and its equals.

    Parameters
    ----------
    log_values : level -> round -> oriented mean ln-value over the cells (higher is better).
        Only rounds that all levels share are used.
    margin : smallest relative difference that matters (0.05 = 5 %).

    Returns
    -------
    None with fewer than two levels or two shared rounds.
    """
    if len(log_values) < 2:
        return None
    shared = sorted(set.intersection(*(set(by_round) for by_round in log_values.values())))
    if len(shared) < 2:
        return None
    means = {
        level: math.fsum(by_round[r] for r in shared) for level, by_round in log_values.items()
    }
    best = max(means, key=lambda level: means[level])
    confidence = 1 - 0.10 / (len(log_values) - 1)
    members: list[str] = []
    for level, by_round in log_values.items():
        estimate = estimate_mean([by_round[r] - log_values[best][r] for r in shared])
        lower = estimate.mean - estimate.half_width(confidence)
        if level == best or lower > -math.log1p(margin):
            members.append(level)
    return BestSet(best=best, members=tuple(members), n_rounds=len(shared))
