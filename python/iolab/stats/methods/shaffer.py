"""All pairs of levels as one family: Holm's steps, with the divisors that logic allows.

If levels A and B are equal and B and C are, so are A and C: of the pairs of K levels only certain
numbers can be truly equal at once. Once j pairs have been shown to differ, at most t of the others
can be equal, where t is the largest such number that is not above the pairs that are left; the next
pair is judged at alpha / t. Three levels: 3, 1, 1; four: 6, 3, 3, 3, 2, 1. The family is the same
whichever level is called the baseline, so that no word depends on it.

The possible numbers follow by recursion: the largest group of equal levels has j members, which
makes j(j - 1)/2 equal pairs, and the other K - j levels have a possible number of their own.

Source: Shaffer (1986), Journal of the American Statistical Association 81(395), procedure S1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from iolab.stats.methods.holm import HolmStep, stepped_down


@functools.lru_cache(maxsize=256)
def numbers_of_equal_pairs(levels: int) -> frozenset[int]:
    """Return how many pairs of `levels` levels can be equal at once."""
    if levels < 2:
        return frozenset({0})
    return frozenset(
        math.comb(group, 2) + rest
        for group in range(1, levels + 1)
        for rest in numbers_of_equal_pairs(levels - group)
    )


@functools.lru_cache(maxsize=256)
def shaffer_divisors(levels: int) -> tuple[int, ...]:
    """Return the divisor of each step for all pairs of `levels` levels."""
    possible = sorted(numbers_of_equal_pairs(levels))
    return tuple(
        max(1, *(n for n in possible if n <= left)) for left in range(math.comb(levels, 2), 0, -1)
    )


def shaffer_steps(
    p_values: Sequence[float | None], levels: int, *, alpha: float = 0.05
) -> list[HolmStep]:
    """Adjust the p-values of all pairs of `levels` levels, shape (levels * (levels - 1) / 2,).

    Raises
    ------
    ValueError : the number of p-values is not that of all pairs.
    """
    if len(p_values) != math.comb(levels, 2):
        raise ValueError(f"{len(p_values)} p-values are not all pairs of {levels} levels")
    return stepped_down(p_values, shaffer_divisors(levels), alpha)
