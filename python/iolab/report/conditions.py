"""The verdict table: one row per workload and level, with everything that decides about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from iolab.frozen import frozen
from iolab.report.chart import Table, Value
from iolab.report.ledgers import ledger_of
from iolab.stats.ledger import Group, Ledger
from iolab.stats.level_table import level_table
from iolab.stats.lookups import modes
from iolab.stats.methods.log_ratio import geometric_mean, ratio_of_log
from iolab.stats.methods.stalls import Stalls
from iolab.stats.methods.student import estimate_mean
from iolab.stats.metrics import METRIC_BY_NAME, Metric
from iolab.stats.metrics.metric import format_ns
from iolab.stats.secondary_analyses import shaped_series
from iolab.stats.verdict import Comparison, StudyVerdict
from iolab.stats.winners import standing
from iolab.store.rows import StudyData, TrialRow

IsMember: TypeAlias = Callable[[TrialRow, str], bool]
P99 = "latency_ns_p99"


@frozen
class Amount:
    """A geometric mean over cells, with its interval over rounds; or the longest, without one."""

    value: float
    low: float | None
    high: float | None
    n: int


@frozen
class Condition:
    """One level in one group."""

    group: Group
    level: str
    metric: Metric
    primary: Amount | None
    p99: Amount | None
    comparison: Comparison | None
    """Against the baseline; None for the baseline itself."""
    p99_comparison: Comparison | None
    stalled: tuple[int, int, int] | None
    """Series with a stall, series long enough to show one, longest stall in ns."""
    cpu_ns_per_op: float | None
    is_winner: bool
    """Shown to be the best, or within the margin of it; no other level may be the best."""
    may_be_best: bool
    """Not ruled out as the best."""


def conditions(data: StudyData, verdict: StudyVerdict) -> list[Condition]:
    """Collect the rows, groups in the study's order and levels as given."""
    ledger = ledger_of(data)
    found: list[Condition] = []
    for group in ledger.groups():
        metric = ledger.primary_metric(group)
        if metric is None:
            continue
        primary = _amounts(ledger, group, metric)
        tail = _amounts(ledger, group, METRIC_BY_NAME[P99])
        found_best = standing(verdict, group)
        is_member = _membership(ledger, group, metric)
        stalled, cpu = _stalls(data, is_member), _cpu_per_op(data, is_member)
        for level in [v for v in ledger.levels_in_order if v in primary]:
            found.append(
                Condition(
                    group,
                    level,
                    metric,
                    primary.get(level),
                    tail.get(level) if metric.name != P99 else None,
                    _comparison(verdict.pooled, group, level, metric.name),
                    _comparison(verdict.secondary, group, level, P99),
                    stalled.get(level),
                    cpu.get(level),
                    level in found_best.winners,
                    level in found_best.candidates,
                )
            )
    return found


def _amounts(ledger: Ledger, group: Group, metric: Metric) -> dict[str, Amount]:
    if metric.is_maximum:
        return _longest(ledger, group, metric)
    sign = 1 if metric.is_higher_better else -1
    found: dict[str, Amount] = {}
    for level, by_round in level_table(ledger, group, metric).items():
        if not by_round:
            continue
        estimate = estimate_mean([sign * value for value in by_round.values()])
        half = estimate.half_width(0.95)
        is_known = math.isfinite(half)
        found[level] = Amount(
            ratio_of_log(estimate.mean),
            ratio_of_log(estimate.mean - half) if is_known else None,
            ratio_of_log(estimate.mean + half) if is_known else None,
            estimate.n,
        )
    return found


def _longest(ledger: Ledger, group: Group, metric: Metric) -> dict[str, Amount]:
    """Return the longest of each level over all its cells and trials."""
    found: dict[str, list[float]] = {}
    for by_level in ledger.cells_asked(metric, group).values():
        for level, samples in by_level.items():
            found.setdefault(level, []).extend(m.value for m in samples.all())
    return {level: Amount(max(v), None, None, len(v)) for level, v in found.items()}


def _comparison(
    found: Sequence[Comparison], group: Group, level: str, metric: str
) -> Comparison | None:
    for c in found:
        if (c.group, c.level, c.metric) == (group, level, metric):
            return c
    return None


