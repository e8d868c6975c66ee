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
from itertools import combinations
from typing import Final

from iolab.frozen import frozen, replace
from iolab.stats.effect import ALPHA, effect_of, undecided
from iolab.stats.methods.holm import holm_steps
from iolab.stats.methods.shaffer import shaffer_steps
from iolab.stats.methods.student import MeanEstimate, mirrored
from iolab.stats.methods.verdict_rule import ROUNDS_TO_PLAN, decide
from iolab.stats.verdict import Effect

TOO_STEADY: Final = (
    "so few rounds may agree by chance: other levels vary more; run five rounds or more"
)
Pair = tuple[str, str]
Estimates = Mapping[Pair, MeanEstimate | None]
"""Pair of levels, in the order given -> ln-ratio of the first to the second."""


def all_estimates(
    levels: Sequence[str], estimate: Callable[[str, str], MeanEstimate | None]
) -> dict[Pair, MeanEstimate | None]:
    """Estimate every pair, in the order of the levels."""
    return {(a, b): estimate(a, b) for a, b in combinations(levels, 2)}


@frozen
class Place:
    """Position of a pair in both families."""

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
        found = effect_of(
            place.estimate,
            self.margin,
            place.divisor,
            place.p_adjusted,
            divisor_same=place.divisor_same,
            level=shown_level,
            next_share=self.next_share,
        )
        if found.word in ("better", "worse") and self._is_steadier_than_known(place):
            return undecided(found, TOO_STEADY)
        return found

    def _is_steadier_than_known(self, place: Place) -> bool:
        """Say whether a word rests on a spread that so few rounds show by luck.

        Trials that fall into one of two modes give three equal ratios, far from 1, in one pair of
        thirty. Below `ROUNDS_TO_PLAN` rounds the spread of all pairs must allow the word, too.
        """
        estimate = place.estimate
        if estimate is None or estimate.sd is None or estimate.n >= ROUNDS_TO_PLAN:
            return False
        spreads = [
            p.estimate.sd
            for p in self.places.values()
            if p.estimate is not None and p.estimate.sd is not None
        ]
        common = math.sqrt(math.fsum(sd**2 for sd in spreads) / len(spreads))
        cautious = replace(estimate, sd=max(estimate.sd, common))
        word = decide(cautious, self.margin, divisor=place.divisor).word
        return word not in ("better", "worse")

    def estimate(self, first: str, second: str) -> MeanEstimate | None:
        """Return the ln-ratio of one level to another."""
        return self.place(first, second).estimate
