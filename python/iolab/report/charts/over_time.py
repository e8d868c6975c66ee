"""Throughput over time inside the median trial of each treatment."""

from __future__ import annotations

from dataclasses import replace

from iolab.report.chart import GREY, Axis, ChartSpec, Panel, Point, Series, Table, Value
from iolab.report.charts.common import (
    cap_panels,
    cells_in_order,
    level_slots,
    operations_first,
)
from iolab.stats.lookups import of_metric
from iolab.stats.methods.stalls import SLICES_MIN, find_stalls
from iolab.stats.metrics.metric import format_bytes_per_s, in_rate_unit, rate_unit
from iolab.stats.verdict import StudyVerdict
from iolab.store.rows import Measurement, SeriesRow, StudyData

POINTS_MAX = 150
"""Points drawn per line; longer series are averaged over neighbours, the sum of bytes is kept."""

SLICES_DRAWN_MIN = 10
TABLE_ROWS_MAX = 6_000
"""Of longer series the table has only what is drawn in colour."""


def build(data: StudyData, verdict: StudyVerdict) -> list[ChartSpec]:
    """Draw one chart per workload; panels are operations at their other levels."""
    slots = level_slots(data, verdict)
    return [
        replace(_spec(workload, _long(panels), slots), marks=change_marks(data, workload))
        for workload, panels in chosen_panels(data, verdict).items()
    ]


Panels = dict[str, list[tuple[str, SeriesRow]]]
"""Panel title to levels with the series of their median trials."""


def _long(panels: Panels) -> Panels:
    """Leave out the cells whose series are too short to show anything, if others are not."""
    kept = {
        title: members
        for title, members in panels.items()
        if max(len(row.bytes) for _, row in members) >= SLICES_DRAWN_MIN
    }
    return kept or panels


def chosen_panels(data: StudyData, verdict: StudyVerdict) -> dict[str, Panels]:
    """Series of the median trials, by workload; several charts draw them."""
    known = data.derived.get("chosen_panels")
    if known is None:
        known = data.derived["chosen_panels"] = _chosen_panels(data, verdict)
    return known


def _chosen_panels(data: StudyData, verdict: StudyVerdict) -> dict[str, Panels]:
    series = {(s.trial_id, s.operation): s for s in data.series if s.bytes and s.interval_ns > 0}
    found: dict[str, Panels] = {}
    for (workload, panel, level), m in _median_trials(data, verdict).items():
        row = series.get((m.trial_id, m.operation))
        if row is not None:
            found.setdefault(workload, {}).setdefault(panel, []).append((level, row))
    return {
        workload: {
            title: panels[title] for title in operations_first(cells_in_order(data, list(panels)))
        }
        for workload, panels in found.items()
    }


def change_marks(data: StudyData, workload: str) -> tuple[tuple[float, str], ...]:
    """What changed while a workload ran: seconds and ``scheduler = bfq``, as planned."""
    own = {trial.trial_id for trial in data.trials if trial.workload == workload}
    texts = {
        (mark.asked_ns, f"{mark.knob} = {mark.after or '?'}")
        for mark in data.marks
        if mark.trial_id in own
    }
    return tuple((at_ns / 1e9, text) for at_ns, text in sorted(texts))


