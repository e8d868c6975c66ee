"""From a sample of ln-ratios to an effect with its word, for a family's place in the adjustment."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

from iolab.stats.methods.log_ratio import ratio_of_log
from iolab.stats.methods.student import MeanEstimate
from iolab.stats.methods.verdict_rule import decide
from iolab.stats.verdict import Effect, Interval

DISCOVERY_RATE: Final = 0.05
"""Wanted share of false discoveries among exploratory findings."""


def effect_of(
    estimate: MeanEstimate | None, margin: float, divisor: float, p_adjusted: float | None
) -> Effect:
    """Turn a sample of ln-ratios into an effect, by the verdict rule at alpha / `divisor`."""
    if estimate is None:
        # Without a complete round nothing is known that more of them would change.
        return Effect(None, None, None, None, None, "undecided", "none", None, False, False)
    decision = decide(estimate, margin, divisor=divisor)
    return Effect(
        ratio=ratio_of_log(estimate.mean),
        interval_95=_interval(estimate.mean, decision.half_width_95, 1 - 0.05 / divisor),
        interval_90=_interval(estimate.mean, decision.half_width_90, 1 - 0.10 / divisor),
        p=estimate.p_value(),
        p_adjusted=p_adjusted,
        word=decision.word,
        sign=decision.sign,
        further_rounds=decision.further_rounds,
        is_further_rounds_above_limit=decision.is_further_rounds_above_limit,
        is_further_rounds_at_least=decision.is_further_rounds_at_least,
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
        return dataclasses.replace(effect, word="same", sign="none")
    strict = decide(estimate, margin, divisor=divisor)
    return dataclasses.replace(
        effect,
        word="undecided",
        further_rounds=strict.further_rounds,
        is_further_rounds_above_limit=strict.is_further_rounds_above_limit,
        is_further_rounds_at_least=strict.is_further_rounds_at_least,
    )


def discovery_divisor(adjusted: Sequence[float | None]) -> float:
    """Return family size over discoveries: how much narrower alpha is for a selected claim."""
    known = [p for p in adjusted if p is not None]
    found = sum(p < DISCOVERY_RATE for p in known)
    return max(1, len(known)) / max(1, found)


def _interval(mean: float, half: float, confidence: float) -> Interval | None:
    if not math.isfinite(half):
        return None
    return Interval(ratio_of_log(mean - half), ratio_of_log(mean + half), confidence)
