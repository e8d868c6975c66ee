"""Latency distributions of treatments: means with intervals over trials, and the longest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from iolab.frozen import frozen
from iolab.report.charts.common import cell_name
from iolab.stats.longest_latencies import trial_text
from iolab.stats.lookups import modes, of_metric
from iolab.stats.methods.log_ratio import ratio_of_log
from iolab.stats.methods.student import estimate_mean
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import CurveRow, Measurement, StudyData, TrialRow

OF_METRIC = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
CLOCKS = ("latency", "response")


@frozen
class Step:
    """One quantile of one treatment, in ns."""

    quantile: float
    """1 is the longest of all trials: a maximum, no mean."""
    value: float
    low: float | None
    high: float | None
    n: int
    """Trials."""
    where: str = ""
    """Of the longest: round and trial."""


@frozen
class Where:
    """Place of a distribution: a group, a clock, a cell, a level."""

    workload: str
    is_direct: bool | None
    clock: str
    cell: str
    level: str


Distributions = dict[Where, list[Step]]


def distributions(data: StudyData, verdict: StudyVerdict) -> Distributions:
    """Return the steps of every treatment; without stored histograms the metrics must do."""
    trials = {trial.trial_id: trial for trial in data.trials if trial.status == "ok"}
    mode = modes(data)
    found: dict[Where, dict[float, list[float]]] = {}
    for curve in data.curves or _from_metrics(data):
        trial = trials.get(curve.trial_id)
        if trial is None or (curve.trial_id, curve.operation) not in mode:
            continue
        where = _where(data, verdict, trial, curve, mode[curve.trial_id, curve.operation])
        steps = found.setdefault(where, {})
        for quantile, value in curve.quantiles_ns.items():
            if value > 0:
                steps.setdefault(quantile, []).append(value)
    longest: dict[Where, list[Measurement]] = {}
    for where, m in _longest(data, verdict, trials):
        if where in found:
            longest.setdefault(where, []).append(m)
    return {
        where: [*_steps(by_quantile), *_top(longest.get(where, []))]
        for where, by_quantile in found.items()
    }


def _where(
    data: StudyData,
    verdict: StudyVerdict,
    trial: TrialRow,
    curve: CurveRow,
    is_direct: bool | None,
) -> Where:
    cell = cell_name(data, verdict, trial, curve.operation)
    level = trial.levels.get(verdict.compared_factor, "all")
    return Where(trial.workload, is_direct, curve.clock, cell, level)


def _from_metrics(data: StudyData) -> Iterable[CurveRow]:
    rows: dict[tuple[str, str, str], dict[float, float]] = {}
    for m in data.measurements:
        clock, _, name = m.metric.partition("_ns_")
        if clock in CLOCKS and name in OF_METRIC and "@" not in m.operation:
            rows.setdefault((m.trial_id, m.operation, clock), {})[OF_METRIC[name]] = m.value
    return [CurveRow(*key, count=0, quantiles_ns=values) for key, values in rows.items()]


def _longest(
    data: StudyData, verdict: StudyVerdict, trials: dict[str, TrialRow]
) -> Iterable[tuple[Where, Measurement]]:
    """Yield the longest of every trial, also of those whose histograms were not read."""
    for clock in CLOCKS:
        for m in of_metric(data, f"{clock}_ns_max"):
            trial = trials.get(m.trial_id)
            if trial is not None and m.value > 0:
                curve = CurveRow(m.trial_id, m.operation, clock, 0, {})
                yield _where(data, verdict, trial, curve, m.is_direct), m


def _top(found: Sequence[Measurement]) -> list[Step]:
    """Return the longest of all trials as the last step."""
    if not found:
        return []
    m = max(found, key=lambda m: m.value)
    where = trial_text(m.round, m.trial_id)
    return [Step(1.0, m.value, None, None, len(found), where)]


def _steps(by_quantile: dict[float, list[float]]) -> list[Step]:
    """Reduce values; a quantile that fewer than half of the trials have is left out."""
    most = max((len(values) for values in by_quantile.values()), default=0)
    steps: list[Step] = []
    for quantile, values in sorted(by_quantile.items()):
        if 2 * len(values) < most:
            continue
        estimate = estimate_mean([math.log(value) for value in values])
        half = estimate.half_width(0.95)
        is_known = math.isfinite(half)
        steps.append(
            Step(
                quantile,
                ratio_of_log(estimate.mean),
                ratio_of_log(estimate.mean - half) if is_known else None,
                ratio_of_log(estimate.mean + half) if is_known else None,
                estimate.n,
            )
        )
    return steps