def _membership(ledger: Ledger, group: Group, metric: Metric) -> IsMember:
    """Return what tells whether an operation of a trial belongs to a group: of its class, too."""
    mode = modes(ledger.data)
    cells = {(key.operation, key.levels) for key in ledger.all_cells_of(metric, group)}

    def is_member(trial: TrialRow, operation: str) -> bool:
        if trial.workload != group[0]:
            return False
        if group[1] not in (None, mode.get((trial.trial_id, operation), group[1])):
            return False
        return not group[2] or (operation, ledger.cell_levels(trial)) in cells

    return is_member


def _stalls(data: StudyData, is_member: IsMember) -> dict[str, tuple[int, int, int]]:
    """Count the series of each level that stalled, of those that can show it."""
    factor = data.study.compared_factor
    found: dict[str, list[Stalls]] = {}
    for trial, series, shape in shaped_series(data):
        if shape.stalls.is_told and factor in trial.levels and is_member(trial, series.operation):
            found.setdefault(trial.levels[factor], []).append(shape.stalls)
    return {
        level: (
            sum(one.longest_ns > 0 for one in mine),
            len(mine),
            max(one.longest_ns for one in mine),
        )
        for level, mine in found.items()
    }


def _cpu_per_op(data: StudyData, is_member: IsMember) -> dict[str, float]:
    """CPU time of the machine per operation by level, geometric mean over phases."""
    factor = data.study.compared_factor
    trials = {trial.trial_id: trial for trial in data.trials}
    found: dict[str, list[float]] = {}
    for detail in data.phase_details:
        trial = trials.get(detail.get("trial_id", ""))
        operations = sum(worker.get("ops") or 0 for worker in detail.get("workers") or [])
        spent = (detail.get("cpu_user_ns") or 0) + (detail.get("cpu_system_ns") or 0)
        if trial is None or factor not in trial.levels or not operations or spent <= 0:
            continue
        if is_member(trial, detail["operation"]):
            found.setdefault(trial.levels[factor], []).append(spent / operations)
    return {level: geometric_mean(values) for level, values in found.items()}


def stall_texts(stalled: tuple[int, int, int] | None) -> tuple[str, str]:
    """Write how many series stalled, and for how long at most."""
    if stalled is None:
        return "–", ""
    count, total, longest = stalled
    return f"{count} of {total}", f"up to {format_ns(longest)}" if count else ""


def amount_text(amount: Amount | None, metric: Metric) -> str:
    """Write a mean; its interval is written apart."""
    return "–" if amount is None else metric.format(amount.value)


def interval_text(amount: Amount | None, metric: Metric) -> str:
    """Write an interval, its unit once if both ends have the same."""
    if amount is None:
        return ""
    if amount.low is None or amount.high is None:
        return f"n = {amount.n}"
    low, _, unit = metric.format(amount.low).rpartition(" ")
    high = metric.format(amount.high)
    return f"{low} to {high}" if high.endswith(f" {unit}") else f"{low} {unit} to {high}"


def condition_table(rows: Sequence[Condition], factor: str) -> Table:
    """Return the same as plain data, for the CSV."""
    return Table(
        (
            "workload", "mode", "class", factor, "metric", "geometric mean or maximum", "95 % low",
            "95 % high", "rounds", "ratio to the baseline", "95 % low", "95 % high",
            "verdict", "p99 (ns)", "p99 95 % low (ns)", "p99 95 % high (ns)",
            "p99 verdict", "series with a stall",
            "series long enough to show one", "longest stall (ns)",
            "CPU time per operation (ns)", "within the margin of the best", "may be the best",
        ),
        tuple(_plain(row) for row in rows),
    )  # fmt: skip


def _plain(c: Condition) -> tuple[Value, ...]:
    effect = c.comparison.effect if c.comparison else None
    interval = effect.interval_95 if effect else None
    mode = {True: "direct", False: "buffered", None: ""}[c.group[1]]
    tail = c.p99_comparison.effect.word if c.p99_comparison else None
    return (
        c.group[0],
        mode,
        c.group[2],
        c.level,
        c.metric.name,
        *_values(c.primary),
        c.primary.n if c.primary else None,
        effect.ratio if effect else None,
        interval.low if interval else None,
        interval.high if interval else None,
        effect.word if effect else "baseline",
        *_values(c.p99),
        tail,
        *(c.stalled or (None, None, None)),
        c.cpu_ns_per_op,
        "yes" if c.is_winner else "no",
        "yes" if c.may_be_best else "no",
    )


def _values(amount: Amount | None) -> tuple[Value, ...]:
    return (None, None, None) if amount is None else (amount.value, amount.low, amount.high)
