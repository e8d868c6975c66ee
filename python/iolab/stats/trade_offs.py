"""Metrics or cells that differ in what they say of a level: one sentence each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.frozen import replace
from iolab.stats.effect_words import (
    FRACTION_BELOW,
    TIMES_FROM,
    Form,
    amount_of_effect,
    form_of,
    size_of_effect,
)
from iolab.stats.ledger import level_text
from iolab.stats.metrics import METRIC_BY_NAME, Metric
from iolab.stats.sentence import bounds_text, form_of_effects, size_text
from iolab.stats.verdict import CellComparison, Comparison, Effect

TRADE_OFF: Final = "Trade-off"
"""First word of a sentence about a level that is better by one metric and worse by another."""
NOT_UNIFORM: Final = "Not uniform"
"""First words of a sentence about a level that is better in some cells and worse in others."""


def trade_offs(
    pooled: Sequence[Comparison],
    secondary: Sequence[Comparison],
    cells: Sequence[CellComparison],
    compared_factor: str,
) -> list[str]:
    """Name every level whose metrics, or whose cells, say different things.

    Latencies of different record sizes are not set against throughput: moving more bytes takes
    longer. A secondary metric counts if it is clearly better or worse while the primary one has
    another settled word; cells count if some are better and others worse.
    """
    sentences: list[str] = []
    for main in pooled:
        where = (main.workload, main.is_direct, main.level)
        for other in secondary if compared_factor != "record_size" else ():
            if (other.workload, other.is_direct, other.level) != where:
                continue
            is_of_it = other.kind == main.kind or other.kind.startswith("stream ")
            if is_of_it and _points_elsewhere(main.effect.word, other.effect.word):
                sentences.append(_trade_off(main, other, compared_factor))
        if not main.parts:
            mine = [c for c in cells if (c.group, c.level) == (main.group, main.level)]
            sentences += _disagreement(main, mine, compared_factor)
    return sentences


def _points_elsewhere(main: str, other: str) -> bool:
    return (
        other in ("better", "worse")
        and main in ("better", "worse", "same", "trivial")
        and (other != main)
    )


def _trade_off(main: Comparison, other: Comparison, factor: str) -> str:
    metric, beside = METRIC_BY_NAME[main.metric], METRIC_BY_NAME[other.metric]
    subject = level_text(factor, main.level)
    form = _form_alone(beside, other.effect)
    if main.effect.word == "same":
        claim = f"the same {metric.label}"
    elif main.effect.word == "trivial":
        claim = f"a {metric.label} that hardly differs"
    else:
        form = form_of_effects([other.effect, replace(main.effect, interval_95=None)])
        claim = amount_of_effect(metric, ratio_of(main.effect), form)
    whose = f" ({other.kind})" if other.kind and other.kind != main.kind else ""
    # Where the one is settled and neither better nor worse, nothing is given up for the other.
    is_chosen = {main.effect.word, other.effect.word} == {"better", "worse"}
    opening, joint = (TRADE_OFF, ", but") if is_chosen else ("Besides", ";")
    return (
        f"{opening} in {main.workload}: {subject} gives {claim}{joint} its {beside.label}{whose} is"
        f" {size_text(beside, other.effect, form)} ({bounds_text(beside, other.effect, form)})."
    )


def _form_alone(metric: Metric, effect: Effect) -> Form:
    """Return the form of an effect that stands beside no other: 79 % lower is read more easily
    than 0.21 times as high, 97 % lower is not.
    """
    ends = effect.interval_95
    ratios = [ratio_of(effect), *((ends.low, ends.high) if ends is not None else ())]
    natural = ratios if metric.is_higher_better else [1 / ratio for ratio in ratios]
    if all(FRACTION_BELOW < ratio < TIMES_FROM for ratio in natural):
        return "percent"
    return form_of(ratios)


def _disagreement(main: Comparison, cells: list[CellComparison], factor: str) -> list[str]:
    better = [c for c in cells if c.effect.word == "better"]
    worse = [c for c in cells if c.effect.word == "worse"]
    if not better or not worse:
        return []
    metric = METRIC_BY_NAME[main.metric]
    best = max(better, key=lambda c: ratio_of(c.effect))
    worst = min(worse, key=lambda c: ratio_of(c.effect))
    form = form_of([ratio_of(best.effect), ratio_of(worst.effect)])
    return [
        f"{NOT_UNIFORM} in {main.workload}: {level_text(factor, main.level)} is better in"
        f" {len(better)} and worse in {len(worse)} of {len(cells)} cells (from"
        f" {size_of_effect(metric, ratio_of(worst.effect), form)} in {worst.label} to"
        f" {size_of_effect(metric, ratio_of(best.effect), form)} in {best.label})."
    ]


def ratio_of(effect: Effect) -> float:
    """Return the ratio, 1 where there is none."""
    return 1.0 if effect.ratio is None else effect.ratio
