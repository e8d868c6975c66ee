"""The verdict rule: from an interval of a ratio and the user's margin to one of five words.

With m = 1 + margin and the ratio oriented so that higher is better, in this order:

1. the 90 % interval lies inside (1/m, m): `same`; if moreover the 95 % interval excludes 1:
   `trivial`. (Two one-sided 5 % tests: Schuirmann 1987, J. Pharmacokinet. Biopharm. 15(6).) An
   interval that is 1 to all digits that are printed excludes it for nobody who reads: `same`.
2. the 95 % interval lies wholly above m: `better`; wholly below 1/m: `worse`.
3. otherwise `undecided`, with the sign if the 95 % interval excludes 1, and how many further rounds
   would decide (`forecast`).

Two rounds decide nothing: their spread is known to within a factor of thirty. In a family the two
questions have places of their own: alpha is divided by `divisor` for "differs" and by
`divisor_same` for "is the same". A sixth word, `depends`, is found where cells disagree
(`interaction`).

All on the ln scale, so that swapping the two sides mirrors the word exactly.
Source: docs/design/0003-from-study-to-verdict.md.
"""

from __future__ import annotations

import math
from typing import Final, Literal

from iolab.frozen import frozen
from iolab.stats.methods.forecast import Forecast, forecast
from iolab.stats.methods.student import MeanEstimate

Word = Literal["better", "worse", "same", "trivial", "depends", "undecided"]
Sign = Literal["better", "worse", "none"]
OPEN_WORDS: Final[tuple[Word, ...]] = ("undecided", "depends")
"""Words that do not say which level to take."""

ROUNDS_MIN: Final = 3
"""With fewer complete rounds nothing is decided."""
FURTHER_ROUNDS_LIMIT: Final = 200
"""Beyond this many further rounds the answer is "more than 200": nobody runs them."""
ROUNDS_TO_PLAN: Final = 5
"""With fewer complete rounds the spread is not known well enough to plan with."""
EQUAL_WITHIN: Final = 5e-6
"""Relative difference below which two values are printed as equal (0.0005 %)."""
SPREAD_CONFIDENCE: Final = 0.80
"""Confidence of the upper bound of the spread that planning uses."""


@frozen
class Decision:
    """The word and what it rests on; all bounds are ln of a ratio."""

    word: Word
    sign: Sign
    """Direction that the 95 % interval (after adjustment) has settled; `none` if it holds 0."""
    half_width_95: float
    half_width_90: float
    further_rounds: int | None
    """Rounds beyond those seen that decide with 80 % chance; below `ROUNDS_TO_PLAN` rounds those
    that are needed before that can be told; None if decided, unknown, or too many."""
    is_further_rounds_above_limit: bool
    is_further_rounds_at_least: bool
    """True if there are too few rounds to plan with, so that `further_rounds` comes first."""
    further_rounds_least: int | None = None
    """With 20 % chance so few decide; None if that cannot be told."""
    chance_within_limit: float | None = None
    """Chance that `FURTHER_ROUNDS_LIMIT` rounds decide; None if that cannot be told."""


def decide(
    estimate: MeanEstimate,
    margin: float,
    *,
    divisor: float = 1.0,
    divisor_same: float | None = None,
    next_share: float = 1.0,
) -> Decision:
    """Apply the rule.

    Parameters
    ----------
    estimate : mean, deviation and count of the oriented ln-ratios, one per round.
    margin : smallest relative difference that matters, above 0 (0.05 = 5 %).
    divisor : alpha is divided by this for multiplicity (1 = a single comparison).
    divisor_same : the same for `same` and `trivial`; None is `divisor`.
    next_share : what a further look would have of this alpha; further rounds are told by it.

    Raises
    ------
    ValueError : margin not above 0.
    """
    if not margin > 0:
        raise ValueError(f"margin must be above 0, not {margin}")
    both = (divisor, divisor if divisor_same is None else divisor_same)
    word, sign = _word(estimate, math.log1p(margin), both)
    further, is_above, is_first, told = None, False, False, None
    if word == "undecided" and estimate.n < ROUNDS_TO_PLAN:
        further, is_first = ROUNDS_TO_PLAN - estimate.n, True
    elif word == "undecided":
        later = (both[0] / next_share, both[1] / next_share)
        told = forecast(estimate, math.log1p(margin), later, FURTHER_ROUNDS_LIMIT)
        further, is_above = told.most, told.most is None
    return Decision(
        word=word,
        sign=sign,
        half_width_95=estimate.half_width(1 - 0.05 / both[0]),
        half_width_90=estimate.half_width(1 - 0.10 / both[1]),
        further_rounds=further,
        is_further_rounds_above_limit=is_above,
        is_further_rounds_at_least=is_first,
        further_rounds_least=_least(told),
        chance_within_limit=told.chance if told else None,
    )


def _least(told: Forecast | None) -> int | None:
    return told.least if told else None


def _word(estimate: MeanEstimate, edge: float, divisors: tuple[float, float]) -> tuple[Word, Sign]:
    mean = estimate.mean
    half_95 = estimate.half_width(1 - 0.05 / divisors[0])
    half_90 = estimate.half_width(1 - 0.10 / divisors[1])
    sign: Sign = "none"
    if abs(mean) > half_95:
        sign = "better" if mean > 0 else "worse"
    if estimate.n < ROUNDS_MIN:
        return "undecided", sign
    if abs(mean) + half_90 < edge:
        if sign == "none" or abs(mean) + half_95 < math.log1p(EQUAL_WITHIN):
            return "same", "none"
        return "trivial", sign
    if abs(mean) - half_95 > edge:
        return ("better" if mean > 0 else "worse"), sign
    return "undecided", sign
