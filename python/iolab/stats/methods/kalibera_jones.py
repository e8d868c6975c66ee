"""At which level do repetitions pay? Slices in a trial, trials in a round, rounds, days.

Nested measurements, all levels repeated equally often. The spread that each level adds by itself
(T squared) and what one more repetition of it costs give the number of repetitions inside each
level that buys most precision for the time; the top level follows from the wanted width.

Source: Kalibera and Jones (2013), Rigorous Benchmarking in Reasonable Time, ISMM.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias, cast

from iolab.frozen import frozen
from iolab.stats.methods.student import estimate_mean, t_quantile

Nested: TypeAlias = "Sequence[float] | Sequence[Nested]"
"""Numbers, or sequences of such, to a depth of the number of levels; the outermost is the top."""


@frozen
class Repetitions:
    """Repetitions that a pilot recommends, innermost level first."""

    spread_squared: tuple[float, ...]
    """T squared: the variance each level adds by itself; may be negative by chance."""
    counts: tuple[int, ...]
    """Optimal repetitions of every level but the top one."""


def plan_repetitions(pilot: Nested, costs: Sequence[float]) -> Repetitions:
    """Plan inner repetitions.

    Parameters
    ----------
    pilot : balanced nested values, at least two at each level.
    costs : what one repetition of each level costs beside its inner ones (start of a trial, mkfs,
        reboot), innermost first, as many as there are levels; where one is not known (0), the
        pilot's number is kept.

    Raises
    ------
    ValueError : unbalanced, or the number of costs is not the number of levels.
    """
    sizes, means_by_level = _levels(pilot)
    if len(costs) != len(sizes):
        raise ValueError(f"{len(sizes)} levels need as many costs, not {len(costs)}")
    biased = [_mean_variance(groups) for groups in means_by_level]
    unbiased = [biased[0]]
    for level in range(1, len(biased)):
        unbiased.append(biased[level] - biased[level - 1] / sizes[level - 1])
    counts: list[int] = []
    for level in range(len(sizes) - 1):
        own, above = unbiased[level], unbiased[level + 1]
        if own <= 0:
            counts.append(1)
        elif above <= 0 or costs[level] <= 0:
            counts.append(sizes[level])
        else:
            counts.append(
                max(1, math.ceil(math.sqrt(costs[level + 1] / costs[level] * own / above)))
            )
    return Repetitions(tuple(unbiased), tuple(counts))


def top_interval(pilot: Nested, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return mean and half width, from the means of the top level alone."""
    tops = [_mean(part) for part in pilot]
    estimate = estimate_mean(tops)
    spread = estimate.sd or 0.0
    t = t_quantile(0.5 + confidence / 2, len(tops) - 1)
    return estimate.mean, t * spread / math.sqrt(len(tops))


def _levels(pilot: Nested) -> tuple[list[int], list[list[list[float]]]]:
    """Return sizes innermost first, and per level the groups of its means."""
    sizes: list[int] = []
    level: list[Nested | float] = [pilot]
    stack: list[list[Nested]] = []
    while isinstance(level[0], Sequence):
        layer = cast("list[Nested]", level)
        if len({len(group) for group in layer}) > 1 or len(layer[0]) < 2:
            raise ValueError("every level needs the same number of repetitions, at least two")
        sizes.append(len(layer[0]))
        stack.append(layer)
        level = [part for group in layer for part in group]
    groups = [[[_mean(part) for part in group] for group in layer] for layer in reversed(stack)]
    return list(reversed(sizes)), groups


def _mean(part: Nested | float) -> float:
    if isinstance(part, Sequence):
        values = [_mean(inner) for inner in part]
        return math.fsum(values) / len(values)
    return float(part)


def _mean_variance(groups: Sequence[Sequence[float]]) -> float:
    variances = [(estimate_mean(group).sd or 0.0) ** 2 for group in groups]
    return math.fsum(variances) / len(variances)
