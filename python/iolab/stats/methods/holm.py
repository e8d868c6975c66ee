"""Holm's step-down procedure: adjusted p, and the interval width that belongs to each step.

Of K comparisons ordered by p, the k-th is judged at alpha / (K - k + 1), as long as all before it
were rejected; from the first that is not rejected on, the width stays. The interval of a comparison
is the Bonferroni interval of its own step, so it excludes "no difference" exactly when Holm
rejects: the family-wise error of that statement is at most alpha. What is *not* claimed: that all
intervals cover jointly; that takes the full Bonferroni width for each (intervals compatible with
step-down tests are discussed by Strassburger and Bretz 2008, Statistics in Medicine 27).

Source: Holm (1979), Scandinavian Journal of Statistics 6(2).
"""

from __future__ import annotations

from collections.abc import Sequence

from iolab.frozen import frozen


@frozen
class HolmStep:
    """Result of a step-down procedure for one comparison of the family."""

    p_adjusted: float | None
    divisor: int
    """Alpha is divided by this for the comparison's own interval."""


def holm_steps(p_values: Sequence[float | None], *, alpha: float = 0.05) -> list[HolmStep]:
    """Adjust a family of comparisons.

    Parameters
    ----------
    p_values : shape (K,); None where a comparison has too few rounds for a p. Such a comparison
        still counts in K: it was asked for.
    alpha : family-wise error.

    Returns
    -------
    One step per comparison, in the order given.
    """
    return stepped_down(p_values, range(len(p_values), 0, -1), alpha)


def stepped_down(
    p_values: Sequence[float | None], divisors: Sequence[int], alpha: float
) -> list[HolmStep]:
    """Adjust a family, the comparison with the smallest p by the first of `divisors`, and so on.

    Parameters
    ----------
    p_values, divisors : shape (K,); divisors never grow.
    """
    size = len(p_values)
    if not size:
        return []
    order = sorted(range(size), key=lambda i: (_or_one(p_values[i]), i))
    steps: list[HolmStep] = [HolmStep(None, divisors[0])] * size
    running, divisor, is_rejecting = 0.0, divisors[0], True
    for rank, index in enumerate(order):
        p = _or_one(p_values[index])
        running = max(running, min(1.0, p * divisors[rank]))
        if is_rejecting:
            divisor = divisors[rank]
            is_rejecting = p < alpha / divisor
        steps[index] = HolmStep(None if p_values[index] is None else running, divisor)
    return steps


def _or_one(p: float | None) -> float:
    return 1.0 if p is None else p
