"""Exact p of "no difference" without a distribution: flip the sign of each round's ln-ratio.

If nothing differs, each round's ln-ratio could as well have had the other sign. All 2**n sign
patterns are counted, n at most 12. The smallest p it can give is 2 / 2**n, so that five rounds can
never reach .05: `smallest_p` lets a plan say so beforehand.

Source: Fisher (1935), The Design of Experiments, section 21.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

ROUNDS_MAX: Final = 12
_TOLERANCE: Final = 1e-12


def sign_flip_p(differences: Sequence[float]) -> float | None:
    """Return the exact two-sided p; None for no value or more than 12."""
    n = len(differences)
    if not 1 <= n <= ROUNDS_MAX:
        return None
    sums = [0.0]
    for value in differences:
        sums = [total + sign for total in sums for sign in (value, -value)]
    observed = abs(math.fsum(differences))
    slack = _TOLERANCE * math.fsum(abs(value) for value in differences)
    return sum(abs(total) >= observed - slack for total in sums) / len(sums)


def smallest_p(n_rounds: int) -> float:
    """Return the smallest two-sided p that `n_rounds` rounds can give."""
    return min(1.0, 2.0 ** (1 - n_rounds))


def rounds_to_reach(p: float) -> int:
    """Return the rounds with which p below `p` is possible at all."""
    return next(n for n in range(1, 1024) if smallest_p(n) < p)
