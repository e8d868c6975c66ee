"""Set of levels that are as good as the best, within the margin. For a numeric factor: the plateau.

The level that is ahead of the others on average is the best; another level belongs to its set if it
is *shown* not to be worse by more than the margin: the lower bound of its ln-ratio to the best,
with that pair's own spread, lies above -ln(1 + margin). The bounds are one-sided 5 %, divided by
the number of levels tested (Bonferroni), because the best was picked from the same data.

Source: non-inferiority as in Schuirmann (1987), J. Pharmacokinet. Biopharm. 15(6).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from iolab.frozen import frozen
from iolab.stats.methods.hsu_mcb import Estimate
from iolab.stats.methods.student import MeanEstimate, estimate_mean


@frozen
class BestSet:
    """The best level and all that are shown to be within the margin of it."""

    best: str
    members: tuple[str, ...]
    """Levels in the order given, `best` among them."""
    n_rounds: int


def best_of(levels: Sequence[str], estimate: Estimate, margin: float) -> BestSet | None:
    """Find the best level and its equals from the estimates of all pairs.

    Returns
    -------
    None with fewer than two levels, or where a pair has fewer than two values.
    """
    if len(levels) < 2:
        return None
    pairs = {(a, b): estimate(a, b) for a in levels for b in levels if a != b}
    known = {pair: e for pair, e in pairs.items() if e is not None and e.n >= 2}
    if len(known) < len(pairs):
        return None
    ahead = {a: math.fsum(known[a, b].mean for b in levels if b != a) for a in levels}
    best = max(levels, key=lambda level: ahead[level])
    confidence = 1 - 0.10 / (len(levels) - 1)
    members = [
        level
        for level in levels
        if level == best or lower_end(known[level, best], confidence) > -math.log1p(margin)
    ]
    return BestSet(best, tuple(members), min(e.n for e in known.values()))


def lower_end(estimate: MeanEstimate, confidence: float) -> float:
    """Return the lower end of the two-sided interval."""
    return estimate.mean - estimate.half_width(confidence)


def best_set(log_values: Mapping[str, Mapping[int, float]], margin: float) -> BestSet | None:
    """Find the best level and its equals, paired by round.

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

    def estimate(a: str, b: str) -> MeanEstimate:
        return estimate_mean([log_values[a][r] - log_values[b][r] for r in shared])

    return best_of(list(log_values), estimate, margin)
