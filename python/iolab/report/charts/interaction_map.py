"""Two factors at once: every cell as a ratio to its best level, hatched where that is not decided.

Each cell compares every level with the one that has the best mean there, paired by round, with the
verdict rule and without adjustment: a map to look at, no verdict.
"""

from __future__ import annotations

import math

from iolab.frozen import frozen
from iolab.report.chart import Axis, ChartSpec, Panel, Point, Series, Table, Value
from iolab.report.charts.common import group_title, interval_text, operations_first, slug
from iolab.report.ledgers import ledger_of
from iolab.stats.effect import effect_of
from iolab.stats.ledger import AnyGroup, CellKey, Cells, Ledger, Place, level_text
from iolab.stats.methods.student import estimate_mean
from iolab.stats.metrics import Metric
from iolab.stats.metrics.metric import format_significant
from iolab.stats.numeric_levels import numeric_level
from iolab.stats.pairing import log_ratios, without_parts
from iolab.stats.secondary_types import FactorEffect
from iolab.stats.summaries import value_over
from iolab.stats.verdict import Effect, StudyVerdict
from iolab.stats.winners import Leads, leads
from iolab.store.rows import StudyData

PANELS_MAX = 24
SHADES = 5


@frozen
class Entry:
    """One level in one cell, against the best level there."""

    key: CellKey
    level: str
    value: float
    n: int
    ratio: float
    effect: Effect | None
    """Effect; None for the best itself, and where rounds cannot be paired."""


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw one map per workload and mode that has at least two cells and two levels."""
    ledger = ledger_of(data)
    specs: list[ChartSpec] = []
    alone: dict[str, list[Entry]] = {}
    for group in ledger.places():
        metric = ledger.primary_metric(group)
        if metric is None:
            continue
        cells = without_parts(ledger.cells_asked(metric, group))
        best = leads(ledger, group, metric)
        found = [e for key in cells for e in _entries(ledger, metric, cells, key, best)]
        if len(cells) > 1 and len({entry.level for entry in found}) > 1:
            specs.append(_spec(ledger, verdict, group, metric, found))
        elif len({entry.level for entry in found}) > 1:
            alone[group[0] if group[0] not in alone else group_title(verdict, group)] = found
    if len(alone) > 1:
        specs.append(_of_workloads(ledger, verdict, alone))
    return specs


def _entries(
    ledger: Ledger, metric: Metric, cells: Cells, key: CellKey, found: Leads
) -> list[Entry]:
    means = {level: value_over(metric, samples.all()) for level, samples in cells[key].items()}
    leaders = found.by_cell[key]
    best = next(level for level in means if level in leaders)
    theirs = cells[key][best]
    entries: list[Entry] = []
    for level, ours in cells[key].items():
        ratio = means[level] / means[best]
        logs = list(log_ratios(metric, ours, theirs).values())
        effect = None
        if level != best and logs and ledger.data.study.kind != "imported":
            effect = effect_of(estimate_mean(logs), ledger.data.study.margin, 1.0, None)
            ratio = effect.ratio or ratio
        elif not metric.is_higher_better:
            ratio = 1 / ratio
        if level in leaders:
            ratio, effect = 1.0, None
        entries.append(Entry(key, level, means[level], len(ours.all()), ratio, effect))
    return entries


def _spec(
    ledger: Ledger, verdict: StudyVerdict, group: Place, metric: Metric, found: list[Entry]
) -> ChartSpec:
    across = _across(ledger, group[0])
    columns = _columns(found, across)
    levels = list(dict.fromkeys([*ledger.levels_in_order, *(e.level for e in found)]))
    levels = [v for v in levels if any(e.level == v for e in found)]
    low = min(1 / (1 + 2 * verdict.margin), *(entry.ratio for entry in found))
    panels: dict[str, list[Point]] = {}
    for entry in found:
        title, column = _place(entry.key, across, ledger)
        place = (columns.index(column), levels.index(entry.level))
        panels.setdefault(title, []).append(_point(entry, place, low, metric))
    order = operations_first(list(panels))
    shown = order[:PANELS_MAX]
    note = f" Drawn: {len(shown)} of {len(order)} panels; the table has all."
    return ChartSpec(
        name=f"interaction_map-{slug(group_title(verdict, group))}",
        kind="heat",
        title=f"Who is best where: {group_title(verdict, group)}",
        caption=_caption(verdict, group, found, leads(ledger, group, metric).text)
        + (note if len(shown) < len(order) else ""),
        x=Axis(across or "operation", categories=tuple(columns), ticks=_ramp(low)),
        y=Axis(
            verdict.compared_factor,
            categories=tuple(level_text(verdict.compared_factor, v) for v in levels),
        ),
        panels=tuple(Panel(title, (Series("", tuple(panels[title]), 0),)) for title in shown),
        table=Table(_headers(verdict, metric), tuple(_row(e, ledger, metric) for e in found)),
    )


def _of_workloads(
    ledger: Ledger, verdict: StudyVerdict, found: dict[str, list[Entry]]
) -> ChartSpec:
    """Draw the workloads of one cell each side by side, each by its own metric."""
    entries = [entry for group in found.values() for entry in group]
    levels = [v for v in ledger.levels_in_order if any(e.level == v for e in entries)]
    low = min(1 / (1 + 2 * verdict.margin), *(entry.ratio for entry in entries))
    points: list[Point] = []
    rows: list[tuple[Value, ...]] = []
    for column, title in enumerate(found):
        for entry in found[title]:
            metric = _metric_of(ledger, entry)
            points.append(_point(entry, (column, levels.index(entry.level)), low, metric))
            rows.append(_row(entry, ledger, metric))
    best = {
        title: " = ".join(e.level for e in group if e.effect is None and e.ratio == 1.0)
        for title, group in found.items()
    }
    told = "; ".join(f"{level} in {title}" for title, level in list(best.items())[:6])
    different = len(set(best.values()))
    verb = "lead" if different > 1 else "leads"
    noun = "different levels" if different > 1 else "level"
    metric = _metric_of(ledger, entries[0])
    names = [level_text(verdict.compared_factor, level) for level in levels]
    return ChartSpec(
        name="interaction_map-workloads",
        kind="heat",
        title="Who is best where: workloads",
        caption=f"{different} {noun} {verb} the {len(found)} workloads by their means: {told}.",
        x=Axis("workload", categories=tuple(found), ticks=_ramp(low)),
        y=Axis(verdict.compared_factor, categories=tuple(names)),
        panels=(Panel("", (Series("", tuple(points), 0),)),),
        table=Table(_headers(verdict, metric), tuple(rows)),
    )


def _metric_of(ledger: Ledger, entry: Entry) -> Metric:
    metric = ledger.primary_metric(entry.key.place)
    if metric is None:
        raise AssertionError("an entry has a group, and its group a metric")
    return metric


def _across(ledger: Ledger, workload: str) -> str | None:
    """Choose the factor that goes across: record size, else the first one that varies."""
    names = ledger.varying.get(workload, [])
    return "record_size" if "record_size" in names else next(iter(names), None)


def _columns(found: list[Entry], across: str | None) -> list[str]:
    if across is None:
        return list(dict.fromkeys(entry.key.operation for entry in found))
    names = dict.fromkeys(dict(entry.key.levels).get(across, "") for entry in found)
    if all(numeric_level(name) is not None for name in names):
        return sorted(names, key=lambda name: numeric_level(name) or 0)
    return list(names)


def _place(key: CellKey, across: str | None, ledger: Ledger) -> tuple[str, str]:
    """Return panel and column of a cell."""
    if across is None:
        return "", key.operation
    levels = dict(key.levels)
    names = [n for n in ledger.varying.get(key.workload, []) if n != across and n in levels]
    rest = [level_text(name, levels[name]) for name in names]
    return " · ".join([key.operation, *rest]), levels.get(across, "")


def _point(entry: Entry, place: tuple[int, int], low: float, metric: Metric) -> Point:
    is_best = entry.effect is None and math.isclose(entry.ratio, 1.0)
    word = entry.effect.word if entry.effect else ("best mean" if is_best else "not tested")
    interval = entry.effect.interval_95 if entry.effect else None
    bounds = f" {interval_text(interval)}" if interval else ""
    return Point(
        place[0],
        place[1],
        title=f"{entry.level}, {entry.key.operation}: {metric.format(entry.value)},"
        f" {format_significant(entry.ratio)}{bounds} of the best: {word} (n = {entry.n})",
        is_hollow=word in ("undecided", "not tested"),
        is_emphasised=is_best,
        symbol="1" if is_best else _short(entry.ratio),
        shade=_shade(entry.ratio, low),
    )


def _shade(ratio: float, low: float) -> float:
    return 1 - math.log(min(1.0, ratio)) / math.log(low)


def _short(ratio: float) -> str:
    """Write a ratio to the best with two digits: ``0.87``, ``0.0042``, never ``0.00``."""
    return f"{ratio:.2f}" if ratio >= 0.095 else format_significant(ratio, 2)


def _ramp(low: float) -> tuple[tuple[float, str], ...]:
    steps = [low ** (i / (SHADES - 1)) for i in reversed(range(SHADES))]
    texts = [_short(value) for value in steps[:-1]]
    return tuple(zip((_shade(v, low) for v in steps), [*texts, "1 = best mean"], strict=True))


def _caption(verdict: StudyVerdict, group: Place, found: list[Entry], said: str) -> str:
    rest = [entry for entry in found if entry.effect is not None]
    undecided = {entry.key for entry in rest if entry.effect and entry.effect.word == "undecided"}
    worst = min(found, key=lambda entry: entry.ratio)
    where = " · ".join([worst.key.operation, *(dict(worst.key.levels).values())][:3])
    text = said
    if rest and undecided:
        text += f"; in {len(undecided)} some level cannot be told from the best (hatched)"
    return (
        f"{text}. Farthest behind: {worst.level} with {_short(worst.ratio)} of the best in {where}."
        + interaction_text(verdict.closer.factor_effects, group, verdict.compared_factor)
    )


def interaction_text(effects: list[FactorEffect], group: AnyGroup, factor: str) -> str:
    """Say how much of the variance the interactions with the compared factor explain.

    Nothing is said of a workload with several classes of cells: each has its own.
    """
    here = [e for e in effects if e.group[: len(group)] == group]
    mine = [e for e in here if len(e.factors) > 1 and factor in e.factors]
    if not mine or len({e.kind for e in here}) > 1:
        return ""
    top = max(mine, key=lambda e: e.share)
    return (
        f" The interaction {' × '.join(top.factors)} explains {top.share * 100:.1f} % of the"
        f" variance (p = {top.p:.2g})."
    )


def _headers(verdict: StudyVerdict, metric: Metric) -> tuple[str, ...]:
    return (
        "workload",
        "operation",
        "cell",
        verdict.compared_factor,
        f"{metric.statistic} ({metric.read_unit})",
        "n",
        "ratio to the best (below 1 = worse)",
        "95 % low",
        "95 % high",
        "against the best",
    )


def _row(entry: Entry, ledger: Ledger, metric: Metric) -> tuple[Value, ...]:
    interval = entry.effect.interval_95 if entry.effect else None
    return (
        entry.key.workload,
        entry.key.operation,
        ledger.label(entry.key),
        entry.level,
        metric.as_data(entry.value),
        entry.n,
        entry.ratio,
        interval.low if interval else None,
        interval.high if interval else None,
        entry.effect.word if entry.effect else "",
    )
