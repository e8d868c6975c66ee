"""From a sample of ln-ratios to an effect with its word, for a family's place in the adjustment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from iolab.frozen import replace
from iolab.stats.methods.log_ratio import ratio_of_log
from iolab.stats.methods.student import MeanEstimate
from iolab.stats.methods.verdict_rule import decide
from iolab.stats.verdict import Effect, Interval

ALPHA: Final = 0.05
DISCOVERY_RATE: Final = 0.05
"""Wanted share of false discoveries among exploratory findings."""


def effect_of(  # noqa: PLR0913 - a place in two families
    estimate: MeanEstimate | None,
    margin: float,
    divisor: float,
    p_adjusted: float | None,
    *,
    divisor_same: float | None = None,
    level: float = ALPHA,
    next_share: float = 1.0,
) -> Effect:
    """Turn a sample of ln-ratios into an effect, by the verdict rule at alpha / `divisor`.

    The intervals have the confidence 1 - `level` (and 1 - 2 `level`) whatever the family: all of
    one table can be read alike. The word rests on the adjusted ones.
    """
    if estimate is None:
        # Without a complete round nothing is known that more of them would change.
        return Effect(None, None, None, None, None, "undecided", "none", None, False, False)
    decision = decide(
        estimate, margin, divisor=divisor, divisor_same=divisor_same, next_share=next_share
    )
    return Effect(
        ratio=ratio_of_log(estimate.mean),
        interval_95=_interval(estimate, 1 - level),
        interval_90=_interval(estimate, 1 - 2 * level),
        p=estimate.p_value(),
        p_adjusted=p_adjusted,
        word=decision.word,
        sign=decision.sign,
        further_rounds=decision.further_rounds,
        is_further_rounds_above_limit=decision.is_further_rounds_above_limit,
        is_further_rounds_at_least=decision.is_further_rounds_at_least,
        further_rounds_least=decision.further_rounds_least,
        chance_within_limit=decision.chance_within_limit,
        divisor=divisor,
        divisor_same=divisor if divisor_same is None else divisor_same,
    )


def undecided(effect: Effect, reason: str) -> Effect:
    """Return an effect whose word is withheld, and why; no number of rounds would change it."""
    return replace(
        effect,
        word="undecided",
        reason=reason,
        further_rounds=None,
        is_further_rounds_above_limit=False,
        is_further_rounds_at_least=False,
        further_rounds_least=None,
        chance_within_limit=None,
    )


def exploratory_effect(
    estimate: MeanEstimate | None, margin: float, p_adjusted: float | None, divisor: float
) -> Effect:
    """Return an effect with its own interval whose word must also survive Benjamini-Hochberg.

    `divisor` (family size over discoveries) is used only to plan the rounds of a claim that did
    not survive; it is the width of Benjamini and Yekutieli (2005), JASA 100.
    """
    effect = effect_of(estimate, margin, 1.0, p_adjusted)
    is_discovery = p_adjusted is not None and p_adjusted < DISCOVERY_RATE
    if estimate is None or is_discovery or effect.word in ("same", "undecided"):
        return effect
    if effect.word == "trivial":
        return replace(effect, word="same", sign="none")
    strict = decide(estimate, margin, divisor=divisor)
    return replace(
        effect,
        word="undecided",
        further_rounds=strict.further_rounds,
        is_further_rounds_above_limit=strict.is_further_rounds_above_limit,
        is_further_rounds_at_least=strict.is_further_rounds_at_least,
        further_rounds_least=strict.further_rounds_least,
        chance_within_limit=strict.chance_within_limit,
    )


def discovery_divisor(adjusted: Sequence[float | None]) -> float:
    """Return family size over discoveries: how much narrower alpha is for a selected claim."""
    known = [p for p in adjusted if p is not None]
    found = sum(p < DISCOVERY_RATE for p in known)
    return max(1, len(known)) / max(1, found)


def _interval(estimate: MeanEstimate, confidence: float) -> Interval | None:
    half = estimate.half_width(confidence)
    if not math.isfinite(half):
        return None
    mean = estimate.mean
    return Interval(ratio_of_log(mean - half), ratio_of_log(mean + half), confidence)