def _median_trials(
    data: StudyData, verdict: StudyVerdict
) -> dict[tuple[str, str, str], Measurement]:
    """Pick, per (workload, panel, level), the trial with the lower median throughput."""
    by_treatment: dict[tuple[str, str, str], list[Measurement]] = {}
    varying = {f for f, levels in data.study.factors.items() if len(levels) > 1}
    for m in of_metric(data, "throughput_bytes_per_s"):
        if not m.value > 0:
            continue
        rest = [
            level
            for name, level in sorted(m.levels.items())
            if name != verdict.compared_factor and name in varying
        ]
        panel = " · ".join([m.operation, *rest])
        level = m.levels.get(verdict.compared_factor, "all")
        by_treatment.setdefault((m.workload, panel, level), []).append(m)
    return {
        key: sorted(found, key=lambda m: (m.value, m.trial_id))[(len(found) - 1) // 2]
        for key, found in by_treatment.items()
    }


def _spec(
    workload: str, panels: dict[str, list[tuple[str, SeriesRow]]], slots: dict[str, int]
) -> ChartSpec:
    drawn, note = cap_panels(
        [
            Panel(
                title,
                tuple(
                    Series(level, _points(level, row), slots.get(level, 0), is_joined=True)
                    for level, row in sorted(members, key=lambda item: slots.get(item[0], 99))
                    if slots.get(level, 0) != GREY
                ),
            )
            for title, members in panels.items()
        ]
    )
    rows = [(title, level, row) for title, members in panels.items() for level, row in members]
    tabled = rows
    if sum(len(row.bytes) for *_, row in rows) > TABLE_ROWS_MAX:
        titles = {panel.title for panel in drawn}
        tabled = [r for r in rows if r[0] in titles and slots.get(r[1], GREY) != GREY]
        note += " The table has what is drawn in colour; study.db has all."
    caption = _stalls_said([row for *_, row in rows])
    return ChartSpec(
        name=f"over_time-{workload}",
        kind="plane",
        title=f"Throughput over time, median trial per treatment: {workload}",
        caption=f"{caption} Each panel has its own scale.{note}{_undrawn(slots)}",
        x=Axis("time since the phase began", "s", is_from_zero=True),
        y=Axis("throughput", rate_unit(), is_from_zero=True),
        panels=drawn,
        has_own_scales=True,
        table=Table(
            ("panel", "level", "trial", "time (s)", "throughput (bytes/s)"),
            tuple(_table_rows(tabled)),
        ),
    )


def _undrawn(slots: dict[str, int]) -> str:
    """Say how many levels are left out of the panels, if any."""
    grey = sum(slot == GREY for slot in slots.values())
    return f" {grey} of {len(slots)} levels are not drawn." if grey else ""


def _rates(row: SeriesRow) -> list[tuple[float, float]]:
    """Return (end of interval in s, bytes/s); the last interval is partial and is left out."""
    counts = row.bytes[:-1] if len(row.bytes) > 2 else row.bytes
    stride = -(-len(counts) // POINTS_MAX)
    seconds = row.interval_ns / 1e9
    merged = [counts[i : i + stride] for i in range(0, len(counts), stride)]
    return [
        ((i * stride + len(part)) * seconds, sum(part) / (len(part) * seconds))
        for i, part in enumerate(merged)
    ]


def _points(level: str, row: SeriesRow) -> tuple[Point, ...]:
    return tuple(
        Point(x, in_rate_unit(y), title=f"{level}: {format_bytes_per_s(y)} at {x:.3g} s")
        for x, y in _rates(row)
    )


def _table_rows(rows: list[tuple[str, str, SeriesRow]]) -> list[tuple[Value, ...]]:
    return [
        (title, level, row.trial_id, round(x, 6), y)
        for title, level, row in rows
        for x, y in _rates(row)
    ]


def _stalls_said(rows: list[SeriesRow]) -> str:
    """Say how many median trials stall, of those that are long enough to tell."""
    told = [find_stalls(r.ops[:-1], r.interval_ns) for r in rows if len(r.ops) > SLICES_MIN]
    if not told:
        return f"Trials of {SLICES_MIN} slices or fewer do not tell whether they stall."
    slow = sum(stalls.longest_ns > 0 for stalls in told)
    whose = f"the {len(told)} median trials"
    if len(told) < len(rows):
        whose += f" that are long enough to tell (of {len(rows)})"
    if not slow:
        return f"None of {whose} stalls."
    return f"{slow} of {whose} {'stalls' if slow == 1 else 'stall'} at least once."
