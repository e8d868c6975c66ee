"""The verdict rule: from an interval of a ratio and the user's margin to one of five words.

With m = 1 + margin and the ratio oriented so that higher is better, in this order:

1. the 90 % interval lies inside (1/m, m): `same`; if moreover the 95 % interval excludes 1:
   `trivial`. (Two one-sided 5 % tests: Schuirmann 1987, J. Pharmacokinet. Biopharm. 15(6).)
2. the 95 % interval lies wholly above m: `better`; wholly below 1/m: `worse`.
3. otherwise `undecided`, with the sign if the 95 % interval excludes 1, and the number of further
   rounds that would decide if mean and spread stay as they are.

All on the ln scale, so that swapping the two sides mirrors the word exactly.
Source: methodology.md 3.3 "Verdict rule".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from iolab.stats.methods.student import MeanEstimate

Word = Literal["better", "worse", "same", "trivial", "undecided"]
Sign = Literal["better", "worse", "none"]

FURTHER_ROUNDS_LIMIT: Final = 200
"""Beyond this many further rounds the answer is "more than 200": nobody runs them."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The word and what it rests on; all bounds are ln of a ratio."""

    word: Word
    sign: Sign
    """Direction that the 95 % interval (after adjustment) has settled; `none` if it holds 0."""
    half_width_95: float
    half_width_90: float
    further_rounds: int | None
    """Rounds beyond those seen that would decide; None if decided, unknown, or too many."""
    is_further_rounds_above_limit: bool


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
    if word == "undecided" and estimate.n >= 2:
        further = _further_rounds(estimate, math.log1p(margin), divisor)
        is_above = further is None
    return Decision(
        word=word,
        sign=sign,
        half_width_95=estimate.half_width(1 - 0.05 / divisor),
        half_width_90=estimate.half_width(1 - 0.10 / divisor),
        further_rounds=further,
        is_further_rounds_above_limit=is_above,
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

    The half width falls with every round, so "decided" is monotone and bisection is exact.
    """

    def is_decided(further: int) -> bool:
        return _word(estimate, edge, divisor, estimate.n + further)[0] != "undecided"

    if not is_decided(FURTHER_ROUNDS_LIMIT):
        return None
    low, high = 0, FURTHER_ROUNDS_LIMIT
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_decided(middle) else (middle, high)
    return high
