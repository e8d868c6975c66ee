"""Number of rounds, and what they can decide: from the noise of one round to a plan in numbers.

The noise is the sd of the ln-ratio of two equal treatments in one round (an A/A study measures it);
a plan uses the upper 80 % bound of it, as the verdict rule does for further rounds, so that the
number usually suffices. Without an A/A study an honest range is used instead of one number.

Left out: cells; the compared levels are planned by their pooled ratio, whose noise shrinks with the
cells averaged. The A/A study measures one treatment: with several cells plans are cautious.
"""

from __future__ import annotations

import math
from typing import Final

from iolab.frozen import frozen
from iolab.stats.methods.power import chance_of_difference, chance_of_same, rounds_needed
from iolab.stats.methods.sign_flip import rounds_to_reach
from iolab.stats.methods.stein import PILOT_MIN
from iolab.stats.methods.student import t_quantile

POWER: Final = 0.80
DEFAULT_SDS: Final = (0.02, 0.05, 0.10)
"""Quiet, usual and noisy: more than a quarter of the configurations that Cao et al. (FAST'17)
measured varied by more than 10 % between runs."""
MEDIAN_ROUNDS: Final = 6
"""With fewer, no distribution-free 95 % interval of a median exists."""
BCA_ROUNDS: Final = 10


@frozen
class Noise:
    """Spread of one round's ln-ratio, and where it is known from."""

    sd: float
    source: str


@frozen
class RoundsNeeded:
    """Rounds for one assumed noise; None is more than a thousand."""

    noise: Noise
    for_difference: int | None
    """To say `better` or `worse` of a true difference of twice the margin."""
    for_same: int | None
    """To say `same` where nothing differs."""
    chance_of_difference: float | None
    """With the planned number of rounds; None if a budget decides."""
    chance_of_same: float | None
    half_width: float | None
    """Relative half width of the 95 % interval with the planned rounds."""

    @property
    def recommended(self) -> int | None:
        """Rounds that serve both questions."""
        if self.for_difference is None or self.for_same is None:
            return None
        return max(self.for_difference, self.for_same)


@frozen
class Achievable:
    """Result that so few rounds can show at all, whatever the noise."""

    family: int
    rounds_for_exact_test: int
    """Sign flips, the smallest p after Holm below .05."""
    pairs: int
    rounds_for_exact_pairs: int
    """The same for all pairs of levels."""
    has_median_interval: bool
    has_bootstrap: bool


def needed(noise: Noise, margin: float, family: int, rounds: int | None) -> RoundsNeeded:
    """Plan for one assumed noise.

    Parameters
    ----------
    noise : sd of one round's ln-ratio.
    margin : smallest difference that matters.
    family : comparisons with the baseline.
    rounds : planned; None if only a budget limits them.
    """
    effect = 2 * math.log1p(margin)
    known = rounds is not None and rounds >= 2 and noise.sd > 0
    half = None
    if rounds is not None and rounds >= 2:
        half = math.expm1(t_quantile(1 - 0.025 / family, rounds - 1) * noise.sd / math.sqrt(rounds))
    return RoundsNeeded(
        noise,
        rounds_needed(effect, margin, noise.sd, power=POWER, family=family),
        rounds_needed(0.0, margin, noise.sd, power=POWER, family=family),
        chance_of_difference(effect, margin, noise.sd, rounds, family=family)
        if known and rounds
        else None,
        chance_of_same(0.0, margin, noise.sd, rounds, family=family) if known and rounds else None,
        half,
    )


def rounds_for_width(noise: Noise, width: float, family: int) -> int:
    """Return the rounds that Stein's pilot will ask for if it sees this noise.

    Parameters
    ----------
    width : wanted half width, relative.
    family : comparisons with the baseline.
    """
    t = t_quantile(1 - 0.025 / family, PILOT_MIN - 1)
    return max(PILOT_MIN, math.ceil((t * noise.sd / math.log1p(width)) ** 2))


def achievable(levels: int, rounds: int | None) -> Achievable:
    """Say what tests can reach .05 with `levels` compared levels."""
    family, pairs = max(1, levels - 1), max(1, levels * (levels - 1) // 2)
    return Achievable(
        family,
        rounds_to_reach(0.05 / family),
        pairs,
        rounds_to_reach(0.05 / pairs),
        rounds is None or rounds >= MEDIAN_ROUNDS,
        rounds is None or rounds >= BCA_ROUNDS,
    )
