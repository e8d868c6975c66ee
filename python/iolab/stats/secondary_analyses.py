"""A closer look at a judged study: trials over time, winner sets, pairs, factors, quantiles.

Every table is a pure function of the ledger; none changes a verdict word. Groups with more than
`LEVELS_MAX` levels get no pairs: there would be more of them than anybody reads.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from iolab.stats.families import Family
from iolab.stats.ledger import Group, Ledger, Place, level_text
from iolab.stats.level_table import LevelTable, level_table, mean_log
from iolab.stats.lookups import modes
from iolab.stats.methods.effect_size import hedges_g, superiority
from iolab.stats.methods.factor_effects import factor_effects
from iolab.stats.methods.hodges_lehmann import hodges_lehmann
from iolab.stats.methods.hsu_mcb import hsu_mcb
from iolab.stats.methods.location import bca_interval, median_interval
from iolab.stats.methods.log_ratio import ratio_of_log
from iolab.stats.methods.sign_flip import sign_flip_p
from iolab.stats.methods.steady_state import steady_state
from iolab.stats.methods.trial_shape import Course, TrialShape, trial_shapes
from iolab.stats.metrics import METRICS, Metric
from iolab.stats.pairing import pooled_log_ratios, without_parts
from iolab.stats.secondary_types import (
    STALLED_MAX,
    Bounds,
    CloserLook,
    FactorEffect,
    JointComparison,
    LevelPair,
    LevelWithBest,
    NoiseShares,
    QuantileEffect,
    RobustInterval,
    RoundSteadiness,
    StalledTrial,
    TimeCourse,
    WinnerSet,
)
from iolab.stats.verdict import Comparison
from iolab.stats.whole_series import whole_series
from iolab.store.rows import SeriesRow, StudyData, TrialRow
from iolab.study.factors import find_factor, is_factor

LEVELS_MAX: Final = 12
QUANTILE_METRICS: Final = (
    "latency_ns_p50",
    "latency_ns_p90",
    "latency_ns_p99",
    "latency_ns_p999",
)
CONFIDENCE: Final = 0.95


def closer_look(
    ledger: Ledger, pooled: Sequence[Comparison], families: Mapping[Group, Family]
) -> CloserLook:
    """Fill every table."""
    look = CloserLook(time_courses=time_courses(ledger), stalled=stalled_trials(ledger))
    seen: set[Place] = set()
    for group in ledger.groups():
        metric = ledger.primary_metric(group)
        if metric is None:
            continue
        _compare_levels(look, ledger, group, metric, families.get(group))
        _explain_factors(look, ledger, group, metric)
        is_first = group[:2] not in seen
        seen.add(group[:2])
        look.quantile_effects.extend(_quantile_effects(ledger, group, is_first=is_first))
    look.robust.extend(robust for c in pooled if (robust := _robust(c)) is not None)
    return look


# Inside trials.


@dataclass(slots=True)
class _Course:
    """Values so far of one operation at one level."""

    shapes: Counter[str] = field(default_factory=Counter[str])
    steady_trials: int = 0
    warm_up_ns_max: int = 0
    stalled_trials: int = 0
    stall_ns_longest: int = 0
    stall_share_max: float = 0.0
    told_trials: int = 0

    def add(self, shape: TrialShape) -> None:
        """Count one trial."""
        self.shapes[shape.shape] += 1
        self.steady_trials += shape.steady is not None and shape.steady.is_steady_at_end
        self.warm_up_ns_max = max(self.warm_up_ns_max, shape.warm_up_ns)
        self.stalled_trials += shape.stalls.longest_ns > 0
        self.stall_ns_longest = max(self.stall_ns_longest, shape.stalls.longest_ns)
        self.stall_share_max = max(self.stall_share_max, shape.stalls.share)
        self.told_trials += shape.stalls.is_told


def time_courses(ledger: Ledger) -> list[TimeCourse]:
    """Describe the stored series by workload, operation and level."""
    factor = ledger.data.study.compared_factor
    is_direct = modes(ledger.data)
    courses: dict[tuple[str, str, bool | None, str | None], _Course] = {}
    for trial, series, shape in shaped_series(ledger.data):
        key = (
            trial.workload,
            series.operation,
            is_direct.get((series.trial_id, series.operation), False),
            trial.levels.get(factor),
        )
        courses.setdefault(key, _Course()).add(shape)
    return [
        TimeCourse(
            *key,
            n_trials=course.shapes.total(),
            shapes=dict(sorted(course.shapes.items())),
            steady_trials=course.steady_trials,
            warm_up_ns_max=course.warm_up_ns_max,
            stalled_trials=course.stalled_trials,
            stall_ns_longest=course.stall_ns_longest,
            stall_share_max=course.stall_share_max,
            told_trials=course.told_trials,
        )
        for key, course in courses.items()
    ]


ShapedSeries = tuple[TrialRow, SeriesRow, TrialShape]


def shaped_series(data: StudyData) -> list[ShapedSeries]:
    """Return every series with its trial and what it did; sorted out once."""
    shaped: list[ShapedSeries] | None = data.derived.get("shaped_series")
    if shaped is None:
        trials = {trial.trial_id: trial for trial in data.trials}
        known = [s for s in whole_series(data) if s.trial_id in trials and s.interval_ns > 0]
        shapes = trial_shapes(
            [Course(s.bytes if any(s.bytes) else s.ops, s.ops, s.interval_ns) for s in known]
        )
        shaped = [
            (trials[series.trial_id], series, shape)
            for series, shape in zip(known, shapes, strict=True)
        ]
        data.derived["shaped_series"] = shaped
    return shaped


def stalled_trials(ledger: Ledger) -> list[StalledTrial]:
    """Name every stream of a trial that stalled, the longest stall first."""
    factor = ledger.data.study.compared_factor
    is_direct = modes(ledger.data)
    found = [
        StalledTrial(
            trial.workload,
            series.operation,
            is_direct.get((series.trial_id, series.operation), False),
            trial.levels.get(factor),
            " · ".join(
                level_text(name, trial.levels[name])
                for name in ledger.varying.get(trial.workload, [])
                if name in trial.levels
            ),
            trial.trial_id,
            trial.round,
            shape.stalls.began_ns,
            shape.stalls.longest_ns,
            shape.stalls.total_ns,
            shape.stalls.share,
        )
        for trial, series, shape in shaped_series(ledger.data)
        if shape.stalls.longest_ns > 0
    ]
    found.sort(key=lambda s: (-s.longest_ns, s.trial_id, s.operation))
    return found[:STALLED_MAX]


# Between levels.


def _compare_levels(
    look: CloserLook, ledger: Ledger, group: Group, metric: Metric, family: Family | None
) -> None:
    table = level_table(ledger, group, metric)
    place, kind = (group[0], group[1], metric.name), group[2]
    for level, by_round in table.items():
        steady = steady_state([math.exp(by_round[r]) for r in sorted(by_round)])
        if steady is not None:
            look.round_steadiness.append(
                RoundSteadiness(
                    *place,
                    level,
                    len(by_round),
                    steady.reached_at,
                    steady.is_steady_at_end,
                    kind=kind,
                )
            )
    if family is None:
        return
    look.joint.extend(joint_comparisons(family, group, metric, ledger.data.study.baseline))
    if len(family.levels) > 2:
        look.winner_sets.extend(winner_sets(family, group, metric))
        if len(family.levels) <= LEVELS_MAX:
            look.pairs.extend(_pairs(family, group, metric, table))


def joint_comparisons(
    family: Family, group: Group, metric: Metric, baseline: str
) -> list[JointComparison]:
    """Compare every level with the baseline by intervals that cover together (Bonferroni)."""
    others = [level for level in family.levels if level != baseline]
    confidence = 1 - 0.05 / max(1, len(others))
    found: list[JointComparison] = []
    for level in others:
        estimate = family.estimate(level, baseline)
        if estimate is None or not math.isfinite(half := estimate.half_width(confidence)):
            continue
        p = min(1.0, (estimate.p_value() or 0.0) * len(others))
        bounds = _bounds(estimate.mean - half, estimate.mean + half, CONFIDENCE)
        ratio = ratio_of_log(estimate.mean)
        place = (group[0], group[1], metric.name)
        found.append(JointComparison(*place, level, baseline, ratio, bounds, p, kind=group[2]))
    return found


def winner_sets(family: Family, group: Group, metric: Metric) -> list[WinnerSet]:
    """Return the levels that cannot be ruled out as the best; none where nothing is known."""
    levels = tuple(
        LevelWithBest(
            found.level,
            ratio_of_log(found.difference),
            _bounds(found.low, found.high, CONFIDENCE),
            found.may_be_best,
        )
        for found in hsu_mcb(family.levels, family.estimate, confidence=CONFIDENCE)
    )
    members = tuple(level.level for level in levels if level.may_be_best)
    if not levels:
        return []
    return [WinnerSet(group[0], group[1], metric.name, members, levels, kind=group[2])]


def _pairs(family: Family, group: Group, metric: Metric, table: LevelTable) -> list[LevelPair]:
    rows: list[LevelPair] = []
    for (first, second), place in family.places.items():
        if place.estimate is None:
            continue
        half = place.estimate.half_width(CONFIDENCE)
        ours, theirs = table.get(first, {}), table.get(second, {})
        shared = sorted(set(ours) & set(theirs))
        share = superiority([ours[r] - theirs[r] for r in shared]) if shared else None
        mean = place.estimate.mean
        rows.append(
            LevelPair(
                group[0],
                group[1],
                metric.name,
                first,
                second,
                ratio_of_log(mean),
                _bounds(mean - half, mean + half, CONFIDENCE) if math.isfinite(half) else None,
                place.p_adjusted,
                sign_flip_p([ours[r] - theirs[r] for r in shared]),
                place.estimate.n,
                share.share if share else None,
                Bounds(share.low, share.high, CONFIDENCE) if share else None,
                hedges_g([ours[r] for r in shared], [theirs[r] for r in shared]),
                kind=group[2],
            )
        )
    return rows


# Factors.


def _explain_factors(look: CloserLook, ledger: Ledger, group: Group, metric: Metric) -> None:
    """Analyse the factorial of one workload, its operations averaged per trial."""
    factor = ledger.data.study.compared_factor
    names = [factor, *ledger.varying.get(group[0], [])]
    values: dict[tuple[int, tuple[str, ...]], list[float]] = {}
    for key, by_level in without_parts(ledger.cells_asked(metric, group)).items():
        levels = dict(key.levels)
        for level, samples in by_level.items():
            combination = (level, *(levels.get(name, "") for name in names[1:]))
            for r, found in samples.by_round.items():
                values.setdefault((r, combination), []).append(mean_log(found))
    full = _complete_rounds(values)
    hard = [name for name in names if is_factor(name) and find_factor(name).is_hard_to_change]
    effects = factor_effects(full, names, hard)
    if effects is None or len(names) < 2:
        return
    place = (group[0], group[1], metric.name)
    look.factor_effects.extend(
        FactorEffect(
            *place,
            term.factors,
            term.stratum,
            term.degrees_of_freedom,
            term.error_degrees_of_freedom,
            term.f,
            term.p,
            term.share,
            kind=group[2],
        )
        for term in effects.terms
    )
    look.noise_shares.append(
        NoiseShares(
            *place, effects.round_sd, effects.whole_plot_sd, effects.trial_sd, kind=group[2]
        )
    )


def _complete_rounds(
    values: dict[tuple[int, tuple[str, ...]], list[float]],
) -> dict[tuple[int, tuple[str, ...]], float]:
    """Keep the rounds in which every combination has all its operations."""
    combinations = {combination for _, combination in values}
    operations = max((len(found) for found in values.values()), default=0)
    rounds = [
        r
        for r in sorted({r for r, _ in values})
        if all(len(values.get((r, c), [])) == operations for c in combinations)
    ]
    return {
        (r, c): math.fsum(values[r, c]) / operations for r in rounds for c in sorted(combinations)
    }


# Quantiles and robust intervals.


def _quantile_effects(ledger: Ledger, group: Group, *, is_first: bool) -> list[QuantileEffect]:
    baseline = ledger.data.study.baseline
    rows: list[QuantileEffect] = []
    wanted = [metric for metric in METRICS if metric.name in QUANTILE_METRICS]
    kinds = {(m.name, kind): m for m in wanted for kind in ledger.kinds_of(m, group[:2])}
    for (_, kind), metric in kinds.items():
        # A stream's percentiles are its own: they stand with the first group of its workload.
        if kind != group[2] and not (kind.startswith("stream ") and is_first):
            continue
        cells = ledger.cells_asked(metric, (*group[:2], kind))
        found = {level for by_level in cells.values() for level in by_level}
        for level in ledger.levels_in_order:
            if level == baseline or level not in found:
                continue
            ratios = list(pooled_log_ratios(cells, metric, level, baseline).values())
            shift = hodges_lehmann(ratios, confidence=CONFIDENCE)
            if shift is None:
                continue
            bounds = None
            if shift.low is not None and shift.high is not None:
                bounds = _bounds(shift.low, shift.high, shift.confidence or CONFIDENCE)
            ratio = ratio_of_log(shift.estimate)
            rows.append(
                QuantileEffect(
                    *group[:2], metric.name, level, baseline, ratio, bounds, len(ratios), kind=kind
                )
            )
    return rows


def _robust(comparison: Comparison) -> RobustInterval | None:
    values = sorted(math.log(ratio) for ratio in comparison.round_ratios.values())
    if not values:
        return None
    half = len(values) // 2
    middle = values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2
    median, bca = median_interval(values), bca_interval(values)
    return RobustInterval(
        comparison.workload,
        comparison.is_direct,
        comparison.metric,
        comparison.level,
        ratio_of_log(middle),
        _bounds(median.low, median.high, median.confidence) if median else None,
        _bounds(bca.low, bca.high, bca.confidence) if bca else None,
        kind=comparison.kind,
    )


def _bounds(low: float, high: float, confidence: float) -> Bounds:
    return Bounds(ratio_of_log(low), ratio_of_log(high), confidence)
