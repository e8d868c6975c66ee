"""IOzone's picture for nostalgia: the primary metric as a surface over two numeric factors.

It is folded, because heights at its back may be hidden; the heat map is the figure to read.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from iolab.report.chart import Axis, ChartSpec, Panel, Point, Series, Table, Value
from iolab.report.charts.common import (
    Group,
    group_title,
    operations_first,
    per_group,
    slug,
)
from iolab.stats.ledger import is_segment, level_text
from iolab.stats.metrics import METRIC_BY_NAME, Metric
from iolab.stats.numeric_levels import numeric_levels
from iolab.stats.verdict import StudyVerdict, TreatmentSummary
from iolab.store.rows import StudyData
from iolab.wording import sentence_case

USUAL: Final = ("record_size", "file_size")
"""The factors that IOzone's own picture has."""
LEVELS_MIN: Final = 2
POINTS_MIN: Final = 6
"""Fewer points are no surface: two by three is the smallest."""
LEVELS_MAX: Final = 40
PANELS_MAX: Final = 6


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw one figure per workload and mode with two factors whose levels are numbers."""
    return per_group(verdict, partial(_spec, data, verdict))


def _spec(
    data: StudyData, verdict: StudyVerdict, group: Group, summaries: list[TreatmentSummary]
) -> ChartSpec | None:
    metric = METRIC_BY_NAME[summaries[0].metric]
    whole = [t for t in summaries if not is_segment(t.operation)]
    axes = _axes(data, whole)
    if axes is None:
        return None
    (across, columns), (along, rows) = axes.items()
    panels: dict[str, list[Point]] = {}
    for t in whole:
        if across in t.levels and along in t.levels:
            place = (columns.index(t.levels[across]), rows.index(t.levels[along]))
            panels.setdefault(_title(data, t, axes), []).append(_point(t, place, axes))
    panels = {title: points for title, points in panels.items() if _is_surface(points)}
    if not panels:
        return None
    order = operations_first(list(panels))
    shown = order[:PANELS_MAX]
    note = f" Drawn: {len(shown)} of {len(order)} panels; the table has all."
    inside = [t for t in whole if _title(data, t, axes) in panels]
    return ChartSpec(
        name=f"surface-{slug(group_title(verdict, group))}",
        kind="surface",
        title=f"As a surface, for nostalgia: {group_title(verdict, group)}",
        caption=_caption(data, metric, inside, axes) + (note if len(shown) < len(order) else ""),
        x=Axis(across, categories=tuple(columns)),
        y=Axis(along, categories=tuple(rows)),
        z=Axis(metric.label, metric.display_unit, is_from_zero=True),
        panels=tuple(Panel(title, (Series("", tuple(panels[title]), 0),)) for title in shown),
        table=Table(
            (
                "panel",
                across,
                along,
                f"{metric.statistic} ({metric.read_unit})",
                f"95 % low ({metric.read_unit})",
                f"95 % high ({metric.read_unit})",
                "n",
            ),
            tuple(_row(data, t, axes) for t in inside),
        ),
        is_folded=True,
    )


def _axes(data: StudyData, found: list[TreatmentSummary]) -> dict[str, list[str]] | None:
    """Choose the two factors, with their levels from small to large; None without two."""
    known: dict[str, list[str]] = {}
    for name in dict.fromkeys([*USUAL, *data.study.factors]):
        levels = list(dict.fromkeys(t.levels[name] for t in found if name in t.levels))
        numbers = numeric_levels(name, levels)
        if numbers is not None and LEVELS_MIN <= len(numbers) <= LEVELS_MAX:
            known[name] = sorted(numbers, key=numbers.__getitem__)
    chosen = dict(list(known.items())[:2])
    return chosen if len(chosen) == 2 else None


def _is_surface(points: list[Point]) -> bool:
    """Tell whether there is one value at each place, and enough of them."""
    places = {(p.x, p.y) for p in points}
    sides = ({x for x, _ in places}, {y for _, y in places})
    return len(places) == len(points) >= POINTS_MIN and all(len(s) >= LEVELS_MIN for s in sides)


def _title(data: StudyData, t: TreatmentSummary, axes: dict[str, list[str]]) -> str:
    """Name a panel by what is not on its axes."""
    rest = [
        level_text(name, t.levels[name])
        for name, levels in data.study.factors.items()
        if len(levels) > 1 and name not in axes and name in t.levels
    ]
    return " · ".join([t.operation, *rest])


def _point(t: TreatmentSummary, place: tuple[int, int], axes: dict[str, list[str]]) -> Point:
    metric = METRIC_BY_NAME[t.metric]
    where = " × ".join(t.levels[name] for name in axes)
    title = f"{where}: {metric.format(t.value)}"
    return Point(place[0], place[1], title=title, z=metric.display(t.value))


def _caption(
    data: StudyData, metric: Metric, found: list[TreatmentSummary], axes: dict[str, list[str]]
) -> str:
    """Say where the ends are, and what not to take from the picture."""

    def said(t: TreatmentSummary) -> str:
        levels = " and ".join(f"{name} = {t.levels[name]}" for name in axes)
        return f"with {levels} ({_title(data, t, axes)}): {metric.format(t.value)}"

    top = max(found, key=lambda t: t.value)
    bottom = min(found, key=lambda t: t.value)
    better = "“Who is best where”" if data.study.is_comparison else "the table"
    return (
        f"{sentence_case(metric.label)} is highest {said(top)}; lowest {said(bottom)}. Heights at"
        f" the back may be hidden: the figure to read is {better}."
    )


def _row(data: StudyData, t: TreatmentSummary, axes: dict[str, list[str]]) -> tuple[Value, ...]:
    metric = METRIC_BY_NAME[t.metric]
    return (
        _title(data, t, axes),
        *(t.levels.get(name) for name in axes),
        metric.as_data(t.value),
        metric.as_data(t.value_interval.low) if t.value_interval else None,
        metric.as_data(t.value_interval.high) if t.value_interval else None,
        t.n,
    )
