"""Number of rounds for an interval of a wanted width: Stein's two stages.

A pilot of n0 rounds gives the spread s0; then N = max(n0, ceil((t * s0 / d)**2)) rounds, t with the
pilot's degrees of freedom, and the interval mean(N) -+ t * s0 / sqrt(N) covers at least as often as
promised, whatever the true spread is (normal ln-values). The spread of the later rounds is not
used, which is the price. "Until the interval is narrow enough" has no such promise: it covers
90 % instead of 95 % when it starts looking at three rounds.

Source: Stein (1945), Annals of Mathematical Statistics 16(3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from iolab.frozen import frozen
from iolab.stats.methods.student import MeanEstimate, estimate_mean, t_quantile

PILOT_MIN: Final = 8


@frozen
class TwoStageEstimate(MeanEstimate):
    """Mean of all rounds; ``sd`` is that of the first `n_pilot` alone, with their freedom."""

    n_pilot: int = PILOT_MIN

    def freedom_of(self, count: int) -> float:
        """Return the degrees of freedom of the pilot, whatever came after it."""
        del count
        return self.n_pilot - 1


def two_stage_estimate(values: Sequence[float], *, n_pilot: int = PILOT_MIN) -> MeanEstimate:
    """Reduce rounds, in order, of a study whose number of rounds the first `n_pilot` decided.

    Until there are more than those it is the usual estimate.
    """
    if len(values) <= n_pilot:
        return estimate_mean(values)
    pilot = estimate_mean(values[:n_pilot])
    return TwoStageEstimate(math.fsum(values) / len(values), pilot.sd, len(values), n_pilot=n_pilot)


@frozen
class TwoStage:
    """Number of rounds that the pilot asks for."""

    n_pilot: int
    n_total: int
    half_width: float
    """Of the interval that the total will give; at most what was asked."""


def stein_rounds(
    pilot: Sequence[float], half_width: float, *, confidence: float = 0.95
) -> TwoStage:
    """Return the total number of rounds.

    Parameters
    ----------
    pilot : shape (n0,), ln-ratios, one per round; below `PILOT_MIN` the total is large.
    half_width : wanted, unit of the pilot (ln 1.05 for 5 %), above 0.

    Raises
    ------
    ValueError : fewer than two values, or a width not above 0.
    """
    if len(pilot) < 2 or not half_width > 0:
        raise ValueError("a pilot needs two rounds, and a width above 0")
    spread = estimate_mean(pilot).sd or 0.0
    t = t_quantile(0.5 + confidence / 2, len(pilot) - 1)
    total = max(len(pilot), math.ceil((t * spread / half_width) ** 2))
    return TwoStage(len(pilot), total, t * spread / math.sqrt(total))
