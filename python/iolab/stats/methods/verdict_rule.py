"""The verdict rule: from an interval of a ratio and the user's margin to one of five words.

With m = 1 + margin and the ratio oriented so that higher is better, in this order:

1. the 90 % interval lies inside (1/m, m): `same`; if moreover the 95 % interval excludes 1:
   `trivial`. (Two one-sided 5 % tests: Schuirmann 1987, J. Pharmacokinet. Biopharm. 15(6).)
2. the 95 % interval lies wholly above m: `better`; wholly below 1/m: `worse`.
3. otherwise `undecided`, with the sign if the 95 % interval excludes 1, and the number of further
   rounds that would decide if the mean stays and the spread is no worse than it may well be.

Planning does not take the observed sd s for the truth: with n rounds the true one is below
``s * sqrt((n - 1) / q)`` with 80 % confidence, where q is the 20 % quantile of chi-square with
n - 1 degrees of freedom (Kieser and Wassmer 1996, Biometrical J. 38(8)).
Below five rounds not even that is worth a promise (n = 2: 3.9 s): then `further_rounds` is 5 - n,
what is needed first, and says nothing about deciding. Left out: the uncertainty of the mean, which
matters if it lies near the margin.

All on the ln scale, so that swapping the two sides mirrors the word exactly.
Source: docs/design/0003-from-study-to-verdict.md.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Final, Literal

from iolab.stats.methods.student import MeanEstimate, spread_bound

Word = Literal["better", "worse", "same", "trivial", "undecided"]
Sign = Literal["better", "worse", "none"]

FURTHER_ROUNDS_LIMIT: Final = 200
"""Beyond this many further rounds the answer is "more than 200": nobody runs them."""
ROUNDS_TO_PLAN: Final = 5
"""With fewer complete rounds the spread is not known well enough to plan with."""
SPREAD_CONFIDENCE: Final = 0.80
"""Confidence of the upper bound of the spread that planning uses."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The word and what it rests on; all bounds are ln of a ratio."""

    word: Word
    sign: Sign
    """Direction that the 95 % interval (after adjustment) has settled; `none` if it holds 0."""
    half_width_95: float
    half_width_90: float
    further_rounds: int | None
    """Rounds beyond those seen that would probably decide; below `ROUNDS_TO_PLAN` rounds those that
    are needed before that can be told; None if decided, unknown, or too many."""
    is_further_rounds_above_limit: bool
    is_further_rounds_at_least: bool
    """Whether there are too few rounds to plan with, so that `further_rounds` comes first."""


def decide(estimate: MeanEstimate, margin: float, *, divisor: float = 1.0) -> Decision:
    """Apply the rule.

    Parameters
    ----------
    estimate : mean, deviation and count of the oriented ln-ratios, one per round.
    margin : smallest relative difference that matters, above 0 (0.05 = 5 %).
    divisor : alpha is divided by this for multiplicity (1 = a single comparison).

    Raises
    ------
    ValueError : margin not above 0.
    """
    if not margin > 0:
        raise ValueError(f"margin must be above 0, not {margin}")
    word, sign = _word(estimate, math.log1p(margin), divisor, estimate.n)
    further, is_above = None, False
    if word == "undecided":
        further = _further_rounds(estimate, math.log1p(margin), divisor)
        is_above = further is None
    return Decision(
        word=word,
        sign=sign,
        half_width_95=estimate.half_width(1 - 0.05 / divisor),
        half_width_90=estimate.half_width(1 - 0.10 / divisor),
        further_rounds=further,
        is_further_rounds_above_limit=is_above,
        is_further_rounds_at_least=further is not None and estimate.n < ROUNDS_TO_PLAN,
    )


def _word(estimate: MeanEstimate, edge: float, divisor: float, n: int) -> tuple[Word, Sign]:
    """Return word and sign as if `n` rounds with this mean and spread had been seen."""
    mean = estimate.mean
    half_95 = estimate.half_width(1 - 0.05 / divisor, n=n)
    half_90 = estimate.half_width(1 - 0.10 / divisor, n=n)
    sign: Sign = "none"
    if abs(mean) > half_95:
        sign = "better" if mean > 0 else "worse"
    if abs(mean) + half_90 < edge:
        return ("same" if sign == "none" else "trivial"), sign
    if abs(mean) - half_95 > edge:
        return ("better" if mean > 0 else "worse"), sign
    return "undecided", sign


def _further_rounds(estimate: MeanEstimate, edge: float, divisor: float) -> int | None:
    """Find the smallest number of further rounds that decides; None if above the limit.

    With few rounds it is the number that is needed before planning.

    The half width falls with every round, so "decided" is monotone and bisection is exact.
    """
    if estimate.n < ROUNDS_TO_PLAN:
        return ROUNDS_TO_PLAN - estimate.n
    cautious = dataclasses.replace(estimate, sd=spread_bound(estimate, SPREAD_CONFIDENCE))

    def is_decided(further: int) -> bool:
        return _word(cautious, edge, divisor, estimate.n + further)[0] != "undecided"

    if not is_decided(FURTHER_ROUNDS_LIMIT):
        return None
    low, high = 0, FURTHER_ROUNDS_LIMIT
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_decided(middle) else (middle, high)
    return high
