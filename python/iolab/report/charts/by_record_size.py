"""The primary metric by record size; sizes are numbers, so lines may join them."""

from __future__ import annotations

from functools import partial

from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Series, Table
from iolab.report.charts.common import (
    Group,
    cap_panels,
    grey_note,
    group_title,
    level_slots,
    per_group,
    size_ticks,
    slug,
    summary_columns,
    summary_point,
    summary_row,
    value_axis,
)
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.numeric_levels import numeric_level
from iolab.stats.verdict import StudyVerdict, TreatmentSummary
from iolab.store.rows import StudyData
from iolab.wording import sentence_case

FACTOR = "record_size"


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw one chart per workload and mode with at least two record sizes."""
    return per_group(verdict, partial(_spec, data, verdict))


def _spec(
    data: StudyData, verdict: StudyVerdict, group: Group, summaries: list[TreatmentSummary]
) -> ChartSpec | None:
    found = [t for t in summaries if numeric_level(t.levels.get(FACTOR, "")) is not None]
    sizes = sorted({t.levels[FACTOR] for t in found}, key=lambda size: numeric_level(size) or 0)
    if len(sizes) < 2:
        return None
    metric = METRIC_BY_NAME[found[0].metric]
    slots = level_slots(data, verdict)
    is_compared = verdict.compared_factor == FACTOR
    panels, note = cap_panels(
        [
            Panel(title, _series(members, slots, is_compared))
            for title, members in _by_panel(found, is_compared).items()
        ]
    )
    return ChartSpec(
        name=f"by_record_size-{slug(group_title(verdict, group))}",
        kind="plane",
        title=f"{sentence_case(metric.label)} by record size: {group_title(verdict, group)}",
        caption=_caption(found, sizes) + note + ("" if is_compared else grey_note(slots)),
        x=Axis("record size", "bytes", "log", ticks=size_ticks(sizes)),
        y=value_axis(metric, (t.value for t in found)),
        panels=panels,
        table=Table(
            summary_columns(verdict, metric.read_unit), tuple(summary_row(t) for t in found)
        ),
    )


def _rest(t: TreatmentSummary, is_compared: bool) -> str:
    """Return the cell's label without the record size, which is on the axis."""
    parts = [part for part in t.cell_label.split(" · ") if part]
    # A compared factor is in no cell's label; elsewhere the record size comes first, and another
    # size may read the same.
    if not is_compared and t.levels[FACTOR] in parts:
        parts.remove(t.levels[FACTOR])
    return " · ".join(parts)


def _by_panel(
    found: list[TreatmentSummary], is_compared: bool
) -> dict[str, list[TreatmentSummary]]:
    panels: dict[str, list[TreatmentSummary]] = {}
    for t in found:
        rest = _rest(t, is_compared)
        panels.setdefault(f"{t.operation} · {rest}" if rest else t.operation, []).append(t)
    return panels


def _series(
    members: list[TreatmentSummary], slots: dict[str, int], is_compared: bool
) -> tuple[Series, ...]:
    by_level: dict[str, list[TreatmentSummary]] = {}
    for t in members:
        name = FACTOR if is_compared else (t.level or "all")
        by_level.setdefault(name, []).append(t)
    return tuple(
        Series(
            name,
            tuple(
                summary_point(t, numeric_level(t.levels[FACTOR]), 0)
                for t in sorted(group, key=lambda t: numeric_level(t.levels[FACTOR]) or 0)
            ),
            0 if is_compared else slots.get(name, GREY),
            is_joined=True,
        )
        for name, group in by_level.items()
    )


def _caption(found: list[TreatmentSummary], sizes: list[str]) -> str:
    """Say how much the largest record size changes against the smallest, over all treatments."""
    first = [t.value for t in found if t.levels[FACTOR] == sizes[0]]
    last = [t.value for t in found if t.levels[FACTOR] == sizes[-1]]
    label = METRIC_BY_NAME[found[0].metric].label
    low, high = sum(first) / len(first), sum(last) / len(last)
    return (
        f"From {sizes[0]} to {sizes[-1]} records the mean {label} changes by a factor of"
        f" {high / low:.2g}; bars are 95 % intervals, lines join sizes of one level."
    )
