"""Rows beside the comparisons: best levels or plateau, position effect, trial counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from iolab.frozen import replace
from iolab.stats.families import Family
from iolab.stats.ledger import Group, Ledger
from iolab.stats.methods.best_set import best_of
from iolab.stats.methods.log_ratio import ratio_of_log
from iolab.stats.methods.position import PlacedValue, position_effect
from iolab.stats.methods.student import MeanEstimate
from iolab.stats.methods.verdict_rule import ROUNDS_MIN
from iolab.stats.metrics import METRIC_BY_NAME, METRICS
from iolab.stats.numeric_levels import numeric_levels
from iolab.stats.secondary_types import WinnerSet
from iolab.stats.verdict import BestLevels, Comparison, Interval, PositionNote, TrialCounts
from iolab.stats.winners import barred_levels, candidates
from iolab.store.rows import StudyData

PLATEAU_LEVELS_MIN: Final = 3
"""With two levels of a numeric factor the comparison itself says it all."""
PLATEAU_CONFIDENCE: Final = 0.95


def best_levels(
    ledger: Ledger,
    group: Group,
    family: Family,
    sets: Sequence[WinnerSet],
    pooled: Sequence[Comparison],
) -> BestLevels | None:
    """Find a group's best level, its equals, and the plateau of a numeric factor.

    Every pair rests on the cells and rounds that both levels have. Nothing wins while a level may
    be the best that is not shown to be within the margin; a level whose trials fail never wins.
    """
    metric = ledger.primary_metric(group)
    baseline = ledger.data.study.baseline
    mine = [c for c in pooled if c.group == group]
    barred = barred_levels(mine, baseline)
    levels = [level for level in family.levels if level not in barred]
    result = best_of(levels, family.estimate, ledger.data.study.margin)
    if metric is None or result is None or any(c.parts for c in mine):
        return None
    may_be, is_joint = candidates(sets, pooled, group, baseline)
    is_settled = bool(may_be) and set(may_be) <= set(result.members)
    is_settled = is_settled and result.n_rounds >= ROUNDS_MIN
    row = BestLevels(
        *(group[0], group[1], metric.name),
        best=result.best if is_settled else None,
        members=result.members if is_settled else (),
        plateau=None,
        n_rounds=result.n_rounds,
        best_mean=result.best,
        candidates=may_be,
        is_joint=is_joint,
        kind=group[2],
    )
    numbers = numeric_levels(ledger.data.study.compared_factor, levels)
    is_one_of = len(may_be) == len(levels)
    if numbers is None or len(numbers) < PLATEAU_LEVELS_MIN or not is_settled or is_one_of:
        return row
    plateau = min(result.members, key=lambda level: numbers[level])
    beyond = [level for level in levels if numbers[level] > numbers[plateau]]
    return replace(
        row,
        plateau=plateau,
        plateau_interval=_ratio_interval(family.estimate(plateau, result.best))
        if plateau != result.best
        else None,
        is_flat_beyond=all(level in result.members for level in beyond),
    )


def _ratio_interval(estimate: MeanEstimate | None) -> Interval | None:
    """Return the 95 % interval of one level's ratio to the best."""
    half = math.inf if estimate is None else estimate.half_width(PLATEAU_CONFIDENCE)
    if estimate is None or not math.isfinite(half):
        return None
    low, high = ratio_of_log(estimate.mean - half), ratio_of_log(estimate.mean + half)
    return Interval(low, high, PLATEAU_CONFIDENCE)


def position_note(ledger: Ledger) -> PositionNote | None:
    """Test whether the place inside a round moved the first workload's primary metric.

    Each trial enters once, with the mean of its oriented ln-values over its operations. Simulated
    trials do not know each other, so that their place cannot matter; rows of a table have one place
    in all rounds, so that it cannot be told from what they are.
    """
    if ledger.data.study.is_simulated or ledger.data.study.command:
        return None
    own = METRIC_BY_NAME.get(ledger.data.study.metric or "")
    order = (*([own] if own else []), *METRICS)
    metric = next((m for m in order if m.name in ledger.cells), None)
    if metric is None:
        return None
    last: dict[int, int] = {}
    for trial in ledger.data.trials:
        last[trial.round] = max(last.get(trial.round, 0), trial.position)
    treatments: dict[tuple[str, int], tuple[tuple[str, str], ...]] = {}
    operations: dict[str, list[tuple[str, float]]] = {}
    trials = {trial.trial_id: trial for trial in ledger.data.trials}
    for by_level in ledger.cells[metric.name].values():
        for samples in by_level.values():
            for m in samples.all():
                operations.setdefault(m.trial_id, []).append((m.operation, math.log(m.value)))
    placed: list[PlacedValue] = []
    for trial_id, values in sorted(operations.items()):
        trial = trials.get(trial_id)
        if trial is None or last[trial.round] == 0:
            continue
        # Trials that miss an operation are a treatment of their own: their mean is not comparable.
        place = (trial.workload, id(trial.levels))
        if place not in treatments:
            treatments[place] = tuple(sorted(trial.levels.items()))
        named = tuple(sorted([name for name, _ in values]))
        treatment = (trial.workload, treatments[place], named)
        mean = math.fsum([value for _, value in values]) / len(values)
        sign = 1 if metric.is_higher_better else -1
        where = trial.position / last[trial.round]
        placed.append(PlacedValue(sign * mean, treatment, trial.round, where))
    effect = position_effect(placed)
    return (
        None
        if effect is None
        else PositionNote(metric.name, effect.ratio, effect.p, effect.n_trials)
    )


def count_trials(data: StudyData) -> TrialCounts:
    """Count the planned trials by what became of them."""
    counts = Counter(trial.status for trial in data.trials)
    return TrialCounts(
        planned=len(data.trials),
        ok=counts["ok"],
        failed=counts["failed"],
        interrupted=counts["interrupted"],
        not_run=counts[None],
    )
