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
from iolab.report.ledgers import ledger_of
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.verdict import StudyVerdict, TreatmentSummary
from iolab.stats.winners import leads
from iolab.store.rows import StudyData
from iolab.wording import sentence_case

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
    factor = verdict.compared_factor
    found = [t for t in summaries if t.level or not factor]
    if not found:
        return None
    metric = METRIC_BY_NAME[found[0].metric]
    present = {t.level for t in found}
    levels = [level for level in levels_of(data) if level in present]
    if not factor:  # One row, that of the only configuration.
        levels = [group[0]]
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
                            summary_point(t, None, levels.index(t.level or group[0]))
                            for t in found
                            if t.operation == operation
                            and t.cell_label == label
                            and (t.level or group[0]) in levels
                        ),
                        slot,
                    )
                    for slot, label in enumerate(labels)
                ),
            )
            for operation in dict.fromkeys(t.operation for t in found)
        ]
    )
    by = f" by {factor}" if factor else ""
    return ChartSpec(
        name=f"by_level-{slug(group_title(verdict, group))}",
        kind="rows",
        title=f"{sentence_case(metric.label)}{by}: {group_title(verdict, group)}",
        caption=_caption(data, found) + note + cut,
        x=value_axis(metric, (t.value for t in found)),
        y=Axis(factor, categories=tuple(levels)),
        panels=panels,
        table=Table(
            summary_columns(verdict, metric.read_unit), tuple(summary_row(t) for t in found)
        ),
    )


def _caption(data: StudyData, found: list[TreatmentSummary]) -> str:
    """Say which level leads how many cells, without claiming that the lead is real."""
    metric = METRIC_BY_NAME[found[0].metric]
    if len({t.level for t in found}) == 1:
        what = "level only" if found[0].level else "configuration"
        return f"One {what}; dots are geometric means with 95 % intervals."
    ledger = ledger_of(data)
    group = (found[0].workload, found[0].is_direct)
    said = leads(ledger, group, metric).text
    dots = "maxima" if metric.is_maximum else "geometric means with 95 % intervals"
    text = (
        f"{said}{'; ' if said else ''}dots are {dots}, and overlapping intervals settle"
        " nothing: see the ratios."
    )
    cached = sum(t.is_page_cache for t in found)
    return text + (f" Hollow: {cached} results from the page cache." if cached else "")
