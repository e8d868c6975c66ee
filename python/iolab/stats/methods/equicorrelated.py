"""The largest of several t statistics that share one standard error and one comparison.

T_i = (sqrt(1 - r) Z_i + sqrt(r) Z_0) / S with independent normal Z and S = sqrt(chi2 / df): what
differences to a common baseline are (r = 1/2 with equal numbers of rounds). Distribution by Gauss
quadrature over Z_0 and over the probability of S. Left out: unequal correlations.

Source: Dunnett (1955), JASA 50(272).
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

NODES: Final = 96
CORRELATION: Final = 0.5
_LARGEST: Final = 60.0
"""No critical value that anybody asks for lies beyond, with two degrees of freedom or more."""


def largest_cdf(value: float, count: int, degrees_of_freedom: int, *, is_two_sided: bool) -> float:
    """Return P(largest of `count` statistics <= `value`); of their sizes if two-sided."""
    import numpy as np
    from scipy.special import ndtr

    common, weights, scale, scale_weights = _nodes(degrees_of_freedom)
    shift = math.sqrt(CORRELATION) * common[:, None]
    bound = value * scale[None, :]
    spread = math.sqrt(1 - CORRELATION)
    inside = ndtr((bound - shift) / spread)
    if is_two_sided:
        inside = inside - ndtr((-bound - shift) / spread)
    return float(weights @ np.power(inside, count) @ scale_weights)


@functools.lru_cache(maxsize=256)
def largest_quantile(
    probability: float, count: int, degrees_of_freedom: int, *, is_two_sided: bool
) -> float:
    """Return the value that the largest statistic does not exceed with `probability`."""
    from scipy.optimize import brentq

    def excess(value: float) -> float:
        cdf = largest_cdf(value, count, degrees_of_freedom, is_two_sided=is_two_sided)
        return cdf - probability

    solve: Any = brentq
    return float(solve(excess, 0.0, _LARGEST))


@functools.lru_cache(maxsize=64)
def _nodes(degrees_of_freedom: int) -> tuple[Any, Any, Any, Any]:
    import numpy as np
    from scipy.special import gammaincinv

    common, weights = np.polynomial.hermite_e.hermegauss(NODES)
    uniform, scale_weights = np.polynomial.legendre.leggauss(NODES)
    half = degrees_of_freedom / 2
    scale = np.sqrt(gammaincinv(half, (uniform + 1) / 2) / half)
    return common, weights / weights.sum(), scale, scale_weights / 2
