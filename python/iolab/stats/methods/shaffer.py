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
    bits = _possible(max(levels, 0))
    return frozenset(number for number, bit in enumerate(reversed(f"{bits:b}")) if bit == "1")


def _possible(levels: int) -> int:
    """Return the possible numbers as bits; a group more moves the numbers of the other levels."""
    possible = [1]
    for count in range(1, levels + 1):
        bits = 0
        for group in range(1, count + 1):
            bits |= possible[count - group] << math.comb(group, 2)
        possible.append(bits)
    return possible[levels]


@functools.lru_cache(maxsize=256)
def shaffer_divisors(levels: int) -> tuple[int, ...]:
    """Return the divisor of each step for all pairs of `levels` levels."""
    possible = numbers_of_equal_pairs(levels)
    divisors: list[int] = []
    largest = 1
    for left in range(1, math.comb(levels, 2) + 1):
        largest = left if left in possible else largest
        divisors.append(largest)
    return tuple(reversed(divisors))


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
