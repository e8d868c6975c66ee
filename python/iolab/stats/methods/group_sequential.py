"""May one look before all rounds are done? Group-sequential bounds, at most ten equal looks.

At each planned look the test uses a nominal level small enough that all looks together err in
5 % of studies. Pocock spends it evenly; O'Brien and Fleming almost all at the last look, so that
an early stop takes an overwhelming difference and the last look costs little. The bounds are
those of independent normal increments, found by integrating from look to look; with few rounds
the nominal level, not the bound, is used with Student's t (Jennison and Turnbull, 4.4).
"Until p < .05" has no bounds: peeking after each of 28 pairs errs in 24 % of sessions.

Source: Pocock (1977), Biometrika 64(2); O'Brien and Fleming (1979), Biometrics 35(3); Armitage,
McPherson and Rowe (1969), J. R. Statist. Soc. A 132(2) for the integration.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final, Literal

Kind = Literal["pocock", "obrien_fleming"]
LOOKS_MAX: Final = 10
_NODES: Final = 201


@functools.lru_cache(maxsize=64)
def nominal_levels(looks: int, kind: Kind, *, alpha: float = 0.05) -> tuple[float, ...]:
    """Return the two-sided level of each look.

    Raises
    ------
    ValueError : fewer than one or more than `LOOKS_MAX` looks.
    """
    if not 1 <= looks <= LOOKS_MAX:
        raise ValueError(f"{looks} looks are not between 1 and {LOOKS_MAX}")
    from scipy.optimize import brentq
    from scipy.special import ndtr

    def excess(constant: float) -> float:
        return crossing_probability(_bounds(constant, looks, kind)) - alpha

    solve: Any = brentq
    constant = float(solve(excess, 1.0, 6.0))
    return tuple(2 * float(ndtr(-bound)) for bound in _bounds(constant, looks, kind))


def crossing_probability(bounds: tuple[float, ...]) -> float:
    """Return the chance that pure noise crosses any of `bounds` (of |Z|, equal increments)."""
    import numpy as np
    from scipy.special import ndtr

    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    crossed = 2 * float(ndtr(-bounds[0]))
    # Partial sums S_k = Z_k * sqrt(k): density on the part that has not crossed yet.
    edge = bounds[0]
    grid, weight = nodes * edge, weights * edge
    density = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
    for k, bound in enumerate(bounds[1:], start=2):
        edge = bound * math.sqrt(k)
        beyond = ndtr(-edge - grid) + ndtr(grid - edge)
        crossed += float((density * weight) @ beyond)
        fresh, fresh_weight = nodes * edge, weights * edge
        step = np.exp(-((fresh[:, None] - grid[None, :]) ** 2) / 2) / math.sqrt(2 * math.pi)
        density = step @ (density * weight)
        grid, weight = fresh, fresh_weight
    return crossed


def _bounds(constant: float, looks: int, kind: Kind) -> tuple[float, ...]:
    if kind == "pocock":
        return (constant,) * looks
    return tuple(constant * math.sqrt(looks / look) for look in range(1, looks + 1))
