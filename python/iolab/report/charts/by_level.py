"""The primary metric by level of the compared factor; dots, one colour per cell."""

from __future__ import annotations

from functools import partial

from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Series, Table
from iolab.report.charts.common import (
    Group,
    cap_panels,
    group_title,
    level_slots,
    levels_of,
    per_group,
    slug,
    summary_columns,
    summary_point,
    summary_row,
    value_axis,
)
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.verdict import StudyVerdict, TreatmentSummary
from iolab.store.rows import StudyData

LEVELS_MAX = 16
"""Of more levels only those with a colour are drawn."""


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw one chart per workload and mode, one panel per operation.

    Nothing if record sizes are compared: `by_record_size` draws those on a numeric axis.
    """
    if verdict.compared_factor == "record_size":
        return []
    return per_group(verdict, partial(_spec, data, verdict))


def _spec(
    data: StudyData, verdict: StudyVerdict, group: Group, summaries: list[TreatmentSummary]
) -> ChartSpec | None:
    found = [t for t in summaries if t.level]
    if not found:
        return None
    metric = METRIC_BY_NAME[found[0].metric]
    present = {t.level for t in found}
    levels = [level for level in levels_of(data) if level in present]
    cut = ""
    if len(levels) > LEVELS_MAX:
        slots = level_slots(data, verdict)
        lit = [level for level in levels if slots.get(level, GREY) != GREY]
        cut = f" Drawn: {len(lit)} of {len(levels)} levels; the table has all."
        levels = lit
    labels = list(dict.fromkeys(t.cell_label for t in found))
    panels, note = cap_panels(
        [
            Panel(
                operation,
                tuple(
                    Series(
                        label or metric.label,
                        tuple(
                            summary_point(t, None, levels.index(t.level or ""))
                            for t in found
                            if t.operation == operation
                            and t.cell_label == label
                            and t.level in levels
                        ),
                        slot,
                    )
                    for slot, label in enumerate(labels)
                ),
            )
            for operation in dict.fromkeys(t.operation for t in found)
        ]
    )
    factor = verdict.compared_factor
    return ChartSpec(
        name=f"by_level-{slug(group_title(verdict, group))}",
        kind="rows",
        title=f"{metric.label.capitalize()} by {factor}: {group_title(verdict, group)}",
        caption=_caption(verdict, found) + note + cut,
        x=value_axis(metric, (t.geometric_mean for t in found)),
        y=Axis(factor, categories=tuple(levels)),
        panels=panels,
        table=Table(
            summary_columns(verdict, metric.read_unit), tuple(summary_row(t) for t in found)
        ),
    )


def _caption(verdict: StudyVerdict, found: list[TreatmentSummary]) -> str:
    """Say which level leads how many cells, without claiming that the lead is real."""
    metric = METRIC_BY_NAME[found[0].metric]
    cells: dict[tuple[str, str], list[TreatmentSummary]] = {}
    for t in found:
        cells.setdefault((t.operation, t.cell_label), []).append(t)
    leads: dict[str, int] = {}
    for members in cells.values():
        pick = max if metric.is_higher_better else min
        leader = pick(members, key=lambda t: t.geometric_mean).level or ""
        leads[leader] = leads.get(leader, 0) + 1
    if len({t.level for t in found}) == 1:
        return "One level only; dots are geometric means with 95 % intervals."
    leader = max(leads, key=lambda level: leads[level])
    text = (
        f"{leader} has the best mean in {leads[leader]} of {len(cells)} cells; dots are geometric"
        f" means with 95 % intervals, and overlapping intervals settle nothing: see the ratios."
    )
    cached = sum(t.is_page_cache for t in found)
    return text + (f" Hollow: {cached} results from the page cache." if cached else "")
