"""Number of further rounds that would decide: a range with its chance, not a number.

What is not known yet is drawn from what the rounds seen allow: the true spread from chi-square, the
true mean about the one measured (the posterior without prior knowledge of a normal sample), and the
rounds to come from both. For each of `PATHS` such futures and each number of further rounds the
verdict rule is applied to all rounds together. `least` and `most` are the numbers with which two
and eight tenths of the futures have a word. Near the margin many futures never get one.

The futures are the same in every call (fixed seed), so that equal data say equal numbers.
Left out: what a resumed study pays for looking again.

Source: Gelman et al., Bayesian Data Analysis, 3.2 (posterior and predictive of a normal sample).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Final, TypeAlias

from iolab.frozen import frozen
from iolab.stats.methods.student import MeanEstimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

PATHS: Final = 256
LOW: Final = 0.20
HIGH: Final = 0.80
_SEED: Final = 20111


@frozen
class Forecast:
    """Further rounds that would decide."""

    least: int | None
    """A fifth of the futures have a word with these; None if fewer ever have one."""
    most: int | None
    """Four fifths have."""
    chance: float
    """Of a word within the limit."""


def forecast(
    estimate: MeanEstimate, edge: float, divisors: tuple[float, float], limit: int
) -> Forecast:
    """Draw the futures of an undecided comparison.

    Parameters
    ----------
    estimate : what was seen, at least two values.
    edge : ln of 1 + margin.
    divisors : alpha's, for "differs" and for "same".
    limit : most further rounds.
    """
    if estimate.sd is None or estimate.n < 2:
        return Forecast(None, None, 0.0)
    share = _decided(estimate, edge, divisors, limit)
    found = [next((m for m, p in enumerate(share, 1) if p >= bar), None) for bar in (LOW, HIGH)]
    return Forecast(found[0], found[1], max(share))


def _decided(
    estimate: MeanEstimate, edge: float, divisors: tuple[float, float], limit: int
) -> list[float]:
    """Return the share of futures that are decided after 1, 2, ... further rounds."""
    import numpy as np

    assert estimate.sd is not None
    n, sd, seen = estimate.n, max(estimate.sd, 1e-15), abs(estimate.mean)
    mean_draws, spread_draws, sums, squares = _futures(n, limit)
    sigma = sd * spread_draws
    mu = seen + sigma * mean_draws / math.sqrt(n)
    further = np.arange(1, limit + 1)
    count = n + further
    # Deviations from the measured mean keep the squares small.
    shift = (mu - seen)[:, None]
    total = further * shift + sigma[:, None] * sums
    square = (
        (n - 1) * sd**2
        + further * shift**2
        + 2 * shift * sigma[:, None] * sums
        + sigma[:, None] ** 2 * squares
    )
    mean = seen + total / count
    freedom = np.array([estimate.freedom_of(int(c)) for c in count])
    if estimate.freedom_of(n + 1) == estimate.freedom_of(n):
        error = sd / np.sqrt(count)  # Stein: the spread of the pilot stays.
    else:
        error = np.sqrt(np.maximum(square - total**2 / count, 0) / (count - 1) / count)
    wide, narrow = _quantiles(tuple(freedom.tolist()), divisors)
    half_95 = wide * error + estimate.rounding
    half_90 = narrow * error + estimate.rounding
    size = np.abs(mean)
    decided = (size + half_90 < edge) | (size - half_95 > edge)
    return [float(x) for x in decided.mean(axis=0)]


@functools.lru_cache(maxsize=512)
def _quantiles(freedom: tuple[float, ...], divisors: tuple[float, float]) -> tuple[Floats, Floats]:
    import numpy as np
    from scipy.special import stdtrit

    degrees = np.asarray(freedom)
    return (
        stdtrit(degrees, 1 - 0.025 / divisors[0]),
        stdtrit(degrees, 1 - 0.05 / divisors[1]),
    )


@functools.lru_cache(maxsize=64)
def _futures(n: int, limit: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return draws of mean (in standard errors) and spread, and sums of noise and its squares."""
    import numpy as np
    from scipy.special import chdtri

    rng = np.random.default_rng(_SEED)
    # Spreads at even steps of their distribution, in an order of their own.
    places = (rng.permutation(PATHS) + 0.5) / PATHS
    spread = np.sqrt((n - 1) / chdtri(n - 1, places))
    noise = rng.standard_normal((PATHS, limit))
    return (
        rng.standard_normal(PATHS),
        spread,
        np.cumsum(noise, axis=1),
        np.cumsum(noise**2, axis=1),
    )
