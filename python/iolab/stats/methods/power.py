"""Number of rounds that will decide: chances of each word before the first trial.

With the spread of one round's ln-ratio known (from an A/A study), the mean over n rounds is normal
and its sd estimate is chi; the chance that the rule of `verdict_rule` says `better` when the true
ratio is r, or `same` when it is 1, is integrated over the estimate. Bonferroni width for a family
of comparisons, so that Holm does at least as well. Left out: heavier tails than normal.

Source: Schuirmann (1987) and Phillips (1990), J. Pharmacokinet. Biopharm. 18(2), for `same`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from iolab.stats.methods.student import t_quantile
from iolab.stats.methods.verdict_rule import ROUNDS_MIN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NODES: Final = 64
ROUNDS_MAX: Final = 1000


def chance_of_difference(
    ln_ratio: float, margin: float, sd: float, n: int, *, family: int = 1
) -> float:
    """Return the chance that n rounds say `better` of a true `ln_ratio` beyond the margin."""
    edge = math.log1p(margin)
    return _chance(sd, n, family, lambda half_95, _: (edge + half_95 - ln_ratio, math.inf))


def chance_of_same(ln_ratio: float, margin: float, sd: float, n: int, *, family: int = 1) -> float:
    """Return the chance that n rounds say `same` or `trivial` of a true `ln_ratio`."""
    edge = math.log1p(margin)
    return _chance(
        sd, n, family, lambda _, half_90: (half_90 - edge - ln_ratio, edge - half_90 - ln_ratio)
    )


def rounds_needed(
    ln_ratio: float, margin: float, sd: float, *, power: float = 0.8, family: int = 1
) -> int | None:
    """Return the fewest rounds that give `power`; None above a thousand.

    A true ratio inside the margin is meant to be called `same`, one beyond it `better`.
    """
    if sd <= 0:
        return ROUNDS_MIN
    chance = chance_of_same if abs(ln_ratio) < math.log1p(margin) else chance_of_difference
    if chance(ln_ratio, margin, sd, ROUNDS_MAX, family=family) < power:
        return None
    low, high = ROUNDS_MIN - 1, ROUNDS_MAX
    while high - low > 1:
        middle = (low + high) // 2
        if chance(ln_ratio, margin, sd, middle, family=family) >= power:
            high = middle
        else:
            low = middle
    return high


def _chance(
    sd: float, n: int, family: int, bounds: Callable[[float, float], tuple[float, float]]
) -> float:
    """Return P(low < mean - true mean < high), averaged over what the spread may be seen as."""
    if n < ROUNDS_MIN:
        return 0.0
    import numpy as np
    from scipy.special import gammaincinv, ndtr

    nodes, weights = _nodes_and_weights()
    half = (n - 1) / 2
    seen = sd * np.sqrt(gammaincinv(half, (nodes + 1) / 2) / half)
    error = sd / math.sqrt(n)
    t_95 = t_quantile(1 - 0.025 / family, n - 1) / math.sqrt(n)
    t_90 = t_quantile(1 - 0.05 / family, n - 1) / math.sqrt(n)
    total = 0.0
    for value, weight in zip(seen, weights, strict=True):
        low, high = bounds(t_95 * float(value), t_90 * float(value))
        if high > low:
            total += float(weight) / 2 * float(ndtr(high / error) - ndtr(low / error))
    return min(1.0, total)


@functools.cache
def _nodes_and_weights() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return those of Gauss and Legendre: eigenvalues, which take longer than a whole integral."""
    import numpy as np

    return np.polynomial.legendre.leggauss(NODES)
