"""All pairs of levels of one group as one family: what each pair may say, whatever the baseline.

Two questions have a family each: "do they differ?" (Shaffer's divisors over all pairs) and "are
they the same within the margin?" (Holm over the p-values of two one-sided tests). Ordering the
second by the p of the first would give the pair that is nearest to 1 the widest licence. Classes of
cells that answer together do not divide alpha: the word of a level over all of them is theirs only
if they agree, which is harder than for one, not easier.

Source: Shaffer (1986), JASA 81(395); Holm (1979), Scand. J. Statist. 6(2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from iolab.stats.effect import ALPHA, effect_of
from iolab.stats.methods.holm import holm_steps
from iolab.stats.methods.shaffer import shaffer_steps
from iolab.stats.methods.student import MeanEstimate, mirrored
from iolab.stats.verdict import Effect

Pair = tuple[str, str]
Estimates = Mapping[Pair, MeanEstimate | None]
"""Pair of levels, in the order given -> ln-ratio of the first to the second."""


def all_estimates(
    levels: Sequence[str], estimate: Callable[[str, str], MeanEstimate | None]
) -> dict[Pair, MeanEstimate | None]:
    """Estimate every pair, in the order of the levels."""
    return {(a, b): estimate(a, b) for a, b in combinations(levels, 2)}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pair stands in both families."""

    estimate: MeanEstimate | None
    divisor: float
    divisor_same: float
    p_adjusted: float | None


class Family:
    """The pairs of one group, each with its place."""

    def __init__(
        self,
        levels: Sequence[str],
        estimates: Estimates,
        margin: float,
        *,
        level: float = ALPHA,
        next_share: float = 1.0,
    ) -> None:
        """Adjust all pairs.

        Parameters
        ----------
        level : two-sided error of the whole family, below .05 at an early look.
        next_share : what a further look would have of `level`.
        """
        self.levels, self.margin, self.next_share = tuple(levels), margin, next_share
        edge = math.log1p(margin)
        known = list(estimates.values())
        differ = shaffer_steps([e and e.p_value() for e in known], len(levels), alpha=level)
        same = holm_steps([e and e.p_beyond(edge) for e in known], alpha=level)
        spent = ALPHA / level
        self.places = {
            pair: Place(
                estimate,
                d.divisor * spent,
                s.divisor * spent,
                None if d.p_adjusted is None else min(1.0, d.p_adjusted * spent),
            )
            for (pair, estimate), d, s in zip(estimates.items(), differ, same, strict=True)
        }

    def place(self, level: str, baseline: str) -> Place:
        """Return the place of a pair, its estimate as that of `level` to `baseline`."""
        found = self.places.get((level, baseline))
        if found is not None:
            return found
        found = self.places[baseline, level]
        turned = found.estimate and mirrored(found.estimate)
        return Place(turned, found.divisor, found.divisor_same, found.p_adjusted)

    def effect(self, level: str, baseline: str, *, shown_level: float = ALPHA) -> Effect:
        """Return what the family lets one level say against another."""
        place = self.place(level, baseline)
        return effect_of(
            place.estimate,
            self.margin,
            place.divisor,
            place.p_adjusted,
            divisor_same=place.divisor_same,
            level=shown_level,
            next_share=self.next_share,
        )

    def estimate(self, first: str, second: str) -> MeanEstimate | None:
        """Return the ln-ratio of one level to another."""
        return self.place(first, second).estimate
